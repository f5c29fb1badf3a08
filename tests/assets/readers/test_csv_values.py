"""Cells that a reader might silently change."""

from __future__ import annotations

from typing import Any

import pytest

from neuraxis.assets.readers.csv_format import format_of
from neuraxis.assets.readers.tables import read_frame

polars: Any = pytest.importorskip("polars")


def _read(text: str | bytes) -> tuple[Any, list[str]]:
    warnings: list[str] = []
    data = text.encode() if isinstance(text, str) else text
    return read_frame(polars, data, ".csv", warn=warnings.append), warnings


@pytest.mark.parametrize(
    "cell", ["2024-01-05T10:00:00.123456789", "12E4", "1e-400", "1e400"]
)
def test_what_a_type_would_change_stays_text(cell: str) -> None:
    """Nanoseconds, article numbers, p-values."""
    frame, _ = _read(f"a,b\n{cell},1\n")
    assert frame["a"].to_list() == [cell]


def test_ordinary_numbers_stay_numbers() -> None:
    frame, warnings = _read("a,b,c\n1.5e-3,1e+05,0e5\n2.5,1e16,0.0\n")
    assert frame.dtypes == [polars.Float64] * 3
    assert not warnings


def test_rounded_digits_are_told() -> None:
    """A database's averages stay numbers."""
    frame, warnings = _read("mean,b\n1234567890123.123456,1\n0.5,2\n")
    assert frame["mean"].dtype == polars.Float64
    assert warnings == [
        'The column "mean" is rounded: it holds numbers of more than 17 digits.'
    ]
    assert not _read("mean,b\n0.3333333333333333,1\n")[1]


def test_a_name_that_is_there_twice_is_told() -> None:
    frame, warnings = _read("a,a\n1,2\n")
    assert frame.columns == ["a", "a_duplicated_0"]
    assert warnings == [
        'Names of columns that the first line has twice are changed: "a_duplicated_0".'
    ]


@pytest.mark.parametrize(
    ("header", "row", "names"),
    [
        ("Preis, EUR;Stadt, Land", "1,50;Bonn, DE", ["Preis, EUR", "Stadt, Land"]),
        ("Preis,netto;Ort", "1,50;Bonn", ["Preis,netto", "Ort"]),
        ("name,tags (a;b)", "x,y", ["name", "tags (a;b)"]),
        ("a,b;c,d", "1,x;y;z,3", ["a", "b;c", "d"]),
        ("id,name,lat|lon", "1,x,3|4", ["id", "name", "lat|lon"]),
        ("id,name,size;unit", "1,x,5;cm", ["id", "name", "size;unit"]),
        ("id,name,size;unit", "1,x,y,5;cm", ["id,name,size", "unit"]),
    ],
)
def test_a_separator_in_a_name_separates_nothing(
    header: str, row: str, names: list[str]
) -> None:
    """If all lines have as many of another."""
    assert _read(f"{header}\n{row}\n")[0].columns == names


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_read(encoding: str) -> None:
    frame, _ = _read("name;city\nä;Köln\n".encode(encoding))
    assert frame.to_dicts() == [{"name": "ä", "city": "Köln"}]


def test_one_byte_that_is_no_utf_8_spoils_no_other_letter() -> None:
    """As when a line was copied from another file."""
    data = "name,city\nJürgen,Köln\nX,".encode() + "München\n".encode("cp1252")
    assert _read(data)[0].rows() == [("Jürgen", "Köln"), ("X", "München")]


@pytest.mark.parametrize(
    ("cells", "comma"),
    [("1.234,5", True), ("1.234;\n5,5", True), ("1.5", False), ("1.234", False)],
)
def test_decimal_commas_are_kept_beside_thousands(cells: str, comma: bool) -> None:
    found = format_of(f"a;b\n{cells};x\n".encode(), ".csv")
    assert found.decimal_comma == comma
