"""Join surrogate pairs that a server cut in two."""

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


def whole_pairs(text: str) -> str:
    """Return the text with its halves joined and unpaired ones replaced."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
