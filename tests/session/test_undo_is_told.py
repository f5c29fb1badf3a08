"""The model is told of an undo: what it did to files is not there any more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from neuraxis import Session
from neuraxis.models.scripted import ScriptedModel

WRITE = json.dumps([{"tool": "FILEWRITER", "file_path": "r.md", "contents": "x"}])


def _given(folder: Path, *replies: str) -> dict[str, Any]:
    return {
        "model": ScriptedModel(list(replies)),
        "plugins": ["neuraxis:files"],
        "workspace": folder / "w",
        "journal": folder / "j.db",
    }


def test_the_next_request_says_what_was_undone(tmp_path: Path) -> None:
    """Once, and a session that is opened again has the same conversation."""
    given = _given(tmp_path, WRITE, "Wrote r.md.", "No.", "Still no.")
    with Session(id="s", **given) as session:
        session.run_sync("write r.md")
        assert session.undo().removed == ("r.md",)
        session.run_sync("is r.md there?")
        prompts = given["model"].prompts
        assert (
            "the user undid your changes to files" in prompts[-1].messages[-1].content
        )
        assert '"r.md"' in prompts[-1].messages[-1].content
        session.run_sync("and now?")
        assert "undid" not in prompts[-1].messages[-1].content
        history = [message.content for message in session.history]
    with Session.open("s", **_given(tmp_path)) as again:
        assert [message.content for message in again.history] == history


def test_an_undo_of_another_process_is_told_too(tmp_path: Path) -> None:
    """As `neuraxis undo` does it, between two runs of the session."""
    with Session(id="s", **_given(tmp_path, WRITE, "Wrote r.md.")) as session:
        session.run_sync("write r.md")
    with Session.open("s", **_given(tmp_path)) as other:
        other.undo()
    given = _given(tmp_path, "No.")
    with Session.open("s", **given) as session:
        session.run_sync("is r.md there?")
    told = given["model"].prompts[-1].messages[-1].content
    assert "undid your changes" in told
