"""Decode the escapes that programs write in a text, in several layers."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping

from msgspec import Struct

_MOST_LAYERS = 4
"""Maximum layers of escapes, such as JSON in HTML in JSON."""
_ESCAPE = re.compile(
    r"\\+(?:u(?P<json>[0-9A-Fa-f]{4})|u\{(?P<js>[0-9A-Fa-f]{1,6})\}"
    r"|U(?P<python>[0-9A-Fa-f]{8})|x(?P<byte>[0-9A-Fa-f]{2})|(?P<letter>[bfnrt]))?"
    r"|&(?:#[xX]0*(?P<html>[0-9A-Fa-f]{1,6});?|#0*(?P<decimal>[0-9]{1,7});?"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]{1,31};))"
    r"|%(?P<url>[0-9A-Fa-f]{2})"
    r"|[\r\n]\s*"
)
"""Escapes of a character, and the line breaks that programs insert."""
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Layer(Struct, frozen=True, kw_only=True):
    """A text with its escapes decoded, and the positions in the original."""

    text: str
    starts: list[int]
    """Start of each part: alternately unchanged text, and a decoded escape."""
    origins: list[int]
    """Start of the same parts in the text that was decoded."""
    below: Layer | None = None
    """The text that was decoded; None: this is the original."""

    def places(self, forms: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
        """Yield where the forms occur, as positions in the original."""
        text = spaced(self.text)  # only here: decoding a line break removes spaces
        for form, name in forms.items():
            start = text.find(form)
            while start >= 0:
                end = start + len(form)
                yield self._origin(start)[0], self._origin(end - 1)[1], name
                start = text.find(form, end)

    def _origin(self, at: int) -> tuple[int, int]:
        """Return start and end of one character in the original."""
        if self.below is None:
            return at, at + 1
        part = bisect_right(self.starts, at) - 1
        start = self.origins[part]
        if part % 2:
            end = self.origins[part + 1] - 1
        else:
            start = end = start + at - self.starts[part]
        return self.below._origin(start)[0], self.below._origin(end)[1]


def layers(text: str) -> Iterator[Layer]:
    """Yield a text as it is, then with its escapes decoded repeatedly."""
    layer = Layer(text=text, starts=[], origins=[])
    yield layer
    for _ in range(_MOST_LAYERS):
        below, layer = layer, _read(layer)
        if layer.text == below.text:
            return
        yield layer


def _read(below: Layer) -> Layer:
    pieces: list[str] = []
    starts, origins, length = [0], [0], 0
    for found in _ESCAPE.finditer(below.text):
        pieces += below.text[origins[-1] : found.start()], _meant(found)
        length += len(pieces[-2])
        starts += length, length + len(pieces[-1])
        origins += found.span()
        length += len(pieces[-1])
    text = "".join([*pieces, below.text[origins[-1] :]])
    return Layer(text=text, starts=starts, origins=origins, below=below)


def spaced(text: str) -> str:
    """Return a text with spaces for `+`, as in web forms."""
    return text.replace("+", " ")


def _meant(found: re.Match[str]) -> str:
    """Return the character that an escape stands for, if any."""
    kind = found.lastgroup
    if kind is None:
        return ""
    decode = found[kind]
    if kind == "name":
        from html.entities import html5  # a large table, rarely needed

        return html5.get(decode, found[0])
    if kind == "letter":
        return _LETTERS[decode]
    number = int(decode, 10 if kind == "decimal" else 16)
    return chr(number) if number < 0x110000 else found[0]
