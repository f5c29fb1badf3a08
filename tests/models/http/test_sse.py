"""Bytes of an event stream become events, however they are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.models.http import sse
from neuraxis.models.http.sse import Event, EventReader, EventTooLarge

STREAM = (
    "\ufeffevent: a\r\ndata: é\U0001f600\r\ndata:two\r\n\r\n"
    ": comment\rdata:  spaced\r\r"
    "id: 7\nretry: 1\nunknown\ndata\n\nevent: none\n\ndata: last"
).encode()
EVENTS = [
    Event(name="a", data=("é\U0001f600", "two")),
    Event(data=(" spaced",)),
    Event(data=("",)),
    Event(data=("last",)),
]


def read(*portions: bytes) -> list[Event]:
    reader = EventReader()
    events = [event for portion in portions for event in reader.feed(portion)]
    return events + reader.finish()


def test_the_whole_stream() -> None:
    """All line ends, comments, names and fields of the standard."""
    assert read(STREAM) == EVENTS


@given(st.sets(st.integers(1, len(STREAM) - 1)))
def test_any_cuts_give_the_same_events(cuts: set[int]) -> None:
    """A cut may fall anywhere, also between CR and LF or inside a character."""
    places = [0, *sorted(cuts), len(STREAM)]
    portions = [STREAM[start:end] for start, end in pairwise(places)]
    assert read(*portions) == EVENTS


@given(st.lists(st.binary(max_size=20)))
def test_any_bytes_are_read(portions: list[bytes]) -> None:
    """Nothing that a server sends raises, and cuts do not matter."""
    assert read(*portions) == read(b"".join(portions))


def test_an_endless_event_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line without end cannot fill the memory; comments may go on for ever."""
    monkeypatch.setattr(sse, "EVENT_BYTES", 100)
    reader = EventReader()
    for _ in range(50):
        assert reader.feed(b": still thinking\n") == []
    assert reader.feed(b"data: held\n") == []
    for _ in range(9):
        reader.feed(b"data: xxxx")
    with pytest.raises(EventTooLarge):
        reader.feed(b"x")
