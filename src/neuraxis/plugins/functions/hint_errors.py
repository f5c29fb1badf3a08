"""Explain a type hint that has no schema and suggest a replacement.

The error is raised at registration and names the function and the parameter. This
module is imported only for errors.
"""

from __future__ import annotations

import enum
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, cast

from neuraxis.errors import ManifestError, ManifestProblem, error_of
from neuraxis.formatting import nearest, public_names
from neuraxis.plugins.functions.hint_kinds import (
    FOREIGN_CONTEXT,
    MAPPINGS,
    UNREADABLE,
    Hint,
    NoType,
    foreign_context,
)
from neuraxis.plugins.functions.source_location import Spot

RETURN = "return"
"""Key of the return hint in `__annotations__`."""

_ANY = "Any (from typing import Any)"
_FUNCTIONS: Mapping[Any, str] = {
    any: _ANY,
    callable: "Callable (from collections.abc import Callable)",
    iter: "Iterable (from collections.abc import Iterable)",
}
"""Python functions mistaken for types, with the types meant instead."""
_CLASSES = {"array": "ndarray", "tensor": "Tensor", "asarray": "ndarray"}
"""Factory functions of packages, with the class they create."""
_WORDS = {
    "string": "str", "text": "str", "integer": "int", "number": "float",
    "double": "float", "boolean": "bool", "array": "list", "object": "dict",
    "null": "None", "void": "None", "map": "dict",
}  # fmt: skip
"""Type names of other languages, with Python's names."""
_COMMON = (
    "str", "int", "float", "bool", "list", "dict", "tuple", "set", "bytes", "Any",
    "Optional", "Literal",
)  # fmt: skip
_BARE = {
    typing.Union: "int | str", typing.Optional: "int | None",
    typing.Literal: 'Literal["a", "b"]',
}  # fmt: skip
_OBJECTS = re.compile(
    r"<(?:built-in )?function ([\w.]++)[^>]{0,300}+>|<class '([^']*)'>"
)
"""Pattern of Python's repr of functions and classes."""
_FORWARD = re.compile(r"ForwardRef\('([^']{0,300}+)'(?:, [^()]{0,300}+)?\)")
"""Pattern of Python's repr of a hint that waits for a name."""
_MODULES = re.compile(r"(?:\b\w{1,100}+\.|<locals>\.)")
"""Pattern of the modules and functions before a class's name."""
_FIRST = 60
"""Maximum characters of a hint that are quoted."""


def fault(where: Spot, name: str, hint: Hint, error: Exception) -> ManifestError:
    """Return the error of a function with an invalid hint.

    Args:
        where: the function, for the message.
        name: the parameter, or `return`.
        hint: the invalid hint.
        error: the exception that it raised.
    """
    if name != RETURN and (part := foreign_context(hint)) is not None:
        return _bad(where, name, _context_instead(name, part))
    if isinstance(error, NoType):
        if error.why:
            return _bad(where, name, error.path + error.why)
        inside = "" if error.hint is hint else f" in {shown(hint)}"
        return _bad(where, name, error.path + instead(error.hint, inside))
    first = str(error).partition("\n")[0]
    text = f"{shown(hint)}: the type hint cannot be understood: {first}"
    return _bad(where, name, text)


def instead(hint: Hint, inside: str = "") -> str:
    """Return the expectation, the actual hint, and a replacement."""
    count = len(typing.get_args(hint))
    if typing.get_origin(hint) is typing.Literal:
        return (
            f"expected texts, numbers, true, false, None or members of an Enum, got "
            f"{shown(hint)}{inside}"
        )
    if count:
        types = "1 type" if count == 1 else f"{count} types"
        return f"{shown(hint)}{inside} has {types}; {_counted(hint)}"
    actual, advice = _read(hint)
    return f"expected a type, got {actual}{inside}; {advice}"


def unresolved(
    where: Spot, hints: Mapping[str, Hint], look_up: Callable[[Hint], object]
) -> ManifestError:
    """Return the errors of quoted hints that cannot be resolved.

    Args:
        where: the function, for the message.
        hints: all of its hints.
        look_up: raises for each that is wrong.
    """
    problems: list[ManifestProblem] = []
    for name, hint in hints.items():
        try:
            look_up(hint)
        except UNREADABLE as error:
            is_context = name != RETURN and FOREIGN_CONTEXT.search(str(hint))
            advice = _context_instead(name, hint) if is_context else _cause(hint, error)
            problems += _bad(where, name, advice).problems
    return ManifestError(tuple(problems))


def _context_instead(name: str, hint: Hint) -> str:
    """Return what to write for another framework's context."""
    is_class = isinstance(hint, type) and not typing.get_args(hint)
    text = _MODULES.sub("", hint.__qualname__ if is_class else str(hint))
    found = FOREIGN_CONTEXT.search(text)
    inner = (found[1] or "").strip("'\"") if found else ""
    own = f"Context[{inner}]" if inner else "Context"
    return (
        f"{_cut(text)} belongs to another framework; write {name}: {own} (from "
        f"neuraxis import Context). run(..., deps=...) fills {name}.deps"
    )


def shown(hint: Hint) -> str:
    """Return a hint as its author wrote it, shortened."""
    if isinstance(hint, type) and not typing.get_args(hint):
        return hint.__qualname__
    text = hint.__name__ if _is_function(hint) else repr(hint)
    text = re.sub(r"typing\.|collections\.abc\.", "", _FORWARD.sub(r"\1", text))
    return _cut(public_names(_OBJECTS.sub(r"\1\2", text)))


def _cut(text: str) -> str:
    return text if len(text) <= _FIRST else text[: _FIRST - 1] + "…"


def _bad(where: Spot, name: str, message: str) -> ManifestError:
    place = "what it gives back (->)" if name == RETURN else f"parameter {name!r}"
    return bad_function(where, f"{place}: {message}")


def _is_function(hint: Hint) -> bool:
    return isinstance(hint, FunctionType | BuiltinFunctionType)


def _counted(hint: Hint) -> str:
    """Return the fix for a generic with a wrong number of types."""
    parts = [shown(part) for part in typing.get_args(hint)]
    origin = typing.get_origin(hint)
    name = getattr(origin, "__name__", "list")
    if Ellipsis in typing.get_args(hint):
        return "... is allowed only as the second of two, as in tuple[int, ...]"
    if origin in MAPPINGS:
        first, *rest = parts
        value = " | ".join(dict.fromkeys(rest)) or "Any"
        return f"write {name}[{first}, {value}]: one for the keys, one for the values"
    either = f"write {name}[{' | '.join(parts)}] for items of any of these"
    is_list = name == "list"
    return either + f", or tuple[{', '.join(parts)}] for one of each" * is_list


def _read(hint: Hint) -> tuple[str, str]:
    """Describe a value that is no type; return a replacement, too."""
    if _is_function(hint):
        return f"the function {shown(hint)}", f"write {_class_for(hint)}"
    for bare, example in _BARE.items():
        if hint is bare:
            return f"{shown(hint)} alone", f"write, say, {example}"
    if isinstance(hint, ModuleType):
        name = hint.__name__.rpartition(".")[2]
        cls = getattr(hint, name, None) or getattr(hint, name.title(), None)
        inner = cls.__name__ if isinstance(cls, type) else "NAME"
        return f"the module {name}", f"write one of its classes: {name}.{inner}"
    if hint is Ellipsis:
        return "...", f"write {_ANY} for whatever there is"
    if isinstance(hint, enum.Enum):
        cls = type(hint).__qualname__
        return f"one member of {cls}", f"write {cls}, or Literal[{hint}]"
    return _read_value(hint)


def _read_value(hint: Hint) -> tuple[str, str]:
    if isinstance(hint, tuple | list | dict | set):
        container = cast("Any", hint)
        kind = type(container).__name__
        parts = [shown(part) for part in container]
        either = _cut(" | ".join(parts)) or "Any"
        actual = f"the {kind} {shown(container)}"
        if isinstance(hint, dict):
            values = cast("Any", hint).values()
            value = " | ".join(dict.fromkeys(shown(part) for part in values)) or "Any"
            return actual, f"write dict[{either if parts else 'str'}, {value}]"
        if isinstance(hint, tuple):
            inner = _cut(", ".join(parts)) or "()"
            return actual, f"write {either}, or tuple[{inner}] for one of each"
        return actual, f"write {kind}[{either}]"
    cls = type(hint).__qualname__
    if isinstance(hint, bool | int | float | str | bytes):
        return (
            f"the value {hint!r:.40}",
            f"write its type, {cls}; a default follows it: NAME: {cls} = {hint!r:.40}",
        )
    return f"an object of the class {cls}", f"write the class itself: {cls}"


def _class_for(function: Any) -> str:
    if function in _FUNCTIONS:
        return _FUNCTIONS[function]
    name, module = function.__name__, str(getattr(function, "__module__", "") or "")
    package = module.partition(".")[0]
    if name in _CLASSES and package not in ("", "builtins"):
        return f"the class of what it makes: {package}.{_CLASSES[name]}"
    return "the class of what is meant, such as str, or Any (from typing import Any)"


def _cause(hint: Hint, error: BaseException) -> str:
    """Return why a quoted hint cannot be resolved, and the fix."""
    whole_hint = hint if isinstance(hint, str) else shown(hint)
    text = _cut(whole_hint)
    if isinstance(error, NameError):
        name = error.name or whole_hint
        return f"{text}: name {_cut(name)!r} is not defined. {_missing(name)}"
    first = str(error).partition("\n")[0][:200]
    if any(word in whole_hint for word in ("any |", "| any", "any|", "|any")):
        return f"{text}: any is a function; write {_ANY} instead"
    if isinstance(error, AttributeError):
        return f"{text}: {first}. Write a name that is there"
    if isinstance(error, SyntaxError) or not text.strip():
        return f"{text!r}: expected a type, such as str, int | None or list[str]"
    if "must evaluate to types" in first:
        inside = _cut(whole_hint.strip("()[] ").replace(", ", " | "))
        return f"{text}: expected a type; write {inside}, or tuple[...] for one of each"
    if "Optional" in whole_hint:
        return f"{text}: {first} Write, say, int | str | None"
    return f"{text}: the type hint cannot be resolved: {first}"


def _missing(name: str) -> str:
    if (advice := _WORDS.get(name)) is not None:
        return f"Write {advice}, Python's name of it"
    if hasattr(typing, name):
        return f"Write above: from typing import {name}"
    where = (
        "the name in the function's module, not inside another function, nor only "
        "under `if TYPE_CHECKING`"
    )
    if close := closest(name, _COMMON):
        return f"Did you mean {close[0]}? If not, define or import {where}"
    return f"Define or import {where}"


def closest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the name that a slip of the pen explains, if any.

    `nearest` takes `Local` for `float`, and `retries` for `asset_refs`.
    """
    from difflib import SequenceMatcher  # only errors need it

    return tuple(
        one
        for one in nearest(name, known, 1)
        if SequenceMatcher(None, name.casefold(), one.casefold()).ratio() > 0.75
    )


def bad_function(where: Spot, message: str) -> ManifestError:
    """Return the error of a function that cannot be a command."""
    return error_of(where.file, f"{where.name}: {message}", where.line)
