"""The target that finds and reads JSON in text, held against the standard library."""

from __future__ import annotations

import json

from fuzzing import Target, checks
from fuzzing.checks import must, same
from fuzzing.inputs import as_text
from fuzzing.texts import seeds_of
from fuzzing.words import JSON_WORDS
from neuraxis.parsing.json_errors import Fault
from neuraxis.parsing.json_scan import Value, loads, pieces, read_at
from neuraxis.specs import Json


def _standard(text: str) -> Json | Fault:
    """What the standard library reads; a fault where it takes more than JSON."""
    bad = Fault(code="malformed", message="", position=0)

    def once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError
        return dict(pairs)

    def refuse(word: str) -> Json:
        raise ValueError(word)

    try:
        value = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return bad
    return value


def _depth(value: Json) -> int:
    deepest, level = 0, [value]
    while level:
        deepest += any(isinstance(item, dict | list) for item in level)
        level = [
            part
            for item in level
            if isinstance(item, dict | list)
            for part in (item.values() if isinstance(item, dict) else item)
        ]
    return deepest


def read_json(data: bytes) -> None:
    """Valid JSON is unchanged, and what is taken strictly is valid JSON."""
    text = as_text(data)
    strict = checks.timed(len(text), lambda: loads(text))
    standard = _standard(text)
    if isinstance(strict, Value):
        must(not isinstance(standard, Fault), "taken strictly, but no JSON")
        must(same(strict.value, standard), "read strictly as something else")
        must(not strict.notes, "notes of strict reading")
    elif not isinstance(standard, Fault) and checks.is_whole(text):
        must(_depth(standard) > 200, f"valid JSON is refused: {strict.message}")
    if isinstance(strict, Fault):
        must(strict.message and 0 <= strict.position <= len(text), "an odd fault")
    start = len(text) - len(text.lstrip(" \t\n\r"))
    lenient = checks.timed(len(text), lambda: read_at(text, start))
    if isinstance(strict, Value):
        must(isinstance(lenient, Value), "valid JSON is refused leniently")
        must(same(lenient.value, strict.value), "valid JSON is changed leniently")
        must(not lenient.notes, "a note of a leniency for valid JSON")
    elif isinstance(lenient, Value):
        must(checks.can_be_stored(lenient.value), "a value that cannot be stored")
    found = checks.timed(len(text), lambda: pieces(text))
    if isinstance(strict, Value) and isinstance(strict.value, dict | list):
        must(
            same([item.value.value for item in found if item.value], [strict.value]),
            "valid JSON is changed among text",
        )
    _check_pieces(text)


def _check_pieces(text: str) -> None:
    at = 0
    for piece in checks.timed(len(text), lambda: pieces(text)):
        must(piece.start == at < piece.end, "pieces with gaps")
        at = piece.end
        if piece.value is not None:
            must(checks.can_be_stored(piece.value.value), "value unfit to store")
    must(at == len(text), "pieces end before the text")


TARGETS = (
    Target(
        name="json_text",
        run=read_json,
        kind="text",
        words=JSON_WORDS,
        seeds=seeds_of(('{"a": [1, 2.5e3, "x\\n", null, {"b": true}]}', "[]", '"x"')),
    ),
)
