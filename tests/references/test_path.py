"""Parts of a value, found by a path."""

from __future__ import annotations

from neuraxis.references.path import child


def test_a_key_that_is_a_number_is_found_before_its_text() -> None:
    """Also if both are keys of one mapping."""
    both = {1: "a", "1": "b"}
    assert [child(both, 1), child(both, "1")] == ["a", "b"]
    assert child({"1": "b"}, 1) == child({1: "b"}, "1") == "b"
