"""Record a model's replies in a script file.

`scripted:FILE` reads the file. It has the model's replies but no prompt, no header and
no key.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import yaml

from neuraxis.errors import ModelError, StorageError
from neuraxis.messages import Chunk, Prompt
from neuraxis.models import Model, guesses
from neuraxis.models.accumulate import Joiner, close_model, close_stream
from neuraxis.models.media_parts import sees
from neuraxis.models.scripted import ERRORS
from neuraxis.specs import Json

_HALVES = re.compile(r"(?<!\\)((?:\\\\)*)\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})")
HEAD = "# A script for Neuraxis: replay it with the model scripted:THIS_FILE\n"


class Recorder:
    """Passes on the chunks of another model, and records its replies.

    The file is written whole after each reply, so that it is never half a script. An
    old one is replaced by the first reply. A stream that is closed before its end
    leaves no reply; a `ModelError` is recorded as one.
    """

    def __init__(self, model: Model, path: Path | str) -> None:
        self._model = model
        self.sees = sees(model)
        self.guesses = guesses(model)
        self.finds_tools = bool(getattr(model, "finds_tools", False))
        self._path = Path(path)
        self._entries: list[str] = []

    @property
    def name(self) -> str:
        """Return the name of the recorded model."""
        return self._model.name

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """Stream the other model's completion."""
        joined = Joiner()
        # concurrent streams end in any order: places are reserved in request order
        place = len(self._entries)
        self._entries.append("")
        try:
            chunks = self._model.stream(prompt)
            try:
                async for chunk in chunks:
                    joined.add(chunk)
                    yield chunk
            finally:
                await close_stream(chunks)
            self._keep(place, _completed(joined, self.name))
        except ModelError as error:
            self._keep(place, _failed(joined, error))
            raise

    async def close(self) -> None:
        """Close the other model."""
        await close_model(self._model)

    def _keep(self, place: int, reply: Json) -> None:
        self._entries[place] = entry(reply)
        try:
            _replace(self._path, HEAD + "".join(self._entries))
        except OSError as error:
            raise StorageError(
                f"{self._path}: the recording cannot be written: {error}"
            ) from error


def entry(reply: Json) -> str:
    """Return one reply as a YAML list item, with block texts."""
    written: str = yaml.dump(
        [reply],
        Dumper=_dumper(),
        allow_unicode=True,
        sort_keys=False,
        width=2**31 - 1,
    )
    # Some characters do not survive a block; JSON is YAML too and preserves all, but
    # that YAML does not join the two halves of a character.
    if yaml.safe_load(written) == [reply]:
        return written
    return f"- {_HALVES.sub(_joined, json.dumps(reply))}\n"


def _joined(pair: re.Match[str]) -> str:
    high, low = int(pair[2], 16), int(pair[3], 16)
    code = 0x10000 + (high - 0xD800) * 0x400 + low - 0xDC00
    return f"{pair[1]}\\U{code:08x}"


def _completed(joined: Joiner, name: str) -> Json:
    completion = joined.completion(name)
    reply: dict[str, Json] = {"text": completion.text}
    if joined.reasoning:
        reply["reasoning"] = joined.reasoning
    if completion.tool_calls:
        reply["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in completion.tool_calls
        ]
    if completion.finish_reason != "stop":
        reply["finish_reason"] = completion.finish_reason
    if (usage := joined.usage) is not None:
        reply["usage"] = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
        }
    return completion.text if list(reply) == ["text"] else reply


def _failed(joined: Joiner, error: ModelError) -> Json:
    error_kind = next(
        (error_kind for error_kind, kind in ERRORS.items() if isinstance(error, kind)),
        "broken",
    )
    reply: dict[str, Json] = {"text": joined.text} if joined.text else {}
    reply["error"] = f"{error_kind}: {error}"
    if error.status is not None:
        reply["status"] = error.status
    return reply


def _dumper() -> type[yaml.SafeDumper]:
    class Blocks(yaml.SafeDumper):
        """YAML dumper that writes texts of several lines as blocks."""

    def text(dumper: Any, value: str) -> Any:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Blocks.add_representer(str, text)
    return Blocks


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"
    )
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
