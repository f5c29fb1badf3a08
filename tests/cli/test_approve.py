"""M5: the terminal shows all that a yes covers, page by page."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Policy, Rule, Session, command
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


@pytest.mark.parametrize("typed", ["y\n" * 40, "n\n", "\nn\n" + "y\n" * 40, ""])
def test_M5_a_yes_before_the_last_page_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    """Only an empty line turns the page; anything else, also the end, refuses."""
    _ask(tmp_path, monkeypatch, typed, [{"tool": "send", "to": "a", "text": TEXT}])
    assert SENT == []


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
    assert shown[4] == "Run all of them? [y/N/a] "
