"""What many modules say and few runs need, made when it is first used.

Data classes and regular expressions flow in as they are written at the top of a
module; out come the same things, quick to write down. The standard library makes a
data class by compiling up to seven functions and a pattern by building an automaton.
A hundred of each were most of the time to a first run, which needs a few of them.

For the type checker, `dataclass` and `pattern` are what the standard library has.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, cast

_COMPLETED = ("__dataclass_fields__", "__dataclass_params__", "__signature__")
"""What a data class lacks until one of these is asked for, or a few are made."""

_FEW = 20
"""Values of a class that are made without a compiled `__init__`."""


class _Completed:
    """Stands for a member of a data class until it is asked for."""

    __slots__ = ("complete", "name")

    def __init__(self, name: str, complete: Callable[[], object]) -> None:
        self.name = name
        self.complete = complete

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        self.complete()  # it stands here no longer
        return getattr(owner, self.name)


class _Pattern:
    """Stands for a compiled pattern; each thing it has is looked up once."""

    def __init__(self, text: str, flags: int) -> None:
        self.compiled = lambda: re.compile(text, flags)  # which keeps it: see `re`

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = getattr(self.compiled(), name)
        return found


def _dataclass(
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    repr: bool = True,
    unsafe_hash: bool = False,
) -> Callable[[type[Any]], type[Any]]:
    """`dataclasses.dataclass` for a class with slots and without bases."""
    if not slots:
        raise TypeError("a data class of neuraxis has slots")

    def make(cls: type[Any]) -> type[Any]:
        if cls.__bases__ != (object,):
            raise TypeError("a data class of neuraxis has no bases")
        body = dict(cls.__dict__, __qualname__=cls.__qualname__)
        del body["__dict__"], body["__weakref__"]
        names = tuple(cls.__annotations__)
        given = {name: body.pop(name) for name in names if name in body}
        for value in given.values():
            if isinstance(value, Field):  # `list[int]()` is ten times slower
                made: Any = cast("Any", value).default_factory
                value.default_factory = getattr(made, "__origin__", made)

        def complete() -> Callable[..., None]:
            plain = type(cls.__name__, (), {**body, **given})
            options: dict[str, Any] = {"frozen": frozen, "kw_only": kw_only}
            dataclasses.dataclass(**options, repr=False, eq=False)(plain)
            for name in ("__init__", "__dataclass_fields__", "__dataclass_params__"):
                setattr(whole, name, plain.__dict__[name])
            if (name := "__signature__") in whole.__dict__:
                delattr(whole, name)  # that of `__init__` is read instead
            return plain.__dict__["__init__"]

        added: dict[str, Any] = {}
        for name in _COMPLETED:
            added[name] = _Completed(name, complete)
        positional = () if kw_only else _with(names, given, "init")
        added["__match_args__"] = positional
        added["__init__"] = _first_init(names, given, positional, complete)
        added |= _methods(names, given, frozen=frozen, eq=eq, hashed=unsafe_hash)
        if not repr:
            del added["__repr__"]
        if body.get("__hash__", 0) is None:
            del body["__hash__"]  # only what comes of an `__eq__` in the body
        whole = type(cls.__name__, (), {**added, **body, "__slots__": names})
        return whole

    return make


def _first_init(
    names: tuple[str, ...],
    given: Mapping[str, Any],
    positional: tuple[str, ...],
    complete: Callable[[], Callable[..., None]],
) -> Callable[..., None]:
    """`__init__` for the first few: the same, without compiling anything.

    Where they are no longer few, or the arguments are wrong, it is the standard
    library's turn.
    """
    left = _FEW

    def init(self: Any, *args: Any, **keywords: Any) -> None:
        nonlocal left
        left -= 1
        values = (
            keywords | dict(zip(positional, args, strict=False)) if args else keywords
        )
        known = len(values) == len(args) + len(keywords) and left > 0
        if not known or not _fill(self, names, given, values):
            complete()(self, *args, **keywords)

    return init


def _fill(
    self: object,
    names: tuple[str, ...],
    given: Mapping[str, Any],
    values: Mapping[str, Any],
) -> bool:
    """Set every field; False where a value is missing or one has no field."""
    used = 0
    for name in names:
        usual: Any = given.get(name, MISSING)
        field: Any = usual if usual.__class__ is Field else None
        if name in values and (field is None or field.init):
            value: Any = values[name]
            used += 1
        elif field is None:
            value = usual
        elif field.default_factory is not MISSING:
            value = field.default_factory()
        else:
            value = field.default
        if value is not MISSING:
            object.__setattr__(self, name, value)
        elif field is None or field.init:
            return False
    return used == len(values)


def _methods(
    names: tuple[str, ...],
    given: Mapping[str, Any],
    *,
    frozen: bool,
    eq: bool,
    hashed: bool,
) -> dict[str, Any]:
    """What the standard library compiles for each class, as closures."""
    compared = _with(names, given, "compare")
    shown = _with(names, given, "repr")

    values = attrgetter(*compared) if len(compared) > 1 else _all_of(compared)

    def same(self: object, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    def digest(self: object) -> int:
        return hash(values(self))

    @recursive_repr()
    def written(self: object) -> str:
        inner = ", ".join([f"{name}={getattr(self, name)!r}" for name in shown])
        return f"{self.__class__.__qualname__}({inner})"

    methods: dict[str, Any] = {"__repr__": written, "__replace__": dataclasses.replace}
    if eq:
        methods["__eq__"] = same
    if hashed or (eq and frozen):
        methods["__hash__"] = digest
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        methods |= {"__getstate__": _state, "__setstate__": _restore}
    return methods


def _all_of(names: tuple[str, ...]) -> Callable[[object], tuple[Any, ...]]:
    return lambda self: tuple([getattr(self, name) for name in names])


def _with(names: tuple[str, ...], given: Mapping[str, Any], what: str) -> Any:
    """The fields that are not left out of `what` ("compare", "repr" or "init")."""
    left_out: set[str] = set()
    for name, value in given.items():
        if isinstance(value, Field) and not getattr(cast("Any", value), what):
            left_out.add(name)
    return tuple([name for name in names if name not in left_out])


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> dict[str, Any]:
    return {name: getattr(self, name) for name in self.__slots__ if hasattr(self, name)}


def _restore(self: object, state: dict[str, Any]) -> None:
    for name, value in state.items():
        object.__setattr__(self, name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass
    from re import compile as pattern
else:
    dataclass = _dataclass

    def pattern(text, flags=0):
        """`re.compile(text, flags)`, when it is first used."""
        return _Pattern(text, int(flags))


__all__ = ["dataclass", "pattern"]
