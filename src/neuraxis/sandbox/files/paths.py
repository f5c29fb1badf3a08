r"""Validate relative file paths that a model wrote.

Pure text: nothing here touches a disk. The rules are the same on every system, so that
a workspace written on Linux can be opened on Windows and vice versa:

- relative, `/` between the parts, no `..`, no empty part, at most `MOST_PARTS` deep;
- no control, direction or zero-width character, no unpaired surrogate;
- nothing Windows reads differently: `<>:"|?*\\`, device names, dots or spaces at an
  end, `GIT~1`;
- no part that starts with a dot, except `ORDINARY_DOT_NAMES`: such names have keys,
  histories and settings of other programs (`.git`, `.ssh`, `.env`, `.bashrc`,
  `.neuraxis`), and writing them can run code or reveal secrets;
- no file of this package's settings (`PROTECTED_NAMES`): a model could give itself
  rights there.
"""

from __future__ import annotations

import json
import posixpath
import re
import unicodedata
from pathlib import PurePosixPath

from neuraxis.errors import NeuraxisError

MOST_PARTS = 32
MOST_CHARACTERS = 1024
MOST_PART_BYTES = 200
"""Maximum bytes of one path part, with room for a temporary suffix."""

ORDINARY_DOT_NAMES = frozenset(
    {
        ".gitignore",
        ".gitkeep",
        ".keep",
        ".dockerignore",
        ".editorconfig",
        ".nojekyll",
        ".prettierrc",
        ".prettierignore",
        ".eslintrc.json",
        ".flake8",
        ".pylintrc",
        ".coveragerc",
        ".python-version",
        ".nvmrc",
        ".env.example",
        ".env.sample",
        ".env.template",
    }
)
"""Names with a leading dot that contain no secrets."""

PROTECTED_NAMES = frozenset({"neuraxis.toml", "neuraxis.lock.json"})

_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"]
    + [f"{kind}{n}" for kind in ("com", "lpt") for n in "0123456789¹²³"]
)
_FORBIDDEN = frozenset('<>:"|?*\\')
# Joiners are part of ordinary words in Persian and Hindi and of emoji.
_JOINERS = "\u200c\u200d"
_SLASHES = frozenset("⁄∕⧵⧸⧹／＼﹨")
"""Characters that some conversions turn into a path separator."""

_DRIVE = re.compile(r"[A-Za-z]:")
_ENCODED = re.compile(r"%(2e|2f|5c|00|25)", re.IGNORECASE)
_SHORT_NAME = re.compile(r"(git|hg|ssh|env|neurax)[a-z0-9]{0,4}~\d")
_VARIABLE = re.compile(r"\$\{?[A-Za-z_]+\}?|%[A-Za-z_]+%")


class FileRefused(NeuraxisError):
    """Error: a path or file must not be used; says why."""

    near: tuple[str, ...] | None = None
    """If the file does not exist: similar paths; else None."""


def normal(path: str) -> str:
    """Return a path in its normal spelling, without checks."""
    return posixpath.normpath(path.strip().replace("\\", "/"))


def folded(name: str) -> str:
    """Return the case-folded name, to compare names as case-insensitive systems do."""
    return unicodedata.normalize("NFKC", name).casefold()


def parts_of(text: str, *, folder: bool = False) -> tuple[str, ...]:
    """Return the parts of a relative path; `()` is the workspace.

    Raises:
        FileRefused: the path breaks a rule.
    """
    shown = _shown(text)
    if not text:
        if folder:
            return ()
        raise FileRefused("The file path is empty: give a name such as 'notes.txt'.")
    if len(text) > MOST_CHARACTERS:
        raise FileRefused(
            f"The file path has {len(text)} characters; at most {MOST_CHARACTERS} "
            "are allowed."
        )
    _check_characters(text, shown)
    if text.startswith(("/", "\\")) or _DRIVE.match(text) or "://" in text:
        raise FileRefused(
            f"{shown}: absolute paths are not allowed; give the path relative to the "
            "workspace, such as 'notes.txt' or 'data/notes.txt'."
        )
    if "\\" in text:
        raise FileRefused(f"{shown}: write '/' between folders, not a backslash.")
    raw = text.split("/")
    if folder and raw[-1] == "":
        raw.pop()
    home = raw[0].startswith("~") and (len(raw) > 1 or raw[0] == "~")
    if home or _VARIABLE.fullmatch(raw[0]):
        raise FileRefused(
            f"{shown}: {raw[0]} has no meaning here; give a path inside the workspace."
        )
    if ".." in raw:
        raise FileRefused(
            f"{shown}: '..' is not allowed; give a path inside the workspace."
        )
    if "" in raw:
        raise FileRefused(f"{shown}: a part of the path is empty ('//' or '/' at end).")
    # Many users write "./notes.txt" for a file of the current folder.
    parts = tuple(part for part in raw if part != ".")
    if not parts and not folder:
        raise FileRefused(f"{shown}: this names the workspace, not a file in it.")
    if raw[-1] == "." and not folder:
        raise FileRefused(f"{shown}: this names a folder, not a file.")
    if len(parts) > MOST_PARTS:
        raise FileRefused(
            f"{shown}: {len(parts)} folders deep; at most {MOST_PARTS} are allowed."
        )
    for part in parts:
        _check_part(part, shown)
    return parts


def is_reserved(name: str) -> bool:
    """Check whether a name may hold secrets or settings."""
    plain = folded(name)
    if plain in PROTECTED_NAMES:
        return True
    return plain.startswith(".") and plain not in ORDINARY_DOT_NAMES


def is_ordinary(name: str) -> bool:
    """Check whether a name found on disk may be shown and read."""
    try:
        _check_characters(name, name)
        _check_part(name, name)
    except FileRefused:
        return False
    return True


def relative_hint(text: str, root: str) -> str | None:
    """Return the relative form of an absolute path inside the workspace."""
    for base in (root, "/workspace"):
        try:
            relative = PurePosixPath(text).relative_to(base)
        except ValueError:
            continue
        if relative.parts and ".." not in relative.parts:
            return relative.as_posix()
    return None


def _shown(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=True)
    return quoted if len(quoted) <= 80 else quoted[:78] + '…"'


def _check_characters(text: str, shown: str) -> None:
    if text.isascii() and text.isprintable():
        return
    for char in text:
        kind = unicodedata.category(char)
        if kind in ("Cc", "Cs", "Zl", "Zp") or (kind == "Cf" and char not in _JOINERS):
            raise FileRefused(
                f"{shown}: the character U+{ord(char):04X} is not allowed in a path."
            )
        if kind == "Zs" and char != " ":
            raise FileRefused(
                f"{shown}: the blank U+{ord(char):04X} is not allowed in a path; "
                "use an ordinary space."
            )


def _check_part(part: str, shown: str) -> None:
    if len(part.encode()) > MOST_PART_BYTES:
        raise FileRefused(
            f"{shown}: a name is longer than {MOST_PART_BYTES} bytes; shorten it."
        )
    if bad := sorted(_FORBIDDEN.intersection(part)):
        raise FileRefused(
            f"{shown}: {' '.join(bad)} is not allowed in a file name; "
            "use '-' or '_' instead."
        )
    # Some systems compare names after compatibility folding and lower-casing.
    plain = folded(part)
    for char in _JOINERS:
        plain = plain.replace(char, "")
    if _SLASHES.intersection(part) or any(char in "/\\" for char in plain):
        raise FileRefused(f"{shown}: a character looks like '/'; write '/' itself.")
    if _ENCODED.search(part):
        raise FileRefused(f"{shown}: write the characters themselves, not '%2e'.")
    if plain.strip(". ") == "":
        raise FileRefused(f"{shown}: a name holds nothing but dots and spaces.")
    if part.startswith(" ") or part.endswith((" ", ".")):
        raise FileRefused(f"{shown}: a name begins or ends with a space or a dot.")
    # `plain`, since "․git" (with a one dot leader) folds to ".git".
    if plain.startswith(".") and part not in ORDINARY_DOT_NAMES:
        raise FileRefused(
            f"{shown}: names that begin with a dot hold settings and secrets of "
            "other programs and cannot be used here."
        )
    if plain.split(".")[0].rstrip() in _DEVICES:
        raise FileRefused(f"{shown}: {part!r} is the name of a device on Windows.")
    if _SHORT_NAME.match(plain):
        raise FileRefused(f"{shown}: {part!r} is a short form of a protected name.")
    if plain in PROTECTED_NAMES:
        raise FileRefused(
            f"{shown}: {plain} holds settings of this program; only a person "
            "changes it."
        )
