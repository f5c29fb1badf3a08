"""Tables of any library flow in, a Polars data frame flows out; and bytes to frames.

A frame is never changed: each command gives a new one, which shares the columns it
did not change. Polars is untyped here, since it may not be installed.
"""

from __future__ import annotations

import io
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from neuraxis.assets.attachments import separator_of
from neuraxis.builtin.extras import needed
from neuraxis.errors import CommandError
from neuraxis.sentences import nearest, type_name

MOST_ROWS = 20_000_000
"""Rows of a table that is read or joined: a small file may unpack to more."""
MOST_CELLS = 200_000_000


def library() -> Any:
    """Polars.

    Raises:
        MissingExtra: it is not installed.
    """
    return needed("polars", "tables", "Working with tables")


@contextmanager
def told() -> Generator[None]:
    """What Polars refuses is told to the model, without its drawings."""
    polars = library()
    try:
        yield
    except polars.exceptions.PolarsError as error:
        text = str(error).partition("\n\nThis error occurred")[0]
        raise CommandError(" ".join(text.split())[:400]) from None
    except BaseException as error:
        # a broken file can make the Rust side give up by an exception of its own,
        # which is no `Exception` and would end the worker
        if type(error).__name__ != "PanicException":
            raise
        first = str(error).partition("\n")[0]
        raise CommandError(f"Polars could not do it: {first[:300]}") from None


def frame_of(value: Any) -> Any:
    """The table as a Polars data frame; rows of JSON are taken too.

    Raises:
        CommandError: it is no table.
        MissingExtra: Polars, or what it needs to read another library's table.
    """
    polars = library()
    if isinstance(value, polars.DataFrame):
        return value
    package = type(value).__module__.partition(".")[0]
    with told():
        if package in ("pandas", "pyarrow"):
            needed("pyarrow", "tables", f"Taking a table of {package}")
            return (
                polars.from_pandas(value)
                if package == "pandas"
                else polars.from_arrow(value)
            )
        if isinstance(value, list) and all(
            isinstance(row, dict) for row in cast("list[Any]", value)
        ):
            return (
                polars.from_dicts(value, infer_schema_length=None)
                if value
                else (polars.DataFrame())
            )
    raise CommandError(f"Expected a table, got {type_name(value)}.")


def parse(data: bytes, ending: str, separator: str, most: int = MOST_ROWS) -> Any:
    """The table that a file's bytes are.

    Raises:
        CommandError: they are none, or more than `most` rows.
    """
    polars = library()
    source = io.BytesIO(data)
    with told():
        match ending:
            case ".csv" | ".tsv" | ".txt":
                frame = polars.read_csv(
                    source,
                    separator=separator
                    or ("\t" if ending == ".tsv" else separator_of(data)),
                    try_parse_dates=True,
                    infer_schema_length=10_000,
                    n_rows=most + 1,
                )
            case ".parquet":
                _check_cells(polars.scan_parquet(source))
                source.seek(0)
                frame = polars.read_parquet(source, n_rows=most + 1)
            case ".json":
                frame = polars.read_json(source, infer_schema_length=None)
            case ".ndjson" | ".jsonl":
                frame = polars.read_ndjson(source, infer_schema_length=None)
            case _:
                raise CommandError(
                    "Expected a file that ends in .csv, .tsv, .parquet, .json, "
                    f".ndjson or .jsonl, got {ending or 'a name without an ending'}."
                )
    if frame.height > most:
        raise CommandError(f"The table has more than {most} rows; split the file.")
    return frame


def _check_cells(lazy: Any) -> None:
    """A Parquet file of a few kilobytes can say that it holds billions of cells."""
    polars = library()
    rows: int = lazy.select(polars.len()).collect().item()
    cells = rows * len(lazy.collect_schema())
    if cells > MOST_CELLS:
        raise CommandError(f"The table has {cells} cells; at most {MOST_CELLS}.")


def written(frame: Any, ending: str) -> bytes:
    """The table as the bytes of a file.

    Raises:
        CommandError: the ending names no format, or it cannot hold the table.
    """
    sink = io.BytesIO()
    _check_writable(frame, ending)
    with told():
        match ending:
            case ".csv":
                frame.write_csv(sink)
            case ".tsv":
                frame.write_csv(sink, separator="\t")
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
    """JSON has no bytes, and Polars breaks off with a stack trace where it meets some.

    Raises:
        CommandError: a column cannot be written in this format.
    """
    polars = library()
    wrong = (polars.Binary, polars.Object)
    if ending not in (".json", ".ndjson", ".jsonl"):
        wrong = (polars.Object,)
    for name, kind in frame.schema.items():
        if kind in wrong:
            raise CommandError(
                f"The column {name!r} holds {kind}, which {ending} has no form for; "
                "select the other columns first."
            )


def check_columns(frame: Any, names: Sequence[str]) -> None:
    """All columns are there.

    Raises:
        CommandError: it names the nearest ones, and those there are.
    """
    known: list[str] = frame.columns
    for name in names:
        if name not in known:
            close = nearest(name, known)
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            more = f", … ({len(known) - 30} more)" if len(known) > 30 else ""
            listed = ", ".join(known[:30]) + more
            raise CommandError(
                f"The table has no column {name!r}.{hint} Its columns: "
                f"{listed or 'none'}."
            )
