"""Parse the events of a `text/event-stream`.

The parser accepts the bytes in any portions: lines are cut at the byte level (no byte
of a multibyte character is a line end in UTF-8) and decoded one by one.
"""

from __future__ import annotations

from msgspec import Struct

EVENT_BYTES = 16 * 1024 * 1024
"""Maximum size of one event, to bound the memory."""

_BOM = b"\xef\xbb\xbf"


class EventTooLarge(ValueError):
    """Raised for an event larger than `EVENT_BYTES`."""


class Event(Struct, frozen=True, kw_only=True):
    """Event: its name (empty if it has none) and its data lines."""

    name: str = ""
    data: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the data as the standard joins it."""
        return "\n".join(self.data)


class EventReader:
    """Parses a stream of bytes into events; call `feed`, then `finish`."""

    __slots__ = (
        "_after_cr",
        "_data",
        "_first",
        "_held",
        "_line_size",
        "_name",
        "_rest",
    )

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # pieces of an unfinished line
        self._after_cr = False
        self._first = True
        self._name = ""
        self._data: list[str] = []
        self._held = 0  # total bytes of `_data`
        self._line_size = 0

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that these bytes complete."""
        if not data:
            return []
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]  # the second half of a CR LF that was cut in two
        events: list[Event] = []
        for line in data.splitlines(keepends=True):
            self._line_size += len(line)
            if self._line_size + self._held > EVENT_BYTES:
                raise EventTooLarge(f"an event is larger than {EVENT_BYTES} bytes")
            self._rest.append(line)
            if line.endswith((b"\n", b"\r")):
                self._line(b"".join(self._rest).rstrip(b"\r\n"), events)
                self._rest.clear()
                self._line_size = 0
        self._after_cr = data.endswith(b"\r")
        return events

    def finish(self) -> list[Event]:
        """Return a last event without the blank line that should end it."""
        events: list[Event] = []
        if self._rest:
            self._line(b"".join(self._rest), events)
            self._rest.clear()
        self._line(b"", events)
        return events

    def _line(self, raw: bytes, events: list[Event]) -> None:
        if self._first:
            self._first = False
            raw = raw.removeprefix(_BOM)
        if not raw:
            if self._data:
                events.append(Event(name=self._name, data=tuple(self._data)))
            self._data = []
            self._name = ""
            self._held = 0
            return
        field, _, value = raw.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value.decode("utf-8", "replace"))
            self._held += len(raw)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"error" and value:
            # no field of the standard: llama.cpp's form of errors until late in 2025
            text = value.decode("utf-8", "replace")
            events.append(Event(name="error", data=(text,)))
