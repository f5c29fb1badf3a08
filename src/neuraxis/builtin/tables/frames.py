"""Tables of any library flow in, a Polars data frame flows out; and bytes to frames.

A frame is never changed: each command gives a new one, which shares the columns it
did not change. Polars is untyped here, since it may not be installed.
"""

from __future__ import annotations

import codecs
import io
import re
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
_TYPED_BY = 10_000
"""Rows that the types of a CSV file's columns are guessed from, before all are."""
_QUOTED = re.compile(rb'"[^"]*"')
_ADVICE = re.compile(r"( Consider | You m| If this is the case).*")
"""What Polars tells a programmer to try: options that no command has."""
_COMMA = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$"


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
        said = _ADVICE.sub("", " ".join(text.split()))
        raise CommandError(said[:400].rstrip()) from None
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
                frame = _csv(_utf8(data), separator, ending, most)
            case ".parquet":
                _check_cells(polars.scan_parquet(source))
                source.seek(0)
                frame = polars.read_parquet(source, n_rows=most + 1)
            case ".json":
                frame = polars.read_json(source, infer_schema_length=None)
            case ".ndjson" | ".jsonl":
                data = data.removeprefix(codecs.BOM_UTF8)
                # an empty table is an empty file
                frame = (
                    polars.read_ndjson(io.BytesIO(data), infer_schema_length=None)
                    if data.strip()
                    else polars.DataFrame()
                )
            case _:
                raise CommandError(
                    "Expected a file that ends in .csv, .tsv, .parquet, .json, "
                    f".ndjson or .jsonl, got {ending or 'a name without an ending'}."
                )
    if frame.height > most:
        raise CommandError(f"The table has more than {most} rows; split the file.")
    return frame


def _csv(data: bytes, separator: str, ending: str, most: int) -> Any:
    polars = library()
    if not separator:
        # a separator within quotes separates nothing
        plain = _QUOTED.sub(b"", data[:65_536])
        separator = "\t" if ending == ".tsv" else separator_of(plain)

    def read(rows: int | None) -> Any:
        return polars.read_csv(
            data,
            separator=separator,
            try_parse_dates=True,
            infer_schema_length=rows,
            n_rows=most + 1,
        )

    try:
        frame = read(_TYPED_BY)
    except polars.exceptions.ComputeError:
        # a later row may be what the first ones did not let expect: 1.5 after integers
        frame = read(None)
    return frame if separator == "," else _decimal_commas(frame)


def _utf8(data: bytes) -> bytes:
    """The text in UTF-8, as Polars takes it; spreadsheets also save in others.

    Raises:
        CommandError: it is in none that we know.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace").encode()
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for at in range(0, len(data), 1 << 20):  # no second copy of a large file
            decoder.decode(data[at : at + (1 << 20)])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        try:
            return data.decode("cp1252").encode()
        except UnicodeDecodeError:
            raise CommandError(
                "The file is no text: neither in UTF-8 nor in Windows-1252."
            ) from None
    return data


def _decimal_commas(frame: Any) -> Any:
    """Columns of texts such as 2,5 and 1.234,50 as numbers.

    Not where each comma has three digits after it: 1,234 may be a thousand.
    """
    polars = library()
    texts = [name for name, kind in frame.schema.items() if kind == polars.String]
    made: list[Any] = []
    for name in texts:
        column = polars.col(name).str
        numbers = column.contains(_COMMA).all()
        clear = column.contains(r",(\d{1,2}|\d{4,})$").any()
        if frame.select(numbers & clear).item():
            bare = column.replace_all(".", "", literal=True).str
            made.append(bare.replace(",", ".", literal=True).cast(polars.Float64))
    return frame.with_columns(made) if made else frame


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


def worded() -> tuple[Any, ...]:
    """The types of texts and bytes, which nothing is computed from."""
    polars = library()
    return (polars.String, polars.Categorical, polars.Enum, polars.Binary)


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
