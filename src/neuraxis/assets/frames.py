"""Convert tables and arrays between pandas, Polars, PyArrow and NumPy."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from neuraxis.schema.python_values import imported_classes

_CLASSES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table",
            "numpy": "ndarray"}  # fmt: skip
_FROM: Mapping[tuple[str, str], Callable[[Any, Any], Any]] = {
    ("pandas", "polars"): lambda library, value: value.to_pandas(),
    ("pandas", "pyarrow"): lambda library, value: value.to_pandas(),
    ("pandas", "numpy"): lambda library, value: library.DataFrame(value),
    ("polars", "pandas"): lambda library, value: library.from_pandas(value),
    ("polars", "pyarrow"): lambda library, value: library.from_arrow(value),
    ("polars", "numpy"): lambda library, value: library.from_numpy(value),
    ("pyarrow", "pandas"): lambda library, value: library.Table.from_pandas(value),
    ("pyarrow", "polars"): lambda library, value: value.to_arrow(),
    ("pyarrow", "numpy"): lambda library, value: _columns(library, value),
    ("numpy", "pandas"): lambda library, value: value.to_numpy(),
    ("numpy", "polars"): lambda library, value: value.to_numpy(),
    ("numpy", "pyarrow"): lambda library, value: value.to_pandas().to_numpy(),
}
"""(wanted library, given library) -> conversion of a value, with the wanted library."""


def library_of(name: str) -> str:
    """Return the library of a table's or array's class name."""
    root, cls = name.partition(".")[0], name.rpartition(".")[2]
    return root if _CLASSES.get(root) == cls else ""


def may_become(given: str, wanted: str) -> bool:
    """Return whether an object of one class can be converted to another."""
    if given == wanted or (library_of(given) and library_of(wanted)):
        return True
    given_classes, wanted_classes = imported_classes(given), imported_classes(wanted)
    return not (given_classes and wanted_classes) or any(
        issubclass(one, wanted_classes)
        or any(issubclass(other, one) for other in wanted_classes)
        for one in given_classes
    )


def as_library(value: Any, name: str) -> Any:
    """Convert a table or array to the class of that name.

    Raises:
        LookupError: one of the two is not a table or array of a known library.
        ValueError: the value has no such form, for example a 3-dimensional array.
        ImportError: the conversion needs a library that is not installed.
    """
    cls: type[Any] = value.__class__
    wanted, given = library_of(name), library_of(f"{cls.__module__}.{cls.__qualname__}")
    if wanted and wanted == given:
        return value
    convert = _FROM[wanted, given]
    try:
        return convert(importlib.import_module(wanted), value)
    except (TypeError, ArithmeticError) as error:
        raise ValueError(str(error)) from error


def _columns(library: Any, value: Any) -> Any:
    if value.ndim != 2:
        raise ValueError("an array of two dimensions is needed for a table")
    return library.table({str(index): column for index, column in enumerate(value.T)})
