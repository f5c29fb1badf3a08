"""Values, types, paths and names as every message quotes them: short and on one line.

Any value flows in, the words for it flow out; `sentences` makes the messages of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

from neuraxis.messages import Path

QUOTED = 60
"""Characters of a value that an error quotes."""

MOST_NAME = 120
"""Characters of a name that are quoted, and compared with those there are."""

_OTHER_BREAKS = re.compile("[\x85\u2028\u2029]")
"""Line breaks that JSON may write as they are."""


def quote(value: Any) -> str:
    """A short, one-line quotation of a JSON value, or the type of anything else."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return f"<{type_name(value)}>"
    if _OTHER_BREAKS.search(text):
        text = json.dumps(value)
    return text if len(text) <= QUOTED else text[: QUOTED - 1] + "…"


def named(name: str) -> str:
    """A name as a model wrote it: that is any text, so a long one is cut."""
    return json.dumps(name if len(name) <= MOST_NAME else name[: MOST_NAME - 1] + "…")


def type_name(value: Any) -> str:
    """JSON's name of the value's type, or the qualified class name."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            cls: type[Any] = value.__class__
            return f"{cls.__module__}.{cls.__qualname__}"


def path_text(path: Path, root: str = "") -> str:
    """`boxes[1].x`; a key that is no plain word stands in brackets and quotes."""
    text = root
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("_", "a").replace("-", "a").isalnum():
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]"
    return text


def nearest(name: str, names: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The names closest to `name`, best first; case and punctuation count little."""
    import difflib  # for mistakes only

    known = list(dict.fromkeys(names))
    folded: dict[str, list[str]] = {}
    for item in known:
        folded.setdefault(_fold(item), []).append(item)
    close = difflib.get_close_matches(
        _fold(name[:MOST_NAME]), folded, n=most, cutoff=0.6
    )
    return tuple(item for key in close for item in folded[key])[:most]


def _fold(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())


def listed(names: Sequence[str], most: int = 20) -> str:
    """The first names and how many more there are; `none` where there are none."""
    first = ", ".join(names[:most])
    rest = len(names) - most
    return f"{first} and {rest} more" if rest > 0 else first or "none"


def did_you_mean(candidates: Sequence[str]) -> str:
    """A question with a space before it, or nothing."""
    return f" Did you mean {' or '.join(candidates)}?" if candidates else ""


def describe_given(value: Any) -> str:
    """What was given, in a few words."""
    if isinstance(value, str | int | float | PathLike | type(None)):
        return f"{value!r:.80}"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    return f"a {type(value).__name__}"


TEXT = 500
"""Characters of a text or a key."""
ITEMS = 16
"""Entries of an object."""
_LARGE = 10**300


def is_short_json(value: Any) -> bool:
    """Whether it is a text or an object of plain values, short and without NaN."""
    kind = value.__class__
    if kind is str:
        return len(value) <= TEXT
    if kind is not dict or len(value) > ITEMS:
        return False
    for key, item in value.items():
        kind = item.__class__
        if kind is str:
            if len(item) > TEXT:
                return False
        elif kind is float:
            if item - item != 0.0:
                return False  # NaN, or infinite
        elif kind is int:
            if not -_LARGE < item < _LARGE:
                return False  # its digits may be too many to be written
        elif kind is not bool and item is not None:
            return False
        if key.__class__ is not str or len(key) > TEXT:
            return False
    return True
