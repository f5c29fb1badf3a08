"""Detect a CSV file's format, so that a changed table keeps it.

A German spreadsheet writes `;` between cells and `2,5` for two and a half; a table
written with commas would open there as one column.
"""

from __future__ import annotations

import codecs
import re

from msgspec import Struct

from neuraxis.assets.readers.csv import decoded_start, utf8
from neuraxis.errors import CommandError

_SAMPLE = 65_536
"""Bytes at the start of a file that are examined."""
_CELL = re.compile(
    rb'(?:^|[;\t|\n])"?[+-]?(?:\d{1,3}(?:\.\d{3}){1,4}|\d{1,15})'
    rb'(?:(,)\d{1,15}|(\.)\d{1,15})?(?=["\r\n;\t|]|$)'
)
"""Numbers with a decimal comma or point; 1.234 may have either."""


class CsvFormat(Struct, frozen=True, kw_only=True):
    """Format of a CSV file, as arguments of Polars' `write_csv`."""

    separator: str = ","
    line_terminator: str = "\n"
    include_bom: bool = False
    decimal_comma: bool = False
    """Whether two and a half is written `2,5`."""


def format_of(data: bytes, ending: str) -> CsvFormat:
    """Return a file's format; the usual one if it has no text.

    Args:
        data: the whole file.
        ending: `.csv` or `.tsv`.
    """
    usual = CsvFormat(separator="\t" if ending == ".tsv" else ",")
    try:
        whole = utf8(data)
        start = whole[:_SAMPLE].decode(errors="ignore").encode()  # no half characters
        text, separator, _ = decoded_start(start, ending, "")
        is_converted = whole != data
    except CommandError:
        return usual
    if not text.strip():
        return usual
    if separator.encode() not in text.partition(b"\n")[0]:
        separator = usual.separator  # one column: there are no separators
    marks = {cell[1] or cell[2] for cell in _CELL.finditer(text)} - {None}
    return CsvFormat(
        separator=separator,
        line_terminator="\r\n" if b"\r\n" in text else "\n",
        # written as UTF-8, which spreadsheets recognise only by the mark
        include_bom=data.startswith(codecs.BOM_UTF8) or is_converted,
        decimal_comma=separator != "," and marks == {b","},
    )
