"""The plugin `plots`: a table in, a picture out, the same each time."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest

from neuraxis.builtin.plots import plugin
from neuraxis.errors import CommandError
from neuraxis.testing import call

polars: Any = pytest.importorskip("polars")
pytest.importorskip("matplotlib")

TABLE = [
    {"month": "Jan", "income": 5, "costs": 3.5, "_x": True},
    {"month": "$Feb$ ^{", "income": None, "costs": 4.0, "_x": False},
    {"month": "Mar", "income": 7, "costs": float("nan"), "_x": True},
]


@pytest.mark.parametrize("command", ["plot_line", "plot_bar", "plot_scatter"])
@pytest.mark.parametrize("y", ["income", ["income", "costs", "_x"]])
def test_a_plot_is_a_picture(command: str, y: Any) -> None:
    """Of the size asked for; empty cells are gaps, dollars no formulas."""
    frame = polars.DataFrame(TABLE)
    made = getattr(plugin, command)(frame, "month", y, "$5 $x^", 640, 400)
    assert (made.size, made.mode) == ((640, 400), "RGB")
    assert len(made.getcolors(1 << 20)) > 10


def test_a_histogram() -> None:
    """What is no number is left out."""
    frame = polars.DataFrame({"n": [1.0, 2.0, None, float("inf"), float("nan")]})
    assert plugin.plot_histogram(frame, "n", 5).size == (800, 500)
    with pytest.raises(CommandError, match="holds no number"):
        plugin.plot_histogram(frame.head(0), "n")


def test_dates_are_an_axis() -> None:
    """A column of dates along the bottom."""
    days = polars.DataFrame({"n": range(90)}).with_columns(
        day=polars.date_range(
            polars.date(2026, 1, 1), polars.date(2026, 3, 31), eager=True
        )
    )
    assert plugin.plot_line(days, "day", "n").size == (800, 500)


def test_times_of_day_are_an_axis() -> None:
    """As `read_table` reads 10:00; an empty cell is a gap."""
    frame = polars.DataFrame({"at": ["10:00", None, "18:30"], "n": [1, 2, 3]})
    frame = frame.with_columns(polars.col("at").str.to_time("%H:%M"))
    assert plugin.plot_line(frame, "at", "n").size == (800, 500)
    with pytest.raises(CommandError, match="holds Duration"):
        plugin.plot_line(frame.with_columns(polars.col("at").diff()), "at", "n")


@pytest.mark.parametrize(
    "across", [["a", None, "c"], [[1], [2], None], [{"k": 1}, None, {"k": 2}]]
)
def test_what_is_no_number_has_places(across: list[Any]) -> None:
    """Also an empty cell."""
    frame = polars.DataFrame({"x": across, "n": [1, 2, 3]})
    assert plugin.plot_scatter(frame, "x", "n").size == (800, 500)


def test_many_texts_along_the_bottom_cost_no_minutes() -> None:
    """A few of them are written; equal beginnings are not the same place."""
    names = [f"{'a' * 40}{n}" for n in range(20_000)]
    frame = polars.DataFrame({"x": names, "n": range(20_000)})
    start = time.monotonic()
    drawn = plugin.plot_line(frame, "x", "n")
    assert time.monotonic() - start < 10
    same = plugin.plot_line(frame.with_columns(x=polars.lit("a" * 40)), "x", "n")
    assert drawn.tobytes() != same.tobytes()


def test_a_histogram_of_truth_values_and_of_what_has_no_ranges() -> None:
    """matplotlib's own errors say nothing to a model."""
    assert plugin.plot_histogram(polars.DataFrame({"n": [True, False]}), "n").size
    close = polars.DataFrame({"n": [1e16, 1e16 + 2]})
    with pytest.raises(CommandError, match="'n' cannot be drawn"):
        plugin.plot_histogram(close, "n")


def test_a_date_that_no_axis_holds_is_told() -> None:
    """Exports write 9999-12-31 for never."""
    frame = polars.DataFrame({"d": [date(1, 1, 1), date(9999, 12, 31)], "n": [1, 2]})
    with pytest.raises(CommandError, match="cannot be drawn"):
        plugin.plot_line(frame, "d", "n")


@pytest.mark.parametrize("command", ["plot_line", "plot_bar", "plot_scatter"])
def test_no_column_is_told(command: str) -> None:
    """Neither an empty picture nor a division by zero."""
    with pytest.raises(CommandError, match="at least one column"):
        getattr(plugin, command)(TABLE, "month", [])


def test_the_same_table_is_the_same_picture_also_in_threads() -> None:
    """No state is shared: two plots at once do not draw into each other."""
    frame = polars.DataFrame({"a": range(50), "b": [n * n for n in range(50)]})

    def draw(number: int) -> bytes:
        return plugin.plot_line(frame, "a", "b", f"{number % 2}", 300, 200).tobytes()

    with ThreadPoolExecutor(4) as threads:
        drawn = list(threads.map(draw, range(8)))
    assert len(set(drawn)) == 2
    assert drawn[0] == drawn[2] == drawn[6]
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"x": "month", "y": "month"}, "expected numbers"),
        ({"x": "mont", "y": "costs"}, "Did you mean month?"),
        ({"x": "month", "y": "cost"}, "Did you mean costs?"),
        ({"x": "month", "y": "costs", "width": 100_000}, "width"),
        ({"x": "month", "y": []}, "y"),
    ],
)
def test_what_cannot_be_drawn_is_told(arguments: dict[str, Any], said: str) -> None:
    """By the schema or by the command."""
    result = call("neuraxis:plots", "plot_bar", {"table": TABLE[:1], **arguments})
    assert result.error is not None
    assert said in result.error.message


def test_too_much_is_told() -> None:
    """A bar for each of 100,000 rows is no picture."""
    frame = polars.DataFrame({"a": range(100_000)})
    with pytest.raises(CommandError, match="at most 200"):
        plugin.plot_bar(frame, "a", "a")
    with pytest.raises(CommandError, match="no rows"):
        plugin.plot_line(frame.head(0), "a", "a")
