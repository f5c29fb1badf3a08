"""Find the records of a result that the user named.

A listing may contain untrusted text beside fields that the answering system vouches
for (a response's `trusted: true`): the id of a file, its name, with whom it is
shared. Where one of them occurs in the user's own words ("append it to notes.docx",
or "to my travel notes" of `travel-notes.docx`), the others of the same record (its
id) are what the user meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import Any, cast

from neuraxis.messages import Path
from neuraxis.policy.provenance.wording import Wording, leaves
from neuraxis.schema.annotations import ANY
from neuraxis.specs import Json

SHORTEST = 3
"""A shorter text may stand in the user's words by chance."""


def named_values(
    answer: Json,
    fields: Iterable[Path] | None,
    words: Wording,
    asked: Container[str] = (),
) -> Iterator[Json]:
    """The vouched values of every record that the user named.

    What names it must be of one record only: the channel that all messages were written
    in names none of them, nor does a name that two files have. Without `fields` all are
    vouched for, and no stranger had a part in it.

    Args:
        answer: any value.
        fields: those that the answering system vouches for.
        words: the user's.
        asked: what of the user's words was looked up, each `as_said`.
    """
    for records in _groups(answer, fields):
        if fields is None and len(records) < 2:  # nothing was chosen among
            continue
        looked_up = None if fields is None else asked
        names = [_names(record, words, looked_up) for record in records]
        times = Counter(name for each in names for name in each)
        values = Counter(
            value
            for record in records
            for value in record.values()
            if isinstance(value, str)
        )
        for record, each in zip(records, names, strict=True):
            if any(times[name] == 1 for name in each):
                for value in record.values():
                    # without fields, what others have too tells nothing of this one
                    if fields is None and isinstance(value, str) and values[value] > 1:
                        continue
                    yield from (leaf for _, leaf in leaves(value, ("",)))


def only_values(answer: Json, fields: Iterable[Path] | None) -> Iterator[Json]:
    """Return the vouched values of a result with exactly one record."""
    for records in _groups(answer, fields):
        if len(records) == 1:
            for value in records[0].values():
                yield from (leaf for _, leaf in leaves(value, ("",)))


def _names(
    record: dict[str, Any], words: Wording, asked: Container[str] | None
) -> frozenset[str]:
    """What of a record stands in the user's words."""
    return frozenset(
        name
        for value in record.values()
        if isinstance(value, str)
        and len(value) >= SHORTEST
        and (name := words.name_of(value, asked))
    )


def _groups(
    answer: Json, fields: Iterable[Path] | None
) -> Iterator[list[dict[str, Any]]]:
    """Return a result's records by kind, with their vouched fields."""
    if fields is None:
        yield list(_records(answer))
        return
    by_record: dict[Path, list[str]] = {}
    for field in fields:
        if field and field[-1] != ANY:
            by_record.setdefault(field[:-1], []).append(str(field[-1]))
    for place, names in by_record.items():
        yield [
            {name: record[name] for name in names if name in record}
            for item in _at(answer, place)
            if isinstance(item, dict) and (record := cast("dict[str, Any]", item))
        ]


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
