"""Secrets by name: `secret://NAME` is resolved only for a command.

A value comes from the environment variable `NEURAXIS_SECRET_NAME` or from the file
`secrets/NAME` in the user's configuration folder, which nobody else may read. Results
are scrubbed of every value that was passed to a command, in the forms in which
programs write it.
"""

from __future__ import annotations

import base64
import html
import json
import math
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path as File
from typing import Any, cast
from urllib.parse import quote, quote_plus

from msgspec import Struct, field

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
_DOUBLE = ("&quot;", "&#34;", "&#x22;")
_PERCENT = re.compile(r"%[0-9A-F]{2}")
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
    _forms: dict[str, str] = field(default_factory=dict[str, str])
    """Every form of a value that was given out, and what stands for it."""
    _numbers: dict[float, str] = field(default_factory=dict[float, str])
    """Values that are numbers, for commands that answer them as such."""

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
            self._numbers[number] = SCHEME + name
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
        if not self._forms:
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, bytes | bytearray):
            plain = bytes(value)
            clean = self._text(plain.decode("latin-1")).encode("latin-1")
            return value if clean == plain else clean
        if isinstance(value, int | float) and not isinstance(value, bool):
            # the same if nothing of it is a secret; a part of a number is none
            return self._numbers.get(value, value)
        if isinstance(value, dict):
            entries = cast("dict[Any, Any]", value)
            return {self.scrub(key): self.scrub(part) for key, part in entries.items()}
        if value.__class__ in (list, tuple, set, frozenset):
            items = cast("list[Any]", value)
            return type(items)(self.scrub(part) for part in items)
        return value

    def _text(self, text: str) -> str:
        for form, name in self._forms.items():
            if form in text:
                text = text.replace(form, name)
        return text


def _as_number(value: str) -> float | None:
    """Return a secret of digits as a JSON number."""
    if not value.isascii() or len(value) > _MOST_DIGITS:
        return None
    for read in (int, float):
        with suppress(ValueError):
            number = read(value)
            return number if math.isfinite(number) else None
    return None


def _lower_percent(text: str) -> str:
    """Return the text with its percent escapes in lower case."""
    return _PERCENT.sub(lambda found: found[0].lower(), text)


def _in_html(value: str) -> set[str]:
    """Return the spellings of a value in HTML and XML."""
    quoted = html.escape(value)
    single = [quoted.replace("&#x27;", name) for name in ("&#x27;", "&#39;", "&apos;")]
    double = [text.replace("&quot;", name) for text in single for name in _DOUBLE]
    found = {*double, html.escape(value, quote=False)}
    for shape in ("&#{};", "&#x{:x};", "&#x{:X};"):
        found |= {_by_number(text, shape) for text in tuple(found)}
        found.add("".join(shape.format(ord(sign)) for sign in value))
    return found


def _by_number(text: str, shape: str) -> str:
    """Return the text with its letters beyond ASCII as numbers."""
    return "".join(sign if sign.isascii() else shape.format(ord(sign)) for sign in text)


def _forms(value: str) -> list[str]:
    """The value as programs write it, the longest first."""
    raw = value.encode()
    found = {value, quote(value, safe=""), quote(value), quote_plus(value)}
    found |= {_lower_percent(form) for form in tuple(found)}
    found |= _in_html(value)
    found |= {repr(value)[1:-1], raw.hex(), raw.hex().upper(), value[::-1]}
    found |= {json.dumps(value, ensure_ascii=ascii)[1:-1] for ascii in (True, False)}
    # PHP and some others write a slash so
    found |= {form.replace("/", "\\/") for form in tuple(found)}
    found.add(re.sub(r"[\"\\]", lambda found: "\\" + found[0], value))
    found.add(raw.decode("latin-1"))  # as it stands in bytes
    for shift in range(3):
        # inside a longer text: what the bytes before and behind do not change
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * shift + raw).decode().rstrip("=")
            start = (0, 2, 3)[shift]
            end = len(whole) - (0 if (shift + len(raw)) % 3 == 0 else 1)
            found.add(whole[start:end])
    return sorted((form for form in found if len(form) >= SHORTEST), key=len)[::-1]
