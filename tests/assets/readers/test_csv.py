"""CSV files: what is written in a cell is what the table says."""

from __future__ import annotations

import math
import tracemalloc
from datetime import UTC, date, datetime
from typing import Any

import pytest

from neuraxis.assets.readers.tables import read_frame
from neuraxis.errors import CommandError

polars: Any = pytest.importorskip("polars")


def _read(text: str, ending: str = ".csv", **given: Any) -> Any:
    return read_frame(polars, text.encode(), ending, **given)


def _column(*cells: str, separator: str = ",") -> list[Any]:
    rows = "".join(f"{cell}{separator}x\n" for cell in cells)
    return _read(f"a{separator}b\n{rows}")["a"].to_list()


CODES = [
    ("00123", "4567"),  # a postal code
    ("-05", "5"),
    ("007.5", "1.5"),
    ("+4930123456", "4930123457"),  # a phone number
    ("12345678901234567890", "1"),  # more than 64 bits
    ("123456789012345678901234567890123456789012", "1"),  # more than 128
    ("1234567890123456789", "1.5"),  # more than a float keeps
    ("٣", "1"),  # a digit that is no number to Polars, which says so
    ("31.12.25", "01.01.26"),  # no century
    ("31.12.25 14:30", "01.01.26 8:00"),
    ("26-01-05", "26-02-06"),
    ("03/04/2026", "05/06/2026"),  # March or April
    ("12/11/2026", "05/06/2026"),  # November or December
]


@pytest.mark.parametrize("cells", CODES)
def test_what_a_number_or_a_date_would_lose_stays_text(cells: tuple[str, str]) -> None:
    """Each cell as it is written, whatever the other columns are."""
    assert list(cells) == _column(*cells)
    assert [*cells, None] == _column(*cells, "")


@pytest.mark.parametrize("row", [0, 4_999, 20_000])
def test_every_row_is_looked_at(row: int) -> None:
    """Not the first ones only, that types are guessed from."""
    cells = ["12345"] * 20_001
    cells[row] = "00345"
    assert cells == _column(*cells)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (("0", "10"), [0, 10]),
        (("0.5", "-0.25"), [0.5, -0.25]),
        (("9223372036854775807", "-1"), [2**63 - 1, -1]),
        (("10000000000000000", "1.5"), [1e16, 1.5]),
        (("2026-01-05", "2026-1-6"), [date(2026, 1, 5), date(2026, 1, 6)]),
        (("13/02/2026", "03/04/2026"), [date(2026, 2, 13), date(2026, 4, 3)]),
        (("05.01.2026", "06.01.2026"), [date(2026, 1, 5), date(2026, 1, 6)]),
        (("2026-01-05T08:00Z",), [datetime(2026, 1, 5, 8, tzinfo=UTC)]),
        (("true", "false"), [True, False]),
    ],
)
def test_what_is_clear_has_its_type(cells: tuple[str, ...], values: list[Any]) -> None:
    """Zeros that say nothing, and dates with one meaning."""
    found = _column(*cells)
    assert values == found
    assert [type(it) for it in values] == [type(it) for it in found]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("a,b,c\n1,2\n3,4,5\n6\n", 2),
        ("a;b\r\n1\r\n2;3\r\n", 1),
        ('a,b\n"x,\ny",2\n"z, z"\n', 1),
        ('a,b\n5" pipe\n', 1),
        ("a,b\n1,\n\n2,3\n\n", 0),
        ("a\tb\n1\t\n", 0),
        ("a\n1\n\n", 0),
        ('a,b\n"x\ny",\n', 0),
    ],
)
def test_rows_with_missing_cells_are_counted(text: str, short: int) -> None:
    """What the table says of them is not in the file; an empty cell is."""
    told: list[str] = []
    _read(text, ".tsv" if "\t" in text else ".csv", warn=told.append)
    counted = f"Rows with fewer cells than the first line: {short};"
    assert [line.startswith(counted) for line in told] == [True] * bool(short)


def test_an_empty_cell_is_not_an_empty_text() -> None:
    """Quotes say that there is a text, without letters."""
    assert ["", None, "x"] == _column('""', "", "x")


def test_columns_of_one_name_keep_their_own_cells() -> None:
    """They are looked at by their place."""
    frame = _read("a,a,b\n01,1,5\n2,03,6\n3,4,7\n")
    assert [("01", "1", 5), ("2", "03", 6), ("3", "4", 7)] == frame.rows()
    many = ",".join(["a"] * 40)
    frame = _read(f"{many}\n" + ",".join(f"0{n}" for n in range(40)) + "\n")
    assert [tuple(f"0{n}" for n in range(40))] == frame.rows()


def test_a_line_with_nothing_on_it_is_no_row() -> None:
    """At the end, between rows, with the line ends of Windows; not within quotes."""
    text = 'a,b\n1,"x\n\ny"\n\n2,"p ""q""\n\n\nr"\n\n\n'
    rows = [(1, "x\n\ny"), (2, 'p "q"\n\n\nr')]
    assert rows == _read(text).rows()
    windows = text.replace("\n", "\r\n")
    assert [1, 2] == _read(windows)["a"].to_list()


def test_in_one_column_an_empty_line_is_an_empty_cell() -> None:
    """So that a table of one column is read as it was written."""
    assert [1, None, 2, None] == _read("a\n1\n\n2\n\n")["a"].to_list()


def test_a_row_of_empty_cells_is_a_row() -> None:
    """Its separator says that there are cells."""
    assert [(1, 2), (None, None)] == _read("a,b\n1,2\n,\n").rows()


def test_the_lines_of_old_macs() -> None:
    """Not a table of one column with a very long name."""
    assert [(1, 2), (3, 4)] == _read("a,b\r1,2\r3,4\r").rows()


def test_the_line_that_names_the_separator_is_no_header() -> None:
    """Some programs write it for Excel."""
    assert [{"a,b": 1, "c": 2}] == _read("sep=;\r\na,b;c\r\n1;2\r\n").to_dicts()
    assert [(1, 2)] == _read('\ufeff"sep=|"\na|b\n1|2\n').rows()


def test_a_dot_may_stand_in_a_thousand_where_commas_are_decimal() -> None:
    """1.234 stays text between semicolons, and is a number between commas."""
    assert ["1.234", "567.890", "12"] == _column(
        "1.234", "567.890", "12", separator=";"
    )
    assert [0.123, 567.89] == _column("0.123", "567.890", separator=";")
    assert [1.5, 567.89] == _column("1.5", "567.890", separator=";")
    assert [1.234, 567.89] == _column("1.234", "567.890")


def test_a_code_with_a_decimal_comma_is_none() -> None:
    """A leading zero counts there, too, as do digits that a float does not keep."""
    assert ["007,5", "1,5"] == _column("007,5", "1,5", separator=";")
    assert ["12345678901234567,5"] == _column("12345678901234567,5", separator=";")
    assert [0.5, 1234.5] == _column("0,5", "1.234,5", separator=";")


@pytest.mark.parametrize("text", ["a,b\n", "a,b", "a\n"])
def test_a_header_alone_is_a_table_without_rows(text: str) -> None:
    """Its columns are there."""
    assert 0 == _read(text).height
    assert "a" == _read(text).columns[0]


@pytest.mark.parametrize("text", ["", "\n\n", "a,b\n1,2,3\n", 'a,b\n1,"x\n2,3\n'])
def test_what_is_no_table_is_told(text: str) -> None:
    """And not read for ever."""
    with pytest.raises(CommandError):
        _read(text)


def test_a_quote_that_is_never_closed() -> None:
    """All behind it is one cell: told, and not looked at letter by letter."""
    text = 'a,b\n\n1,"' + "x" * 2_000_000
    tracemalloc.start()
    try:
        with pytest.raises(CommandError):
            _read(text)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 25 * len(text)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('a,b\n5" pipe,2\nx,3\n', [('5" pipe', 2), ("x", 3)]),
        ('a,b\r\n1,5" x\r\n2,6" "y"\r\n', [(1, '5" x'), (2, '6" "y"')]),
        ('a,b\n12",3\n"1"" 3""",4\n', [('12"', 3), ('1" 3"', 4)]),
        ('a,b\n"x"y,2\n"z" ,3\n', [("xy", 2), ("z", 3)]),
        ('a;b\n5" x;2,5\n"6;\n";3\n', [('5" x', 2.5), ("6;\n", 3.0)]),
    ],
)
def test_a_quote_within_a_cell_is_a_letter(text: str, rows: list[Any]) -> None:
    """Inches: other programs read it so, and Polars reads no cell of such a file."""
    assert _read(text).rows() == rows


def test_blanks_behind_the_separators_are_left_out_and_told() -> None:
    """As people write tables by hand; also before a quote and before a number."""
    told: list[str] = []
    text = '"Month", "1958", "a,  b"\nJAN, 340, "x, ""y"\n"FEB",  318, 5" z\n'
    frame = _read(text, warn=told.append)
    assert frame.to_dicts() == [
        {"Month": "JAN", "1958": 340, "a,  b": 'x, "y'},
        {"Month": "FEB", "1958": 318, "a,  b": '5" z'},
    ]
    assert told == ["The blanks after the separators are left out."]


def test_blanks_in_a_cell_stay_where_not_all_names_have_them() -> None:
    """Of the names they are left out: nobody can see them to write them."""
    told: list[str] = []
    frame = _read("a, b,c \n1, x,2\n", warn=told.append)
    assert frame.to_dicts() == [{"a": 1, "b": " x", "c": 2}]
    assert told == ["The blanks around the names of the columns are left out."]
    frame = _read("a,b,a \n1,2,3\n", warn=told.append)
    assert frame.columns == ["a", "b", "a "]


@pytest.mark.parametrize("cell", ["1e400", "-1e400", "1" * 400])
def test_a_number_too_large_is_no_infinite_one(cell: str) -> None:
    """It stays what is written, and that is told; `inf` is meant."""
    told: list[str] = []
    text = f"a,b\n{cell},inf\n2.5,1\n"
    frame = _read(text, warn=told.append)
    assert frame["a"].to_list() == [cell, "2.5"]
    assert frame["b"].to_list() == [math.inf, 1.0]
    assert [text.partition(" is")[0] for text in told] == ['The column "a"']


def test_very_many_columns_that_are_text_in_the_end() -> None:
    """The file is not read once for each of them."""
    names = [f"c{place}" for place in range(300)]
    lines = [",".join(cells) for cells in (names, ["1"] * 300, ["٣"] * 300)]
    reading = _Counting()
    frame = read_frame(reading, "\n".join(lines).encode(), ".csv")
    assert frame.row(1) == ("٣",) * 300
    assert reading.times < 60
    few = "a,b,c\n1,1,1\n٣,2,2.5\n"
    assert _read(few).rows() == [("1", 1, 1.0), ("٣", 2, 2.5)]


class _Counting:
    """Polars, and how often it reads."""

    def __init__(self) -> None:
        self.times = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(polars, name)

    def read_csv(self, *given: Any, **named: Any) -> Any:
        self.times += 1
        return polars.read_csv(*given, **named)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "cp1252"])
def test_a_table_in_any_encoding_of_spreadsheets_is_read(encoding: str) -> None:
    """UTF-32's mark begins with UTF-16's: cells were full of NUL characters."""
    polars = pytest.importorskip("polars")
    frame = read_frame(polars, "name,price\nÄpfel,3\n".encode(encoding), ".csv")
    assert frame.rows() == [("Äpfel", 3)]
