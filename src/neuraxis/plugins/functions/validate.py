"""What an author writes in `@command(...)` in; a `ConfigError` of what is wrong out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

from neuraxis.errors import ConfigError
from neuraxis.formatting import did_you_mean, nearest, quote
from neuraxis.plugins.extensions import KINDS
from neuraxis.schema.annotations import FLAGS


def check_marking(
    function: Any, options: Mapping[str, Any], known: Sequence[str]
) -> None:
    """Tell what cannot be meant; with a limit of no calls a run would never end.

    Args:
        function: what is marked; None: it is not there yet.
        options: what was written beside `effects` and `asset_refs`.
        known: the options there are.

    Raises:
        ConfigError: an option is none of ours, or a value of a wrong kind.
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
        raise ConfigError(f"@command: expected a function, got {quote(function)}{hint}")
    for name, value in options.items():
        if name not in known:
            hint = did_you_mean(nearest(name, known, 1))
            listed = ", ".join(known)
            raise ConfigError(
                f"@command: there is no option {name!r}.{hint} Options are: {listed}"
            )
        if value is not None and (wrong := _wrong(name, value)):
            raise ConfigError(f"@command: {name}: expected {wrong}, got {quote(value)}")


def attach(function: Any, name: str, marked: object) -> None:
    """Put the options on what `@command` stands above.

    Raises:
        ConfigError: it is a class, a property, or a function that takes nothing.
    """
    # A static or class method passes on what its function carries.
    target = getattr(function, "__func__", function)
    if isinstance(function, type) or not callable(target):
        check_marking(function, {}, ())
    try:
        setattr(target, name, marked)
    except AttributeError:
        raise ConfigError(
            f"@command: {shown(function)} cannot be marked. Write a function of your "
            "own with def, which calls it"
        ) from None


def check_functions(functions: Sequence[Any]) -> None:
    """Tell what stands in a list of functions and is none.

    Raises:
        ConfigError: something is no function.
    """
    for item in functions:
        if not callable(item) or isinstance(item, type):
            raise ConfigError(
                f"plugins: a list within the list is one plugin of functions, and "
                f"{shown(item)} is no function; write each plugin of another kind "
                "by itself: plugins=[one, other]"
            )


def none_marked(
    place: str, module: ModuleType, is_command: Callable[[Any], bool]
) -> str:
    """What to write in a module that marks no function, though classes may."""
    classes = [
        key
        for key, value in vars(module).items()
        if isinstance(value, type) and any(map(is_command, vars(value).values()))
    ]
    said = f"{place}: expected functions marked by @command, and found none. "
    if classes:
        name = classes[0]
        return said + (
            f"The class {name} has commands, but a file is a plugin by its functions: "
            f"in Python hand the class over, plugins=[{name}], or make functions of "
            "its methods"
        )
    there = [
        key
        for key, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    ]
    if not there:
        return said + "Mark what a model may call with @command"
    return said + f"Write @command above what a model may call: there is {there[0]}"


def no_method(source: Any, cls: type[Any]) -> str:
    """What to write for something that is no plugin of any kind."""
    # of a plain value the value says more than its class
    is_plain = cls.__module__ == "builtins"
    given = f"{source!r:.80}" if is_plain else f"{cls.__module__}.{cls.__qualname__}"
    said = (
        f"plugin {given}: expected a function, or a class with methods marked by "
        "@command, and found no such method. "
    )
    if isinstance(source, type) or not is_plain:
        said += "Mark what a model may call with @command"
    if isinstance(source, type):
        return said
    joint = "" if is_plain else ". "
    return (
        f"{said}{joint}If a function gave it, hand over the function itself, without "
        "brackets: plugins=[NAME]"
    )


def shown(value: Any) -> str:
    """A short name of anything."""
    name = getattr(value, "__qualname__", None)
    return f"the class {name}" if isinstance(value, type) else name or f"{value!r:.60}"


def of_class(cls: type[Any]) -> str:
    """What to write instead of `@command` above a class."""
    name = cls.__name__
    return (
        f"@command: expected a function, got the class {name}. Write @command above "
        f"each method that a model may call, nothing above the class, and hand the "
        f"class over: plugins=[{name}], or an object of it: plugins=[{name}(...)]"
    )


def _wrong(name: str, value: Any) -> str:
    """What is expected instead of the value; nothing: it is right."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name == "time_limit" and not (is_number and value > 0 and math.isfinite(value)):
        return "seconds above 0"
    if name == "concurrency" and not (
        is_number and isinstance(value, int) and value > 0
    ):
        return "a whole number above 0"
    if name in ("name", "tool_name", "description", "failure_field") and not (
        isinstance(value, str)
    ):
        return "a text"
    if name == "names_file" and not isinstance(value, Mapping):
        return "a mapping of parameters to read, write, change, remove or run"
    if name in FLAGS and isinstance(value, str):
        return "a list of names of parameters"
    return ""
