"""The user's own words: tokens and quotations in long texts."""

from __future__ import annotations

import pytest

from cpu_time import within
from neuraxis.policy.provenance.words import is_own, place_of, tokens


@pytest.mark.parametrize("part", [" 'a", "“", " `a`b", "(a", " a"])
def test_a_long_request_is_read_once(part: str) -> None:
    """Quotes without an end are not looked for from each of the beginnings."""
    text = part * 100_000 + " 'the last one' "
    found = within(0.5, lambda: place_of("the last one", text), attempts=3)
    assert found in (text.rindex(" 'the last") + 1, -1)


def test_many_marks_behind_a_token_are_read_once() -> None:
    """A token's own bracket stays, the others go."""
    text = "Tea_(drink)" + ")" * 300_000
    assert ["Tea_(drink)"] == within(0.5, lambda: tokens(text), attempts=3)


@pytest.mark.parametrize(
    ("text", "value", "place"),
    [
        ("say 'it's so' and 'go on'", "go on", 18),
        ("say 'it's so' and 'go on'", "it's so", 4),
        ("“one” “two”", "two", 6),
        ("'a b' 'c d' 'e f'", "e f", 12),
        ("don't say 'a b", "a b", -1),
    ],
)
def test_quotations_end_where_a_word_does(text: str, value: str, place: int) -> None:
    """An apostrophe inside a word ends none."""
    assert place == place_of(value, text)


@pytest.mark.parametrize("value", ["ann.lee@x.example", 4711])
def test_many_values_are_compared_with_a_long_request(value: str | int) -> None:
    """The request was split into its words again for each value of a plan (9 s)."""
    text = "ann@x.example 12 " * 2_000
    values = [value] * 1_000
    found = within(0.5, lambda: any(is_own(one, (text,)) for one in values), attempts=3)
    assert not found
    assert is_own("ann@x.example", (text,))
    assert is_own(12.0, (text,))
