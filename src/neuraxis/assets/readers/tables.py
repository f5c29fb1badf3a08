"""Read a table file into a Polars data frame.

Attachments and `read_table` share this reader, so both give the same table. The
caller passes Polars, since it may not be installed.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from neuraxis.assets.readers import limits
from neuraxis.assets.readers.csv import csv_frame, ragged_line, utf8
from neuraxis.assets.readers.json import json_frame
from neuraxis.errors import CommandError

MOST_ROWS = 20_000_000
"""Maximum rows read or joined: a small file may unpack to more."""
ENDINGS = (".csv", ".tsv", ".parquet", ".json", ".ndjson", ".jsonl")
_ADVICE = re.compile(r"( Consider | You m| If this is the case).*")
"""Polars' advice for programmers about options that no command has."""


@contextmanager
def errors_for_model(polars: Any) -> Generator[None]:
    """Convert Polars errors to `CommandError`, without their drawings."""
    try:
        yield
    except polars.exceptions.PolarsError as error:
        text = str(error).partition("\n\nThis error occurred")[0]
        message = _ADVICE.sub("", " ".join(text.split()))
        raise CommandError(message[:400].rstrip()) from None
    except BaseException as error:
        # A broken file can make Polars panic with an exception that is no `Exception`
        # and would end the worker.
        if type(error).__name__ != "PanicException":
            raise
        first = str(error).partition("\n")[0]
        raise CommandError(f"Polars could not do it: {first[:300]}") from None


def _ignore(text: str) -> None:
    """Do nothing."""


def read_frame(
    polars: Any,
    data: bytes,
    ending: str,
    separator: str = "",
    most: int = MOST_ROWS,
    warn: Callable[[str], None] = _ignore,
) -> Any:
    """Return the table in a file's bytes; `warn` receives warnings.

    Raises:
        CommandError: they are not a table, or have more than `most` rows.
    """
    source = io.BytesIO(data)
    with errors_for_model(polars):
        match ending:
            case ".csv" | ".tsv" | ".txt":
                try:
                    frame = csv_frame(polars, data, ending, separator, most, warn)
                except polars.exceptions.PolarsError:
                    if problem := ragged_line(data, ending, separator):
                        raise CommandError(problem) from None
                    raise
            case ".parquet":
                _check_cells(polars, polars.scan_parquet(source), len(data), most)
                source.seek(0)
                frame = polars.read_parquet(source, n_rows=most + 1)
            case ".json" | ".ndjson" | ".jsonl":
                data = utf8(data).removeprefix(codecs.BOM_UTF8)
                frame = json_frame(polars, data, ending, most, warn)
            case _:
                hint = (
                    " Ask the user to save it as CSV."
                    if ending in limits.SHEETS
                    else ""
                )
                raise CommandError(
                    "Expected a file that ends in .csv, .tsv, .parquet, .json, "
                    f".ndjson or .jsonl, got {ending or 'a name without an ending'}."
                    f"{hint}"
                )
    limits.check_rows(frame.height, most)
    return frame


def _check_cells(polars: Any, lazy: Any, size: int, most: int) -> None:
    """Refuse a Parquet file that declares too many rows or cells."""
    rows: int = lazy.select(polars.len()).collect().item()
    limits.check_rows(rows, most)
    limits.check(rows, len(lazy.collect_schema()), size, limits.PARQUET_CELL)
