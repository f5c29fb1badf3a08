"""Tables and pictures on a terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from neuraxis.assets.frames import as_library, library_of
from neuraxis.cli.display.text import echo, one_line, short
from neuraxis.cli.standard_output import stdout
from neuraxis.formatting import counted
from neuraxis.formatting import digits as digits_of

if TYPE_CHECKING:
    from rich.console import RenderableType

ROWS, COLUMNS = 10, 8
"""Maximum rows and columns shown of a table."""
_WIDTH, _HEIGHT = 60, 40
"""Maximum cells of a picture; each shows two pixels vertically."""


def shown(value: Any) -> RenderableType | None:
    """Return a table or picture for the terminal, else None."""
    cls: type[Any] = value.__class__
    name = f"{cls.__module__}.{cls.__qualname__}"
    if library_of(name) in ("pandas", "polars", "pyarrow"):
        try:
            return _table(as_library(value, "polars.DataFrame"))
        except (ImportError, ValueError):
            return None
    if any(base.__module__ == "PIL.Image" for base in cls.__mro__):
        return _picture(value)
    return None


def print_object(value: Any) -> bool:
    """Print a table or picture; return whether it is one."""
    rendered = shown(value)
    if rendered is None:
        return False
    from rich.console import Console  # slow to import

    Console(file=stdout(), highlight=False).print(rendered)
    return True


def print_value(value: Any) -> None:
    """Print a result as text, or as JSON if it has any."""
    if isinstance(value, str):
        echo(value)
    elif value is None or isinstance(value, bool | int | float | list | tuple | dict):
        echo(json.dumps(value, ensure_ascii=False, indent=2, default=repr))
    elif not (stdout().isatty() and print_object(value)):
        echo(str(value))


def digits(value: Any) -> str:
    """Return a cell as short text: six significant digits."""
    if value is None:
        return ""
    if isinstance(value, float):
        return digits_of(value)
    text = value if isinstance(value, str) else short(value, 40)
    return one_line(text if len(text) <= 40 else text[:39] + "…")


def _table(frame: Any) -> RenderableType:
    from rich.markup import escape
    from rich.table import Table

    size = f"{counted(frame.height, 'row')}, {counted(frame.width, 'column')}"
    table = Table(caption=size, min_width=len(size))
    for name in frame.columns[:COLUMNS]:
        justify = "right" if frame[name].dtype.is_numeric() else "left"
        table.add_column(escape(one_line(name)), justify=justify)
    for row in frame.head(ROWS).rows():
        table.add_row(*[escape(digits(cell)) for cell in row[:COLUMNS]])
    return table


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
