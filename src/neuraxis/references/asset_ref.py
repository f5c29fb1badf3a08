"""Asset references: `{"asset_id": …}`, `asset://…`, and embedded in texts.

The two written forms of a reference to an asset (rule B48), and both of them in an
answer's text (rule B62). A reference stands for an object; it is no address to fetch.
"""

from __future__ import annotations

import json
import re
from typing import cast
from urllib.parse import quote as percent_encode
from urllib.parse import unquote

from msgspec import Struct

from neuraxis.messages import Path
from neuraxis.specs import Json

SCHEME = "asset://"
LONGEST_EMBEDDED = 2_000
_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")


class AssetRef(Struct, frozen=True, kw_only=True):
    """Reference to an asset, or to the value at `field_path` in it.

    The answer of call a1 is at `("content", "response")` of the asset a1, a user's
    attachment at `("content",)`. Keys are strings, list indices integers from 0.
    """

    asset_id: str
    """Id of the object, or of the call whose result it is."""
    field_path: Path = ()


def parse_reference(value: Json) -> AssetRef | None:
    """Parse a reference in one of its two forms; None for data."""
    if isinstance(value, str):
        return _parse_url(value) if value.startswith(SCHEME) else None
    if not looks_like_object(value):
        return None
    asset_id, parts = value["asset_id"], value.get("field_path")
    if not isinstance(asset_id, str) or not asset_id:
        return None
    if parts is None:
        return AssetRef(asset_id=asset_id)
    if not isinstance(parts, list):
        return None
    path = cast("list[str | int]", parts)
    if not all(type(part) is int or type(part) is str for part in path):
        return None
    return AssetRef(asset_id=asset_id, field_path=tuple(path))


def reference_fault(value: Json) -> str:
    """Return why a value is a malformed reference, else ""."""
    if isinstance(value, str):
        if not value.startswith(SCHEME) or _parse_url(value) is not None:
            return ""
        if any(char.isspace() for char in value):
            return "a URL without spaces: percent-encode them as %20"
        return "asset://id or asset://id/part/part, percent-encoded in UTF-8"
    if not looks_like_object(value) or parse_reference(value) is not None:
        return ""
    return '{"asset_id": text, "field_path": list of keys and indices}'


def looks_like_object(value: Json) -> bool:
    """Return whether a value has exactly the keys of a reference object."""
    if not isinstance(value, dict) or "asset_id" not in value:
        return False
    count = len(cast("dict[str, Json]", value)) - 1
    return count == 0 or (count == 1 and "field_path" in value)


def _parse_url(text: str) -> AssetRef | None:
    # a text that goes on after the URL is data, not a reference (rule B44)
    if any(char.isspace() for char in text):
        return None
    raw_id, slash, rest = text[len(SCHEME) :].partition("/")
    if not raw_id:
        return None
    parts = rest.split("/") if slash else []
    # one trailing slash is ignored; any other empty part is the key ""
    if parts and not parts[-1]:
        parts.pop()
    try:
        return AssetRef(
            asset_id=unquote(raw_id, errors="surrogatepass"),
            field_path=tuple(
                int(part)
                if _INDEX.fullmatch(part)
                else unquote(part, errors="surrogatepass")
                for part in parts
            ),
        )
    except UnicodeDecodeError:
        return None


def format_url(ref: AssetRef) -> str:
    """Return the reference as a URL, which `parse_reference` reads back."""
    parts = [url_part(part) for part in ref.field_path]
    if parts and not parts[-1]:
        parts.append("")
    return SCHEME + "/".join([url_part(ref.asset_id), *parts])


def url_part(part: str | int) -> str:
    """Return one part of a path, escaped for a URL."""
    if isinstance(part, int):
        return str(part)
    if _INDEX.fullmatch(part):
        # the key "0" is not the index 0: its first digit is written as %30
        return f"%{ord(part[0]):X}{part[1:]}"
    return percent_encode(part, safe="", errors="surrogatepass")


def format_object(ref: AssetRef) -> dict[str, Json]:
    """Return the reference as an object; without an empty path."""
    written: dict[str, Json] = {"asset_id": ref.asset_id}
    if ref.field_path:
        written["field_path"] = list(ref.field_path)
    return written


def parse_embedded(text: str) -> list[tuple[int, int, AssetRef]]:
    """Return every `<|asset://…|>` and `<|{"asset_id": …}|>` in a text (B62)."""
    refs: list[tuple[int, int, AssetRef]] = []
    at = 0
    while (start := text.find("<|", at)) >= 0:
        at = start + 2
        window = text[at : at + LONGEST_EMBEDDED]
        if window.startswith(SCHEME):
            length = window.find("|>")
            value: Json = window[:length] if length >= 0 else None
            if value is not None and "<|" in value:
                continue  # it was never closed, and this is the end of the next one
        elif window.startswith("{"):
            try:
                value, length = json.JSONDecoder().raw_decode(window)
            except (ValueError, RecursionError):
                continue
        else:
            continue
        ref = parse_reference(value)
        if ref is not None and window.startswith("|>", length):
            refs.append((start, at + length + 2, ref))
            at += length + 2
    return refs
