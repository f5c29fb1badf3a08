"""Search lines with a regular expression in linear time.

A model's pattern must not hang the process: Python's `re` backtracks, blocks the
interpreter meanwhile, and cannot be stopped. The patterns run on the engine of
`jsonschema-rs` instead, which the core installs anyway: its regular expressions
(Rust's) are automata that take linear time for any pattern, without look-around and
back references.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Event

from neuraxis.builtin.assets.lines import Line
from neuraxis.errors import CommandError

SECONDS = 10.0
PATTERN = 1000
"""Maximum characters of a pattern."""
_LOOK = 2000
"""Lines between two checks of the time limit."""


def matcher(pattern: str, ignore_case: bool) -> Callable[[str], bool]:
    """Return a function that checks whether a text matches the pattern.

    Raises:
        CommandError: the pattern cannot be used.
    """
    import jsonschema_rs

    if len(pattern) > PATTERN:
        raise CommandError(f"The pattern is longer than {PATTERN} characters.")
    try:
        validator = jsonschema_rs.validator_for(
            {"type": "string", "pattern": f"(?i){pattern}" if ignore_case else pattern},
            pattern_options=jsonschema_rs.RegexOptions(
                size_limit=1 << 20, dfa_size_limit=1 << 22
            ),
        )
    except ValueError:
        raise CommandError(
            f"{pattern!r} is no regular expression that can be used here: brackets "
            r"must close, a literal . ( [ * + ? is written with \ before it, and there "
            "is no look-around and no back reference."
        ) from None

    def fits(text: str) -> bool:
        try:
            return validator.is_valid(text)
        except ValueError:  # Rust refuses text with a lone surrogate.
            return validator.is_valid(text.encode("utf-8", "replace").decode())

    return fits


def matching(
    lines: Iterator[Line], fits: Callable[[str], bool], cancelled: Event
) -> Iterator[tuple[int, Line]]:
    """Yield index and text of each matching line.

    Raises:
        CommandError: it took longer than `SECONDS`.
    """
    end = time.monotonic() + SECONDS
    for index, line in enumerate(lines):
        if index % _LOOK == 0 and (time.monotonic() > end or cancelled.is_set()):
            raise CommandError(
                f"The search was stopped after {index} lines and {SECONDS:g} seconds: "
                "search from a later line on (start)."
            )
        if fits(line.text):
            yield index, line


def window(text: str, fits: Callable[[str], bool], width: int) -> tuple[str, int]:
    """Return the part of a long line around the match, with offset.

    The shortest matching beginning of the line ends where the first match ends.
    """
    if len(text) <= width:
        return text, 0
    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        if fits(text[:middle]):
            high = middle
        else:
            low = middle + 1
    start = max(0, min(high - width // 2, len(text) - width))
    return text[start : start + width], start
