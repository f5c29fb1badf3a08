"""A command whose one bare value is optional runs without it (rule K3)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from neuraxis import Session
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Command, Plugin
from neuraxis.specs import CommandSpec, Effects, PluginSpec


async def bare(*given: Any) -> list[Any]:
    """What it was given."""
    return list(given)


async def with_context(*given: Any, context: Context) -> list[Any]:
    """What it was given, and a context."""
    assert context.call_id == "a1"
    return list(given)


@pytest.mark.parametrize(("run", "context"), [(bare, ""), (with_context, "context")])
@pytest.mark.parametrize(
    ("schema", "arguments", "received"),
    [
        ({"type": "string", "x-optional": True}, {}, []),
        ({"type": "string", "x-optional": True}, "x", ["x"]),
        ({"x-optional": True}, {}, [{}]),  # an object is a value where any is
        ({"x-optional": True}, {"a": 1}, [{"a": 1}]),
    ],
)
def test_K3_a_bare_value_is_passed_or_left_out(
    run: Any, context: str, schema: Any, arguments: Any, received: list[Any]
) -> None:
    """By position, also where it is an object; nothing where nothing was given."""
    spec = CommandSpec(name="do", parameters=schema, effects=Effects(kind="read"))
    plugin = PluginSpec(name="p", commands=(spec,))
    command = Command(
        plugin=plugin, spec=spec, run=run, is_async=True, context_name=context
    )
    source = Plugin(spec=plugin, commands={"do": command})
    with Session(model=ScriptedModel([]), plugins=[source]) as session:
        call = Call(id="a1", plugin="p", command="do", arguments=arguments)
        result = asyncio.run(session.call(call))
    assert result.value == received
