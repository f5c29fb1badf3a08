"""A reply that the server cut off: who ended it, and what is left of it."""

from __future__ import annotations

import pytest

from call_in_text import read
from neuraxis.dialects.cut_off import cut_reply, was_cut
from neuraxis.messages import Completion


@pytest.mark.parametrize(
    ("reason", "cut"),
    [
        ("stop", False),
        ("tool_calls", False),
        ("length", True),
        ("content_filter", True),
    ],
)
def test_D10_who_ended_the_reply(reason: str, cut: bool) -> None:
    """The model itself, or the server before it did."""
    assert was_cut(Completion(finish_reason=reason)) is cut  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (" Just words. ", ("Just words.",)),
        ("", ()),
        ('Words {"a": 1}', ()),
        ("[1", ()),
        ("a < b", ()),
    ],
)
def test_D10_of_a_cut_reply_nothing_is_run(text: str, kept: tuple[str, ...]) -> None:
    """Plain words are kept; what may be half a call is not shown as words."""
    reply = cut_reply(text)
    assert (reply.calls, reply.texts) == ((), kept)
    assert [error.code for error in reply.errors] == ["truncated_reply"]


@pytest.mark.parametrize("name", ["intents", "native"])
@pytest.mark.parametrize(
    "rest", ['{"name": "look", "arg', "{", "[", ',\n{"name": "look", "arguments": {']
)
def test_D10_a_cut_call_behind_a_whole_one_is_told(name: str, rest: str) -> None:
    """The first ran, and nobody heard of the second."""
    reply = read(name, f"CALL\n{rest}")
    assert (reply.calls, len(reply.errors)) == ((), 1)


@pytest.mark.parametrize("name", ["intents", "native"])
def test_D10_a_bracket_among_words_cuts_no_call(name: str) -> None:
    """A smile is none."""
    assert read(name, "CALL\nThat is all :[").calls
