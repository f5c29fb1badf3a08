"""What the command line prints is inert, whoever wrote it."""

import ast
import io
import json
import logging
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

import neuraxis.cli
from neuraxis.cli.display.text import (
    echo,
    echo_file,
    echo_json,
    folded,
    inert,
    one_line,
)
from neuraxis.cli.main import _print_logs

EVIL = "a\x1b]52;c;ZXZpbA==\x07\x9b\u202e\U000e0041b"


def test_all_is_printed_by_one_function() -> None:
    """No other module of the command line writes to the terminal by itself."""
    root = Path(neuraxis.cli.__file__).parent
    found: set[str] = set()
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name in {
                    "click.echo",
                    "click.secho",
                    "print",
                    "traceback.print_exc",
                }:
                    found.add(file.relative_to(root).as_posix())
    assert found == {"display/text.py"}


def test_a_printed_text_is_inert(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape codes are left out; line breaks stay, unless it is one line."""
    echo(f"{EVIL}\nc", err=True)
    assert capsys.readouterr().err == "ab\nc\n"
    assert one_line(f"{EVIL}\r\nc") == "ab⏎c"


def test_a_file_with_a_relative_path_is_a_link_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text is the path as it was given, the link is the whole path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    echo_file(Path("p q.yaml"))
    uri = (tmp_path / "p q.yaml").as_uri()
    assert f"8;;{uri}\x1b\\p q.yaml" in capsys.readouterr().err
    monkeypatch.setenv("TERM", "dumb")
    echo_file(Path("p q.yaml"))
    assert capsys.readouterr().err == "file: p q.yaml\n"


def test_printed_json_is_inert_and_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Names too: an escape stands for each such character."""
    echo_json({EVIL: [EVIL, "é\x7f"]})
    told = capsys.readouterr().out
    assert inert(told) == told
    assert "é" in told
    assert json.loads(told) == {EVIL: [EVIL, "é\x7f"]}


def test_a_logged_traceback_has_no_escape_codes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What an exception says may come from a server."""
    record = logging.LogRecord("x", logging.ERROR, "f", 1, "broke", (), None)
    try:
        raise ValueError("\x1b]0;title\x07evil")
    except ValueError:
        record.exc_info = sys.exc_info()
    _print_logs()
    assert logging.lastResort is not None
    logging.lastResort.handle(record)
    said = capsys.readouterr().err
    assert "evil" in said
    assert "\x1b" not in said


def test_a_message_breaks_between_words() -> None:
    """What follows is indented; a long word stays whole, or nothing is left out."""
    text = "  why: it is not the user's own\n\nhttps://example.org/a-long-address"
    assert folded(text, 20) == [
        "  why: it is not the",
        "    user's own",
        "",
        "https://example.org/a-long-address",
    ]
    pieces = folded(text.replace("not the", "not  the"), 20, exact=True)
    assert max(map(len, pieces)) == 20
    assert "".join(line.removeprefix("    ") for line in pieces[:2]) == (
        "  why: it is not  the user's own"
    )
    assert folded(" " * 25 + "word " * 12, 60)[1].startswith(" " * 27 + "word")


def test_a_wide_character_takes_two_cells() -> None:
    """A page of a question had twice its lines: the terminal lost its beginning."""
    text = "  to = " + "日本語の長い文章です" * 20
    for width in (39, 40):
        pieces = folded(text, width, exact=True)
        assert all(cell_len(piece) <= width for piece in pieces)
        assert "".join(piece.removeprefix("    ") for piece in pieces) == text
    assert folded("한국어 문장 하나 더", 20) == ["한국어 문장 하나 더"]
    assert folded("한국어 문장 하나 더 길", 20) == ["한국어 문장 하나 더", "  길"]


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("err", [True, False])
def test_whatever_is_printed_on_a_terminal_breaks_between_words(
    monkeypatch: pytest.MonkeyPatch, err: bool
) -> None:
    """Messages did; lists and reports on standard output broke inside words."""
    screen = _Screen()
    monkeypatch.setattr(sys, "stderr" if err else "stdout", screen)
    echo("word " * 30 + "end", err=err)
    assert set(screen.getvalue().split()) == {"word", "end"}
    assert max(map(len, screen.getvalue().splitlines())) <= 80
