"""A Python function in; how to call it with the JSON values of a call out.

Its parameters are read from its code where that is possible: a session may have a
thousand functions, and `inspect.signature` takes most of the time.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, cast

from neuraxis.errors import ManifestError, ManifestProblem
from neuraxis.plugins.context import Context
from neuraxis.plugins.convert import Convert, converter, is_plain
from neuraxis.plugins.hints import Hint

_EMPTY: Any = inspect.Parameter.empty
_OPEN = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """How a function is called; a parameter that takes the `Context` is no hint."""

    run: Callable[..., Any]
    exact: Callable[..., Any] | None
    """The function itself, where no value needs converting but 3.0 for an integer."""
    is_async: bool
    context_name: str
    """The parameter annotated `Context`, or an empty text."""
    hints: Mapping[str, Hint]
    """Each parameter that a call may name, in order."""
    defaults: Mapping[str, Any]
    required: tuple[str, ...]
    open: bool
    """Whether it takes any other name (`**kwargs`), of the type `rest`."""
    rest: Hint
    returns: Hint
    """The hint of what it gives back; `inspect.Parameter.empty`: none is written."""


@dataclass(slots=True)
class _Taken:
    """What a function takes, as its code says."""

    names: Sequence[str]
    positional: Sequence[str]
    defaults: dict[str, Any]
    rest: str = ""


def caller_of(function: Callable[..., Any]) -> Caller:
    """How to call a function with the values of a call.

    Raises:
        ManifestError: its parameters or type hints cannot be read.
    """
    written = _hints(function)
    taken = _from_code(function) or _from_signature(function)
    context_name = ""
    hints: dict[str, Hint] = {}
    for name in taken.names:
        hint = written.get(name, Any)
        if hint is Context or (
            type(hint) is not type and Context in getattr(hint, "__args__", ())
        ):
            context_name = name
        else:
            hints[name] = hint
    return Caller(
        run=_converting(function, hints, taken.positional),
        exact=(
            function
            if not taken.positional
            and all(hint is int or is_plain(hint) for hint in hints.values())
            else None
        ),
        is_async=_is_async(function),
        context_name=context_name,
        hints=hints,
        defaults=taken.defaults,
        required=tuple([name for name in hints if name not in taken.defaults]),
        open=bool(taken.rest),
        rest=written.get(taken.rest, Any),
        returns=written.get("return", _EMPTY),
    )


def _from_code(function: Callable[..., Any]) -> _Taken | None:
    """What a plain function or method takes; None: it needs a closer look."""
    plain: Any = function.__func__ if isinstance(function, MethodType) else function
    if type(plain) is not FunctionType or plain.__dict__.keys() & {
        "__wrapped__",
        "__signature__",
    }:
        return None
    code = plain.__code__
    if code.co_posonlyargcount or code.co_flags & _OPEN:
        return None
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    defaults: dict[str, Any] = {}
    if values := plain.__defaults__:
        defaults = dict(zip(names[count - len(values) : count], values, strict=True))
    if plain.__kwdefaults__:
        defaults |= plain.__kwdefaults__
    return _Taken(names[1:] if plain is not function else names, (), defaults)


def _from_signature(function: Callable[..., Any]) -> _Taken:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise bad_function(
            where_of(function), f"its parameters cannot be read: {error}"
        ) from error
    names: list[str] = []
    positional: list[str] = []
    defaults: dict[str, Any] = {}
    rest = ""
    for item in signature.parameters.values():
        if item.kind is item.VAR_POSITIONAL:
            continue  # a call names what it gives
        if item.kind is item.VAR_KEYWORD:
            rest = item.name
            continue
        names.append(item.name)
        if item.kind is item.POSITIONAL_ONLY:
            positional.append(item.name)
        if item.default is not _EMPTY:
            defaults[item.name] = item.default
    return _Taken(names, positional, defaults, rest)


def _hints(function: Callable[..., Any]) -> Mapping[str, Hint]:
    target: Any = inspect.unwrap(getattr(function, "func", function))
    if not hasattr(target, "__annotations__"):  # an object with __call__
        target = type(target).__call__
    hints: Mapping[str, Hint] = getattr(target, "__annotations__", {})
    # Resolving costs twice what reading does, and is only needed for hints in quotes.
    for hint in hints.values():
        if type(hint) is not type and _has_forward(hint):
            break
    else:
        return hints
    try:
        # Authors import `Context` for the type checker only, so it may be no name.
        known = getattr(target, "__globals__", {})
        extra = {} if "Context" in known else {"Context": Context}
        return typing.get_type_hints(target, localns=extra or None, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise bad_function(
            where_of(function),
            f"a type hint cannot be resolved: {error}. Define or import the name in "
            "the function's module, not inside another function",
        ) from error


def _has_forward(hint: Hint) -> bool:
    if isinstance(hint, str | typing.ForwardRef):
        return True
    parts = () if type(hint) is type else getattr(hint, "__args__", ())
    return any(_has_forward(part) for part in parts)


def _is_async(function: Callable[..., Any]) -> bool:
    code = getattr(function, "__code__", None)
    if code is not None:
        return bool(code.co_flags & inspect.CO_COROUTINE)
    call = cast("Any", getattr(function, "__call__", None))  # noqa: B004 - an object
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _converting(
    function: Callable[..., Any],
    hints: Mapping[str, Hint],
    positional: Sequence[str],
) -> Callable[..., Any]:
    """The function itself where nothing is converted, else one that converts first."""
    if not positional and all(is_plain(hint) for hint in hints.values()):
        return function
    made: dict[str, Convert] | None = None

    def run(*values: Any, **arguments: Any) -> Any:
        nonlocal made
        if made is None:  # at the first call: most commands are never called
            found = ((name, converter(hint)) for name, hint in hints.items())
            made = {name: change for name, change in found if change is not None}
        given = [
            made[name](value) if name in made else value
            for name, value in zip(hints, values, strict=False)
        ]
        for name, change in made.items():
            if name in arguments:
                arguments[name] = change(arguments[name])
        given += [arguments.pop(name) for name in positional if name in arguments]
        return function(*given, **arguments)

    return run


def where_of(function: Callable[..., Any]) -> str:
    """`module:name`, for messages."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '')}:{name}"


def bad_function(where: str, message: str) -> ManifestError:
    """The error of a function that cannot be a command."""
    return ManifestError((ManifestProblem(file=where, line=0, message=message),))
