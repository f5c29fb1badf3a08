"""Limits of tables: their formats, and their size in memory.

A small file may unpack to gigabytes.

A table is refused if it would need more than 200 MB and 20 times its file's size.
"""

from __future__ import annotations

from neuraxis.errors import CommandError

SHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
"""Endings of spreadsheets, which are not supported."""
MOST_COLUMNS = 5000
"""Maximum columns of a table; Polars needs some kilobytes and 100 µs for each."""
_BYTES, _TIMES = 200_000_000, 20
JSON_CELL, PARQUET_CELL = 20, 8
"""Bytes of memory per cell while reading."""


def most_cells(size: int, cell_bytes: int) -> int:
    """Return how many cells a file of `size` bytes may have."""
    return max(_BYTES, _TIMES * size) // cell_bytes


def check(rows: int, columns: int, size: int, cell_bytes: int) -> None:
    """Refuse a table that would take too much memory.

    Raises:
        CommandError: it has too many columns or cells.
    """
    check_columns(columns)
    limit = most_cells(size, cell_bytes)
    if rows * columns > limit:
        raise CommandError(
            f"The table has {rows * columns} cells in a file of {size} bytes; at most "
            f"{limit} are read. Split the file, or leave columns out."
        )


def check_columns(columns: int) -> None:
    """Refuse a table with too many columns.

    Raises:
        CommandError: it has more than `MOST_COLUMNS`.
    """
    if columns > MOST_COLUMNS:
        raise CommandError(
            f"The table has more than {MOST_COLUMNS} columns. Write it with one row "
            "for each entry instead of one column."
        )


def check_rows(rows: int, most: int) -> None:
    """Refuse a table with too many rows.

    Raises:
        CommandError: it has more than `most`.
    """
    if rows > most:
        raise CommandError(f"The table has more than {most} rows; split the file.")
