r"""Write results as JSON of bounded length, as the model reads them.

Untrusted text cannot forge a dialect's frame: inside JSON strings whatever could be a
marker, a chat template's token or a line break is written as `\\uXXXX`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from neuraxis.call_errors import to_json
from neuraxis.formatting import is_short_json, type_name
from neuraxis.messages import Path, Result
from neuraxis.references.asset_ref import AssetRef, format_object, format_url
from neuraxis.specs import Json

TEXT_LIMIT = 4000
"""Maximum characters of one text of a value; the cut is noted."""
ITEM_LIMIT = 200
"""Maximum items of one list or object."""
DEPTH = 50

_FRAME = re.compile(
    r"<(?=!--|[|｜<]|/?\s*(?:think|tool|function|invoke|parameter|s>|start_of_|end_of_))"
    r"|(?-i:\[(?=/?(?:[A-Z]+_(?:CALLS|RESULTS|TOOLS|CONTENT)|INST)\]))"
    r"|[\x7f-\x9f\u2028\u2029]",
    re.IGNORECASE,
)
"""Text that a model's server or chat template may interpret as markup.

The forms in which models are trained to write calls, and the words around turns.
"""
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=repr)


def _encoder() -> Callable[[Json, int], Iterable[str]]:
    """Return a reusable encoder: `ENCODER` would make one for each value."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # a Python without the C encoder
        return lambda value, _: ENCODER.iterencode(value)
    quote = json.encoder.encode_basestring
    return make(None, repr, quote, None, ":", ",", False, False, True)


_ENCODE = _encoder()
_HALF = re.compile(r"[\ud800-\udfff]")


def json_text(value: Json, *, indent: int | None = None) -> str:
    """Return JSON that no chat template can mistake for a frame."""
    if indent is None:
        text = ENCODER.encode(value)
    else:
        text = json.dumps(value, ensure_ascii=False, indent=indent, default=repr)
    marked = "<" in text or "\x7f" in text or "S]" in text or "T]" in text
    if text.isascii() and not marked:
        return text  # nothing that the two patterns look for
    text = _HALF.sub("\ufffd", text)
    return _FRAME.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def sayable(value: Any, call_id: str, *, whole: bool = False) -> Json:
    """Return the value as JSON; long texts and lists are cut.

    Args:
        value: what a command returned.
        call_id: the id of its asset, for the address of the whole value.
        whole: cut nothing.
    """
    return _say(value, call_id, ("content", "response"), whole)


def _say(value: Any, call_id: str, path: Path, whole: bool) -> Json:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return _say_text(value, call_id, path, whole)
    if len(path) > DEPTH:
        return "…[nested too deeply to be said]"
    if isinstance(value, Mapping):
        entries = list(cast("Mapping[Any, Any]", value).items())
        kept = entries if whole else entries[:ITEM_LIMIT]
        said: dict[str, Json] = {
            str(key): _say(item, call_id, (*path, str(key)), whole)
            for key, item in kept
        }
        if len(kept) < len(entries):
            said["…"] = _missing("entries", len(kept), len(entries), call_id, path)
        return said
    if isinstance(value, list | tuple | set | frozenset):
        items = list(cast("list[Any]", value))
        shown = items if whole else items[:ITEM_LIMIT]
        listed = [
            _say(item, call_id, (*path, index), whole)
            for index, item in enumerate(shown)
        ]
        if len(shown) < len(items):
            listed.append(_missing("items", len(shown), len(items), call_id, path))
        return listed
    return _say_other(value)


def _say_text(text: str, call_id: str, path: Path, whole: bool) -> str:
    if whole or len(text) <= TEXT_LIMIT:
        return text
    return text[:TEXT_LIMIT] + _missing(
        "characters", TEXT_LIMIT, len(text), call_id, path
    )


def _missing(what: str, shown: int, there: int, call_id: str, path: Path) -> str:
    url = format_url(AssetRef(asset_id=call_id, field_path=path))
    return f"…[first {shown} of {there} {what}; whole value: {url}]"


def _say_other(value: Any) -> Json:
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return f"<{type_name(value)}>"


def outcome(result: Result, step: int) -> dict[str, Json]:
    """Return one result as data, for dialects without their own format."""
    call = result.call
    tool = call.command if call.plugin is None else call.target
    entry: dict[str, Json] = {"step": step, "tool": tool}
    if call.name:
        entry["as"] = call.name
    entry["id"] = result.call.id
    entry["status"] = result.status
    if result.error is not None:
        entry["error"] = to_json(result.error)
    if result.stored:
        entry["response"] = format_object(AssetRef(asset_id=result.call.id))
    elif result.status == "done" or result.value is not None:
        value: Any = result.value
        entry["response"] = value if is_short_json(value) else sayable(value, call.id)
    if result.warnings:
        entry["warnings"] = list(result.warnings)
    return entry


def outcomes_text(results: Sequence[Result]) -> str:
    """Return the outcomes as one line of JSON that cannot forge frames."""
    outcomes = [outcome(item, step) for step, item in enumerate(results, 1)]
    return json_text({"results": outcomes})
