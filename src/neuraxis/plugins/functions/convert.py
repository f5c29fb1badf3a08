"""Convert JSON values to the Python types of type hints.

`converter(hint)` is None where no conversion is needed. A value that already has the
type, because it came by reference, is passed unchanged.
"""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import math
import pathlib
import re
import typing
import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast

from neuraxis.errors import CommandError
from neuraxis.formatting import quote
from neuraxis.plugins.functions import pydantic_hints
from neuraxis.plugins.functions.hint_kinds import (
    LISTS,
    MAPPINGS,
    SETS,
    Hint,
    enum_values,
    field_hints,
    is_generic_with_fields,
    is_named_tuple,
    is_struct,
    is_union,
    text_class,
)
from neuraxis.plugins.functions.hints import Defs, inlined, schema_of
from neuraxis.plugins.functions.mapping_keys import key_converter
from neuraxis.plugins.functions.unknown_keys import is_mapping, unknown_keys
from neuraxis.schema.builders import json_names, tag_of
from neuraxis.schema.navigate import Node
from neuraxis.schema.schema import Schema

Convert = Callable[[Any], Any]
_NANOSECONDS = re.compile(r"[.,]\d{6}\d*[1-9]", re.ASCII)


def _float(value: Any) -> Any:
    try:
        return float(value) if type(value) is int else value
    except OverflowError:
        raise CommandError("expected a number below 1.8e308, got more") from None


def _int(value: Any) -> Any:
    is_whole = type(value) is float and value.is_integer()
    return int(value) if is_whole else value


def _parsed(cls: type[Any], parse: Callable[[str], Any], shape: str) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, cls) or not isinstance(value, str):
            return value
        try:
            return parse(value)
        # a time zone is a file: it may be missing, or a folder
        except (ValueError, ArithmeticError, LookupError, OSError):
            raise CommandError(f"expected {shape}, got {quote(value)}") from None

    return convert


def _seconds(value: Any) -> Any:
    if isinstance(value, int | float):
        try:
            return datetime.timedelta(seconds=value)
        except (OverflowError, ValueError):
            raise CommandError("expected a number of seconds, got too many") from None
    return value


def _flag(hint: type[enum.Flag], value: Any) -> Any:
    try:
        return hint(value)
    except ValueError:  # between two flags, a number may be none of their sums
        expected = f"a sum of {', '.join(str(item.value) for item in hint)}"
        raise CommandError(f"expected {expected}, got {quote(value)}") from None


def _made(make: Callable[[list[Any]], Any], convert_item: Convert | None) -> Convert:
    """Return a converter from list to another collection."""

    def convert(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        items = list(cast("list[Any]", value))
        return make(convert_item(items) if convert_item else items)

    return convert


def _whole_micros(text: str) -> str:
    """Refuse nanoseconds, which Python would cut off."""
    if _NANOSECONDS.search(text):
        raise ValueError(text)
    return text


_SIMPLE: Mapping[Hint, Convert] = {
    float: _float,
    int: _int,
    bytes: _parsed(bytes, lambda text: base64.b64decode(text, validate=True), "base64"),
    datetime.datetime: _parsed(
        datetime.datetime,
        lambda text: datetime.datetime.fromisoformat(_whole_micros(text)),
        "a date and time (ISO 8601) without nanoseconds",
    ),
    datetime.date: _parsed(
        datetime.date, datetime.date.fromisoformat, "a date like 2026-01-31"
    ),
    datetime.time: _parsed(
        datetime.time,
        lambda text: datetime.time.fromisoformat(_whole_micros(text)),
        "a time like 13:45, without nanoseconds",
    ),
    datetime.timedelta: _seconds,
    decimal.Decimal: _parsed(decimal.Decimal, decimal.Decimal, "a decimal number"),
    uuid.UUID: _parsed(uuid.UUID, uuid.UUID, "a UUID"),
    pathlib.Path: _parsed(pathlib.Path, pathlib.Path, "a path"),
    pathlib.PurePath: _parsed(pathlib.PurePath, pathlib.PurePath, "a path"),
    collections.deque: _made(collections.deque, None),
    set: _made(set, None),
    frozenset: _made(frozenset, None),
    tuple: _made(tuple, None),
}


def _as(make: Callable[[Any], Any]) -> Convert:
    return lambda value: make(value) if type(value) is dict else value


_DICTS: Mapping[Hint, Convert] = {
    collections.OrderedDict: _as(collections.OrderedDict),
    collections.Counter: _as(collections.Counter),
    collections.defaultdict: _as(
        lambda value: collections.defaultdict[Any, Any](None, value)
    ),
}
"""Mapping classes with own methods, written as objects in JSON."""
_OTHER: Mapping[Convert, type] = {_float: int, _int: float}
"""Class of values that need conversion, for each JSON number type."""
_NOTHING = frozenset({str, bool, None, type(None), Any, object, list, dict})


def is_plain(hint: Hint) -> bool:
    """Return whether JSON values already have the hinted type; shallow check."""
    try:
        return hint in _NOTHING
    except TypeError:
        return False


def converter(hint: Hint, outer: Mapping[Hint, Any] | None = None) -> Convert | None:
    """Return the converter to the hinted type; None if unneeded.

    Args:
        hint: the type hint.
        outer: classes whose conversion is being made, for recursive ones.
    """
    try:
        if hint in _NOTHING:
            return None
        simple = _SIMPLE.get(hint)
    except TypeError:
        return None
    if simple is not None:
        return simple
    if pydantic_hints.is_pydantic(hint):
        return pydantic_hints.converter(hint)
    cells = outer or {}
    if hint in cells:
        return lambda value: cells[hint][0](value)
    origin = typing.get_origin(hint)
    if origin is not None:
        if not hasattr(hint, "__args__"):  # `List` without brackets.
            return converter(origin, cells)
        return _generic(hint, origin, typing.get_args(hint), cells)
    if isinstance(hint, typing.NewType):
        return converter(hint.__supertype__, cells)
    if isinstance(hint, typing.TypeVar):
        return converter(hint.__bound__, cells) if hint.__bound__ else None
    if hasattr(hint, "__value__"):
        return converter(hint.__value__, cells)
    return _class(cast("type[Any]", hint), cells) if isinstance(hint, type) else None


def _generic(
    hint: Hint, origin: Hint, args: tuple[Hint, ...], outer: Mapping[Hint, Any]
) -> Convert | None:
    if is_union(hint):
        return _union(args, outer)
    if origin in (
        typing.Annotated, typing.Required, typing.NotRequired, typing.Final,
    ):  # fmt: skip
        return converter(args[0], outer)
    if origin is typing.Literal:
        members = [value for value in args if isinstance(value, enum.Enum)]
        return converter(type(members[0]), outer) if members else None
    if origin in LISTS:
        if typing.is_typeddict(args[0]) and args[0] not in outer:
            return _records(args[0], outer)
        items = _list(converter(args[0], outer))
        return _made(collections.deque, items) if origin is collections.deque else items
    if origin in SETS:
        return _made(
            frozenset if origin is frozenset else set, _list(converter(args[0], outer))
        )
    if origin is tuple:
        return _tuple(args, outer)
    if origin in MAPPINGS:
        return _mapping(args, outer)
    if origin in _DICTS:
        # A `Counter` has integers as values.
        inner, make = _mapping((*args, int)[:2], outer), _DICTS[origin]
        return lambda value: make(inner(value) if inner else value)
    if is_generic_with_fields(origin):
        make = dict if typing.is_typeddict(origin) else origin
        return _fields(hint, make, outer)
    return _class(origin, outer) if isinstance(origin, type) else None


def _list(converter_of_item: Convert | None) -> Convert | None:
    if converter_of_item is None:
        return None
    convert_item = converter_of_item

    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType] - `cast` is a call
        return [convert_item(item) for item in items]

    return convert


def _records(hint: type[Any], outer: Mapping[Hint, Any]) -> Convert | None:
    """Return a converter for lists of objects; often no item changes."""
    changes = _changes(hint, {**outer, hint: []})
    every = _list(_fields(hint, dict, outer))
    numeric_fields = _numbers(changes)
    if every is None or len(numeric_fields) < len(changes):
        return every

    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType] - `cast` is a call
        try:
            for item in items:
                if item.__class__ is not dict:
                    return every(items)
                for name, fallback in numeric_fields:
                    if item[name].__class__ is fallback:
                        return every(items)
        except KeyError:
            return every(items)  # A field may be missing.
        return items

    return convert


def _tuple(args: tuple[Hint, ...], outer: Mapping[Hint, Any]) -> Convert:
    if args[1:] == (Ellipsis,):
        return _made(tuple, _list(converter(args[0], outer)))
    converters = [converter(arg, outer) for arg in args]

    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        items = cast("list[Any]", value)
        return tuple(
            part(item) if part else item
            for part, item in zip(converters, items, strict=False)
        )

    return convert


def _mapping(args: tuple[Hint, ...], outer: Mapping[Hint, Any]) -> Convert | None:
    key_of = key_converter(args[0]) or converter(args[0], outer)
    value_of = converter(args[1], outer)
    if key_of is None and value_of is None:
        return None

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        entries = cast("dict[Any, Any]", value)
        made = {
            key_of(key) if key_of else key: value_of(item) if value_of else item
            for key, item in entries.items()
        }
        if len(made) < len(entries):
            raise CommandError(
                "expected each key once, got two that mean the same: "
                f"{quote(list(entries))}"
            )
        return made

    return convert


def _union(args: tuple[Hint, ...], outer: Mapping[Hint, Any]) -> Convert | None:
    """Convert to the alternative that accepts the value and drops fewest keys."""
    choices = [(arg, converter(arg, outer)) for arg in args]
    working = [(arg, convert) for arg, convert in choices if convert is not None]
    if not working:
        return None
    if len(working) == 1 and len(args) == 2 and type(None) in args:
        only = working[0][1]
        return lambda value: None if value is None else only(value)
    schemas: dict[int, Schema] = {}
    both_numbers = int in args and float in args

    def convert(value: Any) -> Any:
        if both_numbers and type(value) in (int, float):
            return value
        accepting: list[int] = []
        for index, (arg, _) in enumerate(choices if _is_json(value) else ()):
            if index not in schemas:
                defs = Defs()
                schemas[index] = Schema(inlined(schema_of(arg, defs), defs))
            if schemas[index].valid(value):
                accepting.append(index)
        if not accepting:
            return value
        if value.__class__ not in (dict, list):
            return _first(value, [choices[index][1] for index in accepting])
        nodes = [(index, schemas[index].json) for index in accepting]
        change = choices[_best(value, nodes, args)][1]
        return change(value) if change else value

    return convert


def _first(value: Any, changes: list[Convert | None]) -> Any:
    """Convert by the first alternative that can.

    A schema does not check each format.
    """
    for change in changes[:-1]:
        try:
            return change(value) if change else value
        except CommandError:
            continue
    change = changes[-1]
    return change(value) if change else value


def _best(value: Any, accepting: list[tuple[int, Node]], args: tuple[Hint, ...]) -> int:
    """Return the alternative that knows most keys, of several the first.

    A mapping, which knows every key, is taken only if it is the first.
    """
    best, fewest = accepting[0][0], math.inf
    for index, node in accepting if len(accepting) > 1 else ():
        if is_mapping(node):
            if index == best:
                break
            continue
        reads_more = pydantic_hints.reads_other_keys(args[index])
        count = 0 if reads_more else unknown_keys(value, node, node)
        if count < fewest:
            best, fewest = index, count
        if not count:
            break
    return best


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | list | dict)


def _class(hint: type[Any], outer: Mapping[Hint, Any]) -> Convert | None:
    if issubclass(hint, enum.Flag):
        return lambda value: _flag(hint, value)
    if issubclass(hint, enum.Enum):
        members = enum_values(hint)
        return lambda value: (
            value if isinstance(value, hint) else members.get(value, value)
        )
    if dataclasses.is_dataclass(hint) or is_named_tuple(hint) or is_struct(hint):
        return _fields(hint, hint, outer)
    if typing.is_typeddict(hint):
        return _fields(hint, dict, outer)
    if hint in _DICTS:
        return _DICTS[hint]
    if (text := text_class(hint)) is not None:
        return _parsed(hint, hint, text["description"])
    for base in hint.__mro__[1:-1]:
        if base in _SIMPLE and base is not tuple:
            return _SIMPLE[base]
    return None


def _fields(hint: Hint, make: Callable[..., Any], outer: Mapping[Hint, Any]) -> Convert:
    # The cell is filled last, so that a recursive class finds it.
    cell: list[Convert] = []
    changes = _changes(hint, {**outer, hint: cell})
    # Usually a number already has the right type and nothing changes.
    numeric_fields = _numbers(changes)
    cls: Any = typing.get_origin(hint) or hint
    made_inside = _made_inside(cls)
    names = {key: name for name, key in json_names(cls).items() if key != name}
    is_same = not made_inside and not names
    only_numbers = len(numeric_fields) == len(changes) and is_same

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        fields: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType] - `cast` is a call
        if only_numbers:
            for name, fallback in numeric_fields:
                if fields.get(name).__class__ is fallback:
                    break
            else:
                return fields if make is dict else make(**fields)
        return make(
            **{
                names.get(key, key): changes[key](item) if key in changes else item
                for key, item in fields.items()
                if key not in made_inside
            }
        )

    cell.append(convert)
    return convert


def _made_inside(hint: type[Any]) -> frozenset[str]:
    """Return the keys that are no arguments: `init=False`, a tag."""
    if not dataclasses.is_dataclass(hint):
        return frozenset(tag_of(hint))
    return frozenset([item.name for item in dataclasses.fields(hint) if not item.init])


def _changes(hint: Hint, outer: Mapping[Hint, Any]) -> dict[str, Convert]:
    """Return the converters of a class's fields by key in JSON."""
    changes: dict[str, Convert] = {}
    names = json_names(typing.get_origin(hint) or hint)
    for name, field_hint in field_hints(hint).items():
        change = converter(field_hint, outer)
        if change is not None:
            changes[names.get(name, name)] = change
    return changes


def _numbers(changes: Mapping[str, Convert]) -> tuple[tuple[str, type], ...]:
    """Return the numeric fields with the class to convert from."""
    return tuple([(name, _OTHER[c]) for name, c in changes.items() if c in _OTHER])
