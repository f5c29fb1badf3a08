"""Walk a path into a value, or put a value there.

Paths walk only mappings, lists and tuples (rule B50): no attributes, no negative
indices, no slices. So a model's text cannot reach the methods of an object in a
plugin's result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from neuraxis.errors import NeuraxisError
from neuraxis.formatting import counted, nearest, path_text, type_name
from neuraxis.messages import Path
from neuraxis.specs import Json

SHOWN_KEYS = 20
"""Maximum keys of a mapping that an error names."""

RESPONSE: Final[Path] = ("content", "response")
"""Path of the answer in a step's asset (rule B53)."""

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


class Missing:
    """Type of `MISSING`, which no plugin's value can equal."""

    __slots__ = ()


MISSING: Final = Missing()


class WalkError(NeuraxisError):
    """Raised for a path that does not exist (rule B49).

    Args:
        deepest: the longest part of the path that exists.
        available: a description of the value at `deepest`.
        keys: the keys of the mapping at `deepest`, those most like the wrong one first.
        hint: the path that was probably meant, its parts joined by slashes, or "".
    """

    def __init__(
        self, deepest: Path, available: str, keys: tuple[str, ...], hint: str = ""
    ) -> None:
        self.deepest = deepest
        self.available = available
        self.keys = keys
        self.hint = hint
        super().__init__(
            f"the path is valid up to {path_text(deepest) or 'the root'}, "
            f"where there is {available}"
        )


def child(value: Any, part: str | int) -> Any:
    """Return a part of a mapping or sequence, or MISSING; never attributes.

    An integer is the index of a sequence, and a key where a mapping has it as one;
    digits are the index of a sequence, since a URL cannot tell 0 from "0", and a key
    that is a number, since JSON writes every key as text.
    """
    if value.__class__ is dict or isinstance(value, Mapping):
        keyed = cast("Mapping[Any, Any]", value)
        if isinstance(part, int):
            part = part if part in keyed else str(part)
        elif part not in keyed and _INTEGER.fullmatch(part):
            part = int(part)
        # not get(): a plugin's own mapping may return a default
        return keyed[part] if part in keyed else MISSING  # noqa: RUF100, SIM401
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        if isinstance(part, str):
            # 18 digits: no list is longer, and int() of a huge text is slow
            if not (part.isascii() and part.isdigit() and len(part) <= 18):
                return MISSING
            part = int(part)
        return items[part] if 0 <= part < len(items) else MISSING
    return MISSING


def walk(value: Any, path: Path) -> Any:
    """Return the value at `path`.

    Raises:
        WalkError: it is missing; says how far the path led and what is there.
    """
    root = value
    for depth, part in enumerate(path):
        value_ = child(value, part)
        if value_ is MISSING:
            suggestion = suggest_path(root, path)
            hint = "/".join(str(part) for part in suggestion) if suggestion else ""
            raise WalkError(path[:depth], available(value), keys_of(value, part), hint)
        value = value_
    return value


def available(value: Any) -> str:
    """Describe the parts that a value has, in words (rule B49)."""
    if isinstance(value, Mapping):
        keys = keys_of(value)
        if not keys:
            return "an object without keys"
        shown = ", ".join(keys[:SHOWN_KEYS])
        omitted = len(keys) - SHOWN_KEYS
        return f"an object with the keys {shown}" + (
            f" and {omitted} more" if omitted > 0 else ""
        )
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        if not items:
            return "an empty list"
        return f"a list of {counted(len(items), 'item')}, 0 to {len(items) - 1}"
    return f"a value of type {type_name(value)}, which has no parts"


def keys_of(value: Any, wanted: str | int | None = None) -> tuple[str, ...]:
    """Return the keys of a mapping as texts, most similar first."""
    if not isinstance(value, Mapping):
        return ()
    keys = [str(key) for key in cast("Mapping[Any, Any]", value)]
    if not isinstance(wanted, str):
        return tuple(keys)
    # compare the first keys only: a result may have a million
    close = nearest(wanted, keys[:200])
    return (*close, *(key for key in keys if key not in close))


def suggest_path(root: Any, path: Path) -> Path | None:
    """Return the path with its forgotten `content/response` (rule B54)."""
    guesses: list[Path] = [("content", *path), (*RESPONSE, *path)]
    if path[:1] == ("content",):
        guesses.append((*RESPONSE, *path[1:]))
    return next((guess for guess in guesses if _leads(root, guess)), None)


def _leads(value: Any, path: Path) -> bool:
    for part in path:
        value = child(value, part)
        if value is MISSING:
            return False
    return True


def fill(arguments: Json, replacements: Mapping[Path, Any]) -> Json:
    """Return a copy of the arguments with the values at their paths."""
    if not replacements:
        return arguments
    if () in replacements:
        return replacements[()]
    root = _copy(arguments)
    copied: dict[Path, Any] = {(): root}
    for path, value in replacements.items():
        parent = root
        for depth in range(1, len(path)):
            prefix = path[:depth]
            if prefix not in copied:
                copied[prefix] = parent[path[depth - 1]] = _copy(
                    parent[path[depth - 1]]
                )
            parent = copied[prefix]
        parent[path[-1]] = value
    return root


def _copy(value: Json) -> Json:
    if isinstance(value, dict):
        return dict(cast("dict[str, Json]", value))
    return list(cast("list[Json]", value))
