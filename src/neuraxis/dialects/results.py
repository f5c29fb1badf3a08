r"""Write results as JSON of bounded length, as the model reads them.

Untrusted text cannot forge a dialect's frame: inside JSON strings whatever could be a
marker, a chat template's token or a line break is written as `\\uXXXX`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from neuraxis.call_errors import to_json
from neuraxis.formatting import is_short_json, type_name
from neuraxis.messages import Path, Result
from neuraxis.parsing.surrogates import whole_pairs
from neuraxis.references.asset_ref import AssetRef, format_object, format_url
from neuraxis.specs import Json

TEXT_LIMIT = 4000
"""Maximum characters of one text of a value; the cut is noted."""
ITEM_LIMIT = 200
"""Maximum items of one list or object."""
DEPTH = 50

_FRAME = (
    r"(?i)<(?=!--|[|｜<]|/?\s*(?:think|tool|function|invoke|parameter|s>|start_of_|end_of_))"
    r"|(?-i:\[(?=/?(?:[A-Z]+_(?:CALLS|RESULTS|TOOLS|CONTENT)|INST)\]))"
    r"|[\x7f-\x9f\u2028\u2029]"
)
"""Pattern of text that a model's server or chat template may interpret as markup.

The forms in which models are trained to write calls, and the tokens around turns.
"""


def _plain(value: Any) -> Json:
    """Return an object as text or number, or its repr."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__pos__(value)
    return float.__pos__(value) if isinstance(value, float) else repr(value)


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)


def json_text(value: Json, *, indent: int | None = None) -> str:
    """Return JSON that no chat template can mistake for a frame."""
    text = _compact(value) if indent is None else _indented(value, indent)
    marked = "<" in text or "\x7f" in text or "S]" in text or "T]" in text
    if text.isascii() and not marked:
        return text  # neither pattern can match
    return re.sub(_FRAME, lambda match: f"\\u{ord(match[0]):04x}", whole_pairs(text))


def _compact(value: Json) -> str:
    try:
        return _ENCODER.encode(value).decode()
    except UnicodeEncodeError:  # half of a character, which the caller repairs
        return _indented(value, None)


def _indented(value: Json, indent: int | None) -> str:
    separators = (",", ":") if indent is None else None
    return json.dumps(
        value, ensure_ascii=False, indent=indent, separators=separators, default=repr
    )


def json_for_model(value: Any, call_id: str, *, whole: bool = False) -> Json:
    """Return the value as JSON; long texts and lists are cut.

    Args:
        value: the value that a command returned.
        call_id: the id of its asset, for the address of the whole value.
        whole: do not cut anything.
    """
    return _json_value(value, call_id, ("content", "response"), whole)


def _json_value(value: Any, call_id: str, path: Path, whole: bool) -> Json:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return _shortened(value, call_id, path, whole)
    if len(path) > DEPTH:
        return "…[nested too deeply to be said]"
    if isinstance(value, Mapping):
        entries = list(cast("Mapping[Any, Any]", value).items())
        shown_entries = entries if whole else entries[:ITEM_LIMIT]
        converted: dict[str, Json] = {
            str(key): _json_value(item, call_id, (*path, str(key)), whole)
            for key, item in shown_entries
        }
        if len(shown_entries) < len(entries):
            converted["…"] = _cut_note(
                "entries", len(shown_entries), len(entries), call_id, path
            )
        return converted
    if isinstance(value, list | tuple | set | frozenset):
        items = list(cast("list[Any]", value))
        shown_items = items if whole else items[:ITEM_LIMIT]
        converted_items = [
            _json_value(item, call_id, (*path, index), whole)
            for index, item in enumerate(shown_items)
        ]
        if len(shown_items) < len(items):
            converted_items.append(
                _cut_note("items", len(shown_items), len(items), call_id, path)
            )
        return converted_items
    return _other_value(value)


def _shortened(text: str, call_id: str, path: Path, whole: bool) -> str:
    if whole or len(text) <= TEXT_LIMIT:
        return text
    return text[:TEXT_LIMIT] + _cut_note(
        "characters", TEXT_LIMIT, len(text), call_id, path
    )


def _cut_note(unit: str, shown: int, total: int, call_id: str, path: Path) -> str:
    url = format_url(AssetRef(asset_id=call_id, field_path=path))
    return f"…[first {shown} of {total} {unit}; whole value: {url}]"


def _other_value(value: Any) -> Json:
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return f"<{type_name(value)}>"


def outcome(result: Result, step: int) -> dict[str, Json]:
    """Return one result as data, for dialects without their own format."""
    call = result.call
    tool = call.command if call.plugin is None else call.target
    fields: dict[str, Json] = {"step": step, "tool": tool}
    if call.name:
        fields["as"] = call.name
    fields["id"] = result.call.id
    fields["status"] = result.status
    if result.error is not None:
        fields["error"] = to_json(result.error)
    if result.stored:
        fields["response"] = format_object(AssetRef(asset_id=result.call.id))
        if result.preview is not None:
            fields["preview"] = result.preview
    elif result.status == "done" or result.value is not None:
        value: Any = result.value
        fields["response"] = (
            value if is_short_json(value) else json_for_model(value, call.id)
        )
    if result.warnings:
        fields["warnings"] = list(result.warnings)
    return fields


def outcomes_text(results: Sequence[Result]) -> str:
    """Return the outcomes as one line of JSON that cannot forge frames."""
    outcomes = [outcome(item, step) for step, item in enumerate(results, 1)]
    return json_text({"results": outcomes})
