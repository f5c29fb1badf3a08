"""The user's own words: tokens and quotations in long texts."""

from __future__ import annotations

import pytest

from cpu_time import within
from neuraxis.policy.provenance.words import place_of, tokens


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
