"""Classify the kind of value that a parameter takes.

The kinds: the JSON types, `enum`, the typed spans (`path`, `url`, `email`, `date`,
`time`, `datetime`, `expression`), and words by what they name (`query`, `content`,
`place`, `person`, `title`, `text`, …), which say what leads up to a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from neuraxis.models.local.planner import spans
from neuraxis.models.local.planner.language import Language, split_words
from neuraxis.specs import Json

FREE = frozenset({"query", "content", "place", "person", "title", "text", "list"})
"""Kinds whose values are words of the request."""


def resolved(schema: Json, root: Mapping[str, Json]) -> Mapping[str, Json]:
    """Resolve a schema's `$ref` into `$defs` and its nullable union."""
    for _ in range(8):
        if not isinstance(schema, dict):
            return {}
        node = cast("dict[str, Json]", schema)
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/$defs/"):
            schema = root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
            continue
        arms = node.get("anyOf") or node.get("oneOf")
        if isinstance(arms, list) and arms:
            listed = [
                arm
                for arm in cast("list[dict[str, Json]]", arms)
                if arm.get("type") != "null"
            ]
            if listed:
                schema = {
                    **{k: v for k, v in node.items() if k not in ("anyOf", "oneOf")},
                    **listed[0],
                }
                continue
        return node
    return {}


def type_of(schema: Mapping[str, Json]) -> str:
    """Return a schema's JSON type without null; "" if undeclared."""
    found: Any = schema.get("type", "")
    if isinstance(found, list):
        names = [str(name) for name in cast("list[Any]", found) if name != "null"]
        return names[0] if names else ""
    return str(found)


_FORMATS = {
    "uri": "url",
    "url": "url",
    "iri": "url",
    "hostname": "url",
    "email": "email",
    "date": "date",
    "time": "time",
    "date-time": "datetime",
    "path": "path",
    "file-path": "path",
    "duration": "duration",
}


def kind_of(
    name: str, schema: Mapping[str, Json], values: Sequence[Json], language: Language
) -> str:
    """What kind of value a parameter takes."""
    if schema.get("enum"):
        return "enum"
    match type_of(schema):
        case "integer" | "number" | "boolean" | "object" as plain:
            return plain
        case "array":
            return "list"
        case _:
            pass
    if kind := _FORMATS.get(str(schema.get("format", ""))):
        return kind
    texts = [
        value
        for value in (*values, schema.get("default"))
        if isinstance(value, str) and value and "{{" not in value
    ]
    named = _by_name(name, language)
    if texts:
        if any(_is_moment(text, language) for text in texts):
            return "datetime"
        shared = frozenset[str].intersection(
            *(spans.kinds_of(text, language) for text in texts)
        )
        for kind in ("url", "email", "path", "expression", "date", "time"):
            if kind in shared and not (kind == "date" and named == "content"):
                return "datetime" if named == "datetime" else kind
    if named in ("path", "url", "email"):
        # A name alone does not make it one where the examples show plain words.
        return named if not texts else "title"
    if named:
        return named
    described = str(schema.get("description", "")).casefold()
    if "yyyy-mm-dd" in described:
        return "date"
    if texts:
        return "text" if max(len(text.split()) for text in texts) > 3 else "title"
    long = {"text", "sentence", "message", "paragraph", "content", "words"}
    return "text" if long & set(described.split()) else "title"


def _is_moment(text: str, language: Language) -> bool:
    """A day and a time of day, and little else."""
    found = spans.find(text, language)
    kinds = {kind for span in found for kind in span.kinds}
    covered = sum(span.end - span.start for span in found)
    return {"date", "time"} <= kinds and covered >= 0.7 * len(text)


def _by_name(name: str, language: Language) -> str:
    words = [word.casefold() for word in split_words(name)]
    best, size = "", 0
    for kind, names in language.table("kinds").items():
        for candidate in names:
            parts = candidate.split()
            if len(parts) > size and _contains(words, parts):
                best, size = kind, len(parts)
    if size == 1 and words:
        # "start_date": the last word says what it is, the others which one.
        for kind, names in language.table("kinds").items():
            if words[-1] in names:
                return kind
    return best


def _contains(words: Sequence[str], parts: Sequence[str]) -> bool:
    return any(
        list(words[i : i + len(parts)]) == list(parts)
        for i in range(len(words) - len(parts) + 1)
    )
