"""Format values, types, paths and names for messages: one short line.

`call_errors` builds its messages from them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from os import PathLike
from typing import Any, cast

from neuraxis.messages import Path
from neuraxis.specs import Json

QUOTED = 60
"""Maximum characters of a value that an error quotes."""

MOST_NAME = 120
"""Maximum characters of a name that are quoted and compared."""

DIGITS = 6
"""Significant digits shown of a number with a fraction."""

_OTHER_BREAKS = re.compile("[\x85\u2028\u2029]")
"""Line breaks that JSON may leave unescaped."""


def quote(value: Any) -> str:
    """Return a one-line quotation of a JSON value, else its type."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return f"<{type_name(value)}>"
    if _OTHER_BREAKS.search(text):
        text = json.dumps(value)
    return text if len(text) <= QUOTED else text[: QUOTED - 1] + "…"


def named(name: str) -> str:
    """Return a model's name for something, cut if long."""
    return json.dumps(name if len(name) <= MOST_NAME else name[: MOST_NAME - 1] + "…")


def type_name(value: Any) -> str:
    """Return JSON's name of the value's type, or the class name."""
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
    """Return `boxes[1].x`; unusual keys are bracketed and quoted."""
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
    """Return the names closest to `name`, ignoring case and punctuation."""
    import difflib  # Imported for error messages only.

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
    """Return the first names and the number of others, or `none`."""
    first = ", ".join(names[:most])
    rest = len(names) - most
    return f"{first} and {rest} more" if rest > 0 else first or "none"


def did_you_mean(candidates: Sequence[str]) -> str:
    """Return a question with a space before it, or nothing."""
    return f" Did you mean {' or '.join(candidates)}?" if candidates else ""


def describe_given(value: Any) -> str:
    """Describe a given value in a few words."""
    if isinstance(value, str | int | float | PathLike | type(None)):
        return f"{value!r:.80}"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    return f"a {type(value).__name__}"


TEXT = 500
"""Maximum characters of a text or a key."""
ITEMS = 16
"""Maximum entries of an object."""
_LARGE = 10**300


def is_short_json(value: Any) -> bool:
    """Check whether a value is a text or small, flat JSON."""
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
                return False  # NaN or infinite.
        elif kind is int:
            if not -_LARGE < item < _LARGE:
                return False  # Python refuses to write an integer of too many digits.
        elif kind is not bool and item is not None:
            return False
        if key.__class__ is not str or len(key) > TEXT:
            return False
    return True


def digits(value: float) -> str:
    """Return a number for people: six significant digits, thousands separated."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    most = max(0, min(12, DIGITS - 1 - math.floor(math.log10(abs(value)))))
    places = len(f"{value:.{most}f}".rstrip("0").partition(".")[2])
    return f"{value:,.{places}f}"


def preview(
    arguments: Json,
    *,
    text: int = 500,
    items: int = 10,
    levels: int = 50,
    show_object: Callable[[Any], str] = lambda value: f"<{type_name(value)}>",
) -> Json:
    """Return a short form of resolved arguments, for people.

    Args:
        arguments: or any part of them.
        text: characters of a text that are shown.
        items: entries of a list that are shown.
        levels: how deep it is looked into: an object may hold itself.
        show_object: returns the text for an object that is no JSON.
    """
    if levels < 0:
        return "…"
    part = partial(
        preview, text=text, items=items, levels=levels - 1, show_object=show_object
    )
    if isinstance(arguments, dict):
        named = cast("dict[str, Json]", arguments)
        # the journal is JSON, and an object's keys may be dates or pairs
        return {str(key): part(it) for key, it in named.items()}
    if isinstance(arguments, str):
        cut = len(arguments) - text
        return arguments if cut <= 0 else f"{arguments[:text]}… (+{cut} characters)"
    if isinstance(arguments, int) and arguments.bit_length() > 1_000:
        return f"<int of {arguments.bit_length()} bits>"  # it may have no text
    if arguments is None or isinstance(arguments, bool | int | float):
        return arguments
    if isinstance(arguments, list):
        given = cast("list[Json]", arguments)
        told = [part(item) for item in given[:items]]
        return told if len(given) <= items else [*told, f"… ({len(given)} items)"]
    return show_object(arguments)
