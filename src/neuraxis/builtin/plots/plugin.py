"""Plot a table's columns as pictures with matplotlib.

Only its object interface is used (`Figure`, the Agg canvas): `pyplot` stores figures in
the process, and concurrent commands would draw into each other's.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from typing import Any

from neuraxis.builtin.plots import fonts
from neuraxis.builtin.tables.frames import (
    check_columns,
    errors_for_model,
    frame_of,
    library,
)
from neuraxis.builtin.workspace import NOBODY
from neuraxis.errors import CommandError, needed
from neuraxis.plugins.context import Context

MOST_POINTS = 1_000_000
MOST_BARS = 200
FEW = 60
"""Maximum values of a line whose points are also drawn."""
MOST_IN_LEGEND = 8
MOST_BAR_LABELS = 50
_MOMENT = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?$"
_STROKES = ("-", "--", ":", "-.")
MOST_LABELS = 30
"""Maximum tick labels: more are unreadable, and each costs milliseconds."""
DPI = 100
_Names = str | list[str]


def plot_line(
    table: Any,
    x: str,
    y: _Names,
    title: str = "",
    width: int = 800,
    height: int = 500,
    context: Context = NOBODY,
) -> Any:
    """Plot lines of one or more columns over another."""
    return _over(table, x, y, (width, height, title), _line, context)


def plot_scatter(
    table: Any,
    x: str,
    y: _Names,
    title: str = "",
    width: int = 800,
    height: int = 500,
    context: Context = NOBODY,
) -> Any:
    """Plot a point for each row."""
    return _over(table, x, y, (width, height, title), _points, context)


def plot_bar(
    table: Any,
    x: str,
    y: _Names,
    title: str = "",
    width: int = 800,
    height: int = 500,
    context: Context = NOBODY,
) -> Any:
    """Plot a bar for each row, grouped for several columns."""
    frame, names = _columns(table, x, y, MOST_BARS)
    figure, axes = _figure(width, height, title)
    places = range(frame.height)
    broad = 0.8 / len(names)
    for number, name in enumerate(names):
        shift = (number - (len(names) - 1) / 2) * broad
        axes.bar(
            [place + shift for place in places],
            _numbers(frame, name),
            broad,
            label=_plain(name),
        )
    if any(value < 0 for name in names for value in _numbers(frame, name)):
        axes.axhline(0, color="black", linewidth=0.8)
    step = -(-frame.height // MOST_BAR_LABELS)
    labels = [_text(item) for item in _days(frame[x]).to_list()]
    _label(axes, places[::step], labels[::step])
    return _picture(figure, axes, x, names, context)


def plot_histogram(
    table: Any,
    column: str,
    bins: int = 20,
    title: str = "",
    width: int = 800,
    height: int = 500,
    context: Context = NOBODY,
) -> Any:
    """Plot the distribution of a column's values over bins."""
    frame = frame_of(table)
    check_columns(frame, [column])
    _check_numbers(frame, column)
    figure, axes = _figure(width, height, title)
    with errors_for_model():
        values = frame[column].drop_nulls().drop_nans()
        if values.dtype.is_float():
            values = values.filter(values.is_finite())
    if not values.len():
        raise CommandError(f"The column {column!r} holds no number.")
    with errors_for_model():
        values = values.cast(library().Float64)  # Booleans have no ranges.
    try:
        axes.hist(values.to_numpy(), bins=bins, edgecolor="white")
    # The numbers are too close to each other, or too large.
    except ValueError as error:
        raise CommandError(f"The column {column!r} cannot be drawn: {error}") from None
    return _picture(figure, axes, column, ["count"], context)


def _over(
    table: Any,
    x: str,
    y: _Names,
    shape: tuple[int, int, str],
    pen: Callable[..., None],
    context: Context,
) -> Any:
    """Draw each column of `y` over `x` with `pen`."""
    frame, names = _columns(table, x, y)
    moments = _moments(frame[x])
    frame = frame.with_columns(moments)
    if pen is _line and moments.dtype.is_temporal():
        frame = frame.sort(x, maintain_order=True)  # Time must increase along the axis.
    figure, axes = _figure(*shape)
    across = _across(axes, frame[x])
    for number, name in enumerate(names):
        pen(axes, across, _numbers(frame, name), label=_plain(name), number=number)
    return _picture(figure, axes, x, names, context)


def _line(
    axes: Any, across: list[Any], values: list[float], label: str, number: int
) -> None:
    stroke = _STROKES[number // 10 % len(_STROKES)]  # There are ten colours.
    # A value between two gaps has no line: few values get points, too.
    marker = "." if len(values) <= FEW else ""
    axes.plot(across, values, label=label, linestyle=stroke, marker=marker)


def _points(
    axes: Any, across: list[Any], values: list[float], label: str, number: int
) -> None:
    axes.scatter(across, values, label=label, s=12)


def _moments(column: Any) -> Any:
    """Return a text column as dates if all its values are."""
    polars = library()
    if column.dtype != polars.String or column.null_count() == column.len():
        return column
    for kind, form in ((polars.Date, r"^\d{4}-\d\d-\d\d$"), (polars.Datetime, _MOMENT)):
        if column.str.contains(form).all():
            parsed = column.str.strptime(kind, strict=False)
            return parsed if parsed.null_count() == column.null_count() else column
    return column


def _days(column: Any) -> Any:
    """Return datetimes that are all midnight as dates."""
    polars = library()
    if not isinstance(column.dtype, polars.Datetime):
        return column
    return column.dt.date() if (column.dt.time() == time()).all() else column


def _across(axes: Any, column: Any) -> list[Any]:
    """Return the x value of each row: number, date or position."""
    polars = library()
    if column.dtype == polars.Time:
        dates = needed("matplotlib.dates", "plots", "Drawing a plot")
        axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M"))
        day = date(2000, 1, 1)
        return [
            item if item is None else datetime.combine(day, item) for item in column
        ]
    if column.dtype == polars.Duration:
        raise CommandError(
            f"The column {column.name!r} holds {column.dtype}; expected numbers, "
            "dates, times or texts."
        )
    if column.dtype.is_numeric() or column.dtype.is_temporal():
        if column.dtype.is_integer():  # An axis must not label a year 2019.5.
            ticker = needed("matplotlib.ticker", "plots", "Drawing a plot")
            axes.xaxis.set_major_locator(ticker.MaxNLocator("auto", integer=True))
        return column.to_list()
    texts = ["" if item is None else str(item) for item in column.to_list()]
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    step = -(-len(places) // MOST_LABELS)
    labels = [_text(text) for text in list(places)[::step]]
    _label(axes, range(0, len(places), step), labels)
    return [places[text] for text in texts]


def _text(item: Any) -> str:
    """Return a value as a label."""
    return "" if item is None else _plain(str(item)[:40])


def _label(axes: Any, places: Sequence[int], labels: Sequence[str]) -> None:
    """Set tick labels, rotated where they would overlap."""
    axes.set_xticks(list(places), labels)
    if len(labels) > 6 or any(len(label) > 12 for label in labels):
        axes.tick_params(axis="x", labelrotation=90 if len(labels) > 12 else 30)


def _columns(
    table: Any, x: str, y: _Names, most: int = MOST_POINTS
) -> tuple[Any, Sequence[str]]:
    """Return the table's frame and the columns to draw."""
    frame = frame_of(table)
    names = [y] if isinstance(y, str) else y
    if not names:
        raise CommandError("y: expected at least one column.")
    check_columns(frame, [x, *names])
    for name in names:
        _check_numbers(frame, name)
    if frame.height * len(names) > most:
        raise CommandError(
            f"{frame.height} rows are too many for this plot, at most "
            f"{most // len(names)} are drawn: group or filter the table first, or plot "
            "a histogram."
        )
    if not frame.height:
        raise CommandError("The table has no rows: there is nothing to draw.")
    if all(frame[name].null_count() == frame.height for name in names):
        raise CommandError(
            f"All cells of {' and '.join(names[:5])} are empty: there is nothing to "
            "draw."
        )
    return frame, names


def _check_numbers(frame: Any, name: str) -> None:
    kind = frame.schema[name]
    if not kind.is_numeric() and kind != library().Boolean:
        raise CommandError(f"The column {name!r} holds {kind}; expected numbers.")


def _numbers(frame: Any, name: str) -> list[float]:
    """Return the column's values; an empty cell is a gap."""
    return [float("nan") if item is None else float(item) for item in frame[name]]


def _plain(text: str) -> str:
    """Escape a text for matplotlib: `$` would begin a formula."""
    text = text.replace("$", r"\$")
    # Matplotlib omits a label with a leading underscore from the legend.
    return f"\u200b{text}" if text.startswith("_") else text


def _figure(width: int, height: int, title: str) -> tuple[Any, Any]:
    figures = needed("matplotlib.figure", "plots", "Drawing a plot")
    figure = figures.Figure(
        figsize=(width / DPI, height / DPI), dpi=DPI, layout="constrained"
    )
    axes = figure.add_subplot()
    if title:
        lines = textwrap.wrap(title, max(20, width // 9))
        axes.set_title("\n".join(_plain(line) for line in lines))
    return figure, axes


def _picture(
    figure: Any, axes: Any, across: str, names: Sequence[str], context: Context
) -> Any:
    """Return the figure as a picture for the commands of `images`."""
    agg = needed("matplotlib.backends.backend_agg", "plots", "Drawing a plot")
    image = needed("PIL.Image", "plots", "Drawing a plot")
    axes.set_xlabel(_plain(across))
    if len(names) == 1:
        axes.set_ylabel(_plain(names[0]))
    elif len(names) <= MOST_IN_LEGEND:
        axes.legend()
    else:  # Placed next to the plot, since it would hide the lines.
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    for axis in (axes.xaxis, axes.yaxis):
        form = axis.get_major_formatter()
        # Shows 1000000, not 1.0 with a distant 1e6.
        if hasattr(form, "set_powerlimits"):
            form.set_powerlimits((-4, 12))
            form.set_useOffset(False)
    canvas = agg.FigureCanvasAgg(figure)
    try:
        fonts.fit(figure, context.warn)
        canvas.draw()
    # Matplotlib cannot show the year 9999.
    except (ValueError, OverflowError) as error:
        raise CommandError(f"The plot cannot be drawn: {error}") from None
    size = canvas.get_width_height()
    drawn = image.frombytes("RGBA", size, bytes(canvas.buffer_rgba()))
    return drawn.convert("RGB")
