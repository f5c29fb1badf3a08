"""Searching: which lines fit, and what is shown of a long one."""

from __future__ import annotations

import re
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.builtin.assets.grep import PATTERN, matcher, matching, window
from neuraxis.builtin.assets.lines import Line, lines_of
from neuraxis.errors import CommandError


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("b", "abc", True),
        ("", "", True),
        ("^b", "abc", False),
        ("c$", "abc", True),
        ("a|x", "-x-", True),
        (r"^\d{2}$", "12", True),
        (r"\.", "abc", False),
        ("É", "é", False),
        ("[äö]", "grün", False),
        (r"\bword\b", "a word.", True),
    ],
)
def test_a_place_that_fits_is_enough(pattern: str, text: str, fits: bool) -> None:
    """Anywhere in the line, as with `grep`."""
    assert matcher(pattern, False)(text) is fits


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("É", "é"), ("a|B", "b"), ("[x-z]", "Y"), ("straße", "STRAßE")],
)
def test_case_may_be_ignored(pattern: str, text: str) -> None:
    """In every branch of the pattern, and beyond ASCII."""
    assert matcher(pattern, True)(text)
    assert not matcher(pattern, False)(text)


@given(st.text("ab", min_size=1, max_size=3), st.text("ab", max_size=8), st.booleans())
def test_simple_patterns_mean_what_they_mean_in_python(
    word: str, text: str, any_case: bool
) -> None:
    """A model writes what it has learnt."""
    for pattern in (word, f"^{word}", f"({word})+$", f"{word[0]}.?{word[-1]}"):
        flags = re.IGNORECASE if any_case else 0
        found = re.search(pattern, text.upper(), flags) is not None
        assert matcher(pattern, any_case)(text.upper()) is found


@pytest.mark.parametrize("pattern", ["a" * (PATTERN + 1), "(", "[z-a]", "\ud800"])
def test_a_pattern_that_cannot_be_used_is_told(pattern: str) -> None:
    """In bounds, and without the words of a library."""
    with pytest.raises(CommandError) as told:
        matcher(pattern, False)
    assert len(str(told.value)) < 400
    assert "\n" not in str(told.value)


def test_the_longest_pattern_is_one() -> None:
    """The limit itself is within."""
    assert matcher("a" * PATTERN, False)("a" * PATTERN)


def test_lines_that_fit_have_their_index() -> None:
    """From the first one that was given, on; one at a time."""
    given_ = iter([Line("a", 0), Line("b", 2), Line("a", 4), Line("c", 6)])
    found = matching(given_, lambda text: text == "a", Event())
    assert next(found) == (0, Line("a", 0))
    assert next(given_) == Line("b", 2)
    assert next(found) == (1, Line("a", 4))
    assert list(found) == []


def test_a_search_that_is_cancelled_ends() -> None:
    """Also in the middle of an endless text."""
    cancelled = Event()

    def endless() -> Any:
        for number in range(10**7):
            if number == 5000:
                cancelled.set()
            yield Line("a")

    with pytest.raises(CommandError, match="search from a later line on") as told:
        list(matching(endless(), lambda text: False, cancelled))
    number = re.search(r"after (\d+) lines", str(told.value))
    assert number is not None
    assert 5000 <= int(number[1]) < 10_000


@given(st.text("ab ", max_size=60), st.text("ab ", max_size=60), st.integers(12, 40))
def test_the_window_shows_the_first_place(before: str, after: str, width: int) -> None:
    """All of it, in so many characters, where it stands in the line."""
    text = f"{before}needle{after}needle"
    shown, start = window(text, matcher("needle", False), width)
    assert shown == text[start : start + width]
    assert len(shown) == min(width, len(text))
    assert start <= len(before) <= start + len(shown) - len("needle")


def test_a_short_line_is_shown_whole() -> None:
    """It is not searched again."""

    def never(text: str) -> bool:
        raise AssertionError(text)

    assert window("short", never, 5) == ("short", 0)


def test_what_fits_is_found_in_all_that_has_lines() -> None:
    """A list is searched as the JSON of its items."""
    rows = [{"city": "Bern"}, {"city": "Lyon"}]
    found = matching(lines_of(rows).since(0), matcher('"Lyon"', False), Event())
    assert list(found) == [(1, Line('{"city": "Lyon"}'))]
