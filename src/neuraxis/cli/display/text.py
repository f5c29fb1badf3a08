"""Make untrusted text safe for a terminal, and choose colours.

A page, a model or a script may contain escape codes that move the cursor, set the title
or copy to the clipboard, and marks that reverse the direction of text. None of them
reaches the terminal: everything that the command line prints passes through here.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import textwrap
import unicodedata
from typing import TYPE_CHECKING, Any

import click

from neuraxis.cli.standard_output import stdout
from neuraxis.specs import Json

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

_ESCAPES = re.compile(
    # Whole sequences first, so that no part of one remains as text.
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]?"  # All other escape sequences.
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # C0 and C1 without tab and newline
    r"|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # direction marks
    r"|[\U000e0000-\U000e007f]"  # invisible tags
)

_COLUMNS, _LINES = 80, 24
"""Size of the terminal if it is unknown."""
_FILLER = "\0"
"""Second cell of a wide character; inert text has none."""
_WORD = 12
"""Maximum characters of a word that is never broken in a table."""


def inert(text: str) -> str:
    """Return the text without escape codes, control characters and direction marks."""
    return _ESCAPES.sub("", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return inert text without line breaks that could imitate ours."""
    return inert(text).replace("\n", "⏎")


def folded(
    text: str, width: int, *, exact: bool = False, indented: int = 2
) -> list[str]:
    """Return lines that fit a width, broken between words and then indented.

    A word that is longer than a line stays whole, so that it can be copied.

    Args:
        text: one or more lines.
        width: in cells of the terminal.
        exact: break long words, too, and keep all spaces.
        indented: how much further than the line its other pieces are.
    """
    width = max(20, width)
    pieces: list[str] = []
    for line in map(_with_fillers, text.split("\n")):
        indent = min(width // 2, len(line) - len(line.lstrip(" ")) + indented)
        pieces += [line] if len(line) <= width else textwrap.wrap(
            line,
            width - (_FILLER in line),  # the last character may be cut from its filler
            subsequent_indent=" " * indent,
            break_long_words=exact,
            break_on_hyphens=False,
            drop_whitespace=not exact,
            expand_tabs=False,
            replace_whitespace=False,
        )  # fmt: skip
    return [piece.replace(_FILLER, "") for piece in pieces]


def _with_fillers(line: str) -> str:
    """Return a line with a filler behind each wide character."""
    if line.isascii():
        return line
    return "".join(
        character + _FILLER * (unicodedata.east_asian_width(character) in "FW")
        for character in line
    )


def least_width(texts: list[str], *, is_whole: bool) -> int:
    """Return the least width of a column: a number is never cut."""
    from rich.cells import cell_len

    if is_whole:
        return max(map(cell_len, texts))
    words = [word for text in texts for word in text.split()]
    return min(_WORD, max(map(cell_len, words), default=0))


def columns() -> int:
    """Return how many characters a line of the terminal has."""
    return _size()[0] or _COLUMNS


def height() -> int:
    """Return how many lines the terminal shows at once."""
    return _size()[1] or _LINES


def _size() -> tuple[int, int]:
    for stream in (sys.stderr, stdout()):
        with contextlib.suppress(OSError, ValueError):
            return os.get_terminal_size(stream.fileno())
    return 0, 0


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print inert text; on a terminal, lines break between words."""
    text, stream = inert(text), sys.stderr if err else stdout()
    if stream.isatty():
        text = "\n".join(folded(text, columns()))
    click.echo(text, stream, nl=nl)


def echo_json(value: Any, *, indent: int | None = None) -> None:
    """Print JSON; characters that are not inert are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    inert_json = _ESCAPES.sub(lambda found: json.dumps(found[0])[1:-1], text)
    click.echo(inert_json, stdout())


def echo_file(path: Path) -> None:
    """Print a file's path, as a link on most terminals."""
    link = inert(str(path))
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        link = f"\x1b]8;;{inert(path.absolute().as_uri())}\x1b\\{link}\x1b]8;;\x1b\\"
    click.echo(f"file: {link}", err=True)


def short(value: Json, most: int = 60) -> str:
    """Return a value as one short line, for a list of arguments."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    text = inert(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def seconds(value: float) -> str:
    """Format seconds as `12 ms`, `1.4 s`, `2 min 5 s`."""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {int(value % 60)} s"


def console() -> Console:
    """Create a console on standard error; it honours NO_COLOR."""
    from rich.console import Console

    return Console(file=sys.stderr, highlight=False, soft_wrap=True)
