r"""Values as the model is told them: a command's value in, JSON of bounded length out.

Foreign text cannot forge a dialect's frame: inside JSON strings whatever could be a
marker, a chat template's token or a line break is written as `\uXXXX`.
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
"""Characters of one text of a value; the rest is left out and said to be."""
ITEM_LIMIT = 200
"""Items of one list or object."""
DEPTH = 50

_FRAME = re.compile(
    r"<(?=!--|[|｜<]|/?\s*(?:think|tool|function|invoke|parameter|s>|start_of_|end_of_))"
    r"|(?-i:\[(?=/?(?:[A-Z]+_(?:CALLS|RESULTS|TOOLS|CONTENT)|INST)\]))"
    r"|[\x7f-\x9f\u2028\u2029]",
    re.IGNORECASE,
)
"""What a model's server or chat template may read as more than text: the forms in
which models are trained to write calls, and the words around turns."""
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=repr)


def _encoder() -> Callable[[Json, int], Iterable[str]]:
    """What `ENCODER` uses, without being made anew for each value."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # another Python
        return lambda value, _: ENCODER.iterencode(value)
    quote = json.encoder.encode_basestring
    return make(None, repr, quote, None, ":", ",", False, False, True)


_ENCODE = _encoder()
_HALF = re.compile(r"[\ud800-\udfff]")


def json_text(value: Json, *, indent: int | None = None) -> str:
    """JSON on one line (or indented) that cannot be mistaken for a frame."""
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
    """The value as JSON, long texts and lists cut with a note of what is missing.

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
    """One result as the model is told it, in the dialects without a form of it."""
    call = result.call
    tool = call.command if call.plugin is None else call.target
    said: dict[str, Json] = {"step": step, "tool": tool}
    if call.name:
        said["as"] = call.name
    said["id"] = result.call.id
    said["status"] = result.status
    if result.error is not None:
        said["error"] = to_json(result.error)
    if result.stored:
        said["response"] = format_object(AssetRef(asset_id=result.call.id))
    elif result.status == "done" or result.value is not None:
        value: Any = result.value
        said["response"] = value if is_short_json(value) else sayable(value, call.id)
    if result.warnings:
        said["warnings"] = list(result.warnings)
    return said


def outcomes_text(results: Sequence[Result]) -> str:
    """The outcomes as one line of JSON that cannot be mistaken for a frame."""
    told = [outcome(item, step) for step, item in enumerate(results, 1)]
    return json_text({"results": told})
