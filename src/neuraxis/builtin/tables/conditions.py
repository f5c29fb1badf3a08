"""Build a Polars expression from a condition `{column, op, value}`.

There is no expression language: an operation is a word listed in config.yaml, and a
value is data. A value that cannot be compared with its column is refused before Polars
gets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from neuraxis.builtin.tables import frames
from neuraxis.errors import CommandError
from neuraxis.formatting import quote, type_name
from neuraxis.specs import Json

_TEXTS = ("contains", "starts_with", "ends_with")


def condition(frame: Any, given: Mapping[str, Json]) -> Any:
    """Return the expression of one condition.

    Raises:
        CommandError: there is no such column, or the value does not fit it.
    """
    polars = frames.library()
    name, op = str(given["column"]), str(given["op"])
    frames.check_columns(frame, [name])
    column, kind = polars.col(name), frame.schema[name]
    if kind.is_float():
        column = column.fill_nan(None)  # shown as null, too
    value = given.get("value")
    if op == "is_empty":
        return column.is_not_null() if value is False else column.is_null()
    if value is None:
        raise CommandError(
            f"{name} {op}: expected a value; for empty cells use is_empty."
        )
    if op in ("in", "not_in"):
        if not isinstance(value, list) or not value:
            raise CommandError(f"{name} {op}: expected a list of values.")
        values = [_literal(name, kind, item) for item in cast("list[Json]", value)]
        expression = _among(column, kind, values)
        return expression if op == "in" else ~expression
    if op in _TEXTS:
        if not isinstance(value, str) or not _is_text(kind):
            raise CommandError(
                f"{name} {op}: expected a string and a column of strings, got "
                f"{quote(value)} and a column of {kind}."
            )
        texts = column.cast(polars.String).str
        if op == "contains":
            return texts.contains(value, literal=True)
        return (
            texts.starts_with(value)
            if op == "starts_with"
            else (texts.ends_with(value))
        )
    return getattr(column, op)(polars.lit(_literal(name, kind, value)))


def _among(column: Any, kind: Any, values: list[Any]) -> Any:
    """Test whether a cell is one of the values; 3 equals 3.0."""
    polars = frames.library()
    if kind.is_integer():  # 2.5 equals none of the integers.
        values = [item for item in values if isinstance(item, int)]
    elif kind.is_numeric() and any(isinstance(item, float) for item in values):
        column, kind = column.cast(polars.Float64), polars.Float64
    # strict=False: a value outside the column's type occurs in none of its cells.
    series = polars.Series(values, dtype=kind, strict=False).drop_nulls()
    return column.is_in(series.implode())


def _is_text(kind: Any) -> bool:
    polars = frames.library()
    return kind in (polars.String, polars.Categorical, polars.Enum)


def _literal(name: str, kind: Any, value: Json) -> Any:
    """Return the value in the column's type.

    Raises:
        CommandError: it cannot be compared with the column.
    """
    polars = frames.library()
    if isinstance(value, str) and kind.is_temporal():
        return _moment(name, kind, value)
    fits = (
        isinstance(value, bool)
        if kind == polars.Boolean
        else isinstance(value, int | float) and not isinstance(value, bool)
        if kind.is_numeric()
        else isinstance(value, str) and _is_text(kind)
    )
    if not fits:
        raise CommandError(
            f"{name}: the column holds {kind}; {type_name(value)} {quote(value)} "
            "cannot be compared with it."
        )
    if kind.is_integer() and isinstance(value, float) and value.is_integer():
        return int(value)  # A float would merge different large integers.
    return value


def _moment(name: str, kind: Any, text: str) -> Any:
    polars = frames.library()
    written = polars.Series([text]).str
    try:
        if kind == polars.Date:
            return written.to_date(strict=True)[0]
        if kind == polars.Time:
            return written.to_time(strict=True)[0]
        moment = written.to_datetime(strict=True, time_zone=kind.time_zone)[0]
    except (polars.exceptions.PolarsError, AttributeError):
        raise CommandError(
            f"{name}: expected {kind} as ISO text such as 2026-01-31, got "
            f"{quote(text)}."
        ) from None
    if moment.tzinfo and not kind.time_zone:
        raise CommandError(
            f"{name}: the column has no time zone; leave it out of {quote(text)}."
        )
    return moment
