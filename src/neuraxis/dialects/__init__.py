"""Dialects: the formats in which models write calls and read results.

A dialect is a package or module here that implements the `Dialect` protocol. None
raises an exception on a model's output: mistakes are in `Reply.errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from neuraxis.errors import ConfigError
from neuraxis.formatting import did_you_mean, nearest
from neuraxis.messages import Call, CallError, Chunk, Completion, Message, Reply, Result
from neuraxis.specs import Json, PluginSpec

DIALECTS = ("intents", "envelope_v1", "envelope_v2", "native")

ToolNames = Mapping[str, tuple[str, str]]
"""Tool name of the intent and native dialects -> (plugin, command)."""

ParameterNames = Callable[[str], Collection[str]]
"""Function that returns a tool's parameters; nothing for unknown tools."""


class Dialect(Protocol):
    """Format of calls, results and errors."""

    @property
    def name(self) -> str:
        """Return its name in sessions and the journal."""
        ...

    @property
    def stop(self) -> tuple[str, ...]:
        """Return stop sequences: texts at which a server may end the turn."""
        ...

    def prompt(self, plugins: Sequence[PluginSpec], tool_names: ToolNames) -> str:
        """Return the system prompt, the same in each turn."""
        ...

    def native_tools(
        self, plugins: Sequence[PluginSpec], tool_names: ToolNames
    ) -> tuple[Mapping[str, Json], ...]:
        """Return tool definitions for the server; empty unless native."""
        ...

    def notation(self, schema: Mapping[str, Json]) -> str:
        """Return an object's schema in the notation of the commands."""
        ...

    def request(self, text: str) -> str:
        """Return the user's request, as the model reads it."""
        ...

    def decode(self, completion: Completion, *, next_id: Callable[[], str]) -> Reply:
        """Decode a completion: calls, texts and thoughts, or its mistakes."""
        ...

    def write(self, calls: Sequence[Call]) -> str:
        """Return the text a model would write to make these calls."""
        ...

    def encode(self, results: Sequence[Result]) -> str:
        """Return the results as the model reads them."""
        ...

    def answer(self, results: Sequence[Result]) -> tuple[Message, ...]:
        """Return the results as messages of the conversation."""
        ...

    def correction(
        self, errors: Sequence[CallError], reply: Message
    ) -> tuple[Message, ...]:
        """Return the mistakes of `reply` as messages of the conversation."""
        ...


class EarlyReader(Protocol):
    """Reads one reply. `ended`: it will return no more calls."""

    ended: bool

    def feed(self, chunk: Chunk) -> Sequence[Call]:
        """Return the calls that this chunk completed, in order, without ids."""
        ...


@runtime_checkable
class ReadsEarly(Protocol):
    """Dialect whose calls can be read while the reply is streaming."""

    def early(self) -> EarlyReader:
        """Return a reader for one reply."""
        ...


def find_dialect(
    name: str,
    *,
    strict: bool = False,
    template: Path | None = None,
    parameter_names: ParameterNames | None = None,
    goes_on: bool = False,
) -> Dialect:
    """Return the dialect of that name.

    Args:
        name: one of `DIALECTS`.
        strict: accept exactly what the protocol document says.
        template: a file with the user's own instruction text.
        parameter_names: lets the intent dialect distinguish parameters from its own
            keys.
        goes_on: whether a failed step leaves out only what depends on it
            (`on_error="continue"`); else all after it.

    Raises:
        ConfigError: there is no such dialect, or the template cannot be used.
    """
    match name:
        case "intents":
            from neuraxis.dialects.intents.dialect import Intents

            return Intents(
                strict=strict,
                template=template,
                parameter_names=parameter_names,
                goes_on=goes_on,
            )
        case "envelope_v1" | "envelope_v2":
            from neuraxis.dialects.envelope.dialect import Envelope

            return Envelope(
                name=name, strict=strict, template=template, goes_on=goes_on
            )
        case "native":
            from neuraxis.dialects.native.dialect import Native

            return Native(strict=strict, template=template, goes_on=goes_on)
        case _:
            close = nearest(name, DIALECTS)
            hint = did_you_mean(close)
            raise ConfigError(
                f"dialect: expected one of {', '.join(DIALECTS)}, got {name!r}.{hint}"
            )
