"""Read CSV bytes into a Polars data frame without losing anything.

Polars infers the column types, then each column that is not text is read as text again:
if its type could not restore the cells (00123, a phone number, an id of twenty digits,
a two-digit year), or if Polars had to guess (03/04/2026), it stays text. The caller
passes Polars, since it may not be installed.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

from neuraxis.assets.readers import limits
from neuraxis.errors import CommandError
from neuraxis.formatting import counted, listed, quote
from neuraxis.parsing.encodings import MARKS, mark_of

_TYPED_BY = 10_000
"""Rows used to infer column types before all rows are used."""
_MISFITS = 40
"""Maximum re-reads: one for each column that turns out to be text."""
_AT_ONCE = 8
"""Maximum columns in memory as text at a time, or an eighth of them."""
_READINGS = 8
_CELLS = 5
"""Maximum cells of a line that an error quotes."""
_WINDOWS = "neuraxis-windows-1252"
"""Name of the error handler for bytes that are no UTF-8."""
_QUOTED = re.compile(rb'"[^"]*"')
_DECLARES_SEPARATOR = re.compile(rb'"?sep=([,;|\t])"?\r?\n', re.IGNORECASE)
"""First line that declares a separator, as Excel reads and writes it."""
_MISFIT = re.compile(r"as dtype `(.+?)` at column '(.*?)' \(column number", re.DOTALL)
_COMMA = r"^[+-]?(0|[1-9]\d{0,14}|[1-9]\d{0,2}(\.\d{3}){1,4})(,\d+)?$"
_CODE = r"^[+-]?0\d|^\+\d{7}|^\d+E\d+$"
"""Pattern of codes written as numbers: postal codes, phone numbers, 12E4."""
_LONG = r"^[+-]?\d{16,}$"
_THOUSANDS = r"^[+-]?([1-9]\d{0,2}(\.\d{3})+|\d{1,3})$"
_NANOSECONDS = r"\.\d{6}\d*[1-9]"
_DAY_OR_MONTH = r"^\d{1,2}[/-]\d{1,2}[/-]"


def csv_frame(
    polars: Any,
    data: bytes,
    ending: str,
    separator: str,
    most: int,
    warn: Callable[[str], None] = lambda text: None,
) -> Any:
    """Return the table, with at most one row more than `most`.

    Args:
        polars: the library.
        data: the whole file.
        ending: `.tsv` is separated by tabs.
        separator: separator of the cells; inferred if empty.
        most: maximum number of rows.
        warn: receives a warning if the table differs from the file.

    Raises:
        CommandError: it is no text, or has clearly too many rows.
        polars.exceptions.PolarsError: it is no table.
    """
    data, separator, _ = decoded_start(data, ending, separator)
    if not data.strip():
        raise CommandError(
            "expected a first line with the names of the columns, got an empty file. "
            "Name another file."
        )
    end = data.find(b"\n") if b"\n" in data else len(data)
    limits.check_columns(data.count(separator.encode(), 0, end) + 1)
    data = _without_blank_lines(data, separator)
    if b'"' not in data:  # each line but the first, and perhaps a blank one, is a row
        limits.check_rows(data.count(b"\n") - 2, most)
    spaced = _is_spaced(data, separator)
    if spaced:
        warn("The blanks after the separators are left out.")
    if spaced or _has_loose_quote(data, separator):
        data = _quoted(data, separator, spaced)
    try:
        frame = _typed(polars, data, separator, most)
    except polars.exceptions.PolarsError:
        if b'"' not in data:
            raise
        mended = _quoted(data, separator, spaced)
        if mended == data:
            raise
        data = mended
        frame = _typed(polars, data, separator, most)
    if short := _short_rows(frame, data, separator):
        warn(f"Rows with fewer cells than the first line: {short}; the rest is empty.")
    exact = _lossless_columns(polars, frame, data, separator, most, warn)
    frame = _trimmed(frame.with_columns(exact), warn)
    repeated = [name for name in frame.columns if "_duplicated_" in name]
    if repeated and b"_duplicated_" not in _header(data):
        warn(
            "Names of columns that the first line has twice are changed: "
            f"{listed([quote(name) for name in repeated], _CELLS)}."
        )
    return frame if separator == "," else _decimal_commas(polars, frame)


def decoded_start(data: bytes, ending: str, separator: str) -> tuple[bytes, str, int]:
    """Return the text in UTF-8, its separator and first line's number."""
    data, first = utf8(data).removeprefix(codecs.BOM_UTF8), 1
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")  # Old Macs end lines with a carriage return.
    if declaration := _DECLARES_SEPARATOR.match(data):
        data, first = data[declaration.end() :], 2
        separator = separator or declaration[1].decode()
    if not separator:
        separator = "\t" if ending == ".tsv" else _separator_of(data)
    return data, separator, first


def ragged_line(data: bytes, ending: str, separator: str) -> str:
    """Describe the first line with more cells than columns, if any.

    Args:
        data: the whole file, which Polars refused.
        ending: as for `csv_frame`.
        separator: likewise.
    """
    import csv  # imported only for refused files

    data, separator, line = decoded_start(data, ending, separator)
    text = io.StringIO(data.decode(errors="replace"), newline="")
    rows = csv.reader(
        text, delimiter=separator, skipinitialspace=_is_spaced(data, separator)
    )
    names: list[str] = []
    before = 0
    try:
        for row in rows:
            names = names or row
            if len(row) > len(names):
                return (
                    f"line {line + before}: expected at most "
                    f"{counted(len(names), 'cell')}, as the first line has "
                    f"({_cells(names)}), got {len(row)} ({_cells(row)}). "
                    f"Name the separator if it is not {quote(separator)}, put "
                    "quotes around a cell that holds it, or read the file as text."
                )
            before = rows.line_num
    except csv.Error:  # a cell of more than 128 KiB
        return ""
    return ""


def _short_rows(frame: Any, data: bytes, separator: str) -> int:
    """Count the rows to which Polars added empty cells."""
    if not frame.to_series(-1).null_count():
        return 0  # a short row lacks at least the last cell
    apart = separator.encode()
    plain = _QUOTED.sub(b"x", data)
    if plain.count(apart) == (frame.height + 1) * (frame.width - 1):
        return 0  # avoids reading a large file line by line in vain
    rows = io.BytesIO(plain)
    return sum(row.count(apart) < frame.width - 1 for row in rows if row.strip(b"\r\n"))


def _cells(row: Sequence[str]) -> str:
    return listed([quote(cell) for cell in row], _CELLS)


def _lossless_columns(
    polars: Any,
    frame: Any,
    data: bytes,
    separator: str,
    most: int,
    warn: Callable[[str], None],
) -> list[Any]:
    """Return the columns whose inferred type would lose data, as text."""
    columns: list[Any] = []
    doubtful = [
        index
        for index, kind in enumerate(frame.dtypes)
        if kind not in (polars.String, polars.Boolean)
    ]
    # each pass reads the whole file, so there are at most eight
    at_once = max(_AT_ONCE, -(-len(doubtful) // _READINGS))
    for start in range(0, len(doubtful), at_once):
        places = doubtful[start : start + at_once]
        texts = _texts(polars, data, separator, most, places)
        for place, text in zip(places, texts, strict=True):
            column = frame.to_series(place)
            if _is_lossy(polars, column, text, separator):
                columns.append(text.alias(column.name))
                if _is_too_large(column, text):
                    warn(
                        f"The column {quote(column.name)} is read as text: it holds "
                        "numbers too large or too small to compute with."
                    )
            elif _is_rounded(polars, column, text):
                warn(
                    f"The column {quote(column.name)} is rounded: it holds numbers of "
                    "more than 17 digits."
                )
    return columns


def _windows(error: UnicodeError) -> tuple[str, int]:
    """Decode bytes that are no UTF-8 as Windows-1252."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252"), error.end


codecs.register_error(_WINDOWS, _windows)


def utf8(data: bytes) -> bytes:
    """Return the text as UTF-8, converted from common spreadsheet encodings.

    Raises:
        CommandError: its encoding is unknown.
    """
    if (mark := mark_of(data)) not in (b"", codecs.BOM_UTF8):
        return data[len(mark) :].decode(MARKS[mark], "replace").encode()
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if len(data) > 3 and not any(data[start:64:2]):  # without a mark
            return data.decode(encoding, "replace").encode()
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        # Checked in pieces to avoid a second copy of a large file.
        for at in range(0, len(data), 1 << 20):
            decoder.decode(data[at : at + (1 << 20)])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        known = data.decode(errors="replace")
        broken = known.count("\ufffd")
        letters = len(known) - len(known.encode("ascii", "ignore")) - broken
        try:
            if letters > broken:  # UTF-8 into which other text was copied
                return data.decode(errors=_WINDOWS).encode()
            return data.decode("cp1252").encode()
        except UnicodeDecodeError:
            raise CommandError(
                "The file is no text: neither in UTF-8 nor in Windows-1252."
            ) from None
    return data


def _header(data: bytes) -> bytes:
    """Return the first line without quoted parts, which may contain separators."""
    plain = _QUOTED.sub(b"", data[:65_536].lstrip(b"\r\n"))
    return plain.partition(b"\n")[0]


def _separator_of(data: bytes) -> str:
    """Return the most frequent separator of which all lines have equally many.

    A comma before a blank, or no more frequent than another, may be part of a name.
    Without such a separator, the most frequent one of the first line.
    """
    header, *rows = [
        line.strip(b"\r")
        for line in _QUOTED.sub(b"", data[:65_536].lstrip(b"\r\n")).split(b"\n")
    ]
    if len(data) > 65_536:
        rows = rows[:-1]  # cut off
    marks = (b"\t", b";", b"|", b",")
    even = [
        mark
        for mark in marks
        if rows
        and mark in header
        and all(row.count(mark) == header.count(mark) for row in rows if row)
    ]
    words = header.replace(b", ", b"") if even else header
    return max(even or marks, key=words.count).decode()


def _without_blank_lines(data: bytes, separator: str) -> bytes:
    """Remove blank lines, unless each row has only one cell."""
    blank = b"\n\n" in data or b"\n\r\n" in data
    if not blank or separator.encode() not in _header(data):
        return data
    # A quote opens a quoted cell only at the cell's start; such cells may contain
    # blank lines.
    # Each match consumes its text: an unclosed quote turns the rest into one cell.
    line_start = rb"(?:(?<=[\n%b])|^)" % re.escape(separator.encode())
    cells = line_start + rb'"[^"]*+(?:""[^"]*+)*+(?:"|\Z)'
    lines = re.compile(cells + rb"|\n(?:\r?\n)+")
    return lines.sub(lambda found: found[0] if b'"' in found[0] else b"\n", data)


def _is_spaced(data: bytes, separator: str) -> bool:
    """Check whether a blank follows each separator in the first line."""
    header, apart = _header(data), separator.encode()
    count = header.count(apart)
    return separator != "\t" and 0 < count == header.count(apart + b" ")


def _has_loose_quote(data: bytes, separator: str) -> bool:
    """Check for a quote inside an unquoted cell, such as 5" pipe."""
    if b'"' not in data:
        return False
    plain_char = rb'[^\r\n"%b]' % re.escape(separator.encode())
    return re.search(plain_char + rb'"' + plain_char, data) is not None


def _quoted(data: bytes, separator: str, spaced: bool) -> bytes:
    """Return the cells with loose quotes quoted.

    `spaced`: the blanks at the start of a cell are dropped.
    """
    apart = re.escape(separator.encode())
    blanks = rb"\ *+" if spaced else rb""
    cells = re.compile(
        rb"(?:(?<=[\n%b])|\A)%b(?:"
        rb'(?P<quoted>"[^"]*+(?:""[^"]*+)*+")(?P<rest>[^%b\r\n]*)'
        rb'|(?P<plain>(?!")[^%b\r\n]*))' % (apart, blanks, apart, apart)
    )

    def mended(match: re.Match[bytes]) -> bytes:
        quoted, remainder, plain = match.group("quoted", "rest", "plain")
        if quoted:
            remainder = remainder.rstrip(b" ").replace(b'"', b'""')
            return quoted[:-1] + remainder + b'"'
        return b'"' + plain.replace(b'"', b'""') + b'"' if b'"' in plain else plain

    return cells.sub(mended, data)


def _typed(polars: Any, data: bytes, separator: str, most: int) -> Any:
    """Return the table with the types that Polars infers."""
    texts: dict[str, Any] = {}
    rows: int | None = _TYPED_BY
    bound: int | None = most + 1
    while True:
        try:
            frame = polars.read_csv(
                data,
                separator=separator,
                try_parse_dates=True,
                infer_schema=len(texts) <= _MISFITS,
                infer_schema_length=rows,
                schema_overrides=texts,
                n_rows=bound,
            )
            if frame.height or bound is None:
                return frame
            # With a row limit, Polars does not report an unclosed quote.
            bound = None
        except polars.exceptions.ComputeError as error:
            if rows is not None:
                # A later row may contradict the inferred type: 1.5 after integers.
                rows = None
                continue
            misfit = _MISFIT.search(str(error))
            if not misfit or misfit[1] == "str" or misfit[2] in texts:
                raise
            texts[misfit[2]] = polars.String


def _texts(
    polars: Any, data: bytes, separator: str, most: int, places: Sequence[int]
) -> Any:
    """Return the cells of some columns as text, unchanged."""
    return polars.read_csv(
        data,
        separator=separator,
        infer_schema=False,
        columns=list(places),
        n_rows=most + 1,
    ).get_columns()


def _is_lossy(polars: Any, column: Any, text: Any, separator: str) -> bool:
    """Check whether a column's type loses or guesses a written value."""
    kind = column.dtype
    if kind.is_temporal():
        return _is_guessed_date(polars, column, text)
    if kind == polars.Int128 or text.str.contains(_CODE).any():
        return True
    if kind != polars.Float64:
        return False
    if _is_too_large(column, text):
        return True
    long = text.filter(text.str.contains(_LONG))
    exact = long.cast(polars.Int128, strict=False)
    roundtrip = long.cast(polars.Float64).cast(polars.Int128, strict=False)
    if not (exact == roundtrip).fill_null(value=False).all():
        return True
    # 1.234 may mean 1234 if the decimal separator is a comma.
    return (
        separator == ";"
        and text.drop_nulls().str.contains(_THOUSANDS).all()
        and text.str.contains(".", literal=True).any()
    )


def _is_too_large(column: Any, text: Any) -> bool:
    """Check for 1e400 and 1e-400; `inf` is meant literally."""
    if not column.dtype.is_float():
        return False
    too_large = column.is_infinite() & text.str.contains(r"\d")
    too_small = (column == 0) & text.str.contains(r"^[+-]?[0.]*[1-9]")
    return (too_large | too_small).any()


def _is_rounded(polars: Any, column: Any, text: Any) -> bool:
    """Check for fractions of more than 17 digits."""
    if column.dtype != polars.Float64:
        return False
    digits = text.str.replace(".", "", literal=True)
    return digits.str.contains(r"[1-9]\d{17}").any()


def _trimmed(frame: Any, warn: Callable[[str], None]) -> Any:
    """Return the table with column names stripped of blanks."""
    names: list[str] = [name.strip() for name in frame.columns]
    if names == frame.columns or len(set(names)) < len(names):
        return frame
    warn("The blanks around the names of the columns are left out.")
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def _is_guessed_date(polars: Any, column: Any, text: Any) -> bool:
    """Check for nanoseconds and ambiguous dates: a two-digit year, or 03/04."""
    if column.dtype not in (polars.Date, polars.Datetime):
        return False
    if not text.drop_nulls().str.contains(r"\d{4}").all():
        return True
    if text.str.contains(_NANOSECONDS).any():
        return True
    if not text.str.contains(_DAY_OR_MONTH).any():
        return False
    days = column.dt.day()
    return (days <= 12).all() and (days != column.dt.month()).any()


def _decimal_commas(polars: Any, frame: Any) -> Any:
    """Return texts such as 2,5 and 1.234,50 as number columns.

    A column stays text if each comma is followed by three digits: 1,234 may be 1234.
    """
    texts = [name for name, kind in frame.schema.items() if kind == polars.String]
    converted: list[Any] = []
    for name in texts:
        column = polars.col(name).str
        numbers = column.contains(_COMMA).all()
        clear = column.contains(r",(\d{1,2}|\d{4,})$").any()
        if frame.select(numbers & clear).item():
            bare = column.replace_all(".", "", literal=True).str
            converted.append(bare.replace(",", ".", literal=True).cast(polars.Float64))
    return frame.with_columns(converted) if converted else frame
