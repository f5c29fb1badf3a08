"""Files as spreadsheets and other people save them, read as tables."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from neuraxis.builtin.tables import frames, plugin
from neuraxis.errors import CommandError
from neuraxis.plugins.context import Context

polars: Any = pytest.importorskip("polars")


def _read(folder: Path, name: str, data: bytes, **given: Any) -> Any:
    (folder / name).write_bytes(data)
    return plugin.read_table(name, Context(workspace=folder), **given)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_the_encoding_is_found(encoding: str, tmp_path: Path) -> None:
    """Names and cells; without a mark what is no UTF-8 is that of Windows."""
    text = "Größe;Stadt\n1;Köln\n"
    frame = _read(tmp_path, "t.csv", text.encode(encoding))
    assert [{"Größe": 1, "Stadt": "Köln"}] == frame.to_dicts()


def test_a_cut_at_a_piece_of_the_check_is_no_wrong_letter(tmp_path: Path) -> None:
    """A letter of two bytes may lie across two pieces."""
    cell = "x" * ((1 << 20) - 3) + "ö"
    assert cell == _read(tmp_path, "t.csv", f"a\n{cell}\n".encode())["a"][0]


def test_what_is_no_text_is_told(tmp_path: Path) -> None:
    """Neither UTF-8 nor Windows-1252 has this byte."""
    with pytest.raises(CommandError, match="is no text"):
        _read(tmp_path, "t.csv", b"a\n\x81\xff\n")


@pytest.mark.parametrize(("late", "kind"), [(b"1.5", "Float64"), (b"x", "String")])
def test_a_late_row_may_be_of_another_type(
    late: bytes, kind: str, tmp_path: Path
) -> None:
    """The first 10,000 rows are integers, the last is not."""
    frame = _read(tmp_path, "t.csv", b"a\n" + b"1\n" * 10_001 + late + b"\n")
    assert (10_002, kind) == (frame.height, str(frame.schema["a"]))


def test_a_separator_in_a_quoted_name_separates_nothing(tmp_path: Path) -> None:
    """The name has more commas than the line has semicolons."""
    frame = _read(tmp_path, "t.csv", b'"a,b,c";"d"\n1;2\n')
    assert [{"a,b,c": 1, "d": 2}] == frame.to_dicts()


def test_decimal_commas_are_numbers(tmp_path: Path) -> None:
    """Where commas do not separate; empty cells stay empty."""
    text = (
        "name;price;day\nÄpfel;1.234,50;31.12.2025\nBirnen;-2,5;01.01.2026\nNüsse;;\n"
    )
    frame = _read(tmp_path, "t.csv", text.encode())
    assert [1234.5, -2.5, None] == frame["price"].to_list()
    assert [date(2025, 12, 31), date(2026, 1, 1), None] == frame["day"].to_list()


@pytest.mark.parametrize("cells", ["1,234;5,678", "1,5;x", "1,2,3;2,5", "1.5,2;3,25"])
def test_what_may_be_something_else_stays_text(cells: str, tmp_path: Path) -> None:
    """1,234 may be a thousand."""
    first, second = cells.split(";")
    frame = _read(tmp_path, "t.csv", f"a;b\n{first};1\n{second};2\n".encode())
    assert [first, second] == frame["a"].to_list()


def test_quoted_thousands_stay_text_between_commas(tmp_path: Path) -> None:
    """A file that separates by commas writes no decimal ones."""
    frame = _read(tmp_path, "t.csv", b'a,b\n"1,25",x\n')
    assert ["1,25"] == frame["a"].to_list()


@pytest.mark.parametrize("name", ["t.ndjson", "t.jsonl"])
def test_lines_of_json(name: str, tmp_path: Path) -> None:
    """A byte order mark is none of them; no line is a table without rows."""
    assert [1] == _read(tmp_path, name, b'\xef\xbb\xbf{"a":1}\n')["a"].to_list()
    empty = frames.written(polars.DataFrame({"a": []}), ".ndjson")
    assert _read(tmp_path, name, empty).height == 0


def test_an_error_gives_no_advice_that_cannot_be_followed(tmp_path: Path) -> None:
    """No command has the options of Polars."""
    with pytest.raises(CommandError) as told:
        _read(tmp_path, "t.csv", b"a,b\n1,2,3\n")
    assert str(told.value).startswith("'t.csv': line 2: expected at most 2 cells")
    assert "truncate_ragged_lines" not in str(told.value)


def test_a_third_table_with_the_same_column_is_joined() -> None:
    """The second already took the name that the third would get."""
    joined = polars.DataFrame({"k": [1], "v": [0]})
    for number in (1, 2, 3):
        joined = plugin.join_tables(joined, [{"k": 1, "v": number}], ["k"])
    assert [
        {"k": 1, "v": 0, "v_right": 1, "v_right2": 2, "v_right3": 3}
    ] == joined.to_dicts()


def test_a_key_may_have_any_name() -> None:
    """Also that of the column the rows are counted in."""
    rows = [{"_left": 1, "_right": 2}]
    assert rows == plugin.join_tables(rows, rows, ["_left", "_right"]).to_dicts()


@pytest.mark.parametrize("function", ["sum", "mean", "median", "std"])
def test_the_column_that_holds_no_numbers_is_named(function: str) -> None:
    """Polars says only which type it does not add up."""
    made: Any = [{"column": "a", "function": function}]
    with pytest.raises(CommandError, match="column 'a' holds String"):
        plugin.group_rows([{"a": "x"}], [], made)


def test_a_zone_for_a_column_without_one_is_told() -> None:
    """Not by the names of Polars' types."""
    frame = polars.DataFrame({"t": ["2026-01-01T10:00:00"]}).select(
        polars.col("t").str.to_datetime()
    )
    wanted: Any = {"column": "t", "op": "ge", "value": "2026-01-01T05:00:00Z"}
    with pytest.raises(CommandError, match="has no time zone"):
        plugin.filter_rows(frame, [wanted])
    kept = plugin.filter_rows(frame, [{**wanted, "value": "2026-01-01T05:00:00"}])
    assert kept.height == 1


def test_what_pandas_keeps_in_the_index_is_a_column() -> None:
    """The keys of groups, the dates of a series; row numbers are none."""
    pandas: Any = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {"city": ["L", "T", "L"], "year": [1, 1, 2], "n": [1, 2, 3]}
    )
    taken = frames.frame_of
    assert [{"city": "L", "n": 4}, {"city": "T", "n": 2}] == taken(
        frame.groupby("city")[["n"]].sum()
    ).to_dicts()
    both = taken(frame.groupby(["city", "year"])[["n"]].sum())
    assert ["city", "year", "n"] == both.columns
    assert ["city", "year", "n"] == taken(frame[frame["n"] > 1]).columns
    assert ["city", "year", "n"] == taken(frame.set_index("city", drop=False)).columns
    named = taken(pandas.DataFrame({"n": [1]}, index=["a"]))
    assert [{"index": "a", "n": 1}] == named.to_dicts()


@pytest.mark.parametrize("rows", [[{"a": 2**130}], [{1: 2}], [{"a": [1, "x"]}]])
def test_rows_that_are_no_table_are_told(rows: Any) -> None:
    """By one sentence of Polars."""
    with pytest.raises(CommandError, match="cannot be read as a table"):
        frames.frame_of(rows)


@pytest.mark.parametrize("ending", [".json", ".ndjson"])
def test_an_infinite_number_is_not_written_as_an_empty_cell(ending: str) -> None:
    """JSON has none; CSV has."""
    frame = polars.DataFrame({"a": [1.0, float("inf"), None]})
    with pytest.raises(CommandError, match="'a' holds infinite numbers"):
        frames.written(frame, ending)
    assert frame.equals(frames.parse(frames.written(frame, ".csv"), ".csv", ""))
    finite = frame.filter(polars.col("a") == 1)
    assert finite.equals(frames.parse(frames.written(finite, ending), ending, ""))


def test_one_column_of_another_library_is_a_table() -> None:
    """A Series has no columns of its own."""
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    series = pandas.Series([5], index=["a"], name="n")
    assert frames.frame_of(series).to_dicts() == [{"index": "a", "n": 5}]
    assert frames.frame_of(polars.Series("n", [5])).to_dicts() == [{"n": 5}]
    chunks = pyarrow.chunked_array([[5]])
    assert frames.frame_of(chunks).to_dicts() == [{"column": 5}]
    with pytest.raises(CommandError, match="cannot be read as a table"):
        frames.frame_of(pandas.DataFrame({"a": [1j]}))


@pytest.mark.parametrize(
    "cell", [{"x": float("inf")}, [float("inf")], {"x": [b"a"]}, [[b"a"]]]
)
def test_what_json_has_no_form_for_is_refused_inside_of_cells(cell: Any) -> None:
    """Polars would write an empty cell, or panic."""
    frame = polars.DataFrame({"a": [cell]})
    with pytest.raises(CommandError, match="has no form for"):
        frames.written(frame, ".json")
    assert frames.written(frame, ".parquet")


def test_cells_are_shown_as_they_are() -> None:
    """Nanoseconds, and the numbers beside one that is none."""
    moments = polars.Series([1704448800123456789], dtype=polars.Datetime("ns"))
    frame = polars.DataFrame({"t": moments, "l": [[float("nan"), 1.0]]})
    (row,) = plugin.table_rows(frame)["rows"]  # type: ignore[misc]
    assert row == {"t": "2024-01-05T10:00:00.123456789", "l": [None, 1.0]}
