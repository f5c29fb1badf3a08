"""Limits of a run; the other limits are tested where they are reached."""

from __future__ import annotations

import math
from typing import Any

import pytest

from neuraxis import Budget, ConfigError, Session, agent
from neuraxis.events import BudgetReached
from neuraxis.messages import Usage
from neuraxis.models.scripted import ScriptedModel, ScriptedReply

CALL = '[{"tool": "look"}]'
USED = Usage(input_tokens=90, output_tokens=10)


def _model(*replies: str) -> ScriptedModel:
    return ScriptedModel([ScriptedReply(text=text, usage=USED) for text in replies])


def look() -> str:
    """Look."""
    return "seen"


def test_a_budget_of_tokens_ends_the_run() -> None:
    """Before the reply that would be asked for next; the sum is in the answer."""
    model = _model(CALL, CALL, "Done.")
    session = Session(model, plugins=[look], budget=Budget(tokens=150))
    answer = session.run_sync("Look")
    assert (answer.outcome, len(model.prompts)) == ("budget", 2)
    assert "200 of 150 tokens" in answer.error
    assert answer.usage.total == 200
    events = [entry.event for entry in session.journal.read(session.id)]
    (reached,) = [event for event in events if isinstance(event, BudgetReached)]
    assert (reached.what, reached.limit, reached.used) == ("tokens", 150, 200)
    assert session.run_sync("Again").text == "Done."  # each run has its own


def test_tokens_of_an_agent_inside_count() -> None:
    """Its own budget is what remains of the one around it."""
    asked = '[{"tool": "scout", "request": "look"}]'
    inner = _model(CALL, CALL, CALL, "Seen.")
    scout = agent("scout", "Looks around.", model=inner, plugins=[look])
    outer = _model(asked, "Done.")
    session = Session(outer, plugins=[scout], budget=Budget(tokens=250))
    answer = session.run_sync("Look")
    assert answer.outcome == "budget"
    assert len(inner.prompts) == 2  # 100 outside, 200 inside
    assert answer.usage.total == 300


@pytest.mark.parametrize("given", [-1, "100", True])
def test_a_wrong_number_of_tokens_is_refused(given: Any) -> None:
    """Where the budget is given, not at its end."""
    with pytest.raises(ConfigError, match=r"budget\.tokens"):
        Session(_model("x"), budget=Budget(tokens=given))


def test_an_endless_budget_of_tokens_is_none() -> None:
    """An agent inside could not be asked."""
    scout = agent("scout", "Looks around.", model=_model("Seen."))
    outer = _model('[{"tool": "scout", "request": "look"}]', "Done.")
    budget = Budget(tokens=math.inf)  # pyright: ignore[reportArgumentType]
    answer = Session(outer, plugins=[scout], budget=budget).run_sync("Look")
    assert (answer.text, answer.calls[0].value) == ("Done.", "Seen.")
