"""Trust annotations of a parameter schema.

A manifest says on a parameter `trusted_only: true` (who, where, what code: it must come
from the user or a trusted command), `sends_out: true` (a third party sees the
value, as in a URL), `secret_ok: true` (it may name a secret), and `names_file: read`,
`write`, `change`, `remove`, `run` or `folder` (its text is a path in the workspace).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeVar, get_args

from msgspec import Struct

from neuraxis.formatting import did_you_mean, nearest, quote
from neuraxis.messages import Path
from neuraxis.schema.marked_places import ANY, marked_places
from neuraxis.specs import Json

_T = TypeVar("_T")

FileUse = Literal["read", "write", "change", "remove", "run", "folder"]
"""`write`: replaced as a whole; `change`: a part; `remove`: moved or deleted;
`folder`: made."""
FILE_USES: tuple[FileUse, ...] = get_args(FileUse)
CHANGES: tuple[Literal["write", "change", "remove"], ...] = (
    *("write", "change", "remove"),
)
"""Uses that change or remove an existing file."""
_STRICTEST: tuple[FileUse, ...] = (
    *("run", "remove", "write", "change", "folder", "read"),
)

FLAGS: Mapping[str, str] = {
    "trusted_only": "x-trusted-only",
    "sends_out": "x-sends-out",
    "secret_ok": "x-secret-ok",
}
"""Manifest word -> schema keyword, for words that are true or absent."""
FILE_WORD, FILE_KEY = "names_file", "x-names-file"

TRUSTED_WORD, TRUSTED_KEY = "trusted", "x-trusted"
"""Marks a response field that the answering system itself created.

Its value does not come from whoever wrote the contents: ids, account numbers,
verified senders.
"""

RAW_WORD, RAW_KEY = "resolve", "x-raw-ref"
"""`resolve: false` beside `asset_ref_acceptable: true`: no resolution (rule B43).

The command gets the reference itself and not the object.
"""

CLASS_KEY = "x-class"
"""Class whose fields an object has; a referenced instance is accepted."""

KEYS_KEY = "x-keys"
"""Marks a mapping whose keys are converted; converted keys are accepted."""


def no_file_use(word: Json) -> str:
    """Return the error message for an unknown file use."""
    close = did_you_mean(nearest(str(word), FILE_USES, 1))
    return f"expected one of {', '.join(FILE_USES)}, got {quote(word)}.{close}"


class Annotations(Struct, frozen=True, kw_only=True):
    """Annotated places of a command's arguments; a place covers its members."""

    trusted_only: tuple[Path, ...] = ()
    sends_out: tuple[Path, ...] = ()
    secret_ok: tuple[Path, ...] = ()
    files: tuple[tuple[Path, FileUse], ...] = ()

    @property
    def moves(self) -> bool:
        """Whether the command moves the file that it removes."""
        return {"remove", "write"} <= {use for _, use in self.files}

    @property
    def changes_files(self) -> bool:
        """Whether the command writes, changes or removes named files."""
        return any(use in CHANGES for _, use in self.files)

    def file_use(self, path: Path) -> FileUse | None:
        """Return how the command uses the file named at this path."""
        return next((use for place, use in self.files if covers(place, path)), None)


NO_MARKS = Annotations()


def covers(place: Path, path: Path) -> bool:
    """Return whether an annotation at `place` covers the value at `path`."""
    return len(place) <= len(path) and all(
        mark in (part, ANY) for mark, part in zip(place, path, strict=False)
    )


def is_covered(places: tuple[Path, ...], path: Path) -> bool:
    """Return whether one of the places covers the value at `path`."""
    return any(covers(place, path) for place in places)


def marks_of(schema: Mapping[str, Json]) -> Annotations:
    """Return every annotation in a parameter schema, with its place.

    A type inside itself is one place: it is annotated whole as what it holds is, and
    may name no secret.
    """
    by_key: dict[str, list[Path]] = {key: [] for key in FLAGS.values()}
    files: list[tuple[Path, FileUse]] = []
    secret: list[Path] = []
    for found in marked_places(schema, (*by_key, FILE_KEY)):
        key, value = found.mark
        if key == FILE_KEY and value in FILE_USES:
            files.append((found.path, value))
        elif key in by_key and value is True:
            by_key[key].append(found.path)
            if key == FLAGS["secret_ok"] and found.exact:
                secret.append(found.path)
    if not files and not any(by_key.values()):
        return NO_MARKS
    return Annotations(
        # naming a secret is choosing it, so only the user may
        trusted_only=_each(by_key["x-trusted-only"] + by_key["x-secret-ok"]),
        sends_out=_each(by_key["x-sends-out"]),
        secret_ok=_each(secret),
        # of several uses of one place, the strictest is found first
        files=_each(sorted(files, key=lambda item: _STRICTEST.index(item[1]))),
    )


def _each(items: Iterable[_T]) -> tuple[_T, ...]:
    """Return the items without repetitions."""
    return tuple(dict.fromkeys(items))


def trusted_fields(schema: Mapping[str, Json] | None) -> tuple[Path, ...]:
    """Return the response fields that the answering system itself creates."""
    found = () if schema is None else marked_places(schema, (TRUSTED_KEY,))
    return _each(one.path for one in found if one.exact and one.mark[1] is True)
