"""Remove escape codes and invisible characters from untrusted texts.

Descriptions, titles, progress and error messages pass through here. Results do not:
they are data, and the code that shows them makes them safe.
"""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    # whole escape sequences first, so that no part of one is left as text
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    r"|[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
    r"|[\U000e0000-\U000e007f]"  # tags: invisible letters that a model reads
)


def visible(text: str, most: int | None = None) -> str:
    """Return the text without escape codes and invisible characters, cut at `most`."""
    clean = _HIDDEN.sub("", text.replace("\r\n", "\n"))
    return clean if most is None or len(clean) <= most else clean[: most - 1] + "…"


def hides_something(text: str) -> bool:
    """Check whether a text has escape codes or invisible characters."""
    return _HIDDEN.search(text.replace("\r\n", "\n")) is not None


def one_line(text: str, most: int = 300) -> str:
    """Return the visible text on one line, for messages."""
    return visible(" ".join(visible(text, most * 4).split()), most)
