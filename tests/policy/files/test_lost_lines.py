"""A question about a person's file shows the lines that would be lost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Session, command
from neuraxis.cli.approve import question
from neuraxis.events import ApprovalAsked
from neuraxis.models.scripted import ScriptedModel
from neuraxis.sandbox.process.run import probe

WRITE = {"tool": "FILEWRITER", "file_path": "notes.txt", "contents": "one\nnew\n"}
DELETE = {"tool": "delete_file", "file_path": "notes.txt"}
CSV = "name,price\nb,2.0\na,1.0\n"


@command(effects={"kind": "once"}, names_file={"to": "write"})
def export(data: list[dict[str, int]], to: str) -> None:
    """Exports rows."""


def _asked(
    folder: Path, calls: list[dict[str, Any]], before: bytes, *plugins: Any
) -> list[str]:
    """What the terminal shows of the one question; the answer is no."""
    (folder / "notes.txt").write_bytes(before)
    asked: list[ApprovalAsked] = []
    model = ScriptedModel([json.dumps(calls), "No."])
    with Session(
        model,
        plugins=["neuraxis:files", "neuraxis:tables", "neuraxis:python_file", *plugins],
        workspace=folder,
        approve=lambda one: bool(asked.append(one)),
    ) as session:
        asyncio.run(session.drive("tidy notes.txt"))
    assert len(asked) == 1
    return question(asked[0]).splitlines()


@pytest.mark.parametrize(
    ("call", "lost"),
    [
        (
            WRITE,
            [
                "lines lost from notes.txt (3 of 4, 1 of them blank):",
                "- two",
                "- \\u{1b}[2J",
            ],
        ),
        (
            DELETE,
            ["lines lost from notes.txt (all 4, 1 of them blank):", "- one", "- two"],
        ),
    ],
)
def test_what_would_be_lost_is_shown(
    tmp_path: Path, call: dict[str, str], lost: list[str]
) -> None:
    """Whatever the order; nothing of it reaches the terminal as an escape code."""
    shown = _asked(tmp_path, [call], b"one\ntwo\n\n\x1b[2J\n")
    at = shown.index(f"    {lost[0]}")
    assert [line.strip() for line in shown[at : at + 3]] == lost


def test_of_equal_lines_those_too_many_are_lost(tmp_path: Path) -> None:
    """A double that is thrown out was not counted: its twin stands in the new text."""
    call = {**WRITE, "contents": "one\n"}
    shown = _asked(tmp_path, [call], b"one\ntwo\none\none\n")
    at = shown.index("    lines lost from notes.txt (3 of 4):")
    assert [line.strip() for line in shown[at + 1 : at + 4]] == [
        "- two",
        "- one",
        "- one",
    ]


def test_a_deletion_loses_also_a_line_that_the_call_holds(tmp_path: Path) -> None:
    shown = _asked(tmp_path, [DELETE], b"notes.txt\none\n")
    assert "    lines lost from notes.txt (all 2):" in shown


def test_a_long_file_is_cut_and_a_binary_one_is_left_out(tmp_path: Path) -> None:
    many = "".join(f"line {number}\n" for number in range(100)) + "x" * 600
    shown = _asked(tmp_path, [DELETE], many.encode())
    assert "    … 61 more lines" in shown
    assert "    - line 39" in shown
    assert "    - line 40" not in shown
    wide = _asked(tmp_path, [DELETE], b"x" * 600)
    assert f"    - {'x' * 500}… 100 more characters" in wide
    assert not any(
        "lost from" in line for line in _asked(tmp_path, [DELETE], b"\xff\0")
    )


def test_a_move_loses_only_the_file_that_it_replaces(tmp_path: Path) -> None:
    """What is moved stays under its new name, and so do lines that both have."""
    move = {"tool": "move_file", "file_path": "notes.txt", "new_path": "b.txt"}
    (tmp_path / "b.txt").write_text("old\none\n", encoding="utf-8")
    shown = _asked(tmp_path, [move], b"one\n")
    at = shown.index("    lines lost from b.txt (1 of 2):")
    assert shown[at + 1] == "    - old"
    assert not any("lines lost from notes.txt" in line for line in shown)


def test_a_table_that_replaces_a_file_is_told_and_no_line_is_called_lost(
    tmp_path: Path,
) -> None:
    """A table that was only sorted loses nothing; its lines are not known before."""
    (tmp_path / "p.csv").write_text(CSV, encoding="utf-8")
    calls = [
        {"tool": "read_table", "file_path": "p.csv", "as": "all"},
        {"tool": "sort_rows", "table": "{{ all }}", "columns": ["name"], "as": "new"},
        {"tool": "write_table", "table": "{{ new }}", "file_path": "p.csv"},
    ]
    shown = _asked(tmp_path, calls, b"")
    table = "a table of 2 rows and 2 columns: name, price"
    at = shown.index(f"    | {table}")
    assert shown[at - 1 : at + 3] == [
        "    table =", f"    | {table}", "    | a | 1.0", "    | b | 2.0",
    ]  # fmt: skip
    assert f"    p.csv (3 lines with its heading) would be replaced by {table}" in shown
    assert not any("lost from" in line for line in shown)
    assert not any("class" in line for line in shown)


def test_rows_that_replace_a_file_are_told_as_a_table(tmp_path: Path) -> None:
    call = {"tool": "export", "data": [{"n": 1}], "to": "notes.txt"}
    shown = _asked(tmp_path, [call], b"one\n", export)
    table = "a table of 1 row and 1 column: n"
    assert f"    notes.txt (1 line) would be replaced by {table}" in shown


def test_a_script_whose_changes_wait_shows_the_lines_that_would_be_lost(
    tmp_path: Path,
) -> None:
    """As a direct change and deletion do."""
    if not any(found.works for found in probe() if found.kind != "none"):
        pytest.skip("no sandbox here")
    (tmp_path / "ideas.md").write_text("an idea\n\nanother\n", encoding="utf-8")
    code = (
        "import os\nos.remove('ideas.md')\n"
        "open('notes.txt', 'w').write('one\\nthree\\n')\n"
    )
    calls = [
        {"tool": "FILEWRITER", "file_path": "tidy.py", "contents": code},
        {"tool": "EXECUTE_PYTHON_FILE", "file_path": "tidy.py"},
    ]
    shown = _asked(tmp_path, calls, b"one\ntwo\n")
    at = shown.index("    notes.txt would be changed")
    assert shown[at + 1 : -1] == [
        "    lines lost from ideas.md (all 3, 1 of them blank):",
        "    - an idea",
        "    - another",
        "    lines lost from notes.txt (1 of 2):",
        "    - two",
        "    lines new in notes.txt (1):",
        "    + three",
    ]
    assert (tmp_path / "ideas.md").exists()


@pytest.mark.parametrize("call", [{**WRITE, "contents": "gone"}, DELETE])
def test_after_an_append_of_the_same_request_the_lost_lines_are_shown(
    tmp_path: Path, call: dict[str, str]
) -> None:
    """Those that are there by then, also in a file that the run moved."""
    append = {"tool": "append_file", "file_path": "notes.txt", "text": "milk"}
    shown = _asked(tmp_path, [append, call], b"mine\n")
    at = shown.index("    lines lost from notes.txt (all 2):")
    assert shown[at + 1 : at + 3] == ["    - mine", "    - milk"]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8-sig", "utf-16", "utf-32"])
def test_lost_lines_are_shown_in_every_encoding_that_is_read(
    tmp_path: Path, encoding: str
) -> None:
    """As `file_reader` reads it."""
    shown = _asked(tmp_path, [DELETE], "zeile ä\nmine\n".encode(encoding))
    at = shown.index("    lines lost from notes.txt (all 2):")
    assert shown[at + 1 : at + 3] == ["    - zeile ä", "    - mine"]


def test_lost_lines_of_a_large_file_are_shown_or_told(tmp_path: Path) -> None:
    """With the reason where they are not shown."""
    shown = _asked(tmp_path, [DELETE], b"mine line\n" * 30_000)
    assert "    lines lost from notes.txt (all 30,000):" in shown
    shown = _asked(tmp_path, [WRITE], b"mine line\n" * 600_000)
    assert "    lines of notes.txt: not shown, 6 MB" in shown
    shown = _asked(tmp_path, [DELETE], b"mine\n\xff\0")
    assert "    lines of notes.txt: not shown, it is no text (7 bytes)" in shown


def test_the_files_of_a_script_whose_lines_are_not_shown_are_named(
    tmp_path: Path,
) -> None:
    """From the eleventh on; and a file that is no text afterwards."""
    if not any(found.works for found in probe() if found.kind != "none"):
        pytest.skip("no sandbox here")
    for number in range(12):
        (tmp_path / f"f{number:02}.md").write_text("mine\n", encoding="utf-8")
    code = (
        "for n in range(12):\n"
        "    open(f'f{n:02}.md', 'wb').write(b'' if n else bytes([255, 0]))\n"
    )
    calls = [
        {"tool": "FILEWRITER", "file_path": "tidy.py", "contents": code},
        {"tool": "EXECUTE_PYTHON_FILE", "file_path": "tidy.py"},
    ]
    shown = _asked(tmp_path, calls, b"")
    assert (
        "    lines of f00.md: not shown, as the script left it: it is no text (2 bytes)"
        in shown
    )
    assert "    lines lost from f09.md (1 of 1):" in shown
    assert '    … lines of 2 more files not shown: "f10.md", "f11.md"' in shown
