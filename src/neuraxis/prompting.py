"""Plugins and a dialect flow in; what a model is sent flows out.

Its constant part comes first and is the same from turn to turn, byte for byte, so that
a server or the embedded model can keep what it made of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from neuraxis.dialects import Dialect
from neuraxis.messages import Message, Prompt
from neuraxis.plugins.registry import Registry
from neuraxis.said import Said


def constant_prompt(registry: Registry, dialect: Dialect) -> Prompt:
    """The part that is made once for a registry."""
    specs, names = registry.specs, registry.tool_names
    return Prompt(
        messages=(Message(role="system", content=dialect.prompt(specs, names)),),
        constant=1,
        stop=dialect.stop,
        plugins=specs,
        tool_names=names,
        write=dialect.write,
        native_tools=dialect.native_tools(specs, names),
    )


def with_messages(constant: Prompt, messages: Sequence[Message]) -> Prompt:
    """The constant part, then what was said."""
    before = tuple(constant.messages)
    return Prompt(
        messages=messages.after(before)
        if isinstance(messages, Said)
        else Said(messages, before=before),
        constant=1,
        stop=constant.stop,
        plugins=constant.plugins,
        tool_names=constant.tool_names,
        write=constant.write,
        native_tools=constant.native_tools,
    )
