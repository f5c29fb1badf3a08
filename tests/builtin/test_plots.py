"""The plugin `plots`: a table in, a picture out, the same each time."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from neuraxis.builtin.plots import fonts, plugin
from neuraxis.errors import CommandError
from neuraxis.plugins.context import Context
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


# --- what a person sees ---------------------------------------------------------


@pytest.fixture
def axes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The axes of each plot, in the end with what is drawn on them."""
    drawn: list[Any] = []
    whole = plugin._picture  # pyright: ignore[reportPrivateUsage]

    def picture(figure: Any, axes: Any, *rest: Any) -> Any:
        drawn.append(axes)
        return whole(figure, axes, *rest)

    monkeypatch.setattr(plugin, "_picture", picture)
    return drawn


@pytest.mark.parametrize(
    "days",
    [
        ["2026-01-05", "2026-01-01", None, "2026-01-03"],
        ["2026-01-05T00:00", "2026-01-01T00:00", None, "2026-01-03T00:00"],
    ],
)
def test_dates_as_text_are_dates_in_their_order(
    days: list[str | None], axes: list[Any]
) -> None:
    """JSON has no other; a line over time does not run back."""
    table = [{"d": day, "n": n} for n, day in enumerate(days)]
    plugin.plot_line(table, "d", "n")
    across = [day for day in axes[0].lines[0].get_xdata() if day is not None]
    assert [day.day for day in across] == [1, 3, 5]


def test_texts_that_are_no_dates_have_places(axes: list[Any]) -> None:
    """One that is none is enough."""
    for last in ("2026-13-40", "soon"):
        plugin.plot_line([{"d": "2026-01-01", "n": 1}, {"d": last, "n": 2}], "d", "n")
        assert list(axes[-1].lines[0].get_xdata()) == [0, 1]


def test_numbers_along_the_axes_are_written_out(axes: list[Any]) -> None:
    """No year is 2019.5, and no scale is 1 with 1e6 or +1234567890 far off."""
    for first in (1_000_000, 1_234_567_890):
        table = [{"y": 2019 + n, "v": first + n} for n in range(4)]
        plugin.plot_line(table, "y", "v")
        years = [text.get_text() for text in axes[-1].get_xticklabels()]
        assert {"2019", "2020", "2021", "2022"} <= set(years)
        assert not any("." in year for year in years)
        values = [text.get_text() for text in axes[-1].get_yticklabels()]
        assert str(first) in [value.partition(".")[0] for value in values]


def test_a_value_between_gaps_is_seen(axes: list[Any]) -> None:
    """A line alone would not show it; that all is empty is told."""
    plugin.plot_line([{"x": n, "y": [1, None, 3][n]} for n in range(3)], "x", "y")
    assert axes[0].lines[0].get_marker() == "."
    with pytest.raises(CommandError, match="All cells of y are empty"):
        plugin.plot_line(polars.DataFrame({"x": [1], "y": [None]}).cast(int), "x", "y")


def test_many_lines_and_bars_can_be_told_apart(axes: list[Any]) -> None:
    """The colours begin anew after ten; not each of many bars has a label."""
    names = [f"c{n}" for n in range(12)]
    table = [{"x": x, **dict.fromkeys(names, x)} for x in range(3)]
    plugin.plot_line(table, "x", names)
    looks = {(line.get_color(), line.get_linestyle()) for line in axes[0].lines}
    assert len(looks) == 12
    plugin.plot_bar([{"x": x, "y": x - 5} for x in range(120)], "x", "y")
    assert len(axes[1].get_xticks()) == 40
    assert len(axes[1].lines) == 1  # at 0, since some bars go down


def test_moments_at_midnight_are_days(axes: list[Any]) -> None:
    """Twenty times 00:00:00 says nothing."""
    for hour, label in ((0, "2026-01-01"), (7, "2026-01-01 07:00:00")):
        frame = polars.DataFrame({"d": [f"2026-01-01T{hour:02}:00"], "n": [1]})
        frame = frame.with_columns(polars.col("d").str.to_datetime())
        plugin.plot_bar(frame, "d", "n")
        assert axes[-1].get_xticklabels()[0].get_text() == label


def test_a_long_title_is_on_several_lines(axes: list[Any]) -> None:
    """It would be cut at the border."""
    plugin.plot_line([{"x": 1, "y": 2}], "x", "y", title="words and $ " * 15)
    assert axes[0].get_title().count("\n") >= 2


def test_signs_without_a_font_are_told(
    axes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the title, the names and along the axis; no warning is printed."""
    told: list[str] = []
    context = Context(workspace=Path(), warn=told.append)
    monkeypatch.setattr(fonts, "_FAMILIES", ())
    table = [{"\ufdd0x": "\ufdd1y", "n": 1}]
    for plot in (plugin.plot_bar, plugin.plot_scatter):
        fonts._others.cache_clear()  # pyright: ignore[reportPrivateUsage]
        told.clear()
        plot(table, "\ufdd0x", "n", title="\ufdd2z", context=context)
        assert axes[-1].get_xlabel() == "□x"
        assert axes[-1].get_xticklabels()[0].get_text() == "□y"
        assert axes[-1].get_title() == "□z"
        assert "No font of this computer has the signs" in told[0]
        assert len(told) == 1


def test_another_font_has_the_signs(
    axes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for those only that the usual one lacks."""
    signs = fonts._signs_of  # pyright: ignore[reportPrivateUsage]
    sign = chr(min(signs("STIXGeneral") - signs(fonts.OWN)))
    monkeypatch.setattr(fonts, "_FAMILIES", ("STIXGeneral",))
    fonts._others.cache_clear()  # pyright: ignore[reportPrivateUsage]
    told: list[str] = []
    context = Context(workspace=Path(), warn=told.append)
    plugin.plot_bar([{"x": sign, "n": 1}], "x", "n", context=context)
    assert not told
    label = axes[0].get_xticklabels()[0]
    assert (label.get_text(), label.get_fontfamily()[1]) == (sign, "STIXGeneral")
    assert axes[0].yaxis.label.get_fontfamily() != label.get_fontfamily()
