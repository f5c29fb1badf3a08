"""Local model: a GGUF weights file, run in this process.

It uses the file's chat template. A block of calls is constrained by a grammar of the
commands' schemas; with native tools llama.cpp does the same in the model's format.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from neuraxis.errors import (
    ConfigError,
    MissingExtra,
    ModelBroken,
    ModelError,
    ModelRefused,
)
from neuraxis.messages import Chunk, Prompt
from neuraxis.models.gguf.engine import Engine, Setup, engine_of
from neuraxis.models.gguf.files import file_of
from neuraxis.models.http.answers import ServerError
from neuraxis.models.http.server_hints import refusal
from neuraxis.models.http.settings import Options, integer, options_for
from neuraxis.models.openai.request import request_body
from neuraxis.models.openai.stream import Frames
from neuraxis.parsing.json_access import as_list
from neuraxis.settings import Settings
from neuraxis.specs import Json

MOST_TOKENS = 2048
"""Default maximum tokens of an answer: small models repeat for ever."""


class GgufModel:
    """Model in a file.

    Args:
        file: finds the file, and may download it; called once, in a thread.
        name: its name in events and errors.
        options: sampling and tool choice.
        setup: options for running the file.
    """

    def __init__(
        self,
        file: Callable[[], Path],
        *,
        name: str,
        options: Options | None = None,
        setup: Setup | None = None,
    ) -> None:
        self.name = name
        self._file = file
        self._options = replace(options or Options(), grammar="llama.cpp")
        self._setup = setup or Setup()
        self._engine: Engine | None = None

    async def close(self) -> None:
        """Release the memory; the next request loads the file again."""
        self._engine = None

    async def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
        """Return the completion in pieces.

        Raises:
            ModelError: the file is unavailable, or the request is too large for it.
        """
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[Json | Exception] = asyncio.Queue()
        stop = threading.Event()

        def put(piece: Json | Exception) -> None:
            with suppress(RuntimeError):  # the event loop was closed in the meantime
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        def take(piece: Json) -> bool:
            put(piece)
            return stop.is_set()

        def run() -> None:
            try:
                put(self._ask(prompt, take, stop))
            except Exception as error:  # noqa: BLE001  it is raised in the loop
                put(error)
            put(None)

        reader = Frames()
        loop.run_in_executor(None, run)
        try:
            while (piece := await pieces.get()) is not None:
                if isinstance(piece, Exception):
                    raise self._error(piece) from piece
                for frame in as_list(piece) or [piece]:
                    fields = cast("dict[str, Json]", frame)
                    if fields and (chunk := reader.frame(fields)) is not None:
                        yield chunk
            yield reader.finish()
        except ServerError as error:
            raise self._error(error) from error
        finally:
            stop.set()  # the thread stops at the next piece, or portion of the prompt

    def _ask(
        self, prompt: Prompt, take: Callable[[Json], bool], stop: threading.Event
    ) -> Json:
        if self._engine is None:
            self._engine = engine_of(self._file(), self._setup)
        engine = self._engine
        if prompt.native_tools and not engine.has_tools():
            raise ModelRefused(
                f"{self.name}: its chat template has no tools, which the dialect "
                "native needs. Choose dialect = intents."
            )
        if stop.is_set():
            return {}
        body = {
            "max_tokens": MOST_TOKENS,
            **request_body(prompt, self.name, self._options),
            "return_progress": True,  # one progress message per portion of the prompt
        }
        last = engine.ask(body, prompt.constant, take, stop.is_set)
        return cast("Json", last) if isinstance(last, dict) else {}

    def _error(self, error: Exception) -> Exception:
        if isinstance(error, (ModelError, MissingExtra, ConfigError)):
            return error
        if isinstance(error, ServerError) and error.status == 400:
            return ModelRefused(f"{self.name}: {error}{refusal(str(error))}")
        return ModelBroken(f"{self.name}: {error}")


def from_name(rest: str, settings: Settings) -> GgufModel:
    """Return the model of `local:PATH`, `local:hf:OWNER/REPO/FILE` or a known name.

    Settings: `local.threads`, `local.context`, `local.parallel`, `local.states_mb`,
    and `local.fetch` ("never": nothing is downloaded while running).
    """
    chosen: dict[str, Any] = {}
    for key in ("threads", "context", "parallel", "states_mb"):
        if (value := settings.get(f"local.{key}")) is not None:
            chosen[key] = integer(value, f"local.{key}")
    may_fetch = settings.get("local.fetch") != "never"
    file = file_of(rest, may_fetch=may_fetch)
    return GgufModel(
        file,
        name=f"local:{rest}",
        options=options_for(rest, settings),
        setup=Setup(**chosen),
    )
