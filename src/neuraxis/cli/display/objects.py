"""Tables and pictures on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuraxis.assets.frames import as_library, library_of
from neuraxis.cli.display.text import echo, echo_json, least_width, one_line, short
from neuraxis.cli.standard_output import stdout
from neuraxis.formatting import counted
from neuraxis.formatting import digits as digits_of

if TYPE_CHECKING:
    from rich.console import RenderableType

ROWS, COLUMNS = 10, 8
"""Maximum rows and columns shown of a table."""
_CELL, _BORDER = 40, 3
"""Maximum characters of a cell, and the width of the gap between two."""
_WIDTH, _HEIGHT = 60, 40
"""Maximum cells of a picture; each shows two pixels vertically."""


def shown(value: Any, width: int) -> RenderableType | None:
    """Return a table or picture for a terminal's width, else None."""
    cls: type[Any] = value.__class__
    name = f"{cls.__module__}.{cls.__qualname__}"
    if library_of(name) in ("pandas", "polars", "pyarrow"):
        try:
            return _table(as_library(value, "polars.DataFrame"), width)
        except (ImportError, ValueError):
            return None
    if any(base.__module__ == "PIL.Image" for base in cls.__mro__):
        return _picture(value)
    return None


def print_object(value: Any) -> bool:
    """Print a table or picture; return whether it is one."""
    from rich.console import Console  # slow to import

    console = Console(file=stdout(), highlight=False)
    rendered = shown(value, console.width)
    if rendered is None:
        return False
    console.print(rendered)
    return True


def print_value(value: Any) -> None:
    """Print a result as text, or as JSON if it has any."""
    if isinstance(value, str):
        echo(value)
    elif value is None or isinstance(value, bool | int | float | list | tuple | dict):
        echo_json(value, indent=2)
    elif not (stdout().isatty() and print_object(value)):
        echo(str(value))


def digits(value: Any) -> str:
    """Return a cell as short text: six significant digits."""
    if value is None:
        return ""
    if isinstance(value, float):
        return digits_of(value)
    # a date has no JSON, and needs no quotes
    is_json = isinstance(value, bool | int | list | dict)
    text = short(value, _CELL) if is_json else str(value)
    return one_line(text if len(text) <= _CELL else text[: _CELL - 1] + "…")


def _table(frame: Any, width: int) -> RenderableType:
    from rich.markup import escape
    from rich.table import Table

    rows = [[digits(cell) for cell in row] for row in frame.head(ROWS).rows()]
    columns: list[tuple[str, Any, bool, list[str]]] = []
    room = width - 1  # for the last border
    for name, *cells in zip(frame.columns[:COLUMNS], *rows, strict=False):
        heading, kind = one_line(name), frame[name].dtype
        is_whole = kind.is_numeric() or kind.is_temporal()
        room -= least_width([heading, *cells], is_whole=is_whole) + _BORDER
        if columns and room < 0:
            break
        columns.append((heading, kind, is_whole, cells))
    size = _size(frame.height, len(rows), frame.width, len(columns))
    table = Table(caption=size, min_width=min(len(size), width))
    for heading, kind, is_whole, _ in columns:
        justify = "right" if kind.is_numeric() else "left"
        table.add_column(escape(heading), justify=justify, no_wrap=is_whole)
    for row in zip(*[cells for *_, cells in columns], strict=True):
        table.add_row(*map(escape, row))
    return table


def _size(height: int, rows: int, width: int, columns: int) -> str:
    """Return the size of a table, and the part that is shown."""
    all_rows, all_columns = counted(height, "row"), counted(width, "column")
    if rows < height and columns < width:
        return f"the first {rows} of {all_rows}, {columns} of {all_columns}"
    if rows < height:
        return f"the first {rows} of {all_rows}, {all_columns}"
    if columns < width:
        return f"{all_rows}, the first {columns} of {all_columns}"
    return f"{all_rows}, {all_columns}"


def _picture(value: Any) -> RenderableType:
    """Return a picture as half blocks, two pixels a cell."""
    from rich.style import Style
    from rich.text import Text

    image = value.convert("RGB")
    image.thumbnail((_WIDTH, _HEIGHT * 2))
    width, height = image.size
    text = Text(no_wrap=True)
    for top in range(0, height - 1, 2):
        for x in range(width):
            upper, lower = image.getpixel((x, top)), image.getpixel((x, top + 1))
            style = Style(color=_rgb(upper), bgcolor=_rgb(lower))
            text.append("▀", style)
        text.append("\n")
    return text


def _rgb(pixel: tuple[int, int, int]) -> str:
    red, green, blue = pixel
    return f"#{red:02x}{green:02x}{blue:02x}"
