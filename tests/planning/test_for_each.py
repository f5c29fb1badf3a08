"""The list a step goes over; `test_fan_out` shows loops in a run."""

from __future__ import annotations

from typing import Any

import pytest

from neuraxis.call_errors import problem_text
from neuraxis.planning.for_each import (
    DEFAULT_MAX_ITEMS,
    MAX_ITEMS,
    items_of,
    list_problem,
)
from neuraxis.planning.plan import Loop
from neuraxis.references.asset_ref import AssetRef


def _unused(ref: AssetRef) -> Any:
    raise AssertionError(ref)


@pytest.mark.parametrize("value", [[], [1, "a", None], [[1], {"a": 2}]])
def test_N3_a_written_list_is_what_is_gone_over(value: Any) -> None:
    """Nothing is looked up for it."""
    assert items_of(Loop(value=value, most=5), _unused) == value


def test_N3_references_in_a_list_are_their_objects() -> None:
    """By identity, in their places; what was written stays as it is."""
    native = object()
    ref = AssetRef(asset_id="a1")
    written: list[Any] = [1, "asset://a1", {"deep": "asset://a1"}]
    loop = Loop(
        value=written,
        most=5,
        asset_refs=(
            (("$for_each", 1), ref),
            (("$for_each", 2, "deep"), ref),
        ),
    )
    found = {ref: native}
    assert items_of(loop, found.__getitem__) == [1, native, {"deep": native}]
    assert written == [1, "asset://a1", {"deep": "asset://a1"}]


def test_N3_a_reference_may_be_the_whole_list() -> None:
    """Whatever it leads to; what is no list is told by `wrong_items`."""
    ref = AssetRef(asset_id="a1", field_path=("content",))
    loop = Loop(value="asset://a1/content", most=5, asset_refs=((("$for_each",), ref),))
    for there in ([1, 2], (1, 2), "text", None):
        assert items_of(loop, {ref: there}.__getitem__) is there


@pytest.mark.parametrize("items", [[], [1], (1, 2), ["x"] * 3])
def test_N3_a_list_within_its_limit_is_right(items: Any) -> None:
    """The limit itself is within."""
    assert list_problem(items, 3) is None


@pytest.mark.parametrize(
    ("items", "got"),
    [
        ({"urls": [1]}, "an object with the keys urls"),
        ("abc", "a value of type string, which has no parts"),
        (None, "a value of type null, which has no parts"),
        ({1, 2}, "a value of type builtins.set, which has no parts"),
    ],
)
def test_N3_what_is_no_list_is_told(items: Any, got: str) -> None:
    """With what can be taken of it."""
    problem = list_problem(items, 3)
    assert problem is not None
    assert problem_text(problem, "t") == f't["$for_each"]: expected a list, got {got}'


def test_N3_too_many_items_are_told_with_the_way_out() -> None:
    """How many there are, how to take fewer, and how to ask for more."""
    problem = list_problem(range(0), 3)
    assert problem is not None  # a range is no list
    problem = list_problem([0] * 4, 3)
    assert problem is not None
    assert problem.got == "4 items"
    assert problem.expected.startswith("at most 3 items")
    assert "[:3]" in problem.expected
    assert f'"$max_items", at most {MAX_ITEMS}' in problem.expected
    assert 1 < DEFAULT_MAX_ITEMS < MAX_ITEMS
