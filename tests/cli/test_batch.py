"""`neuraxis batch`: JSON lines in, JSON lines out, and again without asking again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from neuraxis.cli.main import cli
from neuraxis.errors import ConfigError
from neuraxis.events import ApprovalAsked


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def batch(*replies: str, lines: str) -> Result:
    Path("rows.jsonl").write_text(lines, encoding="utf-8")
    Path("m.yaml").write_text(json.dumps(replies), encoding="utf-8")
    given = ("-m", "scripted:m.yaml", "--journal", "j.db", "--at-once", "2")
    return CliRunner().invoke(
        cli, ["batch", *given, "rows.jsonl"], standalone_mode=False
    )


ROWS = '{"id": "x", "request": "one"}\n\n"two"\n{"id": 7, "request": "three"}\n'


def test_each_line_is_answered_once() -> None:
    """Again, with another text for one id: only that one is asked."""
    done = batch("A", "B", "C", lines=ROWS)
    assert done.return_value == 0, done.exception
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["id"] for row in told} == {"x", "3", "7"}
    assert {row["text"] for row in told} == {"A", "B", "C"}
    assert "3 of 3: 3 answered" in done.stderr
    again = batch("D", lines=ROWS.replace("three", "four"))
    assert again.return_value == 0, again.exception
    told = [json.loads(line) for line in again.stdout.splitlines()]
    assert {row["id"]: row["earlier"] for row in told} == {
        "x": True, "3": True, "7": False,
    }  # fmt: skip
    assert [row["text"] for row in told if row["id"] == "7"] == ["D"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("[1]", "line 1: expected"),
        ('"a"\n{"id": 1}', "line 2: expected"),
        ("nonsense", "line 1: expected"),
        ('"a"\nnonsense', "line 2: expected"),
        ("nonsense", "or a text in quotes; it is not JSON"),
        ('{"id": 1,}', "it is not JSON from column"),
        ('{"id": 1, "request": "a"}\n{"id": 1, "request": "b"}', "twice"),
        ('{"request": "a", "attach": "b"}', "got attach"),
        ('"a"\n{"request": " "}', "line 2: the request is empty: write "),
        ('"a"\n[1]\n"b"\n{', "line 2: expected"),
        ('"a"\n[1]\n"b"\n{', "\nrows.jsonl, line 4: "),
        ("[1]\n" * 30, "line 20: expected"),
        ("[1]\n" * 30, "\n… 10 more lines"),
    ],
)
def test_a_wrong_line_is_told_before_anything_runs(lines: str, words: str) -> None:
    """With its number."""
    done = batch("A", lines=lines)
    assert isinstance(done.exception, ConfigError)
    assert words in str(done.exception)


def test_two_files_of_one_name_are_two_batches() -> None:
    """February's requests are not answered with January's answers."""
    for month, reply in (("jan", "January"), ("feb", "February")):
        Path(month).mkdir()
        rows = Path(month, "rows.jsonl")
        rows.write_text('{"id": "x", "request": "sum"}', encoding="utf-8")
        Path("m.yaml").write_text(json.dumps([reply]), encoding="utf-8")
        given = ("-m", "scripted:m.yaml", "--journal", "j.db", str(rows))
        done = CliRunner().invoke(cli, ["batch", *given], standalone_mode=False)
        assert json.loads(done.stdout)["text"] == reply


def test_a_row_names_the_calls_that_were_not_done() -> None:
    """It looked like any answered row; one that is read again names them, too."""
    call = '[{"tool": "delete_file", "file_path": "none.txt"}]'
    for _ in range(2):
        done = batch(call, "I could not.", lines='{"id": "x", "request": "read"}\n')
        assert done.return_value == 0, done.exception
        told = json.loads(done.stdout)
        assert told["outcome"] == "answered"
        (not_done,) = told["not_done"]
        assert not_done.startswith("files.delete_file: ")
        assert "1 with calls not done)" in done.stderr
    wrong = batch('[{"tool": "no_tool"}]', "I cannot.", lines='"do it"\n')
    (not_done,) = json.loads(wrong.stdout)["not_done"]
    assert "no_tool" in not_done
    well = batch('[{"tool": "list_files"}]', "Done.", lines='"list"\n')
    assert json.loads(well.stdout)["not_done"] == []
    assert "1 of 1: 1 answered\n" in well.stderr


def test_a_question_says_which_row_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows may ask; one question is on the screen at a time."""
    asked: list[str] = []

    async def ask(question: ApprovalAsked) -> bool:
        asked.append("begin")
        await asyncio.sleep(0.05)
        asked.append("end")
        return False

    monkeypatch.setattr("neuraxis.cli.approve.is_somebody_there", lambda: True)
    monkeypatch.setattr("neuraxis.cli.approve.ask_on_terminal", ask)
    (Path("neuraxis-workspace")).mkdir()
    Path("neuraxis-workspace", "a.txt").write_text("mine", encoding="utf-8")
    call = '[{"tool": "delete_file", "file_path": "a.txt"}]'
    rows = '{"id": "x", "request": "delete a"}\n{"id": "y", "request": "delete it"}\n'
    done = batch(call, call, "No.", "No.", lines=rows)
    assert asked == ["begin", "end"] * 2, done.exception
    assert 'row x, "delete a":\n' in done.stderr
    assert 'row y, "delete it":\n' in done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [len(row["not_done"]) for row in told] == [1, 1]
