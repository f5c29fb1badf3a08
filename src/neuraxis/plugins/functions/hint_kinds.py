"""Classify type hints without building their schemas."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import functools
import pathlib
import re
import types
import typing
import uuid
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from neuraxis.plugins.functions.pydantic_hints import is_pydantic
from neuraxis.schema.builders import uses_names
from neuraxis.schema.describe import SECONDS
from neuraxis.specs import Json

Hint = Any
"""A type hint: a class, or one of typing's special forms."""

SIMPLE: Mapping[Hint, dict[str, Json]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    typing.LiteralString: {"type": "string"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    list: {"type": "array"},
    tuple: {"type": "array"},
    set: {"type": "array", "uniqueItems": True},
    frozenset: {"type": "array", "uniqueItems": True},
    dict: {"type": "object"},
    bytes: {"type": "string", "format": "byte"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    datetime.timedelta: {"type": "number", "format": SECONDS},
    decimal.Decimal: {"type": "string", "format": "decimal"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    pathlib.Path: {"type": "string", "format": "path"},
    pathlib.PurePath: {"type": "string", "format": "path"},
}
_TEXTS = {
    "ipaddress.IPv4Address": ("ipv4", "an IPv4 address such as 192.0.2.1"),
    "ipaddress.IPv6Address": ("ipv6", "an IPv6 address such as 2001:db8::1"),
    "ipaddress.IPv4Network": ("ipv4network", "an IPv4 network such as 192.0.2.0/24"),
    "ipaddress.IPv6Network": ("ipv6network", "an IPv6 network such as 2001:db8::/32"),
    "ipaddress.IPv4Interface": (
        "ipv4interface", "an IPv4 address with its network, such as 192.0.2.1/24",
    ),
    "ipaddress.IPv6Interface": (
        "ipv6interface", "an IPv6 address with its network, such as 2001:db8::1/32",
    ),
    "zoneinfo.ZoneInfo": ("zoneinfo", "the name of a time zone, such as Europe/Berlin"),
}  # fmt: skip
"""Format and form of classes made from text, by name: few programs import them."""
_CONTEXTS = frozenset({"RunContext", "RunContextWrapper", "ToolContext", "ToolRuntime"})
"""Classes by which other frameworks hand a tool what belongs to the run."""
_FRAMEWORKS = frozenset({
    "pydantic_ai", "agents", "langchain", "langchain_core", "langgraph", "google",
})  # fmt: skip
"""Their packages: a program may have a class of such a name itself."""
FOREIGN_CONTEXT = re.compile(
    rf"\b(?:{'|'.join(sorted(_CONTEXTS))})\b(?:\[([^\[\],]+))?"
)
"""Such a class in a hint's text, and what it holds."""
LISTS = frozenset({
    list, collections.deque, collections.abc.Sequence, collections.abc.Iterable,
    collections.abc.Collection, collections.abc.MutableSequence,
})  # fmt: skip
SETS = frozenset({set, frozenset, collections.abc.Set, collections.abc.MutableSet})
MAPPINGS = frozenset({dict, collections.abc.Mapping, collections.abc.MutableMapping})
UNIONS = (typing.Union, types.UnionType)


UNREADABLE = (
    NameError, TypeError, ValueError, AttributeError, SyntaxError, LookupError,
    RuntimeError, ImportError,
)  # fmt: skip
"""Exceptions that an unreadable hint raises; pydantic's errors are subclasses."""


class NoType(TypeError):
    """Error: a hint, or its part at `path`, is no type."""

    def __init__(self, hint: Hint, path: str = "", why: str = "") -> None:
        # `why`: where the hint itself does not show it
        super().__init__(path + (why or f"{hint!r:.60} is no type"))
        self.hint = hint
        self.path = path
        self.why = why


def text_class(hint: Hint) -> dict[str, Json] | None:
    """Return the schema of a class that is made from text."""
    found = _TEXTS.get(f"{hint.__module__}.{hint.__qualname__}")
    if found is None:
        return None
    return {"type": "string", "format": found[0], "description": found[1]}


def _package(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def foreign_context(hint: Hint) -> Hint | None:
    """Return the part of a hint that is another framework's context."""
    cls = typing.get_origin(hint) or hint
    if cls.__class__ is type and cls.__module__ == "builtins" and cls is hint:
        return None  # most hints
    bases: tuple[type, ...] = cls.__mro__ if isinstance(cls, type) else ()
    for base in bases:
        if base.__name__ in _CONTEXTS and _package(base) in _FRAMEWORKS:
            return hint
    found = map(foreign_context, typing.get_args(hint))
    return next((part for part in found if part is not None), None)


def is_union(hint: Hint) -> bool:
    """Return whether the hint is `A | B`, `Union` or `Optional`."""
    return typing.get_origin(hint) in UNIONS


def is_struct(hint: Hint) -> bool:
    """Return whether the hint is a msgspec Struct."""
    return isinstance(hint, type) and issubclass(hint, Struct)


def is_named_tuple(hint: Hint) -> bool:
    """Return whether the hint is a class made by `NamedTuple`."""
    fields: Any = getattr(hint, "_fields", None)
    return isinstance(hint, type) and issubclass(hint, tuple) and fields is not None


def enum_values(hint: type[enum.Enum]) -> dict[Json, enum.Enum]:
    """Return JSON value -> member: values where JSON has them, else names."""
    members = list(hint)
    if uses_names(hint):
        return {member.name: member for member in members}
    return {member.value: member for member in members}


def has_forward(hint: Hint) -> bool:
    """Return whether the hint contains a quoted, unresolved name."""
    if isinstance(hint, (str, typing.ForwardRef)):
        return True
    if isinstance(hint, type):
        return False
    for part in getattr(hint, "__args__", ()):
        if type(part) is not type and has_forward(part):
            return True
    return False


def is_generic_with_fields(origin: Hint) -> bool:
    """Return whether the class is generic and its own fields describe it."""
    return (
        bool(getattr(origin, "__parameters__", ()))
        and (
            dataclasses.is_dataclass(origin)
            or typing.is_typeddict(origin)
            or is_named_tuple(origin)
            or is_struct(origin)
        )
        and not is_pydantic(origin)
    )


def field_hints(hint: Hint) -> Mapping[str, Hint]:
    """Return the hints of a class's fields, including `Annotated` metadata.

    Of a generic class with its types in brackets, such as `Page[int]`, they hold them.
    """
    if (origin := typing.get_origin(hint)) is not None:
        types_of = dict(zip(origin.__parameters__, typing.get_args(hint), strict=False))
        hints = field_hints(origin)
        return {name: _filled(part, types_of) for name, part in hints.items()}
    if dataclasses.is_dataclass(hint):
        hints = {item.name: item.type for item in dataclasses.fields(hint)}
    else:
        hints = hint.__annotations__ if typing.is_typeddict(hint) else {"": ""}
    if not any(has_forward(part) for part in hints.values()):
        return hints
    return _resolved_hints(hint)


def _filled(hint: Hint, types_of: Mapping[Hint, Hint]) -> Hint:
    """Return a hint with its type variables replaced."""
    if isinstance(hint, typing.TypeVar):
        return types_of.get(hint, hint)
    if isinstance(hint, type):
        return hint  # its own brackets were left out
    parameters = getattr(hint, "__parameters__", ())
    parts = tuple([types_of.get(part, part) for part in parameters])
    return hint[parts] if parts else hint


# a thousand commands may take the same class, and to look its names up is slow
@functools.lru_cache(maxsize=1024)
def _resolved_hints(hint: Hint) -> Mapping[str, Hint]:
    return typing.get_type_hints(hint, include_extras=True)


@functools.lru_cache(maxsize=1024)
def required_keys(hint: Hint) -> frozenset[str]:
    """Return the required keys of a TypedDict; Python misreads quoted hints."""
    keys = set(getattr(hint, "__required_keys__", frozenset[str]()))
    for name, hint_of_field in field_hints(hint).items():
        inner = (
            typing.get_args(hint_of_field)[0]
            if hasattr(hint_of_field, "__metadata__")
            else hint_of_field
        )
        if typing.get_origin(inner) is typing.NotRequired:
            keys.discard(name)
        elif typing.get_origin(inner) is typing.Required:
            keys.add(name)
    return frozenset(keys)


def check_count(hint: Hint, origin: Hint, args: tuple[Hint, ...]) -> None:
    """Check the number of types in the brackets of a generic."""
    expected = (
        1 if origin in LISTS or origin in SETS else 2 if origin in MAPPINGS else 0
    )
    if expected and len(args) != expected:
        raise NoType(hint)
    if origin is tuple and Ellipsis in args and (len(args), args[-1]) != (2, ...):
        raise NoType(hint)
