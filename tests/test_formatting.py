"""Values, paths and names in a message: short, on one line, and not to be confused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.formatting import (
    MOST_NAME,
    QUOTED,
    counted,
    did_you_mean,
    file_name,
    listed,
    named,
    nearest,
    path_text,
    quote,
    type_name,
    with_article,
)
from neuraxis.messages import Path

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
PATHS = st.lists(
    st.integers(0, 20) | st.text("ab0._-[]\"'é ", max_size=3), max_size=4
).map(tuple)


@pytest.mark.parametrize(
    ("noun", "told"),
    [("Order", "an Order"), ("hour", "an hour"), ("unit", "a unit"), ("", "a ")],
)
def test_a_noun_has_its_article(noun: str, told: str) -> None:
    """A class may be named as it likes, and have no name."""
    assert with_article(noun) == told


@given(JSON | st.text("a\x85\u2028\u2029\n\x0b\x1c"))
def test_a_quotation_is_short_and_on_one_line(value: Any) -> None:
    """A short value is quoted whole, as JSON; a long one ends with dots.

    A break is one in any script; those of Unicode may stand in JSON.
    """
    text = quote(value)
    assert len(text) <= QUOTED
    assert len(text.splitlines()) == 1
    whole = json.dumps(value, ensure_ascii=False)
    for char in "\x85\u2028\u2029":
        whole = whole.replace(char, f"\\u{ord(char):04x}")
    assert text == whole if len(whole) <= QUOTED else text == whole[: QUOTED - 1] + "…"


def test_a_quoted_half_of_a_character_can_be_written() -> None:
    """It stands for a byte of a file's name that is no UTF-8."""
    assert quote("a\udcff.md").encode() == b'"a\\udcff.md"'


def test_what_has_no_json_is_quoted_by_its_type() -> None:
    """Nothing of it is called, nothing of it is shown."""
    loop: list[Any] = []
    loop.append(loop)
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    assert quote(loop) == quote(deep) == "<array>"
    assert quote({1, 2}) == "<builtins.set>"
    assert quote({("a",): 1}) == "<object>"
    assert quote(10**5000) == "<integer>"
    assert quote({"a": object()}) == "<object>"


@given(st.text())
def test_a_name_is_one_ascii_line(name: str) -> None:
    """What a model writes for a name may be a page, in any script."""
    text = named(name)
    assert text.isascii()
    assert "\n" not in text
    shown = json.loads(text)
    assert len(shown) <= MOST_NAME
    assert shown == name if len(name) <= MOST_NAME else shown[:-1] == name[:119]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "integer"),
        (math.nan, "number"),
        ("", "string"),
        ([], "array"),
        ({}, "object"),
        (b"", "builtins.bytes"),
        ((), "builtins.tuple"),
        (int, "builtins.type"),
    ],
)
def test_types_have_the_names_of_json(value: Any, name: str) -> None:
    """What JSON has none for has that of its class."""
    assert type_name(value) == name


@given(PATHS, PATHS)
def test_two_paths_are_never_told_alike(one: Path, other: Path) -> None:
    """An index is no key of the same digits, a key with a dot is one key."""
    assert (path_text(one) == path_text(other)) is (one == other)
    assert path_text(one, "t").startswith("t")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("boxes", 1, "x"), "boxes[1].x"),
        (("a-b_c", "0"), "a-b_c.0"),
        ((0, "a"), "[0].a"),
        (("a.b", ""), '["a.b"][""]'),
    ],
)
def test_a_path_reads_as_in_a_program(path: Path, text: str) -> None:
    """Words by dots, the rest in brackets."""
    assert path_text(path) == text


@given(st.lists(st.text("abcdefgh_ ", min_size=3, max_size=12), max_size=8))
def test_the_name_itself_is_the_nearest(names: list[str]) -> None:
    """In any case, and with any punctuation; each candidate is there, and once."""
    for name in names:
        if not name.strip("_ "):
            continue
        close = nearest(f"{name.upper()}-", names)
        assert len(set(close)) == len(close) <= 3
        assert set(close) <= set(names)
        alike = {"".join(filter(str.isalnum, item)) for item in close[:1]}
        assert alike == {"".join(filter(str.isalnum, name))}


@pytest.mark.parametrize("name", ["", "_", "zzz", "x" * 100_000])
def test_what_is_like_nothing_has_no_nearest(name: str) -> None:
    """A wrong guess is worse than none."""
    assert nearest(name, ["weather", "maps"]) == ()
    assert nearest(name, []) == ()


@given(st.lists(st.text("ab", min_size=1, max_size=2), max_size=30), st.integers(1, 25))
def test_a_list_says_how_many_more_there_are(names: list[str], most: int) -> None:
    """Shown and not shown are all."""
    text = listed(names, most)
    head, _, more = text.partition(" and ")
    shown = [] if text == "none" else head.split(", ")
    assert shown == names[:most]
    assert (int(more.split()[0]) if more else 0) == len(names) - len(shown)


def test_a_question_is_asked_where_there_is_one() -> None:
    """It stands behind a sentence."""
    assert did_you_mean(()) == ""
    assert did_you_mean(("a",)) == " Did you mean a?"
    assert did_you_mean(("a", "b")) == " Did you mean a or b?"


def test_a_name_of_a_file_leads_nowhere_else() -> None:
    """An ordinary id stays; any other becomes one name, different for each."""
    for same in ("a1", "a2.5", "user-7", "max@example.com", "chat: 4", "Zoë", "0" * 32):
        assert file_name(same) == same
    odd = [
        "", ".", "..", "../up", "/etc", "a/b", "a\\b", "a\0b", "a\n", "~x", "@x",
        ".hidden", "x" * 300, "x" * 301, "é" * 100, "\ud800", " a",
    ]  # fmt: skip
    names = {file_name(given) for given in odd}
    assert len(names) == len(odd)
    assert all(name[0] == "@" and name[1:].isalnum() for name in names)


def test_a_number_of_things_has_the_right_plural() -> None:
    """Of one there is no plural."""
    told = [counted(1, "reply"), counted(2, "reply"), counted(3, "day")]
    assert told == ["1 reply", "2 replies", "3 days"]
    assert counted(1_200, "call") == "1,200 calls"
