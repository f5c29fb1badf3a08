"""Convert tables of any library to Polars, and to file bytes.

A frame is never changed: each command returns a new one, which shares the unchanged
columns. Polars is untyped here, since it may not be installed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

from msgspec import structs

from neuraxis.assets.frames import from_pandas
from neuraxis.assets.readers import csv_format, tables
from neuraxis.errors import CommandError, needed
from neuraxis.formatting import did_you_mean, nearest, type_name

MOST_ROWS = tables.MOST_ROWS


def library() -> Any:
    """Import Polars.

    Raises:
        MissingExtra: it is not installed.
    """
    return needed("polars", "tables", "Working with tables")


def errors_for_model() -> AbstractContextManager[None]:
    """Convert Polars errors to `CommandError`, without their drawings."""
    return tables.errors_for_model(library())


def frame_of(value: Any) -> Any:
    """Return the table, or JSON rows, as a Polars data frame.

    Raises:
        CommandError: it is not a table.
        MissingExtra: Polars, or what it needs to read another library's table.
    """
    polars = library()
    package = type(value).__module__.partition(".")[0]
    if package in ("pandas", "polars") and hasattr(value, "to_frame"):
        value = value.to_frame()  # one column
    if isinstance(value, polars.DataFrame):
        return value
    try:
        with errors_for_model():
            if package in ("pandas", "pyarrow"):
                needed("pyarrow", "tables", f"Taking a table of {package}")
                if package == "pandas":
                    return from_pandas(polars, value)
                table = polars.from_arrow(value)
                return table if hasattr(table, "columns") else table.to_frame("column")
            if isinstance(value, list) and all(
                isinstance(row, dict) for row in cast("list[Any]", value)
            ):
                return (
                    polars.from_dicts(value, infer_schema_length=None)
                    if value
                    else polars.DataFrame()
                )
    except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
        first = str(error).partition("\n")[0]
        raise CommandError(f"It cannot be read as a table: {first[:300]}") from None
    raise CommandError(f"Expected a table, got {type_name(value)}.")


def parse(
    data: bytes,
    ending: str,
    separator: str,
    most: int = MOST_ROWS,
    warn: Callable[[str], None] = lambda text: None,
) -> Any:
    """Parse a file's bytes as a table; warn of text columns.

    Raises:
        CommandError: they are not a table, or have more than `most` rows.
    """
    return tables.read_frame(library(), data, ending, separator, most, warn)


def written(frame: Any, ending: str, replaces: bytes = b"") -> bytes:
    """Return the table as the bytes of a file.

    Args:
        frame: the table.
        ending: selects the format.
        replaces: the file that it replaces; a CSV file keeps its format.

    Raises:
        CommandError: the ending names no format, or it cannot hold the table.
    """
    sink = io.BytesIO()
    _check_writable(frame, ending)
    with errors_for_model():
        match ending:
            case ".csv" | ".tsv":
                options = csv_format.format_of(replaces, ending)
                frame.write_csv(sink, **structs.asdict(options))
            case ".parquet":
                frame.write_parquet(sink)
            case ".json":
                frame.write_json(sink)
            case ".ndjson" | ".jsonl":
                frame.write_ndjson(sink)
            case _:
                raise CommandError(
                    "Expected a name that ends in .csv, .tsv, .parquet, .json, "
                    f".ndjson or .jsonl, got {ending or 'a name without an ending'}."
                )
    return sink.getvalue()


def _check_writable(frame: Any, ending: str) -> None:
    """Refuse bytes in JSON, where Polars panics with a stack trace.

    Infinite numbers are refused too: Polars would write an empty cell.

    Raises:
        CommandError: a column cannot be written in this format.
    """
    polars = library()
    is_json = ending in (".json", ".ndjson", ".jsonl")
    wrong = (polars.Binary, polars.Object) if is_json else (polars.Object,)
    for column in frame:
        for part in _parts(polars, column):
            if part.dtype in wrong:
                raise CommandError(
                    f"The column {column.name!r} holds {part.dtype}, which {ending} "
                    "has no form for; select the other columns first."
                )
            if is_json and part.dtype.is_float() and part.is_infinite().any():
                raise CommandError(
                    f"The column {column.name!r} holds infinite numbers, which "
                    f"{ending} has no form for; filter them out first, or write .csv "
                    "or .parquet."
                )


def _parts(polars: Any, column: Any) -> Iterator[Any]:
    """Yield a column, and the columns inside of its lists and objects."""
    yield column
    if column.dtype in (polars.List, polars.Array):
        yield from _parts(polars, column.explode())
    elif column.dtype == polars.Struct:
        for name in column.struct.fields:
            yield from _parts(polars, column.struct.field(name))


def worded() -> tuple[Any, ...]:
    """Return the type names for text and bytes, which have no arithmetic."""
    polars = library()
    return (polars.String, polars.Categorical, polars.Enum, polars.Binary)


def check_columns(frame: Any, names: Sequence[str]) -> None:
    """Check that all columns exist.

    Raises:
        CommandError: one is missing; names the nearest and the existing ones.
    """
    columns_: list[str] = frame.columns
    for name in names:
        if name not in columns_:
            hint = did_you_mean([_named(one) for one in nearest(name, columns_)])
            omitted = f", … ({len(columns_) - 30} more)" if len(columns_) > 30 else ""
            column_list = ", ".join(map(_named, columns_[:30])) + omitted
            raise CommandError(
                f"The table has no column {name!r}.{hint} Its columns: "
                f"{column_list or 'none'}."
            )


def _named(name: str) -> str:
    """Return a column's name, quoted if it has outer blanks."""
    return name if name and name == name.strip() else repr(name)
