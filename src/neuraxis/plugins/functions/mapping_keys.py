"""Keys of mappings: their text in JSON, and its conversion.

Keys are text in JSON. Those of `dict[int, str]` are checked as text, before anything
runs, and converted when the command is called.
"""

from __future__ import annotations

import datetime
import enum
import typing
from collections.abc import Callable, Mapping
from typing import Any

from neuraxis.errors import CommandError
from neuraxis.formatting import quote
from neuraxis.plugins.functions.hint_kinds import SIMPLE, Hint, enum_values
from neuraxis.schema.describe import SECONDS, key_text
from neuraxis.specs import Json

_INTEGER = {"title": "int", "pattern": r"^[+-]?[0-9]{1,300}$"}
_NUMBER = {
    "title": "float",
    "pattern": r"^[+-]?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})"
    r"(?:[eE][+-]?[0-9]{1,3})?$",
}
_NUMBERS: Mapping[Hint, tuple[dict[str, Json], Callable[[Any], Any]]] = {
    int: (_INTEGER, int),
    float: (_NUMBER, float),
    datetime.timedelta: (
        {**_NUMBER, "title": SECONDS},
        lambda said: datetime.timedelta(seconds=float(said)),
    ),
}


def key_schema(hint: Hint) -> dict[str, Json] | None:
    """Return the schema of a mapping's keys; None: any text."""
    hint = _plain(hint)
    if (members := _members(hint)) is not None:
        return {"enum": list(members)}
    try:
        if hint in _NUMBERS:
            return dict(_NUMBERS[hint][0])
        known = SIMPLE.get(hint, {})
    except TypeError:  # an unhashable hint
        return None
    return dict(known) if known.get("format") else None


def key_converter(hint: Hint) -> Callable[[Any], Any] | None:
    """Return the conversion of a key's text, if it needs its own."""
    hint = _plain(hint)
    if (members := _members(hint)) is not None:
        return lambda key: members.get(key, key)
    try:
        number = _NUMBERS.get(hint)
    except TypeError:
        return None
    return None if number is None else _from_text(*number)


def _from_text(
    names: Mapping[str, Json], make: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    def convert(key: Any) -> Any:
        try:
            return make(key) if isinstance(key, str) else key
        except (ValueError, OverflowError):  # of `OrderedDict[int, …]`, say
            raise CommandError(
                f"expected {key_text(names)} as the key, got {quote(key)}"
            ) from None

    return convert


def _plain(hint: Hint) -> Hint:
    """Return the type behind a name for it, or behind `Annotated`."""
    while True:
        if typing.get_origin(hint) is typing.Annotated:
            hint = typing.get_args(hint)[0]
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif hasattr(hint, "__value__"):
            hint = hint.__value__
        else:
            return hint


def _members(hint: Hint) -> dict[str, Any] | None:
    """Return the only possible keys, as JSON has them, if any."""
    if hint is bool:
        return {"true": True, "false": False}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {str(text): member for text, member in enum_values(hint).items()}
    if typing.get_origin(hint) is not typing.Literal:
        return None
    members: dict[str, Any] = {}
    for value in typing.get_args(hint):
        if isinstance(value, enum.Enum):
            known = enum_values(type(value))
            members |= {str(text): it for text, it in known.items() if it is value}
        elif isinstance(value, bool):
            members["true" if value else "false"] = value
        elif isinstance(value, str | int):
            members[str(value)] = value
        else:
            return None
    return members
