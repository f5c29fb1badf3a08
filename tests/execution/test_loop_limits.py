"""A loop that a limit would stop in the middle is refused before its first item."""

import json
from typing import Any

import pytest

from neuraxis import Budget, Call, Options, Session, command
from neuraxis.models.scripted import ScriptedModel

SENT: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_is_sent() -> None:
    SENT.clear()


@command(effects="once")
def mail(to: int) -> str:
    """Mail."""
    SENT.append(to)
    return "sent"


@command(effects="read")
def people(n: int) -> list[int]:
    """Who is there."""
    return list(range(n))


def loop(items: Any) -> dict[str, Any]:
    """A call of `mail` for each item."""
    return {"tool": "mail", "$for_each": items, "$max_items": 1000, "to": "{{ item }}"}


def plan(*calls: dict[str, Any]) -> str:
    """A reply that makes these calls."""
    return json.dumps(list(calls))


def session(*replies: str, **given: Any) -> Session:
    """A session with both commands."""
    return Session(ScriptedModel([*replies, "ok"]), plugins=[mail, people], **given)


def test_report_a7_a_written_list_is_a_problem_of_the_plan() -> None:
    """No step of the plan runs; the model is told the limit and the number."""
    first = {"tool": "mail", "to": 0}
    with session(plan(first, loop(list(range(60))))) as s:
        answer = s.run_sync("go")
    assert SENT == []
    (problem,) = answer.problems
    assert problem.code == "budget_exhausted"
    assert "60 items" in problem.message
    # the step before it takes one
    assert "49 left of its calls of mail.mail (Budget.steps_per_tool: 50)" in (
        problem.message
    )
    assert "[:49]" in problem.message


def test_the_smallest_limit_is_told() -> None:
    """Who keeps to it is not refused again."""
    tries = [plan(loop(list(range(n)))) for n in (200, 50)]
    with session(*tries) as s:
        answer = s.run_sync("go")
    (problem,) = answer.problems
    assert "has 50 left of its calls of mail.mail" in problem.message
    assert len(SENT) == 50


@pytest.mark.parametrize("on_error", ["fail_fast", "continue"])
def test_report_a7_a_list_by_reference_is_refused_when_it_is_known(
    on_error: Any,
) -> None:
    """Before its first item, whatever a failure does."""
    calls = plan({"tool": "people", "n": 60, "as": "all"}, loop("{{ all }}"))
    with session(calls, options=Options(on_error=on_error)) as s:
        answer = s.run_sync("go")
    assert SENT == []
    error = answer.calls[1].error
    assert error is not None
    assert error.code == "budget_exhausted"
    assert "60 items" in error.message


def test_report_a7_the_limit_of_all_calls_counts_too() -> None:
    """Of the whole run, with what was run before."""
    budget = Budget(steps=5)
    with session(plan(loop([1, 2, 3])), plan(loop([4, 5, 6])), budget=budget) as s:
        answer = s.run_sync("go")
    assert SENT == [1, 2, 3]
    (problem,) = answer.problems
    assert "2 left of its calls in one run (Budget.steps: 5)" in problem.message


def test_report_a7_two_lists_of_one_plan_count_together() -> None:
    """Neither runs."""
    with session(plan(loop(list(range(30))), loop(list(range(30))))) as s:
        answer = s.run_sync("go")
    assert SENT == []
    assert len(answer.problems) == 1


async def test_report_a7_a_plan_of_the_program_is_refused_as_well() -> None:
    """`check` says so before."""
    call = Call(
        id="m",
        plugin=None,
        command="mail",
        arguments={"to": "{{ item }}"},
        for_each=[*range(60)],
        max_items=100,
    )
    with session() as s:
        (problem,) = s.check([call]).problems
        (result,) = await s.call_all([call])
    assert SENT == []
    assert result.error == problem
    assert problem.code == "budget_exhausted"


def test_report_a7_a_loop_within_the_limits_runs() -> None:
    """To the last item."""
    budget = Budget(steps=60, steps_per_tool=60)
    with session(plan(loop(list(range(60)))), budget=budget) as s:
        answer = s.run_sync("go")
    assert len(SENT) == 60
    assert answer.calls[0].status == "done"
