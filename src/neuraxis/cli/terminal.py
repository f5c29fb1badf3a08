"""What may be written to a terminal: foreign text is made inert, and colour chosen.

A page, a model or a script may hold escape codes that move the cursor, set the title
or copy to the clipboard, and marks that reverse the direction of text. None of them
reaches the terminal.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

from neuraxis.specs import Json

if TYPE_CHECKING:
    from rich.console import Console

_ESCAPES = re.compile(
    # whole sequences first, so that no part of one is left as text
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]?"  # the rest
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # C0 and C1 without tab and newline
    r"|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # direction marks
)


def inert(text: str) -> str:
    """The text without escape codes, control characters and direction marks."""
    return _ESCAPES.sub("", text.replace("\r\n", "\n"))


def short(value: Json, most: int = 60) -> str:
    """A value on one line, for a list of arguments."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    text = inert(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def seconds(value: float) -> str:
    """`12 ms`, `1.4 s`, `2 min 5 s`."""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {int(value % 60)} s"


def why(error: OSError | UnicodeDecodeError) -> str:
    """Why a file cannot be read or written, without the system's number for it."""
    if isinstance(error, UnicodeDecodeError):
        return "it is no UTF-8 text"
    return error.strerror or str(error)


def console(*, to_stderr: bool = True) -> Console:
    """A console that honours NO_COLOR and writes plain lines where no terminal is."""
    from rich.console import Console

    return Console(
        file=sys.stderr if to_stderr else sys.stdout, highlight=False, soft_wrap=True
    )
