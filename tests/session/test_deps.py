"""What a program hands to one run reaches its commands, typed."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Protocol, TypedDict

import pytest

from neuraxis import Call, ConfigError, Context, Session, agent, command
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings
from neuraxis.testing import call as call_once


@dataclasses.dataclass
class Shop:
    clerk: str


@command(effects="read")
def whoami(context: Context[Shop]) -> str:
    """Who is at work."""
    return context.deps.clerk


@command(effects="read")
async def maybe(context: Context[Shop] | None = None) -> str:
    """Who is at work, if anybody."""
    return "" if context is None else context.deps.clerk


def _session(*replies: Any, **given: Any) -> Session:
    given = {"plugins": [whoami, maybe], "settings": Settings(), **given}
    return Session(ScriptedModel([*replies]), **given)


def test_they_are_those_of_the_run() -> None:
    """Each run has its own; the model sees no parameter for them."""
    call = '[{"tool": "whoami"}, {"tool": "maybe"}]'
    with _session(call, "ok", call, "ok") as session:
        assert "context" not in session.prompt().messages[0].content
        for name in ("Ada", "Bob"):
            answer = session.run_sync("who?", deps=Shop(name))
            assert [result.value for result in answer.calls] == [name, name]


async def test_awaited_runs_and_calls_without_a_model_have_them() -> None:
    """Also where the events are watched."""
    call = Call(id="a1", plugin=None, command="whoami")
    with _session('[{"tool": "whoami"}]', "ok") as session:
        assert (await session.call(call, deps=Shop("Ada"))).value == "Ada"
        run = session.run("who?", deps=Shop("Bob"))
        async for _ in run:
            pass
        assert run.answer is not None
        assert run.answer.calls[0].value == "Bob"


def test_an_agent_has_those_of_the_run_around_it() -> None:
    """Without being told."""
    model = ScriptedModel(['[{"tool": "whoami"}]', "It is Ada."])
    asks = agent("asks", "Asks.", model=model, plugins=[whoami], effects="read")
    replies = ('[{"tool": "asks", "request": "who?"}]', "ok")
    with _session(*replies, plugins=[asks], deps=Shop) as session:
        answer = session.run_sync("go", deps=Shop("Ada"))
    assert answer.calls[0].value == "It is Ada."
    assert "Ada" in model.prompts[-1].messages[-1].content


@pytest.mark.parametrize("given", [None, "Ada"])
def test_others_than_the_session_says_are_refused(given: Any) -> None:
    """Before the model is asked."""
    with (
        _session("ok", deps=Shop) as session,
        pytest.raises(ConfigError, match="deps: expected Shop, as in run"),
    ):
        session.run_sync("who?", deps=given)
    with pytest.raises(ConfigError, match="deps: expected a class, such as deps=Shop"):
        _session(deps=Shop("Ada"))


@command(effects="read")
def free(context: Context[Shop | None]) -> str:
    """Who is at work, if anybody."""
    return context.deps.clerk if context.deps else "nobody"


@command(effects="read")
def prices(context: Context[dict[str, int]]) -> int:
    """Count the prices."""
    return len(context.deps)


@pytest.mark.parametrize("given", [None, "Ada"])
def test_a_command_that_would_not_find_its_own_is_told_at_once(given: Any) -> None:
    """The model is not asked, and the command is not called."""
    told = r"deps: expected Shop, for the Context of whoami\.whoami, as in run"
    with _session() as session, pytest.raises(ConfigError, match=told):
        session.run_sync("who?", deps=given)
    with pytest.raises(ConfigError, match=told):
        call_once(whoami, "whoami", deps=given)
    with pytest.raises(ConfigError, match="expected Shop or None, for"):
        call_once(free, "free", deps=3)
    with pytest.raises(ConfigError, match="expected dict, for"):
        call_once(prices, "prices", deps=given)


class Sells(Protocol):
    def sell(self) -> None: ...


class Prices(TypedDict):
    pen: int


@command(effects="read")
def noted(context: Context[Annotated[Shop, "the one in town"]]) -> str:
    """Who is at work."""
    return context.deps.clerk


@command(effects="read")
def listed(context: Context[None | dict[str, int]]) -> str:  # noqa: RUF036
    """What is there."""
    return str(context.deps)


@command(effects="read")
def sold(context: Context[None | Sells]) -> str:  # noqa: RUF036
    """Whether there is something."""
    return str(context.deps)


@pytest.mark.parametrize(
    ("function", "given", "value"),
    [
        (noted, Shop("Ada"), "Ada"),
        (listed, {"a": 1}, "{'a': 1}"),
        (sold, 3, "3"),
    ],
)
def test_what_python_cannot_compare_when_run_is_not_compared(
    function: Any, given: Any, value: str
) -> None:
    """None, the first of a union, would hide the rest of it."""
    assert call_once(function, function.__name__, deps=given).value == value


@pytest.mark.parametrize("deps", [Sells, Prices, Any])
def test_nor_is_what_the_session_says(deps: Any) -> None:
    """A protocol, a `TypedDict` and `Any` are classes, too."""
    with _session("ok", deps=deps, plugins=[]) as session:
        assert session.run_sync("go", deps={"pen": 3}).text == "ok"


def test_a_command_may_do_without() -> None:
    """Where its annotation says so, or another command is called."""
    assert call_once(free, "free").value == "nobody"
    assert call_once(free, "free", deps=Shop("Ada")).value == "Ada"
    assert call_once(prices, "prices", deps={"a": 1}).value == 1
    with _session('[{"tool": "free"}]', "ok", plugins=[free, maybe]) as session:
        assert session.run_sync("who?").calls[0].value == "nobody"
