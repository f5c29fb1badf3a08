"""Scripted model: replies from a file, a list or a function.

It is a normal model: sessions, the command line and tests use it where another model
would stand. A script is a YAML or JSON list; each reply is a text, or a mapping with
the keys of `ScriptedReply`:

    - |
      {"receiver": {"role": "user"}, "content": "Hello"}
    - text: "[]"
      expect: ["population of Lyon"]   # what the prompt must contain
      finish_reason: stop
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from inspect import iscoroutine
from pathlib import Path
from typing import Any, cast, get_args

from msgspec import Struct

from neuraxis.errors import (
    ConfigError,
    ModelBroken,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from neuraxis.formatting import (
    describe_given,
    did_you_mean,
    nearest,
    quote,
    why_unusable,
)
from neuraxis.messages import (
    Chunk,
    FinishReason,
    NativeCall,
    Prompt,
    ToolCallDelta,
    Usage,
)
from neuraxis.models.media_parts import with_shown
from neuraxis.settings import Settings
from neuraxis.specs import Json

ERRORS: Mapping[str, type[ModelError]] = {
    "unavailable": ModelUnavailable,
    "refused": ModelRefused,
    "timeout": ModelTimeout,
    "broken": ModelBroken,
}
"""Exceptions by the word of `error:` in a script."""


class ScriptedReply(Struct, frozen=True, kw_only=True):
    """One reply of a script.

    `chunks` are the pieces to stream instead of `text`. `expect` are texts that the
    prompt must contain. `delay` is the pause before each piece. `error` (a word of
    `ERRORS`, a colon, a message) is raised after the text.
    """

    text: str = ""
    chunks: tuple[str, ...] = ()
    reasoning: str = ""
    finish_reason: FinishReason = "stop"
    tool_calls: tuple[NativeCall, ...] = ()
    usage: Usage | None = None
    expect: tuple[str, ...] = ()
    delay: float = 0.0
    error: str = ""
    status: int | None = None


Scripted = str | Mapping[str, Json] | ScriptedReply
"""Type of a script's items: a text, a mapping, or a reply."""
_IN_YAML = (
    "Write JSON that the model is to say as a block of text, after a line with '- |'."
)
_IN_PYTHON = (
    "A list of replies may hold texts, ScriptedReply, and mappings with its keys; "
    'write a call as a text of JSON: \'[{"tool": "NAME"}]\'. A function that returns '
    "such a reply, a plain `def`, stands in place of the list: ScriptedModel(function)."
)


class ScriptedModel:
    """Model that streams written replies, one per prompt.

    Args:
        replies: the replies in order, one text, or a function that makes a reply from
            the prompt.
        name: its name in errors.
        chunk_size: texts are streamed in pieces of that many characters; 0: whole.
        sees: whether it is shown pictures, and not words for them.
    """

    def __init__(
        self,
        replies: Iterable[Scripted] | Callable[[Prompt], Scripted],
        *,
        name: str = "scripted:",
        chunk_size: int = 0,
        sees: bool = False,
    ) -> None:
        self.name, self.sees = name, sees
        self.prompts: list[Prompt] = []
        """Every prompt so far, in order."""
        self._chunk_size = chunk_size
        self._function: Callable[[Prompt], Scripted] | None = None
        self._replies: tuple[ScriptedReply, ...] = ()
        self._problem: ModelError | None = None
        if callable(replies):
            self._function = replies
        else:
            # one text is one reply, and not one for each of its characters
            is_one = isinstance(replies, str | Mapping) or not hasattr(
                replies, "__iter__"
            )
            items = cast("Iterable[Scripted]", (replies,) if is_one else replies)
            self._replies = tuple(
                read_reply(reply, f"{name}: reply {number}")
                for number, reply in enumerate(items, 1)
            )

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r}, {len(self.prompts)} said)"

    @property
    def unused(self) -> int:
        """Return the number of remaining replies."""
        return max(len(self._replies) - len(self.prompts), 0)

    def finish(self) -> None:
        """Check that all replies were used and nothing else was asked.

        Raises:
            ModelError: an earlier prompt was not the expected one, or came too late.
            ConfigError: replies remain.
        """
        if self._problem is not None:
            raise self._problem
        if self.unused:
            first = self._replies[len(self.prompts)]
            raise ConfigError(
                f"{self.name}: {self.unused} of {len(self._replies)} replies were not "
                f"asked for; the first of them is {quote(first.text)}"
            )

    async def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
        """Stream the next reply."""
        reply = self._next(prompt)
        if reply.reasoning:
            yield Chunk(reasoning=reply.reasoning)
        for piece in reply.chunks or _pieces(reply.text, self._chunk_size):
            if reply.delay:
                await asyncio.sleep(reply.delay)
            yield Chunk(text=piece)
        if reply.error:
            raise _error(reply, self.name)
        yield Chunk(
            tool_calls=tuple(
                ToolCallDelta(
                    index=index, id=call.id, name=call.name, arguments=call.arguments
                )
                for index, call in enumerate(reply.tool_calls)
            ),
            finish_reason=reply.finish_reason,
            usage=reply.usage,
        )

    async def close(self) -> None:
        """Do nothing; `finish` checks for remaining replies."""

    def _next(self, prompt: Prompt) -> ScriptedReply:
        number = len(self.prompts)
        prompt = with_shown(prompt, lambda part: True)
        self.prompts.append(prompt)
        place = f"{self.name}: reply {number + 1}"
        if self._function is not None:
            return read_reply(self._function(prompt), place)
        if number >= len(self._replies):
            count = len(self._replies)
            replies = "1 reply" if count == 1 else f"{count or 'no'} replies"
            self._problem = ModelUnavailable(
                f"{self.name.removesuffix(':')}: the script has {replies} and was "
                f"asked for one more. The last message was {_last(prompt)}"
            )
            raise self._problem
        reply = self._replies[number]
        if reply.expect:
            prompt_text = "\n".join(message.content for message in prompt.messages)
            for expected in reply.expect:
                if expected not in prompt_text:
                    self._problem = ModelRefused(
                        f"{place}: expected the prompt to contain {expected!r}. "
                        f"The last message was {_last(prompt)}"
                    )
                    raise self._problem
        return reply


def from_name(rest: str, settings: Settings) -> ScriptedModel:
    """Return the model of `scripted:FILE`."""
    if not rest:
        raise ConfigError("scripted: expected scripted:FILE, got no file name")
    size = settings.get("models.scripted.chunk_size", 0)
    try:
        return load_script(Path(rest).expanduser(), chunk_size=int(size))
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"models.scripted.chunk_size: expected an integer, got {quote(size)}"
        ) from error


def load_script(path: Path, *, chunk_size: int = 0) -> ScriptedModel:
    """Return the model for a script, a YAML or JSON file.

    Raises:
        ConfigError: the file cannot be read, or is not a script.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {why_unusable(error)}") from error
    import yaml  # imported here: only files need it

    read = json.loads if path.suffix == ".json" else yaml.safe_load
    try:
        tree: Json = read(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{path}: not a script: {error}") from error
    if tree is None:
        tree = []
    if not isinstance(tree, list):
        raise ConfigError(f"{path}: expected a list of replies, got {quote(tree)}")
    name = f"scripted:{path}"
    replies = [
        read_reply(reply, f"{name}: reply {number}", _IN_YAML)
        for number, reply in enumerate(cast("list[Scripted]", tree), 1)
    ]
    return ScriptedModel(replies, name=name, chunk_size=chunk_size)


_KEYS = tuple(ScriptedReply.__annotations__)


def read_reply(
    value: Scripted, where: str = "reply", advice: str = _IN_PYTHON
) -> ScriptedReply:
    """Return a reply from its written form; `advice` ends the error.

    Raises:
        ConfigError: it is neither a text nor a mapping of the known keys.
    """
    if isinstance(value, ScriptedReply):
        return value
    if isinstance(value, str):
        return ScriptedReply(text=value)
    if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - files hold anything
        given: Any = value
        if iscoroutine(given):
            given.close()  # else Python warns that it was never awaited
        found = quote(given) if advice is _IN_YAML else describe_given(given)
        raise ConfigError(
            f"{where}: expected a string or a mapping, got {found}. {advice}"
        )
    for key in value:
        if key not in _KEYS:
            hint = did_you_mean(nearest(str(key), _KEYS, 1))
            raise ConfigError(
                f"{where}: unknown key {quote(key)}.{hint} Keys are: "
                f"{', '.join(_KEYS)}. {advice}"
            )
    try:
        return _from_mapping(value)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _from_mapping(value: Mapping[str, Json]) -> ScriptedReply:
    finish = value.get("finish_reason", "stop")
    if finish not in get_args(FinishReason):
        raise ValueError(
            f"finish_reason: expected one of {', '.join(get_args(FinishReason))}, "
            f"got {quote(finish)}"
        )
    usage = value.get("usage")
    error = _text(value, "error")
    if error and error.partition(":")[0] not in ERRORS:
        raise ValueError(
            f"error: expected a word of {', '.join(ERRORS)}, a colon and a message, "
            f"got {quote(error)}"
        )
    return ScriptedReply(
        text=_text(value, "text"),
        chunks=_texts(value, "chunks"),
        reasoning=_text(value, "reasoning"),
        finish_reason=finish,
        tool_calls=tuple(
            _native_call(call, index)
            for index, call in enumerate(value.get("tool_calls") or ())
        ),
        usage=None if usage is None else Usage(**usage),
        expect=_texts(value, "expect"),
        delay=float(value.get("delay") or 0),
        error=error,
        status=value.get("status"),
    )


def _native_call(value: Mapping[str, Json], index: int) -> NativeCall:
    if "name" not in value:
        raise ValueError(f"tool_calls[{index}]: expected a key 'name'")
    arguments = value.get("arguments", "{}")
    return NativeCall(
        id=str(value.get("id") or f"call_{index}"),
        name=str(value["name"]),
        arguments=arguments
        if isinstance(arguments, str)
        else json.dumps(arguments, ensure_ascii=False),
    )


def _text(value: Mapping[str, Json], key: str) -> str:
    text = value.get(key, "")
    if not isinstance(text, str):
        raise TypeError(f"{key}: expected a string, got {quote(text)}")
    return text


def _texts(value: Mapping[str, Json], key: str) -> tuple[str, ...]:
    entries: Json = value.get(key) or ()
    items: Json = (entries,) if isinstance(entries, str) else entries
    if not isinstance(items, (list, tuple)):
        raise TypeError(f"{key}: expected a list of texts, got {quote(entries)}")
    for item in cast("list[Json]", items):
        if not isinstance(item, str):
            raise TypeError(f"{key}: expected texts, got {quote(item)}")
    return tuple(cast("list[str]", items))


def _pieces(text: str, size: int) -> Iterator[str]:
    if not text:
        return
    step = size if size > 0 else len(text)
    for start in range(0, len(text), step):
        yield text[start : start + step]


def _error(reply: ScriptedReply, name: str) -> ModelError:
    word, _, message = reply.error.partition(":")
    return ERRORS[word](message.strip() or f"{name}: {word}", status=reply.status)


def _last(prompt: Prompt) -> str:
    text = prompt.messages[-1].content if prompt.messages else ""
    return repr(text if len(text) <= 200 else "…" + text[-200:])
