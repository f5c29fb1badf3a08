"""What is told at a glance: short, flat JSON."""

from __future__ import annotations

import enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.assets.json_view import to_json_value
from neuraxis.formatting import ITEMS, TEXT, is_short_json


class Colour(enum.IntEnum):
    """A number that is more than a number."""

    RED = 1


class Name(str):
    """A text that is more than a text."""

    __slots__ = ()


@pytest.mark.parametrize(
    "value",
    ["", "x" * TEXT, {}, {"a": 1, "b": True, "c": None, "d": 1.5, "e": "x" * TEXT}],
)
def test_short_values_are_told_at_a_glance(value: Any) -> None:
    """Texts, and objects of plain values."""
    assert is_short_json(value)


@pytest.mark.parametrize(
    "value",
    [
        "x" * (TEXT + 1),
        {"a": "x" * (TEXT + 1)},
        {"x" * (TEXT + 1): 1},
        {str(number): number for number in range(ITEMS + 1)},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": float("-inf")},
        {"a": 10**300},
        {"a": -(10**300)},
        {1: "a"},
        {"a": [1]},
        {"a": {}},
        {"a": b""},
        {"a": Colour.RED},
        {"a": Name("x")},
        Name("x"),
        [],
        1,
        None,
    ],
)
def test_all_else_is_looked_at_more_closely(value: Any) -> None:
    """False decides nothing: a number or a list may still be said."""
    assert not is_short_json(value)


@given(
    st.dictionaries(
        st.text(max_size=3) | st.integers(),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=5)
        | st.lists(st.integers(), max_size=2)
        | st.binary(max_size=2),
        max_size=4,
    )
)
def test_B57_what_is_short_is_said_as_it_is(value: dict[Any, Any]) -> None:
    """The glance never says more than the closer look."""
    if is_short_json(value):
        can_be_said, said = to_json_value(value)
        assert can_be_said
        assert said == value
