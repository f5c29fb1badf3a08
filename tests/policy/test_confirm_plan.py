"""The question about a plan that the offline planner guessed."""

from __future__ import annotations

from pathlib import Path

from neuraxis import Session
from neuraxis.events import ApprovalAsked


def test_it_shows_what_a_file_of_the_users_would_lose(tmp_path: Path) -> None:
    """As every other question does, and that it can be undone."""
    (tmp_path / "sales.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    asked: list[ApprovalAsked] = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        return False

    with Session(
        "local:", plugins=["neuraxis:files"], workspace=tmp_path, approve=approve
    ) as session:
        session.run_sync("delete sales.csv")
    (question,) = asked
    call = question.call
    assert isinstance(call, dict)
    assert call["lost"] == ["lines lost from sales.csv (all 2):", "- a,b", "- 1,2"]
    assert question.reason.startswith(
        'this would delete the user\'s file "sales.csv"; `session.undo()` can revert it'
    )
    assert (tmp_path / "sales.csv").exists()
