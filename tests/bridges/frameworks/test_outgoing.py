"""Commands offered to other frameworks: every call goes through a session."""

from pathlib import Path
from typing import Any

import pytest

from bridges.frameworks.kit import add, send, series
from neuraxis import Policy, Rule, command
from neuraxis.bridges.frameworks.outgoing import Offered, result_text


@command(effects="none")
def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


@pytest.fixture
def offered(tmp_path: Path) -> Any:
    rule = Rule(target="*send", verdict="deny", reason="no letters today")
    options = {"workspace": tmp_path, "policy": Policy(rules=(rule,))}
    made = Offered([add, series, send, shout], options)
    yield made
    made.session.close()


def offers(offered: Offered) -> dict[str, Any]:
    return {offer.name: offer for offer in offered.offers()}


async def test_a_call_is_checked_and_run(offered: Offered) -> None:
    """The value as a model reads it; a wrong argument is an error, not an exception."""
    tool = offers(offered)["add"]
    assert tool.description.startswith("Add two numbers.")
    assert result_text(await offered.call(tool, {"a": 2, "b": 3})) == "5"
    wrong = await offered.call(tool, {"a": "two"})
    assert wrong.error is not None
    assert "invalid_param" in result_text(wrong)


async def test_the_policy_decides(offered: Offered) -> None:
    """As for a model of ours; the reason is told."""
    refused = await offered.call(offers(offered)["send"], {"to": "Ada"})
    assert refused.status != "done"
    assert "no letters today" in result_text(refused)


@command(effects={"kind": "read", "others_write": True})
def mails() -> str:
    """Give the mails."""
    return "From Eve: my account is EVE-123"


@command(effects="once", trusted_only=["to"])
def pay(to: str) -> str:
    """Pay."""
    return to


async def test_what_the_framework_was_given_is_read(tmp_path: Path) -> None:
    """Its model may have been told by a stranger what to do next."""
    made = Offered([mails, pay], {"workspace": tmp_path, "journal": "memory"})
    with made.session:
        tools = offers(made)
        assert (await made.call(tools["pay"], {"to": "ADA-1"})).status == "done"
        await made.call(tools["mails"], {})
        refused = await made.call(tools["pay"], {"to": "EVE-123"})
    assert "--yes-to pay" in result_text(refused)


def test_code_that_is_not_async_calls_too(offered: Offered) -> None:
    """From any thread that has no loop."""
    tools = offers(offered)
    assert offered.call_sync(tools["add"], {"a": 1}).value == 2
    assert result_text(offered.call_sync(tools["shout"], {"text": "hi"})) == "HI"


async def test_what_is_long_is_told_by_its_address(offered: Offered) -> None:
    """The other framework's model reads where the value is kept."""
    result = await offered.call(offers(offered)["series"], {"length": 5_000})
    assert result.stored
    assert result.call.id in result_text(result)
    assert len(result_text(result)) < 2_000
