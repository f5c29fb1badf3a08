"""Secrets by name: `secret://NAME` is resolved only for a command.

A value comes from the environment variable `NEURAXIS_SECRET_NAME` or from the file
`secrets/NAME` in the user's configuration folder, which nobody else may read. Results
are scrubbed of every value that was passed to a command, in the forms that programs
write: both are compared as they are, and with their escapes decoded.
"""

from __future__ import annotations

import base64
import math
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path as File
from typing import Any, cast

from msgspec import Struct

from neuraxis.errors import CommandError
from neuraxis.messages import Path
from neuraxis.policy.provenance.words import leaves
from neuraxis.references.path import fill
from neuraxis.schema.annotations import is_covered
from neuraxis.settings import user_dir
from neuraxis.specs import Json

SCHEME = "secret://"
VARIABLE = "NEURAXIS_SECRET_"
SHORTEST = 6
"""Minimum characters: removing a shorter value would damage other text."""
_MOST_DIGITS = 300
SECRET = re.compile(r"secret://([A-Za-z][A-Za-z0-9_]{0,63})")


class NoSecret(CommandError):
    """Error: no such secret, or not allowed; never contains the value."""


class Secrets(Struct):
    """The secrets of one session; its `repr` has names only.

    Args:
        folder: folder of the files; default: the user's configuration.
        environ: default: that of the process.
    """

    folder: File | None = None
    environ: Mapping[str, str] | None = None
    active: bool = False
    """Whether a value was given to a command in this session."""
    _forms: dict[str, str] = {}
    """Every form of the values that were passed on, and its replacement."""
    _numbers: dict[float, str] = {}
    """The values that are numbers, for commands that return them as such."""

    def __repr__(self) -> str:
        return f"Secrets({sorted(set(self._forms.values()))})"

    def arguments(
        self, arguments: Json, written: Json, places: tuple[Path, ...]
    ) -> Json:
        """Return the arguments with the secrets filled in where they are allowed.

        Args:
            arguments: with their references resolved.
            written: as the model wrote them: resolved references name no secret.
            places: where a secret may be named.

        Raises:
            NoSecret: there is none of that name.
        """
        return fill(arguments, self._named_in(written, places))

    def config(self, config: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return a plugin's own settings with the secrets filled in.

        Raises:
            NoSecret: there is none of that name.
        """
        if SCHEME not in repr(config):
            return config
        return fill(dict(config), self._named_in(dict(config), ((),)))

    def _named_in(self, tree: Json, places: tuple[Path, ...]) -> dict[Path, Any]:
        """Return the secrets that a tree names in these places."""
        return {
            path: self.value(match[1])
            for path, text in leaves(tree)
            if isinstance(text, str)
            and is_covered(places, path)
            and (match := SECRET.fullmatch(text))
        }

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
            is_open = os.name == "posix" and state.st_mode & 0o077
            if not stat.S_ISREG(state.st_mode) or is_open:
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
        from neuraxis.policy.escapes import layers  # for sessions with a secret

        found = sorted(it for each in layers(text) for it in each.places(self._forms))
        pieces: list[str] = []
        done = 0
        for start, end, name in found:
            if start >= done:
                pieces += text[done:start], name
            done = max(done, end)
        return "".join([*pieces, text[done:]])


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
    """Return the forms in which programs write a value, without escapes."""
    from neuraxis.policy.escapes import layers, spaced  # for sessions with a secret

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
    texts = {spaced(layer.text) for form in found for layer in layers(form)}
    return {text for text in texts if len(text) >= SHORTEST}
