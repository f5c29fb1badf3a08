"""The ways calls and answers are written: text of a model in, calls out, and back.

A dialect is one module here that offers what the `Dialect` protocol asks for. None
of them raises on what a model wrote: mistakes are `Reply.errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from neuraxis.errors import ConfigError
from neuraxis.formatting import did_you_mean, nearest
from neuraxis.messages import Call, CallError, Completion, Message, Reply, Result
from neuraxis.specs import Json, PluginSpec

DIALECTS = ("intents", "envelope_v1", "envelope_v2", "native")

ToolNames = Mapping[str, tuple[str, str]]
"""Tool name of the intent and native dialects -> (plugin, command)."""

ParameterNames = Callable[[str], Collection[str]]
"""The parameters of a tool; nothing where there is no such tool."""


class Dialect(Protocol):
    """One way of writing calls, results and errors."""

    @property
    def name(self) -> str:
        """The name a session and the journal know it by."""
        ...

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts at which a server may end the model's turn."""
        ...

    def prompt(self, plugins: Sequence[PluginSpec], tool_names: ToolNames) -> str:
        """The instruction text, the same in each turn."""
        ...

    def native_tools(
        self, plugins: Sequence[PluginSpec], tool_names: ToolNames
    ) -> tuple[Mapping[str, Json], ...]:
        """Tool definitions for the server; empty but for the native dialect."""
        ...

    def request(self, text: str) -> str:
        """What a person said, as the model reads it."""
        ...

    def decode(self, completion: Completion, *, next_id: Callable[[], str]) -> Reply:
        """The calls, texts and thoughts of a completion, or what is wrong with it."""
        ...

    def write(self, calls: Sequence[Call]) -> str:
        """The text a model would have written to make these calls."""
        ...

    def encode(self, results: Sequence[Result]) -> str:
        """The results as the model reads them."""
        ...

    def answer(self, results: Sequence[Result]) -> tuple[Message, ...]:
        """The results as messages of the conversation."""
        ...

    def correction(
        self, errors: Sequence[CallError], reply: Message
    ) -> tuple[Message, ...]:
        """What is wrong with `reply`, as messages of the conversation."""
        ...


def find_dialect(
    name: str,
    *,
    strict: bool = False,
    template: Path | None = None,
    parameter_names: ParameterNames | None = None,
) -> Dialect:
    """The dialect of that name.

    Args:
        name: one of `DIALECTS`.
        strict: take exactly what the protocol document says.
        template: a file with the user's own instruction text.
        parameter_names: lets the intent dialect tell a parameter from its own keys.

    Raises:
        ConfigError: there is no such dialect, or the template cannot be used.
    """
    match name:
        case "intents":
            from neuraxis.dialects.intents.dialect import Intents

            return Intents(
                strict=strict, template=template, parameter_names=parameter_names
            )
        case "envelope_v1" | "envelope_v2":
            from neuraxis.dialects.envelope.dialect import Envelope

            return Envelope(name=name, strict=strict, template=template)
        case "native":
            from neuraxis.dialects.native.dialect import Native

            return Native(strict=strict, template=template)
        case _:
            close = nearest(name, DIALECTS)
            hint = did_you_mean(close)
            raise ConfigError(
                f"dialect: expected one of {', '.join(DIALECTS)}, got {name!r}.{hint}"
            )
