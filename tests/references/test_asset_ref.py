"""What `test_references` does not say of the written forms of a reference."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.references.asset_ref import (
    LONGEST_EMBEDDED,
    AssetRef,
    format_object,
    format_url,
    looks_like_object,
    parse_embedded,
    parse_reference,
    reference_fault,
)

NEAR = st.text("asset:/%3f0 ", max_size=14) | st.fixed_dictionaries(
    {"asset_id": st.text(max_size=3) | st.integers()},
    optional={
        "field_path": st.none() | st.text(max_size=2) | st.lists(st.none() | st.text()),
        "other": st.none(),
    },
)


@given(NEAR | NEAR.map(lambda value: f"asset://{value}"))
def test_B48_what_is_no_reference_is_data_or_told(value: Any) -> None:
    """Never both a reference and a fault; what looks like one is one of them."""
    ref, fault = parse_reference(value), reference_fault(value)
    assert ref is None or not fault
    looks = (
        value.startswith("asset://")
        if isinstance(value, str)
        else looks_like_object(value)
    )
    assert looks == (ref is not None or bool(fault))


@pytest.mark.parametrize("value", [None, 5, [], {}, {"field_path": []}, {"a": 1}, ""])
def test_B48_plain_data_has_no_fault(value: Any) -> None:
    """Not every object is a reference that went wrong."""
    assert parse_reference(value) is None
    assert reference_fault(value) == ""


def test_B48_blanks_in_a_url_are_told_how_to_write() -> None:
    """And that is how they are written here."""
    assert "%20" in reference_fault("asset://a1/first name")
    assert format_url(AssetRef(asset_id="a1", field_path=("first name",))) == (
        "asset://a1/first%20name"
    )


@pytest.mark.parametrize("index", [True, 1.0, None, [0]])
def test_B48_an_index_is_a_whole_number(index: Any) -> None:
    """`true` is no place in a list."""
    assert parse_reference({"asset_id": "a1", "field_path": [index]}) is None


def test_B48_a_whole_asset_has_the_short_forms() -> None:
    """No empty path is written."""
    whole = AssetRef(asset_id="a1")
    assert format_url(whole) == "asset://a1"
    assert format_object(whole) == {"asset_id": "a1"}


def test_B48_a_reference_does_not_share_its_path() -> None:
    """Who changes what was written does not change the reference."""
    ref = AssetRef(asset_id="a1", field_path=("a", 0))
    format_object(ref)["field_path"].append("b")
    assert format_object(ref) == {"asset_id": "a1", "field_path": ["a", 0]}


@given(
    st.lists(
        st.tuples(
            st.text("ab <|{}", max_size=4).filter(lambda text: "<|" not in text + "<"),
            st.builds(
                lambda name, parts: AssetRef(asset_id=name, field_path=tuple(parts)),
                st.text("aé/|>% ", min_size=1, max_size=3),
                st.lists(st.integers(0, 9) | st.text("x}|>~", max_size=3), max_size=2),
            ),
            st.booleans(),
        ),
        max_size=4,
    )
)
def test_B62_all_in_a_text_are_found(parts: list[tuple[str, AssetRef, bool]]) -> None:
    """In either form, with the places they have in the text."""
    text, expected = "", list[tuple[int, int, AssetRef]]()
    for before, ref, is_url in parts:
        form = format_url(ref) if is_url else json.dumps(format_object(ref))
        text += before
        expected.append((len(text), len(text) + len(form) + 4, ref))
        text += f"<|{form}|>"
    assert parse_embedded(text) == expected


@pytest.mark.parametrize("form", ["asset://{}", '{{"asset_id": "{}"}}'])
def test_B62_a_long_one_is_looked_at_up_to_the_limit(form: str) -> None:
    """A text full of `<|` is not read to its end for each."""
    fits = form.format("a" * (LONGEST_EMBEDDED - len(form.format("")) - 2))
    assert len(parse_embedded(f"<|{fits}|>")) == 1
    assert parse_embedded(f"<|{fits.replace('a' * 9, 'a' * 10, 1)}|>") == []


@pytest.mark.parametrize(
    "text",
    ["<|asset://a1", "<|asset://a1>", "<|asset://a 1|>", "<|a1|>", "<|[1]|>", "<|{|>"],
)
def test_B62_what_is_not_whole_is_text(text: str) -> None:
    """And the next one is found behind it."""
    found = (len(text), len(text) + len("<|asset://b|>"), AssetRef(asset_id="b"))
    assert parse_embedded(f"{text}<|asset://b|>") == [found]
    assert parse_embedded(text) == []
