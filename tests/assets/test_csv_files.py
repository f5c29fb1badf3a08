"""CSV files: what is written in a cell is what the table says."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from neuraxis.assets.table_files import read_frame
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
