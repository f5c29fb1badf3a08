"""Strict JSON takes what JSON is, and refuses what people and models mean by it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.parsing import strict_json

_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(_VALUES)
def test_what_is_written_is_read(value: Any) -> None:
    """Of any JSON value, lone surrogates among the texts."""
    assert strict_json.loads(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "b": 2, "a": 3}', 'the key "a" appears twice'),
        ('[{"": 1, "": 1}]', 'the key "" appears twice'),
        ("NaN", "NaN is no JSON value"),
        ("[-Infinity]", "-Infinity is no JSON value"),
        ("[1e999]", "1e999 is too large"),
        ("[1] 2", "Extra data"),
        ("", "Expecting value"),
    ],
)
def test_D5_what_is_no_json_is_refused(text: str, reason: str) -> None:
    """Each with its reason (rules D4 and D5)."""
    with pytest.raises(ValueError, match=reason):
        strict_json.loads(text)


def test_large_whole_numbers_stay_whole() -> None:
    """No float in between."""
    assert strict_json.loads(str(10**30)) == 10**30
    assert math.isclose(strict_json.loads("1e300"), 1e300)
