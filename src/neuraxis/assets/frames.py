"""Convert tables and arrays between pandas, Polars, PyArrow and NumPy."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from neuraxis.schema.python_values import imported_classes

_CLASSES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table",
            "numpy": "ndarray"}  # fmt: skip
_FROM: Mapping[tuple[str, str], Callable[[Any, Any], Any]] = {
    ("pandas", "polars"): lambda library, value: _to_pandas(library, value),
    ("pandas", "pyarrow"): lambda library, value: _to_pandas(library, value),
    ("pandas", "numpy"): lambda library, value: library.DataFrame(value),
    ("polars", "pandas"): lambda library, value: from_pandas(library, value),
    ("polars", "pyarrow"): lambda library, value: library.from_arrow(value),
    ("polars", "numpy"): lambda library, value: library.from_numpy(value),
    ("pyarrow", "pandas"): lambda library, value: library.Table.from_pandas(value),
    ("pyarrow", "polars"): lambda library, value: value.to_arrow(),
    ("pyarrow", "numpy"): lambda library, value: _columns(library, value),
    ("numpy", "pandas"): lambda library, value: _to_numpy(value),
    ("numpy", "polars"): lambda library, value: _to_numpy(value),
    ("numpy", "pyarrow"): lambda library, value: _to_numpy(value),
}
"""(wanted library, given library) -> conversion of a value, with the wanted library."""
_EXACT = 2**53
"""Largest integer range that floating point represents exactly."""


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
    except (ValueError, ImportError):
        raise
    except Exception as error:  # each library has classes of its own
        raise ValueError(str(error)) from error


def from_pandas(polars: Any, frame: Any) -> Any:
    """Return a pandas frame as a Polars frame.

    Pandas puts group keys into the index, and Polars has no index. Periods and
    intervals become texts: Polars would count the months since 1970.
    """
    frame = _with_index(frame)
    for name, kind in frame.dtypes.items():
        inner = getattr(getattr(kind, "categories", None), "dtype", kind)
        if str(inner).startswith(("period[", "interval[")):
            texts = frame[name].map(str, na_action="ignore")
            frame = frame.copy(deep=False)  # `assign` takes names that are texts only
            frame[name] = texts
    return polars.from_pandas(frame)


def _with_index(frame: Any) -> Any:
    """Return a pandas frame with its index as a column, if meaningful."""
    index, columns = frame.index, set(frame.columns)
    levels = [
        level
        for level, name in enumerate(index.names)
        if name not in columns and (name is not None or index.nlevels > 1)
    ]
    unnamed = index.nlevels == 1 and index.names[0] is None
    if unnamed and index.inferred_type not in ("integer", "empty"):
        levels = [0]
    return frame.reset_index(level=levels) if levels else frame


def _to_pandas(pandas: Any, value: Any) -> Any:
    """Return a frame of pandas; large integers beside empty cells stay exact."""
    frame = value.to_pandas()
    schema = value.schema
    if hasattr(schema, "items"):
        kinds = schema.items()
    else:
        kinds = zip(schema.names, schema.types, strict=True)
    for name, kind in kinds if frame.columns.is_unique else ():
        words = {"int64": "Int64", "uint64": "UInt64"}.get(str(kind).lower())
        if words and name in frame and _is_rounded(frame[name]):
            column = value[name]
            cells = getattr(column, "to_pylist", None) or column.to_list
            frame[name] = pandas.array(cells(), dtype=words)
    return frame


def _is_rounded(column: Any) -> bool:
    return column.dtype.kind == "f" and bool((column.abs() >= _EXACT).any())


def _to_numpy(value: Any) -> Any:
    """Return an array.

    Raises:
        ValueError: it would round integers, since an array has one type.
    """
    if not hasattr(value, "to_numpy"):  # a table of PyArrow
        value = _to_pandas(importlib.import_module("pandas"), value)
    array = value.to_numpy()
    for at, kind in enumerate(value.dtypes if array.dtype.kind == "f" else ()):
        if str(kind).lower() not in ("int64", "uint64"):
            continue
        column = value.iloc[:, at] if hasattr(value, "iloc") else value.to_series(at)
        if max(abs(float(column.max() or 0)), abs(float(column.min() or 0))) >= _EXACT:
            raise ValueError(
                f"the column {column.name!r} holds integers of more than 15 digits, "
                "which an array of fractions would round"
            )
    return array


def _columns(library: Any, value: Any) -> Any:
    if value.ndim != 2:
        raise ValueError("an array of two dimensions is needed for a table")
    return library.table({str(index): column for index, column in enumerate(value.T)})
