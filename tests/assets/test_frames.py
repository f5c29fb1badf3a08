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
