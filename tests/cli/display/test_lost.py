"""A question about a person's file shows the lines that would be lost."""

import asyncio
import json
from pathlib import Path

import pytest

from neuraxis import Session
from neuraxis.cli.approve import question
from neuraxis.models.scripted import ScriptedModel

WRITE = {"tool": "FILEWRITER", "file_path": "notes.txt", "contents": "one\nnew\n"}
DELETE = {"tool": "delete_file", "file_path": "notes.txt"}


def _asked(folder: Path, call: dict[str, str], before: bytes) -> list[str]:
    (folder / "notes.txt").write_bytes(before)
    shown: list[str] = []

    def approve(asked) -> bool:
        shown.extend(question(asked, session).splitlines())
        return False

    model = ScriptedModel([json.dumps([call]), "No."])
    with Session(
        model, plugins=["neuraxis:files"], workspace=folder, approve=approve
    ) as session:
        asyncio.run(session.drive("tidy notes.txt"))
    return shown


@pytest.mark.parametrize(
    ("call", "lost"),
    [
        (WRITE, ["lost of notes.txt (2 of 4 lines):", "- two", "- \\u{1b}[2J"]),
        (DELETE, ["lost of notes.txt (3 of 4 lines):", "- one", "- two"]),
    ],
)
def test_what_would_be_lost_is_shown(
    tmp_path: Path, call: dict[str, str], lost: list[str]
) -> None:
    """Whatever the order; nothing of it reaches the terminal as an escape code."""
    shown = _asked(tmp_path, call, b"one\ntwo\n\n\x1b[2J\n")
    at = shown.index(f"    {lost[0]}")
    assert [line.strip() for line in shown[at : at + 3]] == lost


def test_a_long_file_is_cut_and_a_binary_one_is_left_out(tmp_path: Path) -> None:
    many = "".join(f"line {number}\n" for number in range(100))
    shown = _asked(tmp_path, DELETE, many.encode())
    assert "    … 60 more lines" in shown
    assert "    - line 39" in shown
    assert "    - line 40" not in shown
    assert not any("lost of" in line for line in _asked(tmp_path, DELETE, b"\xff\x00"))


def test_a_move_loses_only_the_file_that_it_replaces(tmp_path: Path) -> None:
    """What is moved stays under its new name."""
    move = {"tool": "move_file", "file_path": "notes.txt", "new_path": "b.txt"}
    (tmp_path / "b.txt").write_text("old\n", encoding="utf-8")
    shown = _asked(tmp_path, move, b"one\n")
    at = shown.index("    lost of b.txt (1 of 1 line):")
    assert shown[at + 1] == "    - old"
    assert not any("lost of notes.txt" in line for line in shown)
