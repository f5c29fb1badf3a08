"""Tables and arrays of one library where a command wants another's."""

from __future__ import annotations

import datetime
import json
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pytest

from neuraxis import Session, command
from neuraxis.assets.frames import as_library, library_of, may_become
from neuraxis.models.scripted import ScriptedModel

CLASSES = {
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.Table,
    "numpy": numpy.ndarray,
}
VALUES = {
    "pandas": pandas.DataFrame({"a": [1, 2], "b": [3, 4]}),
    "polars": polars.DataFrame({"a": [1, 2], "b": [3, 4]}),
    "pyarrow": pyarrow.table({"a": [1, 2], "b": [3, 4]}),
    "numpy": numpy.array([[1, 3], [2, 4]]),
}


def _name(library: str) -> str:
    cls: Any = CLASSES[library]
    return f"{cls.__module__}.{cls.__qualname__}"


@pytest.mark.parametrize("given", CLASSES)
@pytest.mark.parametrize("wanted", CLASSES)
def test_each_becomes_each(given: str, wanted: str) -> None:
    """With the same numbers in the same places."""
    assert library_of(_name(given)) == given
    assert may_become(_name(given), _name(wanted))
    if given == wanted:
        return
    made = as_library(VALUES[given], _name(wanted))
    assert isinstance(made, CLASSES[wanted])
    rows = as_library(made, _name("numpy")) if wanted != "numpy" else made
    assert rows.tolist() == [[1, 3], [2, 4]]


def test_three_dimensions_are_no_table() -> None:
    """There is no one way to lay them out."""
    with pytest.raises(ValueError, match="two dimensions"):
        as_library(numpy.zeros((2, 2, 2)), _name("pyarrow"))


def test_other_classes_are_left_alone() -> None:
    """A picture is no table, and what is not imported is not judged."""
    assert not may_become(_name("pandas"), "decimal.Decimal")
    assert may_become("some.where.Thing", "else.where.Thing")
    with pytest.raises(LookupError):
        as_library(1, _name("pandas"))


@command(effects="read")
def prices() -> polars.DataFrame:
    """Prices of today."""
    return polars.DataFrame({"price": [2, 3]})


@command(effects="read")
def total(table: pandas.DataFrame) -> int:
    """Sum of a column."""
    return int(table["price"].sum())


RAN: list[str] = []


@command(effects="read")
def today() -> datetime.tzinfo:
    """An object that is no table."""
    RAN.append("today")
    return datetime.UTC


def _session(first: str, *plugins: Any) -> tuple[Session, ScriptedModel]:
    plan = [{"tool": first}, {"tool": "total", "table": "{{ previous_result }}"}]
    text = f"```json\n{json.dumps(plan)}\n```"
    model = ScriptedModel([text, "Done."])
    return Session(model, plugins=list(plugins)), model


def test_N9_a_chain_goes_from_library_to_library() -> None:
    """A Polars table is handed on where pandas is wanted (N7)."""
    session, _ = _session("prices", prices, total)
    with session:
        answer = session.run_sync("The sum?")
    assert [call.error for call in answer.calls] == [None, None]
    assert answer.calls[1].value == 5


def test_N9_what_can_never_be_a_table_is_told_before_anything_runs() -> None:
    """The plan check knows the classes of results."""
    session, model = _session("today", today, total)
    with session:
        session.run_sync("The sum?")
    assert "the class datetime.tzinfo" in model.prompts[-1].messages[-1].content
    assert not RAN


def test_the_index_of_pandas_becomes_a_column_of_polars() -> None:
    """Group keys are there; polars has no index."""
    grouped = pandas.DataFrame({"city": ["Lyon"], "n": [1]}).groupby("city").sum()
    made = as_library(grouped, _name("polars"))
    assert made.to_dicts() == [{"city": "Lyon", "n": 1}]


def test_periods_and_intervals_become_texts() -> None:
    """And not the number of months since 1970."""
    frame = pandas.DataFrame(
        {
            "month": pandas.PeriodIndex(["2024-01", None], freq="M"),
            "age": pandas.cut([5, 15], [0, 10, 20]),
        }
    )
    assert as_library(frame, _name("polars")).rows() == [
        ("2024-01", "(0, 10]"),
        (None, "(10, 20]"),
    ]


def test_a_period_in_a_column_without_a_text_as_name_becomes_text() -> None:
    """Pandas numbers the columns of a frame that was given none."""
    frame = pandas.DataFrame({0: pandas.PeriodIndex(["2024-01"], freq="M")})
    assert as_library(frame, _name("polars")).rows() == [("2024-01",)]
    assert str(frame.dtypes[0]) == "period[M]"  # the given one is as it was


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_large_integers_beside_empty_cells_stay_exact(library: str) -> None:
    """Pandas would make them fractions."""
    unsigned = pyarrow.array([2**64 - 1, None], pyarrow.uint64())
    table = pyarrow.table({"id": [2**53 + 1, None], "u": unsigned})
    given = polars.from_arrow(table) if library == "polars" else table
    made = as_library(given, _name("pandas"))
    assert made["id"].tolist() == [2**53 + 1, pandas.NA]
    assert made["u"].tolist() == [2**64 - 1, pandas.NA]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_an_array_does_not_round_integers(library: str) -> None:
    """It has one type for all columns."""
    cells = {"id": [2**53 + 1, 1], "share": [0.5, 1.0]}
    given: Any = CLASSES[library]
    with pytest.raises(ValueError, match="'id' holds integers of more than 15 digits"):
        as_library(given(cells), _name("numpy"))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pandas.DataFrame({"a": [1j]}), "pyarrow"),
        (
            polars.DataFrame({"a": polars.Series([2**100], dtype=polars.Int128)}),
            "numpy",
        ),
    ],
)
def test_what_a_library_cannot_hold_is_a_value_error(given: Any, wanted: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        as_library(given, _name(wanted))
