"""Bytes of a text file: the text, and what it was written in."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.parsing.encodings import text_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXTS)
def test_utf8_comes_back(text: str) -> None:
    """With and without a mark, which is no part of the text."""
    data = text.encode()
    if not data.startswith((codecs.BOM_UTF8, b"\xfe\xff", b"\xff\xfe")):
        assert text_of(data) == (text, "UTF-8")
    assert text_of(codecs.BOM_UTF8 + data) == (text, "UTF-8")


@pytest.mark.parametrize(
    ("mark", "encoding", "name"),
    [
        (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
        (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
        (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
        (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    ],
)
def test_a_mark_says_what_it_is(mark: bytes, encoding: str, name: str) -> None:
    """That of UTF-32 begins with that of UTF-16."""
    assert text_of(mark + "Größe €\n".encode(encoding)) == ("Größe €\n", name)
    assert text_of(mark + b"x") is None  # cut off


def test_windows_1252_is_read_where_it_is_no_utf8() -> None:
    """As German programs of Windows write."""
    assert text_of("Größe €".encode("cp1252")) == ("Größe €", "Windows-1252")


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\x00", b"\xff\x00\x01", b"\x81\xe4"]
)
def test_what_is_no_text(data: bytes) -> None:
    """Signs that no text has, or none of Windows'."""
    assert text_of(data) is None
