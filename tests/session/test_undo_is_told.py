"""The model is told of an undo: what it did to files is not there any more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Policy, Rule, Session, command
from neuraxis.events import ModelStarted
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


def test_an_undo_reverts_a_resumed_run_as_a_whole(tmp_path: Path) -> None:
    """What it did before it waited, too, but not the request before it."""

    @command(effects="once")
    def pay() -> str:
        """Pay."""
        return "paid"

    def writes(text: str) -> dict[str, str]:
        return {"tool": "FILEWRITER", "file_path": f"{text}.md", "contents": text}

    ask = Policy(rules=[Rule(verdict="ask", target="pay.*", reason="money")])
    more = {"plugins": ["neuraxis:files", pay], "policy": ask, "approve": "later"}
    plan = json.dumps([writes("b"), {"tool": "pay"}, writes("c")])
    replies = json.dumps([writes("a")]), "Done.", plan
    with Session(id="s", **{**_given(tmp_path, *replies), **more}) as session:
        session.run_sync("write a.md")
        assert session.run_sync("write b.md, pay, write c.md").outcome == "waiting"
        session.approve("a3")
    with Session.open("s", **{**_given(tmp_path, "Done."), **more}) as session:
        assert session.resume_sync().outcome == "answered"
        assert set(session.undo().removed) == {"b.md", "c.md"}
        assert session.undo().removed == ("a.md",)


def test_a_run_that_was_undone_before_it_goes_on_can_be_undone_again(
    tmp_path: Path,
) -> None:
    """What it writes after the first undo is a run of its own."""

    def watch(event: object) -> None:
        if isinstance(event, ModelStarted) and event.turn == 2:
            raise ValueError("the page is closed")

    given = _given(tmp_path, WRITE, WRITE, "Done.")
    with Session(id="s", **given) as session:
        with pytest.raises(ValueError, match="the page is closed"):
            session.run_sync("write r.md", watch)
        assert session.undo().removed == ("r.md",)
        session.resume_sync()
        assert session.undo().removed == ("r.md",)
