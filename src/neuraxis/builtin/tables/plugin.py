"""Read, select, filter, group, join and write tables with Polars."""

from __future__ import annotations

from itertools import count
from typing import Any, cast

from neuraxis.builtin import workspace
from neuraxis.builtin.tables import frames, views
from neuraxis.builtin.tables.conditions import condition
from neuraxis.errors import CommandError
from neuraxis.plugins.context import Context
from neuraxis.specs import Json

FILE_BYTES = 200_000_000
MOST_CELLS = 10_000_000
"""Maximum cells of a join that has more rows than its tables."""
DESCRIBED = 60
"""Maximum columns in one description."""
LONGEST = 60
"""Maximum characters of a column's minimum and maximum text."""
_OF_NUMBERS = ("sum", "mean", "median", "std")


def read_table(
    file_path: str,
    context: Context,
    columns: list[str] | None = None,
    separator: str = "",
) -> Any:
    """Read a workspace file as a table; the ending selects the format."""
    frames.library()
    limit = workspace.number(context, "tables.file_bytes", FILE_BYTES)
    data = workspace.read(context, file_path, limit)
    max_rows = workspace.number(context, "tables.rows", frames.MOST_ROWS)
    ending = workspace.ending(file_path)
    try:
        frame = frames.parse(data, ending, separator, max_rows, context.warn)
    except CommandError as error:
        raise CommandError(f"{file_path!r}: {error}") from None
    return select_columns(frame, columns) if columns else frame


def select_columns(table: Any, columns: list[str]) -> Any:
    """Return the columns in the requested order."""
    frame = frames.frame_of(table)
    frames.check_columns(frame, columns)
    with frames.errors_for_model():
        return frame.select(columns)


def filter_rows(
    table: Any, conditions: list[dict[str, Json]], match: str = "all"
) -> Any:
    """Return the rows that meet all conditions, or any of them."""
    frame = frames.frame_of(table)
    with frames.errors_for_model():
        tests = [condition(frame, condition_) for condition_ in conditions]
    polars = frames.library()
    joined = (
        polars.all_horizontal(tests)
        if match == "all"
        else (polars.any_horizontal(tests))
    )
    with frames.errors_for_model():
        return frame.filter(joined)


def sort_rows(table: Any, columns: list[str], descending: bool = False) -> Any:
    """Sort rows stably; empty cells come last."""
    frame = frames.frame_of(table)
    frames.check_columns(frame, columns)
    with frames.errors_for_model():
        return frame.sort(
            columns, descending=descending, nulls_last=True, maintain_order=True
        )


def group_rows(table: Any, by: list[str], aggregations: list[dict[str, Json]]) -> Any:
    """Group rows; groups stay in the order of first appearance."""
    frame = frames.frame_of(table)
    frames.check_columns(frame, by)
    expressions = [_aggregation(frame, given) for given in aggregations]
    with frames.errors_for_model():
        if not by:
            return frame.select(expressions)
        return frame.group_by(by, maintain_order=True).agg(expressions)


def _aggregation(frame: Any, given: dict[str, Json]) -> Any:
    polars = frames.library()
    column, function = given.get("column"), str(given["function"])
    if column is None:
        if function != "count":
            raise CommandError(f"{function}: expected the column it is made of.")
        return polars.len().alias(str(given.get("name") or "count"))
    frames.check_columns(frame, [str(column)])
    kind = frame.schema[str(column)]
    if function in _OF_NUMBERS and (kind.is_nested() or kind in frames.worded()):
        raise CommandError(
            f"{function}: the column {column!r} holds {kind}; expected numbers."
        )
    expression = _made(polars, polars.col(str(column)), function, kind)
    return expression.alias(str(given.get("name") or f"{column}_{function}"))


def _made(polars: Any, column: Any, function: str, kind: Any) -> Any:
    if function == "distinct":
        return column.drop_nulls().n_unique()
    if function == "sum" and kind in (polars.Int64, polars.UInt64):
        # Polars sums in 64 bits and does not report an overflow.
        return column.cast(polars.Int128).sum().cast(kind)
    if function == "sum" and kind == polars.Int128:
        return column.cast(polars.Decimal(38, 0)).sum().cast(kind)
    # The schema's enum allows no other names.
    return getattr(column, function)()


def join_tables(
    left: Any,
    right: Any,
    on: list[str],
    right_on: list[str] | None = None,
    how: str = "inner",
) -> Any:
    """Join two tables where their key columns are equal."""
    first, second = frames.frame_of(left), frames.frame_of(right)
    right_keys = right_on or on
    if len(right_keys) != len(on):
        raise CommandError("right_on: expected as many columns as in on.")
    frames.check_columns(first, on)
    frames.check_columns(second, right_keys)
    with frames.errors_for_model():
        _check_growth(first, second, on, right_keys)
        return first.join(
            second,
            left_on=on,
            right_on=right_keys,
            how=how,
            suffix=_suffix(first.columns, second.columns),
            maintain_order="left_right",
            coalesce=True if how in ("left", "full") else None,
        )


def _suffix(left: list[str], right: list[str]) -> str:
    """Return a free suffix for duplicate column names of the right table.

    The left table may have such a column from an earlier join.
    """
    shared, used = set(left) & set(right), {*left, *right}
    suffixes = (f"_right{number if number > 1 else ''}" for number in count(1))
    return next(
        suffix
        for suffix in suffixes
        if not any(f"{name}{suffix}" in used for name in shared)
    )


def _check_growth(first: Any, second: Any, on: list[str], others: list[str]) -> None:
    """Refuse a join whose repeated keys would exceed the memory."""
    polars = frames.library()
    keys = "".join((*on, *others))  # longer than any name, so unique
    left = first.group_by(on).agg(polars.len().alias(f"left {keys}"))
    right = second.group_by(others).agg(polars.len().alias(f"right {keys}"))
    joined = left.join(right, left_on=on, right_on=others, how="inner")
    left_count, right_count = polars.col(f"left {keys}"), polars.col(f"right {keys}")
    rows = joined.select((left_count.cast(polars.Int64) * right_count).sum()).item()
    grows = rows > max(first.height, second.height)
    cells = rows * (first.width + second.width)
    if rows > frames.MOST_ROWS or (grows and cells > MOST_CELLS):
        raise CommandError(
            f"The join would have {rows} rows and {cells} cells; at most "
            f"{frames.MOST_ROWS} rows are made, and {MOST_CELLS} cells where it has "
            "more rows than its tables: join on columns that tell the rows apart, or "
            "group first."
        )


def describe_table(table: Any, columns: list[str] | None = None) -> dict[str, Json]:
    """Describe rows and columns, with each column's type and range."""
    frame = frames.frame_of(table)
    frames.check_columns(frame, columns or ())
    names: list[str] = columns or frame.columns
    column_descriptions: list[Json] = []
    with frames.errors_for_model():
        for name in names[:DESCRIBED]:
            column_descriptions.append(_column(frame, name))
    result: dict[str, Json] = {"rows": frame.height, "columns": column_descriptions}
    if len(names) > DESCRIBED:
        result["more_columns"] = names[DESCRIBED : DESCRIBED + 100]
    return result


def _column(frame: Any, name: str) -> dict[str, Json]:
    column = frame[name]
    if column.dtype.is_float():
        column = column.fill_nan(None)  # shown as null, too
    description: dict[str, Json] = {
        "name": name,
        "type": str(column.dtype)[:60],
        "empty": column.null_count(),
    }
    if column.dtype.is_nested() or column.dtype == frames.library().Object:
        return description
    description["distinct"] = column.drop_nulls().n_unique()
    for statistic in ("min", "max", "mean", "std"):
        if statistic in ("min", "max") or column.dtype.is_numeric():
            description[statistic] = _short_value(getattr(column, statistic)())
    return description


def _short_value(value: Any) -> Json:
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[:LONGEST]}… ({len(value)} characters)"
    return views.cell(value)


def table_rows(
    table: Any, start: int = 0, count: int = 20, columns: list[str] | None = None
) -> dict[str, Json]:
    """Return rows as JSON, as many as fit into a message."""
    return views.rows_of(frames.frame_of(table), start, count, columns)


def write_table(table: Any, file_path: str, context: Context) -> dict[str, Json]:
    """Write a table into the workspace; the ending selects the format."""
    frame = frames.frame_of(table)
    replaced = workspace.existing(context, file_path, FILE_BYTES)
    data = frames.written(frame, workspace.ending(file_path), replaced)
    path = workspace.write(context, file_path, data)
    return cast(
        "dict[str, Json]", {"file_path": path, "rows": frame.height, "bytes": len(data)}
    )
