"""M5: the terminal shows all that a yes covers, page by page."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Policy, Rule, Session, command
from neuraxis.cli import approve
from neuraxis.cli.approve import ask_on_terminal
from neuraxis.events import ApprovalAsked
from neuraxis.models.scripted import ScriptedModel

SENT: list[str] = []
TEXT = " ".join(f"word{number}" for number in range(4_000)) + " the end"


@command(effects="once")
def send(to: str, text: str) -> bool:
    """Sends."""
    SENT.append(text)
    return True


class _Typed(io.StringIO):
    """A terminal on which somebody typed these lines."""

    def isatty(self) -> bool:
        return True


def _ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, calls: list[Any]
) -> io.StringIO:
    SENT.clear()
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stdin", _Typed(typed))
    monkeypatch.setattr(sys, "stderr", screen)
    with Session(
        model=ScriptedModel([json.dumps(calls), "ok"]),
        plugins=[send],
        policy=Policy(rules=[Rule(verdict="ask")]),
        approve=ask_on_terminal,
        workspace=tmp_path / "w",
    ) as session:
        asyncio.run(session.drive("go"))
    return screen


@pytest.mark.parametrize("many", [1, 2])
def test_M5_the_whole_call_is_shown_before_a_yes_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    """Of one call and of a plan: each word once for each call, in order, uncut."""
    calls = [{"tool": "send", "to": f"a{n}", "text": TEXT} for n in range(many)]
    screen = _ask(tmp_path, monkeypatch, "\n" * 40 * many, calls)
    assert SENT == []  # Enter turns pages; at the last one it is a no
    turns = screen.getvalue().count("-- Enter: more, n: no -- ")
    assert turns > 5
    shown = screen.getvalue().replace("\n-- Enter: more, n: no -- ", "")
    assert "".join(shown.split()).count("".join(TEXT.split())) == many
    _ask(tmp_path, monkeypatch, "\n" * turns + "y\n", calls)
    assert SENT == [TEXT] * many


CALL = {"tool": "send", "to": "a", "text": TEXT}


@pytest.mark.parametrize("typed", ["n\n", "\nNo\n" + "y\n" * 60, "y\n" * 3, "y", ""])
def test_M5_a_no_or_the_end_before_the_last_page_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    """A yes there approves nothing."""
    _ask(tmp_path, monkeypatch, typed, [CALL])
    assert SENT == []


def test_M5_every_other_answer_turns_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A y there was a silent no. What is typed before a prompt answers none."""
    dropped: list[object] = []
    monkeypatch.setattr(approve, "_forget_typed", dropped.append)
    screen = _ask(tmp_path, monkeypatch, "y\nwhat\n" * 60, [CALL])
    turns = screen.getvalue().count("-- Enter: more, n: no -- ")
    assert SENT == [TEXT]
    assert len(dropped) > turns > 5


def test_a_page_fits_the_height_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It had 40 lines on each; the last line is for the prompt."""
    monkeypatch.setattr(approve, "height", lambda: 10)
    lines = [f"line {number}" for number in range(20)]
    pages = approve.pages("\n".join(lines))
    assert [page.count("\n") + 1 for page in pages] == [9, 9, 2]
    assert "\n".join(pages).split("\n") == lines


@pytest.mark.parametrize(
    ("typed", "sent"), [("x\nyy\ny\n", True), ("x\n\n", False), ("x\nn\ny\n", False)]
)
def test_an_answer_that_is_not_offered_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, sent: bool
) -> None:
    """It was a silent no."""
    call = {"tool": "send", "to": "a", "text": "hi"}
    screen = _ask(tmp_path, monkeypatch, typed, [call]).getvalue()
    assert bool(SENT) == sent
    assert "possible answers: y; n or Enter is no" in screen
    assert screen.count("Run it? [y/N") == typed.count("\n") - (typed == "x\nn\ny\n")


def test_M5_what_nobody_would_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond what is shown whole there is no question, so no yes."""
    calls = [{"tool": "send", "to": "a", "text": "x" * 300_000}]
    screen = _ask(tmp_path, monkeypatch, "\n" * 9_000 + "y\n", calls)
    assert SENT == []
    assert "wants to run" not in screen.getvalue()


@pytest.mark.parametrize(
    ("typed", "answer"), [("1", False), ("2", False), ("y", True), ("a", "all of them")]
)
def test_the_number_of_a_call_takes_no_wider_offer(
    monkeypatch: pytest.MonkeyPatch, typed: str, answer: bool | str
) -> None:
    """The calls of a plan have numbers, so that the wider offers have letters."""
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stdin", _Typed(f"{typed}\n"))
    monkeypatch.setattr(sys, "stderr", screen)
    call = {"plugin": "bank", "command": "pay", "arguments": {}, "origins": {}}
    asked = ApprovalAsked(
        id="a1", call={}, reason="why", plan=(call, call), offers=("all of them",)
    )
    assert asyncio.run(ask_on_terminal(asked)) == answer
    shown = screen.getvalue().splitlines()
    assert [line.split()[0] for line in shown[1:4]] == ["1.", "2.", "a:"]
    assert shown[4].startswith("Run all of them? [y/N/a] ")


def test_undo_is_asked_by_its_name() -> None:
    """It is of no plugin: the question was about `.undo`."""
    call: dict[str, Any] = {"plugin": "", "command": "undo", "arguments": {}}
    asked = ApprovalAsked(id="", call=call, reason="a.md was changed")
    assert approve.question(asked).startswith("? undo wants to run\n")


def test_a_signal_or_a_terminal_that_is_gone_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`termios.error` is no OSError: the question was denied with a traceback."""
    termios = pytest.importorskip("termios")

    def interrupted(*_: object) -> None:
        raise termios.error(4, "Interrupted system call")

    monkeypatch.setattr(termios, "tcflush", interrupted)
    with open(os.devnull, encoding="utf-8") as source:
        approve._forget_typed(source)
