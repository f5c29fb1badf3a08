"""Import a plugin's source file and explain failures."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from neuraxis.errors import NeuraxisError, error_of
from neuraxis.formatting import FILE_MODULE, file_module, public_names, sha256
from neuraxis.specs import Json


def import_file(code: Path, plugin: str) -> ModuleType:
    """Import a file of the plugin with that name as a module."""
    name = file_module(sha256(str(code.resolve()).encode()), plugin)
    found = importlib.util.spec_from_file_location(
        name, code, submodule_search_locations=[str(code.parent)]
    )
    if found is None or found.loader is None:
        raise error_of(str(code), "cannot be read as Python")
    module = importlib.util.module_from_spec(found)
    # Dataclasses and pickle look up a class's module by its name.
    sys.modules[name] = module
    try:
        found.loader.exec_module(module)
    except NeuraxisError as error:
        del sys.modules[name]
        raise error_of(str(code), str(error), line_of(error, code)) from error
    # A script may call sys.exit while it is imported.
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise error_of(str(code), raised(error, code), line_of(error, code)) from error
    except BaseException:
        del sys.modules[name]
        raise
    return module


def raised(error: BaseException, code: Path | None = None) -> str:
    """Return the error of a failed import, with advice."""
    return f"importing it raised {first_line(error)}{_advice(error, code)}"


def making_raised(error: BaseException, config: Mapping[str, Json]) -> str:
    """Return the error of a failed plugin constructor, with advice."""
    if isinstance(error, NeuraxisError):
        return str(error)
    hint = ""
    if isinstance(error, KeyError):
        keys = ", ".join(str(key) for key in config) or "nothing"
        hint = f"; in the section `config:` of the manifest there is: {keys}"
    return f"making Plugin raised {first_line(error)}{hint}"


def first_line(error: BaseException) -> str:
    """Return an exception's class and the first line of its text."""
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {public_names(first)}".removesuffix(": ")


def _advice(error: BaseException, code: Path | None) -> str:
    if isinstance(error, SystemExit | EOFError):
        return (
            "; a plugin is imported and not run: put what asks or ends under "
            '`if __name__ == "__main__":`'
        )
    if not isinstance(error, ImportError):
        return ""
    missing = error.name or ""
    if "beyond top-level" in str(error):
        return "; only what lies beside it can be imported: from .NAME import ..."
    if missing.startswith(FILE_MODULE) and isinstance(error, ModuleNotFoundError):
        name = missing.partition(".")[2]
        return f"; there is no {name.replace('.', '/')}.py beside it"
    beside = code is not None and (
        (code.parent / f"{missing}.py").is_file() or (code.parent / missing).is_dir()
    )
    if missing and beside and isinstance(error, ModuleNotFoundError):
        return f"; it lies beside it: write from . import {missing}"
    if isinstance(error, ModuleNotFoundError):
        return f"; is it installed for {sys.executable}?"
    return ""


def line_of(error: BaseException, code: Path) -> int:
    """Return the last line of the plugin's file in the traceback."""
    file = str(code.absolute())  # The import system uses this form of the path.
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno or 0
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
