"""Bind a call's JSON values to the parameters of a Python function.

Parameters are read from the code object where possible: with a thousand functions,
`inspect.signature` takes most of the start-up time.
"""

from __future__ import annotations

import builtins
import inspect
import threading
import types
import typing
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from functools import lru_cache, partial
from types import FunctionType, MethodType
from typing import Any, cast

from msgspec import Struct

from neuraxis.errors import CommandError
from neuraxis.plugins.context import Context
from neuraxis.plugins.functions.convert import Convert, converter, is_plain
from neuraxis.plugins.functions.deferred_annotations import annotations_of, signature_of
from neuraxis.plugins.functions.hint_errors import bad_function
from neuraxis.plugins.functions.hint_kinds import Hint, has_forward
from neuraxis.plugins.functions.pydantic_hints import field_of, fill_fields
from neuraxis.plugins.functions.source_location import spot_of
from neuraxis.specs import STREAM_ITEMS

_EMPTY: Any = inspect.Parameter.empty
_OPEN = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_STREAMS = (
    Iterator, Generator, AsyncIterator, AsyncGenerator, AsyncIterable, KeysView,
    ValuesView, range,
)  # fmt: skip
_QUOTED, _CONTEXT, _PLAIN = "quoted", "context", "plain"
"""Kinds of hints: quoted (unresolved), `Context` (hidden), plain JSON."""


class Caller(Struct, frozen=True, kw_only=True):
    """Calling convention of a function, without its `Context` parameter."""

    run: Callable[..., Any]
    is_async: bool
    context_name: str
    """Name of the parameter annotated `Context`, or empty."""
    deps: Any
    """The class `Shop` of `Context[Shop]`, for `isinstance`; `object`: anything."""
    hints: Mapping[str, Hint]
    """Hints of the parameters that a call may name, in order."""
    defaults: Mapping[str, Any]
    required: tuple[str, ...]
    open: bool
    """Whether it accepts any other name (`**kwargs`), of type `rest`."""
    rest: Hint
    returns: Hint
    """Return hint; `inspect.Parameter.empty` if there is none."""


class _Parameters(Struct):
    """Parameters of a function, read from its code object."""

    names: Sequence[str]
    positional: Sequence[str]
    defaults: dict[str, Any]
    rest: str = ""


def caller_of(function: Callable[..., Any]) -> Caller:
    """Return how to call a function with JSON values.

    Raises:
        ManifestError: its parameters or type hints cannot be read.
    """
    written = _hints(function)
    given, function = function, _ended(function)
    parameters = _from_code(given) or _from_signature(given)
    context_name, deps = "", cast("Any", object)
    hints: dict[str, Hint] = {}
    plain = not parameters.positional  # Plain JSON values need no conversion.
    fields: dict[str, Any] = {}
    for name in parameters.names:
        hint = written.get(name, Any)
        if (given_field := field_of(hint, parameters.defaults.get(name))) is not None:
            hint = _with_field(name, hint, given_field, parameters.defaults, fields)
        kind = _kind(hint)
        if kind is _CONTEXT:
            context_name, deps = name, deps_of(hint)
            continue
        hints[name] = hint
        plain = plain and kind is _PLAIN
    run = function if plain else _converting(function, hints, parameters)
    return Caller(
        run=fill_fields(run, fields) if fields else run,
        is_async=_is_async(function),
        context_name=context_name,
        deps=deps,
        hints=hints,
        defaults=parameters.defaults,
        required=tuple([name for name in hints if name not in parameters.defaults]),
        open=bool(parameters.rest),
        rest=written.get(parameters.rest, Any),
        returns=_gathered(written.get("return", _EMPTY)),
    )


def deps_of(hint: Hint) -> Any:
    """Return the class that a run's `deps` must have."""
    of = typing.get_args(hint) if typing.get_origin(hint) is Context else ()
    deps_class: Any = of[0] if of else object
    if typing.get_origin(deps_class) is typing.Annotated:
        deps_class = deps_class.__origin__
    deps_class = object if deps_class in (Any, type(None)) else deps_class
    if typing.get_origin(deps_class) not in (typing.Union, types.UnionType, None):
        deps_class = typing.get_origin(deps_class)  # dict of dict[str, int]
    try:
        # not None, which would match the first member of a union at once
        isinstance(object(), deps_class)
    except TypeError:  # a variable, or a protocol that is not checked when run
        return object
    return deps_class


def _with_field(
    name: str,
    hint: Hint,
    given: Any,
    defaults: dict[str, Any],
    fields: dict[str, Any],
) -> Hint:
    """Return the hint with its `Field(...)`, whose default replaces Python's."""
    is_default = defaults.get(name) is given
    if is_default:
        del defaults[name]
    if not given.is_required() and name not in defaults:
        defaults[name] = given.get_default(call_default_factory=True)
        fields[name] = given
    return typing.Annotated[hint, given] if is_default else hint


def _gathered(hint: Hint) -> Hint:
    """Return iterators, views and ranges as lists of their items."""
    origin = typing.get_origin(hint)
    if origin not in _STREAMS and (origin or hint not in _STREAMS):
        return hint
    items = typing.get_args(hint)
    return list[items[0]] if items else list


def _kind(hint: Hint) -> str:
    try:
        return _kind_of(hint)
    except TypeError:  # An unhashable hint.
        return _kind_of.__wrapped__(hint)


@lru_cache(maxsize=1024)
def _kind_of(hint: Hint) -> str:
    """Return the kind of a parameter's hint."""
    if has_forward(hint):
        return _QUOTED
    if any(map(_is_context, (hint, *typing.get_args(hint)))):
        return _CONTEXT
    return _PLAIN if is_plain(hint) else ""


def _is_context(hint: Hint) -> bool:
    return hint is Context or typing.get_origin(hint) is Context


def _from_code(function: Callable[..., Any]) -> _Parameters | None:
    """Return a plain function's parameters; None if it needs full inspection."""
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
    if plain is not function:
        _check_self(function, plain, names)
        names = names[1:]
    return _Parameters(names, (), defaults)


def _check_self(function: Any, plain: FunctionType, names: Sequence[str]) -> None:
    """Refuse a method whose first parameter would be bound to the object."""
    first = names[0] if plain.__code__.co_argcount else ""
    hint = annotations_of(plain).get(first)
    cls = _BUILTIN.get(hint) if isinstance(hint, str) else hint
    if first and not (
        isinstance(cls, type)
        and cls.__module__ == "builtins"
        and not isinstance(function.__self__, cls)
    ):
        return
    written = f", got {first}" if first else ", got none"
    raise bad_function(
        spot_of(function),
        f"expected self as the first parameter of a method{written}; write "
        f"def {plain.__name__}(self, ...), or @staticmethod above it",
    )


def _from_signature(function: Callable[..., Any]) -> _Parameters:
    unwrapped: Any = function
    # The wrapped function has other parameters than the `partial`.
    if isinstance(unwrapped, partial):
        applied = cast("partial[Any]", unwrapped)
        unwrapped = partial(applied.func, *applied.args, **applied.keywords)
    try:
        signature = signature_of(unwrapped)
    except (ValueError, TypeError) as error:
        raise bad_function(
            spot_of(function), f"its parameters cannot be read: {error}"
        ) from error
    names: list[str] = []
    positional: list[str] = []
    defaults: dict[str, Any] = {}
    rest = ""
    for item in signature.parameters.values():
        if item.kind is item.VAR_POSITIONAL:
            continue  # Already bound by the `partial`.
        if item.kind is item.VAR_KEYWORD:
            rest = item.name
            continue
        names.append(item.name)
        if item.kind is item.POSITIONAL_ONLY:
            positional.append(item.name)
        if item.default is not _EMPTY:
            defaults[item.name] = item.default
    return _Parameters(names, positional, defaults, rest)


def _hints(function: Callable[..., Any]) -> Mapping[str, Hint]:
    target: Any = function
    if type(function) is not FunctionType or "__wrapped__" in function.__dict__:
        target = inspect.unwrap(getattr(function, "func", function))
        if not (isinstance(target, type) or hasattr(target, "__code__")):
            target = type(target).__call__  # An object with __call__.
    hints: Mapping[str, Hint] = annotations_of(target)
    # Resolving costs twice as much as reading; only quoted hints need it.
    for hint in hints.values():
        if _kind(hint) is _QUOTED:
            break
    else:
        return hints
    try:
        return _looked_up(target, hints)
    except (NameError, TypeError, SyntaxError, AttributeError, LookupError) as error:
        from neuraxis.plugins.functions.hint_errors import (
            unresolved,  # Imported for error messages only.
        )

        raise unresolved(
            spot_of(function), hints, lambda hint: _looked_up(target, {"": hint})
        ) from error


def _looked_up(target: Any, written: Mapping[str, Hint]) -> Mapping[str, Hint]:
    """Return the hints with quoted ones resolved in the function's namespace."""
    globals_of: dict[str, Any] = getattr(target, "__globals__", {})
    hints: dict[str, Hint] = {}
    for name, hint in written.items():
        # Most quoted hints are the plain name of a class.
        value = (
            globals_of.get(hint, _BUILTIN.get(hint)) if isinstance(hint, str) else None
        )
        hints[name] = value if isinstance(value, type) else _reference(hint)
    stub: Any = FunctionType(_looked_up.__code__, globals_of)
    stub.__annotations__ = {
        name: hint for name, hint in hints.items() if not isinstance(hint, type)
    }
    if hasattr(target, "__type_params__"):
        stub.__type_params__ = target.__type_params__
    # Authors import `Context` under TYPE_CHECKING, so the name may be undefined.
    extra = {} if "Context" in globals_of else {"Context": Context}
    with _looking_up:
        found = typing.get_type_hints(stub, globals_of, extra, include_extras=True)
    return {**hints, **found}


def _reference(hint: Hint) -> Hint:
    return _compiled(hint) if isinstance(hint, str) else hint


@lru_cache(maxsize=4096)
def _compiled(text: str) -> typing.ForwardRef:
    return typing.ForwardRef(text)


_BUILTIN = vars(builtins)
_looking_up = threading.RLock()
"""Held while hints are resolved: a shared forward reference caches its result."""


def _ended(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose call ends with a value.

    Async generators are collected; a coroutine returned through a plain decorator is
    awaited, unless the decorator runs it itself.
    """
    wrapped = getattr(function, "__wrapped__", None)
    last = function if wrapped is None else inspect.unwrap(function)
    if inspect.isasyncgenfunction(last):

        async def gathered(*values: Any, **arguments: Any) -> Any:
            result = function(*values, **arguments)
            if not hasattr(result, "__aiter__"):
                return await result if inspect.isawaitable(result) else result
            items: list[Any] = []
            async for item in result:
                items.append(item)
                if len(items) > STREAM_ITEMS:
                    await result.aclose()
            # Like any iterator, it is reported if it has too many items.
            return iter(items)

        return gathered
    is_hidden = last is not function and inspect.iscoroutinefunction(last)
    if not is_hidden or _is_async(function):
        return function

    def awaited(*values: Any, **arguments: Any) -> Any:
        import asyncio  # Imported on first use: asyncio is slow to import.

        result = function(*values, **arguments)
        return asyncio.run(result) if inspect.iscoroutine(result) else result

    return awaited


def _is_async(function: Callable[..., Any]) -> bool:
    code = getattr(function, "__code__", None)
    if code is not None:
        return bool(code.co_flags & inspect.CO_COROUTINE)
    call = cast("Any", getattr(function, "__call__", None))  # noqa: B004 - an object
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _converting(
    function: Callable[..., Any],
    hints: Mapping[str, Hint],
    parameters: _Parameters,
) -> Callable[..., Any]:
    """Return the function with a conversion of its values."""
    positional = parameters.positional
    conversions: dict[str, Convert] | None = None

    def run(*values: Any, **arguments: Any) -> Any:
        nonlocal conversions
        if conversions is None:
            # compiled at the first call: most commands are never called
            converters = ((name, converter(hint)) for name, hint in hints.items())
            conversions = {
                name: change for name, change in converters if change is not None
            }
        if not values and not positional:
            for name, change in conversions.items():
                if name in arguments:
                    arguments[name] = _changed(name, change, arguments[name])
            return function(**arguments)
        converted = [
            _changed(name, conversions[name], value) if name in conversions else value
            for name, value in zip(hints, values, strict=False)
        ]
        for name, change in conversions.items():
            if name in arguments:
                arguments[name] = _changed(name, change, arguments[name])
        given_by_name = [name for name in positional if name in arguments]
        upto = positional.index(given_by_name[-1]) + 1 if given_by_name else 0
        # Positional parameters must not have gaps.
        for name in positional[len(converted) : upto]:
            converted.append(arguments.pop(name, parameters.defaults.get(name)))
        return function(*converted, **arguments)

    # messages name the command's function
    run.__qualname__ = getattr(function, "__qualname__", "")
    return run


def _changed(name: str, change: Convert, value: Any) -> Any:
    try:
        return change(value)
    except CommandError as error:
        raise CommandError(f"{name}: {error}") from None
    except ValueError as error:  # the class itself refuses it, as in `__post_init__`
        text = str(error) or type(error).__name__
        raise CommandError(f"{name}: {text}") from error
