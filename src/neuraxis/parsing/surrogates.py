"""Find lone surrogates, which no file can hold, and join pairs."""

from __future__ import annotations


class Pairs:
    """Joins a text whose surrogate pairs may arrive in halves."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def join(self, text: str) -> str:
        """Return the text so far, holding back a half at its end."""
        if not text:
            return ""
        text = self._half + text
        self._half = ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return whole_pairs(text)

    def rest(self) -> str:
        """Return the replacement character for an unpaired half at the end."""
        return "\ufffd" if self._half else ""


def has_surrogate(text: str) -> bool:
    """Return whether the text has a half of a character."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def whole_pairs(text: str) -> str:
    """Return the text with its halves joined and unpaired ones replaced."""
    if has_surrogate(text):
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
