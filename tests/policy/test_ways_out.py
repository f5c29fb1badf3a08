"""What a refusal says a program can do about it."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from neuraxis import Policy, Session, command
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.functions.command import plugin_from
from neuraxis.plugins.registry import Plugin
from neuraxis.specs import EffectKind, Effects

DECLARE = 'If add only reads, declare it in the program: mcp(..., effects={"add": '


def _of_server(kind: EffectKind, place: str) -> Plugin:
    """A plugin as it is made for a server's tools."""
    effects = Effects(kind=kind, destructive=kind == "once", declared=True)

    @command(effects=effects)
    def add(a: int) -> str:
        """Add."""
        return f"{a}"

    plugin = plugin_from(add, name="calc")
    spec = replace(plugin.spec, source=place)
    for item in plugin.commands.values():
        item.plugin, item.function = spec, None
    return replace(plugin, spec=spec)


@pytest.mark.parametrize(
    ("kind", "place", "is_told"),
    [
        ("once", "mcp:npx calc", True),
        ("idempotent", "mcp:npx calc", False),
        ("once", "openapi:calc.json", False),
    ],
)
def test_a_servers_command_can_be_declared(
    kind: EffectKind, place: str, is_told: bool
) -> None:
    """Its second call is refused, as the first answer is from outside."""
    calls = [f'[{{"tool": "add", "a": {number}}}]' for number in (71, 72)]
    model = ScriptedModel([*calls, "done"])
    with Session(model, plugins=[_of_server(kind, place)]) as session:
        first, second = session.run_sync("Add some numbers").calls
    assert (first.status, second.status) == ("done", "failed")
    assert second.error is not None
    assert 'Policy(yes_to=["calc.add"])' in second.error.message
    assert (DECLARE in second.error.message) is is_told


def test_a_call_of_unknown_outcome_can_be_settled() -> None:
    """What helps is said, and helps; `yes_to` does not."""

    async def slow() -> str:
        """Be slow."""
        await asyncio.sleep(60)
        return "done"

    marked = command(time_limit=0.05)(slow)
    model = ScriptedModel(['[{"tool": "slow"}]'] * 3 + ["done"] * 3)
    policy = Policy(yes_to=["slow.*"])
    with Session(model, plugins=[marked], policy=policy) as session:
        first, second, *_ = session.run_sync("Be slow").calls
        assert first.error is not None
        assert first.error.code == "timeout"
        assert second.error is not None
        assert second.error.code == "denied"
        told = second.error.message
        assert f'session.settle("{first.call.id}", happened) records that' in told
        assert "If slow only reads, declare it in the program: @command(" in told
        session.settle(first.call.id, False)
        assert not session.unknown_calls
