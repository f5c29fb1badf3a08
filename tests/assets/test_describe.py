"""What the model sees of a value: in few words, within a budget."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis import Session, command
from neuraxis.assets.describe import (
    BUDGET,
    FIRST_ITEMS,
    TEXT,
    describe,
    json_size,
    line_of,
    meta_of,
    size_of,
)
from neuraxis.formatting import size_text
from neuraxis.models.scripted import ScriptedModel
from neuraxis.references.asset_ref import AssetRef, parse_reference
from neuraxis.references.path import walk

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.text(max_size=5) | st.text("01/%…\ud800", max_size=3), inner
        )
    ),
    max_leaves=20,
)


class Broken:
    """A closed connection: whatever it is asked for, it raises."""

    @property
    def shape(self) -> Any:
        raise RuntimeError("closed")

    nbytes = width = shape


def _root(value: Any) -> dict[str, Any]:
    return {"content": {"command": "c", "response": value}}


# --- sizes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (1500, "1.5 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (50_000_000, "50 MB"),
        (999_999_999, "1 GB"),
        (2_500_000_000_000, "2500 GB"),
    ],
)
def test_a_size_is_told_in_a_few_characters(count: int, told: str) -> None:
    """Three digits and a unit; never as 1e+03."""
    assert size_text(count) == told


@given(st.integers(0, 10**12))
def test_a_size_is_told_to_one_in_a_hundred(count: int) -> None:
    """Read again, it is the size, rounded."""
    number, unit = size_text(count).split()
    scale = {"byte": 1, "bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
    assert float(number) * scale == pytest.approx(count, rel=0.006)


@given(JSON, st.integers(0, 100))
def test_what_is_above_the_limit_is_above_it(value: Any, most: int) -> None:
    """Counting stops early, and says the same of whether it fits."""
    assert (size_of(value, most) > most) == (size_of(value) > most)


def test_a_container_is_counted_once() -> None:
    """One that holds itself has a size; so has one that many point to."""
    row = ["x" * 1000]
    assert size_of([row] * 50) == size_of([row])
    row.append(row)  # type: ignore[arg-type]
    assert 1000 <= size_of(row) < 1100


def test_the_parts_of_an_object_are_its_size() -> None:
    """Keys and values."""
    assert size_of({"k" * 500: "v" * 500}) >= 1000
    assert size_of([b"x" * 500, (bytearray(500), memoryview(b"y" * 500))]) >= 1500


@pytest.mark.parametrize("value", ["text", True, 0, 1.5, None, [1, "a"], {"a": {}}])
def test_the_size_of_what_is_said(value: Any) -> None:
    """About that of its text, never less for what is large."""
    assert json_size(value) > 0
    assert json_size([value] * 500) >= 500
    assert json_size(10**400) > 400
    assert json_size("x" * 400) == 400


def test_libraries_say_their_own_size() -> None:
    """As each of them calls it."""
    numpy = pytest.importorskip("numpy")
    pictures = pytest.importorskip("PIL.Image")
    polars = pytest.importorskip("polars")
    assert size_of(numpy.zeros(100)) == 800
    assert size_of(pictures.new("RGB", (10, 10))) == 300
    assert size_of(pictures.new("L", (10, 10))) == 100
    assert size_of(polars.DataFrame({"a": range(100)})) >= 800


# --- one value ----------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, True, 0, -1.5, "", "x" * TEXT, 10**299])
def test_a_short_scalar_is_itself(value: Any) -> None:
    """Nothing is said around it."""
    assert describe(value) is value


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (10**301, "an integer of 1000 bits"),
        (-(1 << 5000), "an integer of 5001 bits"),
        ("é" * (TEXT + 1), "é" * TEXT + f"… ({TEXT + 1} characters)"),
        (b"abc", "<class 'bytes'> 3 bytes"),
        (memoryview(bytearray(8)).cast("I"), "<class 'memoryview'> 8 bytes"),
        ([1], "<class 'list'>"),
        ({}, "<class 'dict'>"),
    ],
)
def test_anything_else_is_told(value: Any, told: str) -> None:
    """What it is, and how much of it."""
    assert describe(value) == told


@pytest.mark.parametrize("value", [Broken(), Mock(), Mock(num_rows=3), type, len])
def test_an_object_that_says_nothing_is_told_by_its_class(value: Any) -> None:
    """Also one that raises when it is asked; what it says is no size, is none."""
    assert describe(value).startswith("<class ")
    assert size_of(value) == 100


def test_an_object_that_raises_is_no_failure_of_its_command() -> None:
    """The command worked: its answer is kept."""

    @command(effects="read")
    def connect() -> Any:
        return Broken()

    model = ScriptedModel([json.dumps([{"tool": "connect"}]), "ok"])
    with Session(model=model, plugins=[connect]) as session:
        (result,) = session.run_sync("go").calls
    assert (result.status, result.stored) == ("done", True)


def test_a_lazy_table_is_not_resolved() -> None:
    """Its schema may take reading a file; polars warns of each look at it."""
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame({"a": [1]}).lazy()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert describe(lazy) == "<class 'polars.lazyframe.frame.LazyFrame'>"
        size_of(lazy)
    assert warned == []


def test_a_wide_table_is_told_in_bounds() -> None:
    """The first columns, and how many more there are."""
    polars = pytest.importorskip("polars")
    told = describe(polars.DataFrame({f"column {n}": [n] for n in range(100)}))
    assert "1 rows, 100 columns: column 0 Int64, column 1 Int64" in told
    assert len(told) < 300
    shown = told.count("Int64")
    assert told.endswith(f"({100 - shown} more)")


# --- the meta --------------------------------------------------------------------


@given(JSON)
def test_B56_a_path_of_the_meta_is_a_reference(value: Any) -> None:
    """Behind `asset://ID/` it leads to what is told there."""
    root = _root(value)
    for path, told in meta_of("a1", root).items():
        if path in ("asset_id", "content_type") or path.endswith("…"):
            continue
        ref = parse_reference(f"asset://a1/{path}")
        assert isinstance(ref, AssetRef)
        here = describe(walk(root, ref.field_path))
        if here == "<class 'dict'>":  # an item's fields may follow
            assert str(told).startswith(here)
        else:
            assert repr(here) == repr(told)


@given(JSON, st.integers(130, 600))
def test_B56_any_budget_is_kept(value: Any, budget: int) -> None:
    """And the id and the type are always there."""
    meta = meta_of("a1", _root(value), budget=budget)
    assert len(json.dumps(meta, ensure_ascii=False)) <= budget
    assert (meta["asset_id"], meta["content_type"]) == ("a1", "dict")


def test_B56_what_is_left_out_is_said() -> None:
    """How many of how many are shown; nothing where all are."""
    whole = meta_of("a1", _root([1, 2, 3]))
    assert whole["content/response/2"] == 3
    assert not [path for path in whole if path.endswith("…")]
    cut = meta_of("a1", _root([1, 2, 3, 4]))
    assert cut["content/response/…"] == f"shown {FIRST_ITEMS} of 4"
    assert "content/response/3" not in cut


def test_B56_what_is_near_the_root_comes_first() -> None:
    """A deep first field does not hide the others."""
    deep = {"a": {"b": {"c": 1}}, "d": {"e": 2}, "f": 3}
    meta = meta_of("a1", _root(deep), budget=1000)
    below = "content/response"
    shown = [path.removeprefix(f"{below}/") for path in meta if f"{below}/" in path]
    assert shown == ["a", "d", "f", "a/b", "d/e", "a/b/c"]


def test_B56_what_a_person_attached_may_be_anything() -> None:
    """A scalar has one line, and no places below it."""
    meta = meta_of("a1", {"content": 5})
    assert meta == {"asset_id": "a1", "content_type": "int", "content": 5}


@given(JSON)
def test_B55_the_shortest_form_is_short(value: Any) -> None:
    """An id and one line, whatever the answer is."""
    line = line_of("a1", _root(value))
    assert list(line) == ["asset_id", "content/response"]
    assert len(str(line["content/response"])) <= 120
    assert len(json.dumps(line, ensure_ascii=False)) <= BUDGET


def test_B56_of_a_wide_table_the_first_columns_are_told() -> None:
    """What does not fit is cut behind a name; the number of columns is always there."""
    polars = pytest.importorskip("polars")
    for width in (3, 7, 40, 500):
        frame = polars.DataFrame({f"column_{n}": [1.0] for n in range(width)})
        meta = meta_of("a1", {"content": {"command": "read_table", "response": frame}})
        told = meta["content/response"]
        assert f"1 rows, {width} columns: column_0 Float64, " in told
        assert (width > 3) == told.endswith(", …")
        assert meta["content/command"] == "read_table"
        assert len(json.dumps(meta, ensure_ascii=False)) <= BUDGET


def test_B56_of_a_text_the_beginning_is_told_whatever_is_in_it() -> None:
    """Line breaks and quotes take twice the room as JSON, and cut it sooner."""
    text = '"\n' * 5000
    meta = meta_of("a1", {"content": {"command": "read, " * 12, "response": text}})
    told = meta["content/response"]
    assert told.endswith("…")
    assert text.startswith(told[:-1])
    assert len(json.dumps(meta, ensure_ascii=False)) <= BUDGET
