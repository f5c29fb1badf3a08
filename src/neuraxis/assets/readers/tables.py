"""The bytes of a file flow in; the table that they are flows out, a Polars data frame.

A file that a person attaches and one that `read_table` reads are the same table, so
both are read here. Polars flows in too, since it may not be installed.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from neuraxis.assets.readers import limits
from neuraxis.assets.readers.csv import csv_frame, utf8
from neuraxis.assets.readers.json import json_frame
from neuraxis.errors import CommandError

MOST_ROWS = 20_000_000
"""Rows of a table that is read or joined: a small file may unpack to more."""
ENDINGS = (".csv", ".tsv", ".parquet", ".json", ".ndjson", ".jsonl")
_ADVICE = re.compile(r"( Consider | You m| If this is the case).*")
"""What Polars tells a programmer to try: options that no command has."""


@contextmanager
def told(polars: Any) -> Generator[None]:
    """What Polars refuses is told to the model, without its drawings."""
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


def _untold(text: str) -> None:
    """Tell nobody."""


def read_frame(
    polars: Any,
    data: bytes,
    ending: str,
    separator: str = "",
    most: int = MOST_ROWS,
    warn: Callable[[str], None] = _untold,
) -> Any:
    """The table that a file's bytes are; `warn` is told what is not as one may expect.

    Raises:
        CommandError: they are none, or more than `most` rows.
    """
    source = io.BytesIO(data)
    with told(polars):
        match ending:
            case ".csv" | ".tsv" | ".txt":
                frame = csv_frame(polars, data, ending, separator, most, warn)
            case ".parquet":
                _check_cells(polars, polars.scan_parquet(source), len(data))
                source.seek(0)
                frame = polars.read_parquet(source, n_rows=most + 1)
            case ".json" | ".ndjson" | ".jsonl":
                data = utf8(data).removeprefix(codecs.BOM_UTF8)
                frame = json_frame(polars, data, ending, most, warn)
            case _:
                raise CommandError(
                    "Expected a file that ends in .csv, .tsv, .parquet, .json, "
                    f".ndjson or .jsonl, got {ending or 'a name without an ending'}."
                )
    if frame.height > most:
        raise CommandError(f"The table has more than {most} rows; split the file.")
    return frame


def _check_cells(polars: Any, lazy: Any, size: int) -> None:
    """A Parquet file of a few kilobytes can say that it holds billions of cells."""
    rows: int = lazy.select(polars.len()).collect().item()
    limits.check(rows, len(lazy.collect_schema()), size, limits.PARQUET_CELL)
