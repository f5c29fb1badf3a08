"""What can be said of a value: whether it is JSON, its size, its AssetMeta.

Rule B57 settles what "cannot be serialised" means; the meta is that of rule B55, kept
small by rule B56.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from neuraxis.sentences import type_name
from neuraxis.specs import Json

DEPTH = 100
"""A value nested deeper than this is an asset."""

_PLAIN = frozenset({str, bool, int, type(None)})


class _CannotBeSaid(Exception):
    pass


def sayable(value: Any) -> tuple[bool, Json]:
    """Whether the value can be said as JSON, and the JSON that says it (rule B57)."""
    if type(value) in _PLAIN:
        return True, value
    try:
        return True, _said(value, 0)
    except _CannotBeSaid:
        return False, None


def _said(value: Any, depth: int) -> Json:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if depth > DEPTH:
        raise _CannotBeSaid
    if kind is dict:
        return _said_mapping(value, depth)
    if kind is list or kind is tuple:
        return [_said(item, depth + 1) for item in value]
    if kind is float:
        if not math.isfinite(value):
            raise _CannotBeSaid
        return value
    return _said_object(value, depth)


def _said_mapping(value: Mapping[Any, Any], depth: int) -> dict[str, Json]:
    written: dict[str, Json] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise _CannotBeSaid
        written[key] = item if type(item) in _PLAIN else _said(item, depth + 1)
    return written


def _said_object(value: Any, depth: int) -> Json:
    match value:
        case Enum():
            return _said(cast("Any", value).value, depth + 1)
        case datetime() | date() | time():
            return value.isoformat()
        case UUID() | Decimal() | PurePath():
            return str(value)
        case Mapping():
            return _said_mapping(cast("Mapping[Any, Any]", value), depth)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {
                item.name: _said(getattr(value, item.name), depth + 1)
                for item in fields(value)
            }
        case _ if hasattr(type(value), "model_dump") and hasattr(
            type(value), "model_fields"
        ):
            return _said(value.model_dump(mode="json"), depth + 1)
        case str() | int():
            return value
        case _:
            raise _CannotBeSaid


def size_of(value: Any) -> int:
    """Bytes of the value: of its JSON text, or of the memory it says it holds."""
    held = getattr(value, "nbytes", None)
    if isinstance(held, int):
        return held
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    try:
        return len(json.dumps(value, ensure_ascii=False, default=type_name))
    except (TypeError, ValueError, RecursionError):
        return 0


def meta_of(asset_id: str, root: Mapping[str, Any]) -> dict[str, Json]:
    """The asset's flattened description (rule B55)."""
    meta: dict[str, Json] = {"asset_id": asset_id}
    response = root["content"]["response"]
    meta["content/command"] = root["content"]["command"]
    meta["content/response"] = f"<class '{type_name(response)}'>"
    if isinstance(response, Mapping):
        for key, value in list(cast("Mapping[Any, Any]", response).items())[:20]:
            meta[f"content/response/{key}"] = _short(value)
    return meta


def _short(value: Any) -> Json:
    if isinstance(value, str):
        return value if len(value) <= 80 else f"{value[:80]}… ({len(value)} characters)"
    if value is None or isinstance(value, bool | int | float):
        return value
    return f"<class '{type_name(value)}'>"
