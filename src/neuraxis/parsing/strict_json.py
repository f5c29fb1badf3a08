"""Strict JSON: each key once, no NaN, no number that is infinite."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from neuraxis.formatting import quote


def loads(text: str) -> Any:
    """Return the one JSON value that `text` is.

    Raises:
        ValueError: it is no JSON, or a key appears twice, or a number is none.
        RecursionError: it is nested too deeply.
    """
    return _DECODER.decode(text)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) == len(pairs):
        return entries
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise ValueError(f"the key {quote(key)} appears twice in one object")
        seen.add(key)
    return entries


def _finite(digits: str) -> float:
    value = float(digits)
    if isfinite(value):
        return value
    raise ValueError(f"{digits} is too large for a number")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_keys, parse_float=_finite, parse_constant=_no_constant
)

raw_decode = _DECODER.raw_decode
"""Return the value that begins at an index of a text, and its end."""
