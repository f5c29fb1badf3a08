"""Which records of a result the user named; results and the user's words flow in.

A listing may hold strangers' words beside fields that the answering system vouches for
(a response's `trusted: true`): the id of a file, its name. Where one vouched field of a
record stands in the user's own words ("append it to notes.docx"), the others of the
same record (its id) are what the user meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, cast

from neuraxis.marks import ANY
from neuraxis.messages import Path
from neuraxis.specs import Json
from neuraxis.wording import Wording, leaves

SHORTEST = 3
"""A shorter text may stand in the user's words by chance."""


def named_values(
    answer: Json, fields: Iterable[Path] | None, words: Wording
) -> Iterator[Json]:
    """The vouched values of every record that the user named.

    Without `fields` all are vouched for, and what the user named must be in one record
    only: the channel that all messages were written in names none of them.
    """
    if fields is None:
        records = list(_records(answer))
        if len(records) < 2:  # nothing was chosen among
            return
        times = Counter(
            value
            for record in records
            for value in record.values()
            if isinstance(value, str)
        )
        for record in records:
            once = {
                name: value
                for name, value in record.items()
                if not isinstance(value, str) or times[value] == 1
            }
            yield from _of(once, once, words)
        return
    by_record: dict[Path, list[str]] = {}
    for field in fields:
        if field and field[-1] != ANY:
            by_record.setdefault(field[:-1], []).append(str(field[-1]))
    for place, names in by_record.items():
        for record in _at(answer, place):
            if isinstance(record, dict):
                yield from _of(cast("dict[str, Any]", record), names, words)


def _of(record: dict[str, Any], names: Iterable[str], words: Wording) -> Iterator[Json]:
    vouched = [record[name] for name in names if name in record]
    if any(
        isinstance(value, str) and len(value) >= SHORTEST and words.trusted(value)
        for value in vouched
    ):
        for value in vouched:
            yield from (leaf for _, leaf in leaves(value))


def _records(answer: Json) -> Iterator[dict[str, Any]]:
    """Every mapping in an answer that has plain values of its own."""
    waiting: list[Any] = [answer]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            entries = cast("dict[str, Any]", item)
            yield {
                key: value
                for key, value in entries.items()
                if not isinstance(value, dict)
            }
            waiting += entries.values()
        elif isinstance(item, list):
            waiting += cast("list[Any]", item)


def _at(value: Json, place: Path) -> Iterator[Json]:
    """Everything that stands at a place with `*` for any index."""
    if not place:
        yield value
    elif place[0] == ANY and isinstance(value, list):
        for item in cast("list[Json]", value):
            yield from _at(item, place[1:])
    elif isinstance(value, dict):
        entries = cast("dict[str, Json]", value)
        keys = list(entries) if place[0] == ANY else [str(place[0])]
        for key in keys:
            if key in entries:
                yield from _at(entries[key], place[1:])
