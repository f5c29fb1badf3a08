"""An integer of thousands of digits has no text: it is an asset, and ends no run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neuraxis import Session, command
from neuraxis.models.scripted import ScriptedModel

HUGE = 10**5000


@pytest.mark.parametrize(
    "answer",
    [HUGE, -HUGE, {"a": HUGE}, [1, HUGE], {"a": [{"b": HUGE}]}, {HUGE, 1}],
    ids=["alone", "negative", "flat", "listed", "deep", "a set"],
)
def test_it_is_stored_and_can_be_passed_on(answer: Any, tmp_path: Path) -> None:
    """The model is told its size, and a later call is given the integer itself."""
    seen: list[Any] = []

    @command(effects="none", blocking=False)
    def give() -> Any:
        """Gives it."""
        return answer

    @command(effects="none", blocking=False)
    def take(value: Any) -> bool:
        """Takes it."""
        seen.append(value)
        return True

    block = (
        '<!-- RESPONSE_START -->\n[{"tool": "give"}, {"tool": "take", '
        '"value": "{{ previous_result }}"}]\n<!-- RESPONSE_END -->'
    )
    model = ScriptedModel([block, "done"])
    plugins, journal = [give, take], tmp_path / "journal.db"
    with Session(model=model, plugins=plugins, journal=journal) as session:
        result = session.run_sync("go")
    assert result.outcome == "answered"
    assert [call.status for call in result.calls] == ["done", "done"]
    assert result.calls[0].stored
    assert seen == [answer]
    assert "asset_id" in model.prompts[-1].messages[-1].content


def test_its_length_is_told() -> None:
    """Where its digits would be."""
    from neuraxis.assets.describe import describe

    assert describe(HUGE) == "an integer of 16610 bits"
    assert describe(10**299) == 10**299
    assert describe(float("inf")) == "inf"
