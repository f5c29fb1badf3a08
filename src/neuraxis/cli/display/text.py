"""Make untrusted text safe for a terminal, and choose colours.

A page, a model or a script may contain escape codes that move the cursor, set the
title or copy to the clipboard, and marks that reverse the direction of text. None of
them reaches the terminal.
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
    # Whole sequences first, so that no part of one remains as text.
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]?"  # All other escape sequences.
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # C0 and C1 without tab and newline
    r"|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # direction marks
    r"|[\U000e0000-\U000e007f]"  # tags, which nobody sees
)


def inert(text: str) -> str:
    """Return the text without escape codes, control characters and direction marks."""
    return _ESCAPES.sub("", text.replace("\r\n", "\n"))


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


def link(text: str, address: str) -> str:
    """Return a text that a terminal opens at a click."""
    if not sys.stderr.isatty():
        return text
    return f"\x1b]8;;{inert(address)}\x1b\\{inert(text)}\x1b]8;;\x1b\\"


def why(error: OSError | UnicodeDecodeError) -> str:
    """Return why a file is unusable, without the system's error number."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return error.strerror or str(error)


def console(*, to_stderr: bool = True) -> Console:
    """Create a console that honours NO_COLOR; plain without a terminal."""
    from rich.console import Console

    return Console(
        file=sys.stderr if to_stderr else sys.stdout, highlight=False, soft_wrap=True
    )
