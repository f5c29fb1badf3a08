"""What replies cost, by the settings or by the table of `genai-prices`."""

from __future__ import annotations

import sys

import pytest

from neuraxis import Budget, Session
from neuraxis.errors import ConfigError, MissingExtra
from neuraxis.events import BudgetReached, ModelFinished
from neuraxis.messages import Usage
from neuraxis.models.prices import PROVIDERS, cost_of, require_price
from neuraxis.models.scripted import ScriptedModel, ScriptedReply
from neuraxis.settings import Settings

USAGE = Usage(input_tokens=1000, output_tokens=100, cached_tokens=400)
GIVEN = Settings().override(
    {"models.m.input_usd": 10, "models.m.output_usd": "100"}, "test"
)


def test_a_given_price_counts() -> None:
    """In dollars for a million tokens; from the environment it comes as text."""
    assert cost_of("anthropic:m", USAGE, GIVEN) == pytest.approx(0.02)
    cached = GIVEN.override({"models.m.cached_usd": 1}, "test")
    assert cost_of("http://x/v1#m", USAGE, cached) == pytest.approx(0.0164)


@pytest.mark.parametrize("value", ["x", -1, [1], 1e9])
def test_a_price_that_is_none(value: object) -> None:
    """It is told with its key."""
    wrong = GIVEN.override({"models.m.input_usd": value}, "test")
    with pytest.raises(ConfigError, match=r"models\.m\.input_usd: expected US dollars"):
        cost_of("openai:m", USAGE, wrong)


def test_what_runs_here_costs_nothing() -> None:
    """Neither the embedded model nor a script."""
    assert cost_of("local:", USAGE, Settings()) == 0.0
    assert cost_of("scripted:", USAGE, Settings()) == 0.0


@pytest.mark.parametrize(
    "name",
    [
        "openai:gpt-5-mini",
        "openai-responses:gpt-5-mini",
        "anthropic:claude-sonnet-4-5",
        "gemini:gemini-2.5-flash",
        "vertex:gemini-2.5-flash",
        "bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0",
        "azure:gpt-4o",
        "https://api.deepseek.com/v1#deepseek-chat",
    ],
)
def test_the_table_knows_each_provider(name: str) -> None:
    """More tokens cost more, cached ones less."""
    pytest.importorskip("genai_prices")
    cost = cost_of(name, USAGE, Settings())
    fresh = cost_of(name, Usage(input_tokens=1000, output_tokens=100), Settings())
    assert cost is not None
    assert fresh is not None
    assert 0 < cost <= fresh < 0.1
    require_price(name, Settings())


def test_an_unknown_price() -> None:
    """It is None; where a limit in dollars stands on it, it is refused."""
    pytest.importorskip("genai_prices")
    for name in ("openai:nothing-like-it", "http://127.0.0.1/v1#x", "mine"):
        assert cost_of(name, USAGE, Settings()) is None
        with pytest.raises(ConfigError, match=r"models\.\S+\.input_usd"):
            require_price(name, Settings())


def test_without_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known, and a limit in dollars says what to install."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert cost_of("openai:gpt-5-mini", USAGE, Settings()) is None
    with pytest.raises(MissingExtra, match=r"neuraxis\[prices\]"):
        require_price("openai:gpt-5-mini", Settings())
    require_price("openai:m", GIVEN)


def test_the_kinds_are_those_of_models() -> None:
    """A kind of model that costs something has a provider in the table."""
    from neuraxis.models import _BUILT_IN  # pyright: ignore[reportPrivateUsage]

    assert set(PROVIDERS) == set(_BUILT_IN) - {"local", "scripted"}


# --- in a session -----------------------------------------------------------------


def spending(*replies: str) -> ScriptedModel:
    told = [ScriptedReply(text=text, usage=USAGE) for text in replies]
    return ScriptedModel(told, name="anthropic:m")


CALL = '[{"tool": "look"}]'


def look() -> str:
    """Look."""
    return "seen"


async def test_the_answer_has_the_cost_of_its_run() -> None:
    """And the journal that of each reply."""
    session = Session(
        model=spending(CALL, "Q: x A: Done."), plugins=[look], settings=GIVEN
    )
    answered = await session.run("Hi.")
    assert answered.usd == pytest.approx(0.04)
    events = [entry.event for entry in session.journal.read(session.id)]
    costs = [event.usd for event in events if isinstance(event, ModelFinished)]
    assert costs == [pytest.approx(0.02)] * 2


async def test_a_budget_in_dollars_ends_the_run() -> None:
    """Before the reply that would be asked for next."""
    model = spending(CALL, CALL, "Q: x A: Done.")
    session = Session(
        model=model, plugins=[look], settings=GIVEN, budget=Budget(usd=0.03)
    )
    answered = await session.run("Hi.")
    assert (answered.outcome, len(model.prompts)) == ("budget", 2)
    assert "0.0400 of 0.03 US dollars" in answered.error
    events = [entry.event for entry in session.journal.read(session.id)]
    (reached,) = [event for event in events if isinstance(event, BudgetReached)]
    assert (reached.what, reached.limit) == ("US dollars", 0.03)


def test_a_budget_in_dollars_wants_a_price() -> None:
    """A model without one is refused before anything is asked."""
    pytest.importorskip("genai_prices")
    with pytest.raises(ConfigError, match=r"the price of anthropic:m is not known"):
        Session(model=spending("x"), settings=Settings(), budget=Budget(usd=1))
    both = [ScriptedModel(["x"]), spending("x")]
    with pytest.raises(ConfigError, match="the price of anthropic:m"):
        Session(model=both, settings=Settings(), budget=Budget(usd=1))
    Session(model=ScriptedModel(["x"]), settings=Settings(), budget=Budget(usd=1))
