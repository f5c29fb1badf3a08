"""The lines of a stored value: a text's own, else one of JSON for each item."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuraxis.builtin.assets.lines import decoded, is_table, line_of_item, lines_of
from neuraxis.errors import CommandError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def _lines(value: Any, first: int = 0) -> list[str]:
    return [line.text for line in lines_of(value).since(first)]


@given(st.lists(JSON, max_size=6), st.integers(0, 8))
def test_a_list_has_a_line_for_each_item(items: list[Any], first: int) -> None:
    """From any on; JSON, but for texts, which are themselves. It may be a tuple."""
    for value in (items, tuple(items)):
        found = lines_of(value)
        assert found.total == len(items)
        shown = [line.text for line in found.since(first)]
        read = [
            text if isinstance(item, str) else json.loads(text)
            for text, item in zip(shown, items[first:], strict=True)
        ]
        assert read == items[first:]


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=5), JSON.filter(lambda v: type(v) is not str)))
def test_a_mapping_has_a_line_for_each_key(entries: dict[str, Any]) -> None:
    """Together they are the mapping, in its order; none is a place in a text."""
    found = lines_of(entries)
    assert found.total == len(entries)
    lines = list(found.since(0))
    assert list(json.loads(f"{{{','.join(line.text for line in lines)}}}").items()) == (
        list(entries.items())
    )
    assert {line.position for line in lines} <= {-1}
    assert [line.text for line in found.since(1)] == [line.text for line in lines[1:]]


@pytest.mark.parametrize("value", [b"a\nb", bytearray(b"a\nb"), memoryview(b"a\nb")])
def test_bytes_have_the_lines_of_their_text(value: Any) -> None:
    """With their places in it."""
    assert [(line.text, line.position) for line in lines_of(value).since(0)] == [
        ("a", 0),
        ("b", 2),
    ]


def test_lines_are_made_when_they_are_asked_for() -> None:
    """A text of any size is never copied as a whole."""
    lines = lines_of("first\n" * 100_000).since(50_000)
    assert next(lines).position == 300_000
    assert next(lines_of([1, object()]).since(0)).text == "1"


@pytest.mark.parametrize("value", ["", [], {}, (), b""])
def test_nothing_has_no_lines(value: Any) -> None:
    """And no error; nor has what is behind the end."""
    assert (lines_of(value).total, _lines(value), _lines(value, 3)) == (0, [], [])


@pytest.mark.parametrize("value", [5, None, True, 1.5, object(), {1, 2}, iter([])])
def test_what_has_no_lines_is_told(value: Any) -> None:
    """With what it is, and what can be done with it."""
    with pytest.raises(CommandError, match="has no lines") as told:
        lines_of(value)
    assert "by its reference" in str(told.value)


def test_pictures_and_numbers_in_arrays_have_no_lines() -> None:
    """A number is none, whatever library it is of."""
    numpy = pytest.importorskip("numpy")
    pictures = pytest.importorskip("PIL.Image")
    for value in (numpy.array(5), pictures.new("L", (1, 1))):
        with pytest.raises(CommandError, match="has no lines"):
            lines_of(value)


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_a_table_has_a_line_for_each_row(library: str) -> None:
    """Of any library, from any row on."""
    module = pytest.importorskip(library)
    columns = {"n": list(range(2500)), "word": ["é"] * 2500}
    make = module.table if library == "pyarrow" else module.DataFrame
    table = make(columns)
    assert is_table(table)
    assert lines_of(table).total == 2500
    assert [json.loads(line) for line in _lines(table, 2498)] == [
        {"n": 2498, "word": "é"},
        {"n": 2499, "word": "é"},
    ]


def test_what_only_looks_like_a_table_is_none() -> None:
    """Neither by name nor by fields."""

    class DataFrame:
        columns = ("a",)
        shape = (1, 1)

    assert not is_table(DataFrame())
    assert not is_table([{"a": 1}])


def test_what_is_no_json_is_told_in_its_line() -> None:
    """The other items are not lost."""
    assert _lines([1, b"xyz", "a"]) == ["1", "<class 'bytes'> 3 bytes", "a"]
    assert _lines({"a": b"xyz"}) == ["\"a\": <class 'bytes'> 3 bytes"]
    loop: list[Any] = []
    loop.append(loop)
    assert line_of_item(loop)


def test_bytes_that_are_no_text_are_told() -> None:
    """With the first byte that is none."""
    assert decoded(memoryview("é".encode())) == "é"
    with pytest.raises(CommandError, match=r"UTF-8 \(byte 2 is none\)"):
        decoded(b"ab\xff")


def test_a_list_that_stands_in_itself_many_times_is_described() -> None:
    """Written out, its forty levels would never end."""
    knot: list[Any] = [b"x"]
    for _ in range(40):
        knot = [knot, knot]
    assert len(line_of_item(knot)) < 10_000_000
