"""Read flawless JSON in a text with the standard library.

Most replies need nothing else: the patterns of `json_scan` are loaded for the others.
"""

from __future__ import annotations

import re

from neuraxis.parsing.strict_json import raw_decode
from neuraxis.parsing.surrogates import has_surrogate
from neuraxis.specs import Json

LONGEST = 4_000_000
"""Maximum characters of a text that is read at all (rule D6)."""
DEPTH = 200
"""Maximum nesting of objects and lists (rule D6)."""

_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_HALF_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def read_flawless(text: str) -> tuple[Json, int] | None:
    """Return the flawless JSON that a text begins with, and its end."""
    if len(text) > LONGEST or not is_shallow(text):
        return None
    try:
        return None if has_surrogate(text) else raw_decode(text, 0)
    except (ValueError, RecursionError):
        return None


def is_shallow(text: str) -> bool:
    """Return whether the standard library can safely read the text.

    Its reader recurses, and accepts an escaped lone surrogate that nothing can store.
    """
    if "\\u" in text and _HALF_ESCAPE.search(text):
        return False
    if text.count("{") + text.count("[") <= DEPTH:
        return True
    # peel the innermost brackets off: what is gone after few rounds was not deep
    brackets = text.encode(errors="ignore").translate(None, _NOT_BRACKETS)
    for _ in range(DEPTH // 8):
        brackets, before = brackets.replace(b"{}", b"").replace(b"[]", b""), brackets
        if len(brackets) <= DEPTH:
            return True
        if len(brackets) == len(before):
            return False
    return False
