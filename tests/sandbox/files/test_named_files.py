"""Files that a request names, by path and by words."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuraxis.sandbox.files.named_files import is_called, is_named


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("Append 'x' to notes.txt", True),
        ("append x to ./docs/notes.txt.", True),
        ("append x to docs/Notes.TXT", False),
        ("append x to **notes.txt**, please", True),
        ("append x to notes.txt's end", True),
        ("see https://x.example/?notes.txt", False),
        ("append x to docs/notes.txt", True),
        ("see (notes.txt)", True),
        ("append x to other/notes.txt", False),
        ("append x to my-notes.txt", False),
        ("append x to notes.txt.bak", False),
        ("append x to my notes", False),
        ("append x to notes.txt+old.txt", False),
        ("append x to notes.txt%20old", False),
        ("append x to notes.txt, old.txt", True),
    ],
)
def test_a_request_names_a_file(words: str, named: bool) -> None:
    """By its name or its path, as a whole; letter case counts."""
    assert is_named("docs/notes.txt", [words], without_folder=True) is named


def test_a_whole_path_may_be_asked_for() -> None:
    """`notes.md` is not `archive/notes.md`; composed and decomposed letters are one."""
    assert not is_named("archive/notes.md", ["see notes.md"])
    assert not is_named("notes.md", ["see archive/notes.md"])
    assert is_named("./archive/café.md", ["see 'archive/cafe\u0301.md'"])


@pytest.mark.parametrize(
    ("request_text", "called"),
    [
        ("Put Dune on my reading list", True),
        ("add Dune to the Reading-List, please", True),
        ("make a reading list of it", False),
        ("I looked at the reading. List what the page says", False),
        ("the reading, list all", False),
        ("my reading\n\nlist", False),
        ("the reading (list)", False),
        ("the reading / list", False),
        ("compare the reading-list.txt with it", False),
        ("put Dune on my list", False),
        ("put it on the reading and the shopping list", False),
        ("read https://example.org/reading-list and tell me", False),
        ("write to reading.list@example.org", False),
    ],
)
def test_words_of_a_request_mean_a_text(
    tmp_path: Path, request_text: str, called: bool
) -> None:
    """All words of the name, in their order; not those of an address."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/reading-list.md").write_text("Emma")
    assert is_called("notes/reading-list.md", [request_text], tmp_path) is called


@pytest.mark.parametrize(
    ("there", "request_text"),
    [
        (["todo.md", "old/todo.txt"], "put it on my todo list"),
        (["it.md"], "put it on my list"),
        (["2026.csv"], "what did I spend in 2026?"),
        (["average.py"], "repair my average script"),
    ],
)
def test_words_that_mean_no_single_text(
    tmp_path: Path, there: list[str], request_text: str
) -> None:
    """Two texts of one name, a short name, a number, a program."""
    for name in there:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert not is_called(there[0], [request_text], tmp_path)


@pytest.mark.parametrize("said", ["my to-do list", "the todo list", "our To-Do"])
def test_a_hyphen_within_a_word_does_not_count(tmp_path: Path, said: str) -> None:
    """People write the to-do list that is kept in `todo.md`."""
    (tmp_path / "todo.md").write_text("x")
    assert is_called("todo.md", [f"Put milk on {said}, please"], tmp_path)
