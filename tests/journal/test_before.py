"""Journals of earlier versions still open."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from neuraxis import Session
from neuraxis.models.scripted import ScriptedModel

BEFORE = Path(__file__).parent / "before"


def test_a_journal_of_commit_a9fb8d3_is_gone_on_with(tmp_path: Path) -> None:
    """Its lock file lay beside it, empty."""
    path = tmp_path / "journal.db"
    with sqlite3.connect(path) as database:
        database.executescript((BEFORE / "a9fb8d3.sql").read_text(encoding="utf-8"))
    database.close()
    (tmp_path / "journal.db-claims").touch(mode=0o600)
    with Session.open(
        "50a55c31e2075ec4b5860d32ac8ec2de",
        model=ScriptedModel(["again"]),
        journal=path,
        workspace=tmp_path / "w",
    ) as session:
        assert "paid 5" in session.history[-2].content
        assert session.unknown_calls == ()
        assert session.run_sync("and?").text == "again"
