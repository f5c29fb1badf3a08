"""Texts in which a server cut characters in two flow in, whole texts flow out."""

from __future__ import annotations


class Pairs:
    """Text whose characters may come in halves: servers cut surrogate pairs in two."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def join(self, text: str) -> str:
        """The text with what was held back, without a half that ends it."""
        if not text:
            return ""
        text = self._half + text
        self._half = ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return whole_pairs(text)

    def rest(self) -> str:
        """A half that never got its other half, as the sign for an unknown one."""
        return "\ufffd" if self._half else ""


def whole_pairs(text: str) -> str:
    """The text with its halves joined; a half alone is the sign for an unknown one."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
