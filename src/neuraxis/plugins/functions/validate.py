"""Validate the options of `@command(...)` and the functions it marks."""

from __future__ import annotations

import inspect
import sys
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from types import FunctionType, ModuleType
from typing import Any, TypeGuard, cast

from neuraxis.errors import ConfigError
from neuraxis.formatting import class_name, did_you_mean, nearest, quote
from neuraxis.plugins.effects_and_examples import EFFECTS, KINDS
from neuraxis.plugins.functions.deferred_annotations import signature_of
from neuraxis.plugins.functions.hint_errors import closest
from neuraxis.plugins.functions.source_location import code_of
from neuraxis.schema.annotations import FILE_USES, FLAGS

_RETRY = (
    'A session repeats failed calls: Session(..., options=Options(on_error="retry")), '
    "unless the command's effects are once, the default"
)
_INSTEAD = {
    **dict.fromkeys(("retry", "retries", "maxretries"), _RETRY),
    "requiresapproval": 'Write effects={"kind": "once", "needs_approval": True}',
    "timeout": "Write time_limit=SECONDS",
    "nameoverride": "Write name=...",
    "descriptionoverride": "Write description=...",
}
"""Options of other frameworks' decorators, with what to write here."""


def check_marking(
    function: Any, options: Mapping[str, Any], known: Sequence[str]
) -> None:
    """Validate the options of `@command`.

    A concurrency limit of 0 is refused too: a run would never end.

    Args:
        function: the marked function; None if not given yet.
        options: what was written beside `effects` and `asset_refs`.
        known: the known options.

    Raises:
        ConfigError: an option is unknown, or its value has a wrong kind.
    """
    if isinstance(function, type):
        raise ConfigError(of_class(function))
    if isinstance(function, property):
        raise ConfigError(
            "@command: expected a function, got a property. Leave @property out: a "
            "model calls methods"
        )
    if function is not None and not callable(getattr(function, "__func__", function)):
        is_kind = isinstance(function, str) and function in KINDS
        hint = f"; write @command(effects={function!r})" if is_kind else ""
        hint = _of_tool(function) or hint
        raise ConfigError(f"@command: expected a function, got {quote(function)}{hint}")
    for name, value in options.items():
        if name not in known:
            hint = _INSTEAD.get(name.replace("_", "").casefold())
            hint = f" {hint}." if hint else did_you_mean(closest(name, known))
            if name in EFFECTS:
                hint = f" It is a key of effects: effects={{..., {name!r}: {value!r}}}."
            listed = ", ".join(known)
            raise ConfigError(
                f"@command: there is no option {name!r}.{hint} Options are: {listed}"
            )
        if value is not None and (wrong := _wrong(name, value)):
            raise ConfigError(f"@command: {name}: expected {wrong}, got {quote(value)}")


def attach(function: Any, name: str, marked: object) -> None:
    """Attach the options to the function below `@command`.

    Raises:
        ConfigError: it is a class, a property, a `partial` without a name, or a
            function that cannot be marked.
    """
    # A static or class method shares the attributes of its function.
    target = getattr(function, "__func__", function)
    if _is_bare_partial(function) and not getattr(marked, "name", None):
        raise ConfigError(f"@command: {_of_partial(function)}")
    if isinstance(function, type) or not callable(target):
        check_marking(function, {}, ())
    try:
        setattr(target, name, marked)
    except AttributeError:
        raise ConfigError(
            f"@command: {shown(function)} cannot be marked. Write a function of your "
            "own with def, which calls it"
        ) from None


def starred(function: Any) -> str:
    """Return the name of a function's `*args`, unless a `partial` bound them."""
    code = code_of(function)
    if isinstance(function, partial):
        return ""
    if code is None:
        return _starred_builtin(function) if inspect.isbuiltin(function) else ""
    if not code.co_flags & inspect.CO_VARARGS:
        return ""
    return code.co_varnames[code.co_argcount + code.co_kwonlyargcount]


def _starred_builtin(function: Any) -> str:
    """Return the name of the `*args` of a function in C."""
    try:
        parameters = signature_of(function).parameters.values()
    except (TypeError, ValueError):
        return ""  # whoever reads its parameters reports this
    return next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), "")


def unbound(function: Any, names: Iterable[str]) -> str:
    """Return advice for a method that has no object; empty for others."""
    outer = getattr(function, "__qualname__", "").rpartition(".")[0]
    is_method = isinstance(function, FunctionType) and outer[-1:] not in ("", ">")
    if not is_method or next(iter(names), "") != "self":
        return ""
    cls = outer.rpartition(".")[2]
    return (
        f"it is a method of the class {cls}, without an object; hand over the class or "
        f"an object of it: plugins=[{cls}] or plugins=[{cls}()]"
    )


def wrongly_documented(
    function: Any, documented: Iterable[str], names: Collection[str]
) -> Iterator[str]:
    """Return warnings for documented parameters that do not exist.

    Args:
        function: the function with the docstring.
        documented: the names in the docstring.
        names: the function's parameters.
    """
    code = code_of(function)
    # of a `partial`, and of a function in a decorator, those of what is inside
    inner = code.co_varnames if code is not None else ()
    for name in documented:
        if name not in names and name not in inner:
            hint = did_you_mean(nearest(name, tuple(names), 1))
            available = ", ".join(names) or "none"
            yield (
                f"the docstring describes a parameter {name!r}, which the function "
                f"does not have.{hint} Parameters are: {available}"
            )


def untyped(names: Iterable[str]) -> Iterator[str]:
    """Return warnings for parameters without a type hint."""
    for name in sorted(names):
        hint = f"; write `{name}: Context` for the runtime's"
        yield (
            f"the parameter {name} has no type hint, so that the model may write any "
            f"value{hint * (name in ('ctx', 'context'))}"
        )


def check_functions(functions: Sequence[Any]) -> None:
    """Raise an error for items of a list that are no functions.

    Raises:
        ConfigError: something is no function.
    """
    for item in functions:
        if _is_bare_partial(item):
            raise ConfigError(f"plugins: {_of_partial(item)}")
        if not callable(item) or isinstance(item, type):
            raise ConfigError(
                f"plugins: a list within the list is one plugin of functions, and "
                f"{shown(item)} is no function; write each plugin of another kind "
                "by itself: plugins=[one, other]"
            )


def _is_bare_partial(function: Any) -> TypeGuard[partial[Any]]:
    """Return whether nothing, such as `update_wrapper`, gave a `partial` a name."""
    return isinstance(function, partial) and not vars(function)


def _of_partial(function: partial[Any]) -> str:
    """Return advice for a `partial`."""
    inner = getattr(function.func, "__name__", "") or "FUNCTION"
    return (
        f"partial({inner}, ...) has no name and no description for the model; write a "
        f"def with a docstring that calls {inner}(...)"
    )


def _of_tool(value: Any) -> str:
    """Return advice for the object that another framework's decorator makes."""
    if all(base.__name__ != "FunctionTool" for base in type(value).__mro__):
        return ""
    return (
        "; it is a tool of another framework: take the plain function that it was made "
        "of, without a decorator such as @function_tool"
    )


def none_marked(module: ModuleType, is_command: Callable[[Any], bool]) -> str:
    """Return advice for a module that marks no function."""
    classes = [
        key
        for key, value in vars(module).items()
        if isinstance(value, type) and any(map(is_command, vars(value).values()))
    ]
    message = "expected functions marked by @command, and found none. "
    if classes:
        name = classes[0]
        return message + (
            f"The class {name} has commands, but a file is a plugin by its functions: "
            f"in Python hand the class over, plugins=[{name}], or make functions of "
            "its methods"
        )
    candidates = [
        key
        for key, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    ]
    if not candidates:
        return message + "Mark the functions that a model may call with @command"
    marked = (
        f"Write @command above the functions that a model may call: {candidates[0]}"
    )
    return message + marked


_BRIDGES = {
    "langchain_core": "from_langchain",
    "pydantic_ai": "from_pydantic_ai",
    "smolagents": "from_smolagents",
}
"""Function that converts a framework's tools, by the framework's package."""


def _tops(cls: type[Any]) -> list[str]:
    return [base.__module__.partition(".")[0] for base in cls.__mro__]


def no_method(source: Any, cls: type[Any]) -> str:
    """Return advice for a source that is no plugin of any kind."""
    if isinstance(source, partial):
        return f"plugin: {_of_partial(cast('partial[Any]', source))}"
    if tool := _of_tool(source):
        return f"plugin {class_name(cls)}: expected a function{tool}: plugins=[NAME]"
    # For a plain value, the value is more helpful than its class.
    is_plain = cls.__module__ == "builtins"
    actual = f"{source!r:.80}" if is_plain else class_name(cls)
    message = (
        f"plugin {actual}: expected a function, or a class with methods marked by "
        "@command, and found no such method. "
    )
    maker = next((_BRIDGES[top] for top in _tops(cls) if top in _BRIDGES), "")
    if maker and not isinstance(source, type):
        return (
            f"{message}It is a tool of another framework: plugins=[{maker}([…])], with "
            f"`from neuraxis.bridges.frameworks import {maker}`"
        )
    if isinstance(source, type) or not is_plain:
        message += "Mark the functions that a model may call with @command"
    if isinstance(source, type):
        return message
    joint = "" if is_plain else ". "
    return (
        f"{message}{joint}If a function returned it, pass the function itself, "
        "without parentheses: plugins=[NAME]"
    )


def shown(value: Any) -> str:
    """Return a short name of any value."""
    name = getattr(value, "__qualname__", None)
    return f"the class {name}" if isinstance(value, type) else name or f"{value!r:.60}"


def of_class(cls: type[Any]) -> str:
    """Return advice for `@command` above a class."""
    name = cls.__name__
    return (
        f"@command: expected a function, got the class {name}. Write @command above "
        f"each method that a model may call, nothing above the class, and hand the "
        f"class over: plugins=[{name}], or an object of it: plugins=[{name}(...)]"
    )


def is_name(value: Any) -> bool:
    """Return whether a prompt can show the value as a command's name."""
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


TIME_LIMIT = "a finite number of seconds above 0"
"""What `is_time_limit` expects, in words."""


def is_time_limit(value: Any) -> TypeGuard[float]:
    """Return whether a command's time limit can be counted with."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # an int may be too large for a float, and a float infinite
    return is_number and 0 < value <= sys.float_info.max


def _wrong(name: str, value: Any) -> str:
    """Return the expectation that a value violates, or ""."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name == "time_limit" and not is_time_limit(value):
        return TIME_LIMIT
    if name == "concurrency" and not (
        is_number and isinstance(value, int) and value > 0
    ):
        return "a whole number above 0"
    if name in ("name", "tool_name") and not is_name(value):
        return "a name on one line"
    if name in ("description", "failure_field") and not isinstance(value, str):
        return "a text"
    if name == "names_file" and not isinstance(value, Mapping):
        return f"a mapping of parameters to one of {', '.join(FILE_USES)}"
    if name in FLAGS and isinstance(value, str):
        return "a list of names of parameters"
    return ""
