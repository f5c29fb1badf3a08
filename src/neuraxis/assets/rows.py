"""Read the first rows of a table or a list of objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

ROWS = 20
"""Maximum rows."""


def rows_of(value: Any) -> tuple[list[str], list[Sequence[Any]], int] | None:
    """Return names, first rows and row count of a table, or None.

    Duck-typed: no library is imported for it.
    """
    package = type(value).__module__.partition(".")[0]
    if package == "polars" and hasattr(value, "iter_rows"):
        return list(value.columns), value.head(ROWS).rows(), value.height
    if package == "pandas" and hasattr(value, "itertuples"):
        rows = list(value.head(ROWS).itertuples(index=False, name=None))
        return [str(name) for name in value.columns], rows, len(value)
    if package == "pyarrow" and hasattr(value, "to_pylist"):
        names = cast("list[str]", getattr(value, "column_names", []))
        first = (
            [part.to_pylist() for part in value.slice(0, ROWS).columns] if names else []
        )
        first_rows: list[Sequence[Any]] = list(zip(*first, strict=True))
        return (names, first_rows, value.num_rows) if names else None
    return _json_rows(value) if isinstance(value, list) else None


def _json_rows(given: Any) -> tuple[list[str], list[Sequence[Any]], int] | None:
    """Return a list of objects with equal fields as a table."""
    items = cast("list[Any]", given)
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    rows = cast("list[dict[str, Any]]", items)
    names = list(rows[0])
    if not names or any(list(row) != names for row in rows):
        return None
    return names, [tuple(row.values()) for row in rows[:ROWS]], len(rows)
