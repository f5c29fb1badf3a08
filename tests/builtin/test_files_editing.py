"""Adding to text files and replacing passages in them."""

from __future__ import annotations

import pytest

from neuraxis.builtin.files.editing import appended, replaced
from neuraxis.errors import CommandError


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"milk", b"milk\nand eggs"),
        (b"milk\n", b"milk\nand eggs\n"),
        (b"milk\r\ntea\r\n", b"milk\r\ntea\r\nand eggs\r\n"),
        (b"", b"and eggs"),
    ],
)
def test_N1_what_was_there_stays(data: bytes, expected: bytes) -> None:
    """The text stands on a line of its own, with the file's line ends."""
    assert appended(data, "and eggs", "n", own_line=True) == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_encoding_stays(encoding: str) -> None:
    """The whole file is still text in the encoding that it had."""
    data = "Größe\n".encode(encoding)
    assert appended(data, "für", "n", own_line=True).decode(encoding) == "Größe\nfür\n"
    assert replaced(data, "ö", "ü", "n", every=False).decode(encoding) == "Grüße\n"


def test_a_character_that_the_encoding_lacks_is_told() -> None:
    """Instead of a question mark in the file."""
    with pytest.raises(CommandError, match="has no form for"):
        appended("Größe".encode("cp1252"), "漢", "n", own_line=True)


def test_N1_a_passage_that_is_not_there_or_there_twice_is_told() -> None:
    """With the lines where it stands, or that its letter case is another."""
    with pytest.raises(CommandError, match=r"does not hold .* upper and lower case"):
        replaced(b"Milk", "milk", "x", "n", every=False)
    with pytest.raises(CommandError, match=r"more than once \(line 1, 3\)"):
        replaced(b"a\nb\na", "a", "x", "n", every=False)
    with pytest.raises(CommandError, match="more than once"):
        replaced(b"aaa", "aa", "x", "n", every=False)
    assert replaced(b"a\nb\na", "a", "x", "n", every=True) == b"x\nb\nx"


def test_a_passage_over_lines_of_windows_is_found() -> None:
    """A model writes \\n; the file keeps its own line ends."""
    assert replaced(b"a\r\nb\r\n", "a\nb", "c\nd", "n", every=False) == b"c\r\nd\r\n"


def test_what_is_no_text_is_not_changed() -> None:
    """Nor decoded as something that it is not."""
    with pytest.raises(CommandError, match="no text file"):
        replaced(b"\x89PNG\0", "P", "J", "n", every=False)


def test_a_text_that_would_be_too_long_is_not_made() -> None:
    """A file of 300 kB took 2.3 GB: its limit was checked when it was made."""
    text = b"a" * 300_000
    with pytest.raises(CommandError, match="would have 2,400,000,000 characters"):
        replaced(text, "a", "b" * 8_000, "x.txt", every=True)
