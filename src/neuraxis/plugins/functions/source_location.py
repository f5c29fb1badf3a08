"""What a function is, and where its source stands, for errors."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from types import CodeType
from typing import Any

from msgspec import Struct

from neuraxis.formatting import FILE_MODULE


class Spot(Struct, frozen=True):
    """The place of a function, and its name."""

    file: str
    line: int
    """Line of its `def` or of the first decorator; 0 if it has none."""
    name: str


def is_function(source: Any) -> bool:
    """Return whether a source is a function or method, not a `partial`."""
    # a partial is a routine too, since Python 3.14
    return not isinstance(source, partial) and inspect.isroutine(source)


def spot_of(function: Any) -> Spot:
    """Return a function's file and line, or else its module."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    name = name.rpartition("<locals>.")[2]
    code = code_of(function)
    if code is None or code.co_filename.startswith("<"):
        return Spot(getattr(function, "__module__", None) or "", 0, name)
    return Spot(code.co_filename, code.co_firstlineno, name)


def code_of(function: Any) -> CodeType | None:
    """Return the code of a function, below its decorators and `partial`."""
    plain = inspect.unwrap(getattr(function, "func", function))
    return getattr(getattr(plain, "__func__", plain), "__code__", None)


def place_of(module: str) -> str:
    """Return the file or module name that the author knows."""
    if module.startswith(FILE_MODULE):
        return str(getattr(sys.modules.get(module), "__file__", None) or module)
    return module


def where_of(function: Callable[..., Any]) -> str:
    """Return `module:name`, the source of a plugin that is one function."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{place_of(getattr(function, '__module__', '') or '')}:{name}"
