"""Detect the encoding of a text file, and decode it.

UTF-8, or the encoding of a byte order mark, or Windows-1252, which western European
Windows programs still write. Bytes that no text contains are not decoded.
"""

from __future__ import annotations

import codecs
import re

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NO_TEXT = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
UTF_8 = "UTF-8"


def text_of(data: bytes) -> tuple[str, str] | None:
    """Return the text without its mark, and its encoding; None if binary."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            try:
                shown = "UTF-8" if name == "utf-8-sig" else name.upper()
                return data.decode(name), shown
            except UnicodeDecodeError:
                return None
    try:
        return data.decode(), UTF_8
    except UnicodeDecodeError:
        pass
    if _NO_TEXT.search(data):
        return None
    try:
        return data.decode("cp1252"), "Windows-1252"
    except UnicodeDecodeError:
        return None
