"""Where a value came from: as JSON and back, and in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.policy.provenance.labels import (
    OWN,
    Label,
    Origin,
    Traced,
    describe,
    describe_traced,
    from_told,
    is_outside,
    is_private,
    to_tell,
)

LABELS = st.frozensets(
    st.builds(
        Origin,
        source=st.sampled_from(["web.get", "files.read", "mail.list", "a", ""]),
        open_world=st.booleans(),
        private=st.booleans(),
    )
)
PAGE = Origin(source="web.get", open_world=True)
FILE = Origin(source="files.read", private=True)


@given(LABELS)
def test_a_label_comes_back_from_the_journal(label: Label) -> None:
    """Through JSON text."""
    assert from_told(json.loads(json.dumps(to_tell(label)))) == label


@given(LABELS, LABELS)
def test_joining_never_washes(one: Label, other: Label) -> None:
    """What was foreign or private stays so, whatever it is mixed with."""
    both = one | other
    assert is_outside(both) is (is_outside(one) or is_outside(other))
    assert is_private(both) is (is_private(one) or is_private(other))
    assert not is_outside(OWN)
    assert not is_private(OWN)


@pytest.mark.parametrize(
    "told",
    [{}, {"source": "x"}, None, "x", [], 5, {"open_world": 0}, {"open_world": None}],
)
def test_what_cannot_be_read_is_outside(told: Any) -> None:
    """A damaged journal opens nothing; only `false` says that no stranger was there."""
    label = from_told([told])
    assert is_outside(label)
    assert is_private(label)


def test_what_is_private_is_said_to_be() -> None:
    """All but what says `false`."""
    (origin,) = from_told([{"source": 5, "open_world": False, "private": True}])
    assert origin == Origin(source="5", private=True)
    assert is_private(from_told([{"private": 0}]))
    assert not is_private(from_told([{"private": False}]))


def test_the_order_of_what_is_told_is_that_of_the_names() -> None:
    """A journal is the same twice."""
    label = frozenset(Origin(source=name) for name in "cab")
    assert [entry["source"] for entry in to_tell(label)] == ["a", "b", "c"]


def test_a_person_is_told_the_strangers() -> None:
    """Where there are some, the user's own files are not what matters."""
    assert describe(frozenset({PAGE, FILE})) == "answers of web.get"
    assert describe(frozenset({FILE})) == "answers of files.read"
    assert describe(OWN) == ""


def test_a_person_is_told_three_and_how_many_more() -> None:
    """In the order of their names."""
    label = frozenset(Origin(source=f"{x}.x", open_world=True) for x in "edcba")
    assert describe(label) == "answers of a.x, b.x, c.x and 2 more"
    assert describe(label - {Origin(source="e.x", open_world=True)}) == (
        "answers of a.x, b.x, c.x and 1 more"
    )


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("literal", "written by the model after it read answers of web.get"),
        ("reference", "from answers of web.get"),
        ("text", "made of answers of web.get"),
    ],
)
def test_how_a_value_came_is_told(how: Any, words: str) -> None:
    """Written, referred to, or made of references."""
    item = Traced(path=("to",), value="x", label=frozenset({PAGE}), how=how)
    assert describe_traced(item) == words


def test_a_label_is_told_in_one_order() -> None:
    """Also of one source with other flags."""
    flags = [(False, True), (True, False), (True, True)]
    made = [Origin(source="a", open_world=o, private=p) for o, p in flags]
    assert to_tell(frozenset(made)) == to_tell(frozenset(made[::-1]))
    told = [(t["open_world"], t["private"]) for t in to_tell(frozenset(made))]
    assert told == flags
