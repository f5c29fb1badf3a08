"""FILEWRITER, file_reader and list_files, called as the runtime calls them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from neuraxis.builtin.assets.lines import lines_of
from neuraxis.builtin.files import plugin
from neuraxis.errors import CommandError
from neuraxis.plugins.context import Context
from neuraxis.settings import Setting, Settings


def _context(
    workspace: Path, wrote: list[str] | None = None, **settings: Any
) -> Context:
    values = {
        key.replace("__", "."): Setting(value=value, source="test")
        for key, value in settings.items()
    }
    return Context(
        workspace=workspace,
        settings=Settings(values=values),
        wrote=([] if wrote is None else wrote).append,
    )


def test_C9_write_tells_success_and_the_file(tmp_path: Path) -> None:
    """The answer is the document's; the session learns which file it was."""
    wrote: list[str] = []
    context = _context(tmp_path, wrote)
    assert {"success": True} == plugin.write_file("./a/b.txt", "x", context)
    assert (["a/b.txt"], "x") == (wrote, (tmp_path / "a/b.txt").read_text("utf-8"))


def test_C12_refused_write_is_success_false(tmp_path: Path) -> None:
    """No exception: the model reads why."""
    wrote: list[str] = []
    answer = plugin.write_file("../x.txt", "x", _context(tmp_path, wrote))
    assert answer["success"] is False
    assert "'..' is not allowed" in answer["error"]
    assert [] == wrote


def test_write_limits_come_from_the_settings(tmp_path: Path) -> None:
    """A person can set the quotas; a wrong value is told."""
    tight = _context(tmp_path, files__file_bytes="2")
    assert plugin.write_file("x", "abc", tight)["success"] is False
    with pytest.raises(CommandError, match=r"files\.files must be a whole number"):
        plugin.write_file("x", "a", _context(tmp_path, files__files="many"))


@pytest.mark.parametrize(
    ("start", "lines", "expected"),
    [
        (None, None, "1\n2\n3\n4"),
        (2, None, "2\n3\n4"),
        (2, 2, "2\n3\n"),
        (4, 9, "4"),
        (None, 1, "1\n"),
    ],
)
def test_read_lines(
    start: int | None, lines: int | None, expected: str, tmp_path: Path
) -> None:
    """Lines are counted from 1."""
    (tmp_path / "n.txt").write_text("1\n2\n3\n4", encoding="utf-8")
    answer = plugin.read_file("n.txt", _context(tmp_path), start, lines)
    assert {"contents": expected, "total_lines": 4} == answer


def test_lines_end_where_an_editor_and_the_assets_end_them(tmp_path: Path) -> None:
    """Not at a form feed or U+2028; the line endings stay."""
    text = "a\x0cb\r\nc\u2028d\x85e\n\nf"
    (tmp_path / "n.txt").write_bytes(text.encode())
    assert plugin.read_file("n.txt", _context(tmp_path)) == {
        "contents": text,
        "total_lines": 4,
    }
    second = plugin.read_file("n.txt", _context(tmp_path), 2, 1)
    assert second["contents"] == "c\u2028d\x85e\n"
    assert lines_of(text).total == 4


def test_read_past_the_end_is_told(tmp_path: Path) -> None:
    """Not an empty text that looks like an empty file."""
    (tmp_path / "n.txt").write_text("1\n", encoding="utf-8")
    with pytest.raises(CommandError, match="has 1 line; there is no line 5"):
        plugin.read_file("n.txt", _context(tmp_path), 5)


def test_read_of_a_missing_file_is_told(tmp_path: Path) -> None:
    """As a failed call."""
    with pytest.raises(CommandError, match="there is no such file"):
        plugin.read_file("none.txt", _context(tmp_path))


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("cp1252", "'t.txt' was read as Windows-1252"),
        ("utf-16", "'t.txt' was read as UTF-16"),
        ("utf-32", "'t.txt' was read as UTF-32"),
    ],
)
def test_a_text_of_another_program_is_read(
    encoding: str, said: str, tmp_path: Path
) -> None:
    """The encoding is told; the line ends stay as they are."""
    told: list[str] = []
    (tmp_path / "t.txt").write_bytes("Größe: 5 €\r\nzwei\r\n".encode(encoding))
    context = replace(_context(tmp_path), warn=told.append)
    answer = plugin.read_file("t.txt", context)
    assert answer == {"contents": "Größe: 5 €\r\nzwei\r\n", "total_lines": 2}
    assert [text.partition(".txt")[0] for text in told] == (["'t"] if said else [])
    assert all(text.startswith(said) for text in told)


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0", b"\xff\xfe\x00", b"a\x81"])
def test_what_is_no_text_is_told(data: bytes, tmp_path: Path) -> None:
    """And not read as letters of some encoding."""
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(CommandError, match="'x' is not a text file"):
        plugin.read_file("x", _context(tmp_path))


def test_a_long_log_is_read(tmp_path: Path) -> None:
    """Longer than what may be written; a person may set how much."""
    (tmp_path / "log").write_bytes(b"a line\n" * 2_000_000)
    answer = plugin.read_file("log", _context(tmp_path), start=1_999_999)
    assert answer == {"contents": "a line\na line\n", "total_lines": 2_000_000}
    tight = _context(tmp_path, files__read_bytes=100)
    with pytest.raises(CommandError, match="at most 100 are read"):
        plugin.read_file("log", tight)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Notes.txt", "Did you mean 'notes.txt'?"),
        ("note.txt", "Did you mean 'notes.txt'?"),
        ("\u00fc.md", "made of other letters"),
        ("env", "there is no such file.$"),
    ],
)
def test_a_missing_name_has_a_hint(name: str, said: str, tmp_path: Path) -> None:
    """At what there is, hidden files left out."""
    for there in ("notes.txt", "u\u0308.md", ".env"):
        (tmp_path / there).write_text("", "utf-8")
    with pytest.raises(CommandError, match=said.replace("?", "\\?")):
        plugin.read_file(name, _context(tmp_path))


def test_a_hint_is_a_path_that_can_be_used(tmp_path: Path) -> None:
    """Whole, whichever command is given the name, and for a folder on the way."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "garden.md").write_text("", "utf-8")
    context = _context(tmp_path)
    wrong = "notes/gardn.md"
    for call in (
        lambda: plugin.read_file(wrong, context),
        lambda: plugin.replace_in_file(wrong, "a", "b", context),
        lambda: plugin.copy_file(wrong, "x.md", context),
        lambda: plugin.move_file(wrong, "x.md", context),
        lambda: plugin.delete_file(wrong, context),
    ):
        with pytest.raises(CommandError, match=r"mean 'notes/garden.md'\?"):
            call()
    with pytest.raises(CommandError, match=r"mean 'notes'\?"):
        plugin.read_file("note/garden.md", context)


def test_an_appended_file_that_is_new_says_so(tmp_path: Path) -> None:
    """And which there is, since its name may be a mistake."""
    (tmp_path / "shopping.txt").write_text("bread\n", "utf-8")
    told: list[str] = []
    context = replace(_context(tmp_path), warn=told.append)
    plugin.append_file("shoping.txt", "milk", context)
    assert told == [
        '"shoping.txt" is a new file: there was none of that name. There is '
        '"shopping.txt": tell the user if that was meant.'
    ]
    plugin.append_file("shopping.txt", "milk", context)
    assert len(told) == 1
    plugin.append_file("log", "a line", context)
    assert told[1] == '"log" is a new file: there was none of that name.'


def test_list(tmp_path: Path) -> None:
    """Names, and whether there are more."""
    for name in ("b.txt", "a.txt", "c.md"):
        (tmp_path / name).write_text("", encoding="utf-8")
    context = _context(tmp_path)
    assert {"files": ["a.txt", "b.txt"]} == plugin.list_files(context, pattern="*.txt")
    told: list[str] = []
    context = replace(context, warn=told.append)
    assert "more" not in plugin.list_files(context)
    assert not told
    listed = plugin.list_files(context, most=2)
    assert listed == {"files": ["a.txt", "b.txt"], "more": True}
    assert "only 2 are listed" in told[0]
    with pytest.raises(CommandError):
        plugin.list_files(context, folder="../")


@pytest.mark.parametrize("value", ["a,b\n1,2\n", [{"a": 1}], 3, None])
@pytest.mark.parametrize("name", ["o.xlsx", "o.PDF", "o.gif"])
def test_a_result_is_not_saved_as_what_no_program_can_open(
    value: Any, name: str, tmp_path: Path
) -> None:
    """A text is no spreadsheet; bytes may be one."""
    context = _context(tmp_path)
    with pytest.raises(CommandError, match=r"cannot hold .* to \.csv.* to \.txt"):
        plugin.save_result(value, name, context)
    assert not list(tmp_path.iterdir())
    plugin.save_result(b"PK", name, context)
    assert (tmp_path / name).read_bytes() == b"PK"


def test_a_table_is_no_picture(tmp_path: Path) -> None:
    """The error says so, and what a table can be."""
    frame = pytest.importorskip("polars").DataFrame({"a": [1]})
    with pytest.raises(CommandError, match=r"A \.png cannot hold .*DataFrame; write a"):
        plugin.save_result(frame, "o.png", _context(tmp_path))


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such names")
def test_files_with_names_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    """ "There are no files" would be wrong; hidden files stay hidden."""
    for name in ("Q1: sales.txt", "why?.txt", ".env", "neuraxis.toml"):
        (tmp_path / name).write_text("word", encoding="utf-8")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a:b.txt").write_text("word", encoding="utf-8")
    told: list[str] = []
    context = replace(_context(tmp_path), warn=told.append)
    assert plugin.list_files(context) == {"files": []}
    assert plugin.find_in_files("word", context) == {"found": []}
    assert plugin.list_files(context, folder="d") == {"files": []}
    assert [text.split(" of files")[0] for text in told] == [
        "Left out: 3 more names",
        "Left out: 3 more names",
        "Left out: 1 more name",
    ]
