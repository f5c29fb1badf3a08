"""Secrets by name: `secret://NAME` is resolved only for a command.

A value comes from the environment variable `NEURAXIS_SECRET_NAME` or from the file
`secrets/NAME` in the user's configuration folder, which nobody else may read. Results
are scrubbed of every value that was passed to a command, as programs write it: both are
compared as they are, and with their escapes read, several times over.
"""

from __future__ import annotations

import base64
import math
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import suppress
from html.entities import html5
from pathlib import Path as File
from typing import Any, cast

from msgspec import Struct

from neuraxis.errors import CommandError
from neuraxis.messages import Path
from neuraxis.policy.provenance.words import leaves
from neuraxis.references.evaluate import fill
from neuraxis.schema.annotations import is_covered
from neuraxis.settings import user_dir
from neuraxis.specs import Json

SCHEME = "secret://"
VARIABLE = "NEURAXIS_SECRET_"
SHORTEST = 6
"""A shorter one could not be taken out of a text without spoiling it."""
_MOST_DIGITS = 300
_MOST_LAYERS = 4
"""How many times over escapes are read, as of JSON in HTML in JSON."""
_ESCAPE = re.compile(
    r"\\+(?:u(?P<json>[0-9A-Fa-f]{4})|u\{(?P<js>[0-9A-Fa-f]{1,6})\}"
    r"|U(?P<python>[0-9A-Fa-f]{8})|x(?P<byte>[0-9A-Fa-f]{2})|(?P<letter>[bfnrt]))?"
    r"|&(?:#[xX]0*(?P<html>[0-9A-Fa-f]{1,6});?|#0*(?P<decimal>[0-9]{1,7});?"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]{1,31};))"
    r"|%(?P<url>[0-9A-Fa-f]{2})"
    r"|[\r\n]\s*"
)
"""What programs write for a character, and the line breaks that they put in."""
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NAME = re.compile(r"secret://([A-Za-z][A-Za-z0-9_]{0,63})")


class NoSecret(CommandError):
    """Error: no such secret, or not allowed; never contains the value."""


class Secrets(Struct):
    """The secrets of one session; its `repr` says names only.

    Args:
        folder: where the files are; default: the user's configuration.
        environ: default: the process' own.
    """

    folder: File | None = None
    environ: Mapping[str, str] | None = None
    active: bool = False
    """Whether a value was given to a command in this session."""
    _forms: dict[str, str] = {}
    """Every form of a value that was given out, and what stands for it."""
    _numbers: dict[float, str] = {}
    """Sizes of values that are numbers, for commands that answer them as such."""

    def __repr__(self) -> str:
        return f"Secrets({sorted(set(self._forms.values()))})"

    def arguments(
        self, arguments: Json, written: Json, places: tuple[Path, ...]
    ) -> Json:
        """The arguments with values where `secret://NAME` stands and may stand.

        Args:
            arguments: with their references resolved.
            written: as they were written: what a reference led to names no secret.
            places: where a secret may be named.

        Raises:
            NoSecret: there is none of that name.
        """
        found: dict[Path, Any] = {
            path: self.value(match[1])
            for path, text in leaves(written)
            if isinstance(text, str)
            and is_covered(places, path)
            and (match := _NAME.fullmatch(text))
        }
        return fill(arguments, found)

    def config(self, config: Mapping[str, Json]) -> Mapping[str, Json]:
        """A plugin's own settings with the values in them.

        Raises:
            NoSecret: there is none of that name.
        """
        if SCHEME not in repr(config):
            return config
        found: dict[Path, Any] = {
            path: self.value(match[1])
            for path, text in leaves(dict(config))
            if isinstance(text, str) and (match := _NAME.fullmatch(text))
        }
        filled: Mapping[str, Json] = fill(dict(config), found)
        return filled

    def value(self, name: str) -> str:
        """Return a secret's value; from now on results are scrubbed.

        Raises:
            NoSecret: there is none of that name.
        """
        environ = os.environ if self.environ is None else self.environ
        value = environ.get(VARIABLE + name) or self._from_file(name)
        if value is None:
            raise NoSecret(
                f"there is no secret {name}; set the environment variable "
                f"{VARIABLE}{name}, or write it to {self._file(name)} (mode 600)"
            )
        if len(value) < SHORTEST:
            raise NoSecret(
                f"the secret {name} is shorter than {SHORTEST} characters, so that it "
                "could not be told from other text where it must be hidden; use a "
                "longer one"
            )
        if (number := _as_number(value)) is not None:
            self._numbers[abs(number)] = SCHEME + name
        for form in _forms(value):
            self._forms[form] = SCHEME + name
        self.active = True
        return value

    def _file(self, name: str) -> File:
        return (self.folder or user_dir("config") / "secrets") / name

    def _from_file(self, name: str) -> str | None:
        file = self._file(name)
        try:
            flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            opened = os.open(file, os.O_RDONLY | flags)  # a pipe is not waited for
        except OSError:
            return None
        with os.fdopen(opened, encoding="utf-8") as stream:
            state = os.fstat(stream.fileno())
            if not stat.S_ISREG(state.st_mode) or state.st_mode & 0o077:
                raise NoSecret(
                    f"the secret {name} is not used, since others may read its file; "
                    f"run: chmod 600 {file}"
                )
            try:
                return stream.read(100_000).rstrip("\r\n")
            except UnicodeDecodeError:
                raise NoSecret(f"the secret {name} is not UTF-8 text") from None

    def scrub(self, value: Any) -> Any:
        """Replace secrets by their names; unchanged if there are none.

        Texts, lists and mappings are looked into; other objects are left as they are.
        """
        return self._scrubbed(value, {}) if self._forms else value

    def _scrubbed(self, value: Any, done: dict[int, Any]) -> Any:
        """Scrub a value; `done`: its containers, since it may share them."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, bytes | bytearray):
            plain = bytes(value)
            clean = self._text(plain.decode("latin-1")).encode("latin-1")
            return value if clean == plain else clean
        if isinstance(value, int | float) and not isinstance(value, bool):
            size = abs(value)  # a part of its digits is no secret
            return self._numbers.get(size, self._numbers.get(size // 1, value))
        place = id(cast("Any", value))
        if place in done:
            return done[place]
        clean = value
        if isinstance(value, dict):
            entries = cast("dict[Any, Any]", value)
            clean = {
                self._scrubbed(key, done): self._scrubbed(part, done)
                for key, part in entries.items()
            }
        elif value.__class__ in (list, tuple, set, frozenset):
            items = cast("list[Any]", value)
            clean = type(items)(self._scrubbed(part, done) for part in items)
        done[place] = clean
        return clean

    def _text(self, text: str) -> str:
        found = sorted(it for each in _layers(text) for it in each.places(self._forms))
        pieces: list[str] = []
        done = 0
        for start, end, name in found:
            if start >= done:
                pieces += text[done:start], name
            done = max(done, end)
        return "".join([*pieces, text[done:]])


class _Layer(Struct, frozen=True, kw_only=True):
    """A text with escapes read, and where its parts come from."""

    text: str
    starts: list[int]
    """Where parts begin: in turn what stands as it was, and what was an escape."""
    origins: list[int]
    """Where the same parts begin in the text that was read."""
    below: _Layer | None = None
    """The text that was read; None: this is the original."""

    def places(self, forms: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
        """Yield where forms stand, as places in the original."""
        text = _spaced(self.text)  # not read further: a line break eats spaces
        for form, name in forms.items():
            start = text.find(form)
            while start >= 0:
                end = start + len(form)
                yield self._origin(start)[0], self._origin(end - 1)[1], name
                start = text.find(form, end)

    def _origin(self, at: int) -> tuple[int, int]:
        """Return where one character begins and ends in the original."""
        if self.below is None:
            return at, at + 1
        part = bisect_right(self.starts, at) - 1
        start = self.origins[part]
        if part % 2:
            end = self.origins[part + 1] - 1
        else:
            start = end = start + at - self.starts[part]
        return self.below._origin(start)[0], self.below._origin(end)[1]


def _layers(text: str) -> Iterator[_Layer]:
    """Yield a text as it is, then with its escapes read, repeatedly."""
    layer = _Layer(text=text, starts=[], origins=[])
    yield layer
    for _ in range(_MOST_LAYERS):
        below, layer = layer, _read(layer)
        if layer.text == below.text:
            return
        yield layer


def _read(below: _Layer) -> _Layer:
    pieces: list[str] = []
    starts, origins, length = [0], [0], 0
    for found in _ESCAPE.finditer(below.text):
        pieces += below.text[origins[-1] : found.start()], _meant(found)
        length += len(pieces[-2])
        starts += length, length + len(pieces[-1])
        origins += found.span()
        length += len(pieces[-1])
    text = "".join([*pieces, below.text[origins[-1] :]])
    return _Layer(text=text, starts=starts, origins=origins, below=below)


def _spaced(text: str) -> str:
    """Return a text with spaces for `+`, as web forms have it."""
    return text.replace("+", " ")


def _meant(found: re.Match[str]) -> str:
    """Return the character that an escape stands for, if any."""
    kind = found.lastgroup
    if kind is None:
        return ""
    decode = found[kind]
    if kind == "name":
        return html5.get(decode, found[0])
    if kind == "letter":
        return _LETTERS[decode]
    number = int(decode, 10 if kind == "decimal" else 16)
    return chr(number) if number < 0x110000 else found[0]


def _as_number(value: str) -> float | None:
    """Return a secret of digits as a JSON number."""
    if not value.isascii() or len(value) > _MOST_DIGITS:
        return None
    for read in (int, float):
        with suppress(ValueError):
            number = read(value)
            return number if math.isfinite(number) else None
    return None


def _forms(value: str) -> set[str]:
    """Return a value as programs write it, apart from escapes."""
    raw = value.encode()
    units = memoryview(value.encode("utf-16-le")).cast("H")
    found = {value, raw.decode("latin-1"), "".join(map(chr, units))}
    found |= {value[::-1], raw.hex(), raw.hex().upper()}
    for shift in range(3):
        # inside a longer text: what the bytes before and behind do not change
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * shift + raw).decode().rstrip("=")
            start = (0, 2, 3)[shift]
            end = len(whole) - (0 if (shift + len(raw)) % 3 == 0 else 1)
            found.add(whole[start:end])
    texts = {_spaced(layer.text) for form in found for layer in _layers(form)}
    return {text for text in texts if len(text) >= SHORTEST}
