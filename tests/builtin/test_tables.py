"""The plugin `tables`: each command as a model calls it, and each kind of refusal."""

from __future__ import annotations

import contextlib
import json
import operator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuraxis.assets.readers import limits
from neuraxis.builtin.tables import frames, plugin, views
from neuraxis.errors import CommandError
from neuraxis.messages import Result
from neuraxis.plugins.context import Context
from neuraxis.testing import call

polars: Any = pytest.importorskip("polars")

HOUSES: list[dict[str, Any]] = [
    {"city": "Lyon", "price": 10, "size": 1.5, "sold": "2026-01-05"},
    {"city": "Turin", "price": 30, "size": 2.5, "sold": "2026-03-01"},
    {"city": "Lyon", "price": 20, "size": None, "sold": "2026-04-09"},
    {"city": "Graz", "price": 5, "size": 4.0, "sold": None},
]


def _call(command: str, workspace: Path = Path(), **arguments: Any) -> Result:
    return call("neuraxis:tables", command, arguments, workspace=workspace)


def _rows(command: str, **arguments: Any) -> list[dict[str, Any]]:
    result = _call(command, table=HOUSES, **arguments)
    assert result.error is None, result.error
    return result.value.to_dicts()


def _refused(command: str, **arguments: Any) -> str:
    result = _call(command, **{"table": HOUSES, **arguments})
    assert result.error is not None
    return result.error.message


# --- files ----------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "json", "ndjson"])
def test_what_is_written_is_read_again(ending: str, tmp_path: Path) -> None:
    """Each format holds the table; the file is told to the session."""
    told = _call("write_table", tmp_path, table=HOUSES, file_path=f"a/t.{ending}")
    assert (told.value["file_path"], told.value["rows"]) == (f"a/t.{ending}", 4)
    read = _call("read_table", tmp_path, file_path=f"a/t.{ending}")
    assert read.stored
    assert [row["price"] for row in HOUSES] == read.value["price"].to_list()
    assert read.value.columns == list(HOUSES[0])


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_separator_is_found(sign: str, tmp_path: Path) -> None:
    """The one that stands most often in the first line; dates become dates."""
    text = f"a{sign}day\n1{sign}2026-02-03\n"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    frame = _call("read_table", tmp_path, file_path="t.csv").value
    assert [{"a": 1, "day": date(2026, 2, 3)}] == frame.to_dicts()


def test_columns_are_chosen_on_reading(tmp_path: Path) -> None:
    """Only those, in that order."""
    (tmp_path / "t.csv").write_text("a,b,c\n1,2,3\n", encoding="utf-8")
    read = _call("read_table", tmp_path, file_path="t.csv", columns=["c", "a"])
    assert ["c", "a"] == read.value.columns


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.xlsx", b"x", "Expected a file that ends in .csv"),
        ("t", b"x", "a name without an ending"),
        ("t.csv", b"", "names of the columns, got an empty file"),
        ("t.csv", b"a,b\n1,2,3\n4\n", "line 2: expected at most 2 cells"),
        ("t.json", b"{", "is no JSON"),
        ("t.json", b"\x81", "is no text"),
        ("t.parquet", b"PAR1xxxxPAR1", "parquet"),
    ],
)
def test_a_broken_file_is_told(
    name: str, content: bytes, said: str, tmp_path: Path
) -> None:
    """In one line, without a traceback or a drawing."""
    (tmp_path / name).write_bytes(content)
    error = _call("read_table", tmp_path, file_path=name).error
    assert error is not None
    assert said in error.message
    assert "\n" not in error.message


@pytest.mark.parametrize("path", ["../t.csv", "/etc/passwd.csv", "link.csv", ".x.csv"])
def test_no_path_leads_out(path: str, tmp_path: Path) -> None:
    """Neither for reading nor for writing: all goes through the guarded files."""
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "t.csv").write_text("a\n1\n", encoding="utf-8")
    (inside / "link.csv").symlink_to(tmp_path / "t.csv")
    for command in ("read_table", "write_table"):
        more = {} if command == "read_table" else {"table": HOUSES}
        result = _call(command, inside, file_path=path, **more)
        assert result.error is not None
    assert "a\n1\n" == (tmp_path / "t.csv").read_text("utf-8")


def test_rows_and_bytes_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file that unpacks to more rows than allowed is refused."""
    context = Context(workspace=tmp_path)
    data = frames.written(polars.DataFrame({"x": [0] * 5000}), ".parquet")
    assert len(data) < 2000
    with pytest.raises(CommandError, match="more than 100 rows"):
        frames.parse(data, ".parquet", "", 100)
    monkeypatch.setattr(limits, "most_cells", lambda size, each: 4000)
    with pytest.raises(CommandError, match="5000 cells"):
        frames.parse(data, ".parquet", "", 10_000)
    (tmp_path / "t.csv").write_bytes(b"a\n" * 1000)
    with pytest.raises(CommandError, match="at most"):
        plugin.workspace.read(context, "t.csv", 100)


# --- choosing -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "op", "value", "expected"),
    [
        ("price", "eq", 20, [20]),
        ("price", "ne", 20, [10, 30, 5]),
        ("price", "gt", 10, [30, 20]),
        ("price", "ge", 10.0, [10, 30, 20]),
        ("price", "lt", 10.5, [10, 5]),
        ("price", "le", 5, [5]),
        ("price", "in", [5, 30.0], [30, 5]),
        ("price", "in", [5, 10**30], [5]),
        ("size", "in", [4, 9], [5]),
        ("price", "not_in", [5, 30], [10, 20]),
        ("city", "in", ["Lyon"], [10, 20]),
        ("city", "not_in", ["Lyon"], [30, 5]),
        ("city", "contains", "r", [30, 5]),
        ("city", "contains", ".*", []),
        ("city", "starts_with", "L", [10, 20]),
        ("city", "ends_with", "n", [10, 30, 20]),
        ("size", "is_empty", None, [20]),
        ("size", "is_empty", True, [20]),
        ("size", "is_empty", False, [10, 30, 5]),
    ],
)
def test_conditions(column: str, op: str, value: Any, expected: list[int]) -> None:
    """Each operation; a pattern in a text is no pattern."""
    condition = {"column": column, "op": op}
    condition |= {} if value is None else {"value": value}
    rows = _rows("filter_rows", conditions=[condition])
    assert expected == [row["price"] for row in rows]


def test_conditions_together() -> None:
    """All of them, or any."""
    both = [
        {"column": "city", "op": "eq", "value": "Lyon"},
        {"column": "price", "op": "gt", "value": 15},
    ]
    assert [20] == [row["price"] for row in _rows("filter_rows", conditions=both)]
    rows = _rows("filter_rows", conditions=both, match="any")
    assert [10, 30, 20] == [row["price"] for row in rows]


def test_a_date_is_compared_with_its_text(tmp_path: Path) -> None:
    """ISO text; another one is told."""
    (tmp_path / "t.csv").write_text("day\n2026-01-01\n2026-06-01\n", encoding="utf-8")
    frame = _call("read_table", tmp_path, file_path="t.csv").value
    condition = {"column": "day", "op": "ge", "value": "2026-05-01"}
    assert plugin.filter_rows(frame, [condition]).height == 1
    with pytest.raises(CommandError, match="ISO text such as"):
        plugin.filter_rows(frame, [{**condition, "value": "May"}])


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ({"column": "prise", "op": "eq", "value": 1}, "Did you mean price?"),
        ({"column": "price", "op": "eq", "value": "10"}, "cannot be compared"),
        ({"column": "city", "op": "gt", "value": 3}, "cannot be compared"),
        ({"column": "city", "op": "eq"}, "use is_empty"),
        ({"column": "city", "op": "in", "value": "Lyon"}, "expected a list"),
        ({"column": "price", "op": "contains", "value": "1"}, "a column of strings"),
        ({"column": "price", "op": "like", "value": "1"}, "one of"),
        ({"column": "price", "op": "eq", "value": True}, "cannot be compared"),
    ],
)
def test_a_wrong_condition_is_told(condition: dict[str, Any], said: str) -> None:
    """With what would be right."""
    assert said in _refused("filter_rows", conditions=[condition])


def test_select_and_sort() -> None:
    """Order of columns and rows; empty cells last."""
    assert list(_rows("select_columns", columns=["size", "city"])[0]) == [
        "size",
        "city",
    ]
    rows = _rows("sort_rows", columns=["size"], descending=True)
    assert [4.0, 2.5, 1.5, None] == [row["size"] for row in rows]
    assert "no column 'sise'" in _refused("sort_rows", columns=["sise"])


# --- computing ------------------------------------------------------------------


def test_group() -> None:
    """Groups in the order they first appear; names as given or made."""
    rows = _rows(
        "group_rows",
        by=["city"],
        aggregations=[
            {"function": "count"},
            {"column": "price", "function": "mean"},
            {"column": "sold", "function": "distinct", "name": "days"},
        ],
    )
    assert {"city": "Lyon", "count": 2, "price_mean": 15.0, "days": 2} == rows[0]
    assert ["Lyon", "Turin", "Graz"] == [row["city"] for row in rows]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("sum", 65),
        ("median", 15.0),
        ("min", 5),
        ("max", 30),
        ("first", 10),
        ("last", 5),
        ("count", 4),
        ("distinct", 4),
    ],
)
def test_functions_of_the_whole_table(function: str, expected: float) -> None:
    """Without a column to group by."""
    made = [{"column": "price", "function": function, "name": "x"}]
    assert [{"x": expected}] == _rows("group_rows", by=[], aggregations=made)


def test_a_wrong_aggregation_is_told() -> None:
    """Without a column, or with one of texts."""
    wrong = [{"function": "sum"}]
    assert "expected the column" in _refused("group_rows", by=[], aggregations=wrong)
    wrong = [{"column": "city", "function": "mean"}]
    assert "expected numbers" in _refused("group_rows", by=[], aggregations=wrong)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", ["Lyon", "Lyon"]),
        ("left", ["Lyon", "Turin", "Lyon", "Graz"]),
        ("full", ["Lyon", "Turin", "Lyon", "Graz", "Oslo"]),
        ("semi", ["Lyon", "Lyon"]),
        ("anti", ["Turin", "Graz"]),
    ],
)
def test_join(how: str, expected: list[str]) -> None:
    """Every way, with other names on the right, in the order of the left."""
    other = [{"name": "Lyon", "river": "Rhône"}, {"name": "Oslo", "river": "Akerselva"}]
    result = _call(
        "join_tables", left=HOUSES, right=other, on=["city"], right_on=["name"], how=how
    )
    assert expected == result.value["city"].to_list()


def test_a_join_that_explodes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted before it is made."""
    monkeypatch.setattr(frames, "MOST_ROWS", 1000)
    many = polars.DataFrame({"k": [1] * 100})
    with pytest.raises(CommandError, match="10000 rows"):
        plugin.join_tables(many, many, ["k"])
    with pytest.raises(CommandError, match="as many columns"):
        plugin.join_tables(many, many, ["k"], ["k", "l"])


def test_a_join_that_has_more_rows_than_its_tables_has_fewer_cells() -> None:
    """2,500 rows joined with themselves took 800 MB."""
    many = polars.DataFrame({"k": [1] * 2_500, "text": ["x" * 40] * 2_500})
    with pytest.raises(CommandError, match="6250000 rows and 25000000 cells"):
        plugin.join_tables(many, many, ["k"])
    one = polars.DataFrame({"k": [1], "word": ["one"]})
    assert plugin.join_tables(many, one, ["k"]).height == 2_500


def test_describe() -> None:
    """Type, empty cells, distinct values, range."""
    told = _call("describe_table", table=HOUSES, columns=["size", "city"]).value
    assert told["rows"] == 4
    size, city = told["columns"]
    assert size == {
        "name": "size",
        "type": "Float64",
        "empty": 1,
        "distinct": 3,
        "min": 1.5,
        "max": 4.0,
        "mean": pytest.approx(8 / 3),
        "std": pytest.approx(1.2583, rel=1e-3),
    }
    assert (city["min"], city["max"]) == ("Graz", "Turin")
    wide = polars.DataFrame({f"c{n}": [n] for n in range(500)})
    told = plugin.describe_table(wide)
    assert (len(told["columns"]), len(told["more_columns"])) == (60, 100)


def test_rows_come_in_pages() -> None:
    """What is shown can be said inline, however wide the table; nothing is lost."""
    frame = polars.DataFrame(
        {"n": range(500), "text": ["x" * (n % 300) for n in range(500)]}
    )
    start, seen = 0, []
    while start is not None:
        view = plugin.table_rows(frame, start, 1000)
        assert len(str(view)) < 2 * views.CHARACTERS
        seen += [row["n"] for row in view["rows"]]
        start = view.get("next_start")
    assert seen == list(range(500))
    with pytest.raises(CommandError, match="there is no row 500"):
        plugin.table_rows(frame, 500)
    odd = polars.DataFrame({"b": [b"xyz"], "f": [float("nan")]})
    (row,) = plugin.table_rows(odd)["rows"]
    assert row["f"] is None


def test_a_long_cell_is_cut_beside_the_data() -> None:
    """No note stands in a cell, since rows may be handed on; alone, more is shown."""
    long = "".join(map(str, range(1000)))
    rows: list[dict[str, Any]] = [{"n": 1, "t": long, "l": [1] * 999}, {"n": 2}]
    frame = frames.frame_of(rows)
    view = plugin.table_rows(frame)
    (first, second) = view["rows"]
    assert long.startswith(first["t"])
    assert 500 <= len(first["t"]) < len(long)
    assert [
        {"row": 0, "column": "t", "characters": len(long)},
        {"row": 0, "column": "l", "characters": 999 * 3},
    ] == view["cut"]
    assert {"n": 2, "t": None, "l": None} == second
    alone = plugin.table_rows(frame, 0, 1, ["t"])
    assert {"rows": [{"t": long}], "total_rows": 2, "next_start": 1} == alone
    assert "cut" not in plugin.table_rows(frame, 1)


def test_empty_cells_are_no_value() -> None:
    """They are not counted among the distinct ones."""
    frame = polars.DataFrame({"k": [1, 1, 2], "v": ["a", None, None]})
    made: Any = [{"column": "v", "function": "distinct"}]
    grouped = plugin.group_rows(frame, ["k"], made)
    assert [1, 0] == grouped["v_distinct"].to_list()
    assert [1] == [
        it["distinct"] for it in plugin.describe_table(frame, ["v"])["columns"]
    ]


def test_a_sum_that_fits_no_number_is_told() -> None:
    """Not a negative one, as 64 bits would have it."""
    made: Any = [{"column": "v", "function": "sum"}]
    large = polars.DataFrame({"v": [2**62, 2**62]})
    with pytest.raises(CommandError, match="from `i128` to `i64` failed"):
        plugin.group_rows(large, [], made)
    half = polars.DataFrame({"v": [2**62, 2**62 - 1, None]})
    total = plugin.group_rows(half, [], made)
    assert [2**63 - 1] == total["v_sum"].to_list()
    assert total["v_sum"].dtype == polars.Int64


def test_the_ends_of_a_long_text_say_that_they_are_cut() -> None:
    """The beginning of a text is not the least of a column."""
    told = plugin.describe_table(polars.DataFrame({"t": ["x" * 61]}))
    assert "x" * 60 + "… (61 characters)" == told["columns"][0]["min"]


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_tables_of_other_libraries(library: str) -> None:
    """A frame that another plugin made is taken as it is."""
    module = pytest.importorskip(library)
    pytest.importorskip("pyarrow")
    make = module.DataFrame if library == "pandas" else module.table
    made = make({"city": ["Lyon", "Graz"], "n": [1, 2]})
    assert plugin.sort_rows(made, ["n"], True)["city"].to_list() == ["Graz", "Lyon"]


def test_what_is_no_table_is_told() -> None:
    """By the schema already, and by the command where that is passed by."""
    assert "table" in _refused("table_rows", table="x")
    with pytest.raises(CommandError, match="Expected a table, got string"):
        frames.frame_of("x")


CELLS = st.none() | st.integers(-5, 5)
_PYTHON: dict[str, Any] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


@given(
    cells=st.lists(CELLS, min_size=1, max_size=20),
    op=st.sampled_from(sorted(_PYTHON)),
    value=st.integers(-5, 5) | st.floats(-5, 5),
)
@settings(deadline=None, max_examples=60)
def test_filter_is_what_python_does(
    cells: list[int | None], op: str, value: float
) -> None:
    """An empty cell meets no comparison."""
    frame = polars.DataFrame({"n": cells}, schema={"n": polars.Int64})
    kept = plugin.filter_rows(frame, [{"column": "n", "op": op, "value": value}])
    expected = [cell for cell in cells if cell is not None and _PYTHON[op](cell, value)]
    assert expected == kept["n"].to_list()


@given(
    texts=st.lists(st.text(max_size=900), min_size=1, max_size=60),
    count=st.integers(1, 40),
)
@settings(deadline=None, max_examples=40)
def test_pages_together_are_the_table(texts: list[str], count: int) -> None:
    """Whatever is in the cells."""
    frame = polars.DataFrame({"n": range(len(texts)), "text": texts})
    start, seen = 0, []
    while start is not None:
        view = plugin.table_rows(frame, start, count)
        seen += [row["n"] for row in view["rows"]]
        start = view.get("next_start")
    assert seen == list(range(len(texts)))


ODD: dict[str, Any] = {
    "null": [None, None],
    "binary": [b"\xff", b"a"],
    "object": polars.Series([object(), object()], dtype=polars.Object),
    "categorical": polars.Series(["a", "b"], dtype=polars.Categorical),
    "enum": polars.Series(["a", "b"], dtype=polars.Enum(["a", "b"])),
    "duration": [timedelta(1), None],
    "decimal": [Decimal("1.5"), None],
    "date": [date(2026, 1, 1), None],
    "moment": [datetime(2026, 1, 1, tzinfo=UTC), None],
    "time": [time(1), None],
    "list": [[1], [2]],
    "struct": [{"a": 1}, {"a": 2}],
    "array": polars.Series([[1, 2], [3, 4]], dtype=polars.Array(polars.Int64, 2)),
    "large": polars.Series([1, 2**100], dtype=polars.Int128),
    "bool": [True, None],
    "nan": [1.5, float("nan")],
}


@pytest.mark.parametrize("kind", ODD)
def test_each_type_of_column_is_worked_with_or_told(
    kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """No other exception, and nothing of Rust's on the terminal."""
    frame = polars.DataFrame({"x": ODD[kind]})
    assert json.dumps(plugin.describe_table(frame))
    assert json.dumps(plugin.table_rows(frame))
    for value in ("x", 1, True, 2.5):
        for op in ("eq", "gt", "in", "contains"):
            given = [value] if op == "in" else value
            with contextlib.suppress(CommandError):
                plugin.filter_rows(frame, [{"column": "x", "op": op, "value": given}])
    for ending in (".csv", ".json", ".ndjson", ".parquet"):
        with contextlib.suppress(CommandError):
            assert frames.written(frame, ending)
    for function in ("sum", "mean", "median", "std", "min", "distinct"):
        with contextlib.suppress(CommandError):
            plugin.group_rows(frame, [], [{"column": "x", "function": function}])
    for act in (
        lambda: plugin.sort_rows(frame, ["x"]),
        lambda: plugin.group_rows(frame, ["x"], [{"function": "count"}]),
        lambda: plugin.join_tables(frame, frame, ["x"]),
    ):
        with contextlib.suppress(CommandError):
            assert act().width >= 1
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("op", "value", "kept"),
    [
        ("eq", 2.0**53, [0]),
        ("gt", 2.0**53, [1]),
        ("in", [2.0**53, 2.5], [0]),
        ("not_in", [2**53 + 1, 2.5], [0, 2]),
        ("lt", 5.5, [2]),
    ],
)
def test_large_integers_are_told_apart(op: str, value: Any, kept: list[int]) -> None:
    """Also by a number with a point, which a model may write."""
    frame = polars.DataFrame({"n": [0, 1, 2], "id": [2**53, 2**53 + 1, 5]})
    found = plugin.filter_rows(frame, [{"column": "id", "op": op, "value": value}])
    assert kept == found["n"].to_list()


def test_columns_that_became_text_are_told_to_the_model(tmp_path: Path) -> None:
    """Beside the answer, which is the table itself."""
    (tmp_path / "t.json").write_text('[{"a": [1]}, {"a": 2}]', "utf-8")
    result = _call("read_table", tmp_path, file_path="t.json")
    assert result.value["a"].to_list() == ["[1]", "2"]
    assert '"a" holds lists and numbers' in result.warnings[0]


def test_a_name_with_blanks_is_shown_in_quotes(tmp_path: Path) -> None:
    """What nobody sees cannot be written."""
    frame = polars.DataFrame({"a ": [1], "b": [2]})
    with pytest.raises(CommandError, match="Its columns: 'a ', b"):
        plugin.select_columns(frame, ["c"])


def test_a_number_that_is_none_is_an_empty_cell() -> None:
    """It is shown as null; Polars takes it for the greatest number."""
    frame = polars.DataFrame({"f": [2.0, float("nan"), None]})

    def kept(op: str, value: Any) -> list[Any]:
        condition = {"column": "f", "op": op, "value": value}
        return plugin.filter_rows(frame, [condition])["f"].to_list()

    assert kept("gt", 1) == kept("ge", 2) == kept("is_empty", False) == [2.0]
    assert kept("ne", 1) == kept("not_in", [1.0]) == [2.0]
    assert len(kept("is_empty", True)) == 2
    (column,) = plugin.describe_table(frame)["columns"]  # type: ignore[misc]
    assert (column["empty"], column["distinct"], column["mean"]) == (2, 1, 2.0)


def test_the_sum_of_very_large_integers_does_not_wrap() -> None:
    frame = polars.DataFrame({"n": [2**126, 2**126]}, schema={"n": polars.Int128})
    with pytest.raises(CommandError):
        plugin.group_rows(frame, [], [{"column": "n", "function": "sum"}])
    few = polars.DataFrame({"n": [2**100, 1]}, schema={"n": polars.Int128})
    total = plugin.group_rows(few, [], [{"column": "n", "function": "sum"}])
    assert total.item() == 2**100 + 1
