"""Files that a request names, by path or by words."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from neuraxis.sandbox.files.paths import normal
from neuraxis.sandbox.files.walk import walk_tree

_BEFORE = r"""(?<!\S)["'“”‘’«»„‚`(\[{<*#]*(?:\./)?"""
"""Where a name begins: behind a space, and what people put around names."""
_TEXTS = (".md", ".txt", ".rst", ".csv", ".tsv")
PATH = re.compile(r"[/\\@]|\w\.\w")
"""What a path or an address has, and no plain word."""
_HYPHEN = re.compile(r"(?<=\w)-(?=\w)")
_SHORTEST = 4
"""Letters of a name that the words of a request can mean."""
_MOST_FILES = 10_000
"""Files of a workspace that are looked at for another one called so."""


def is_named(path: str, words: Iterable[str], *, without_folder: bool = False) -> bool:
    """Whether the user's words name this file, as a whole word.

    Args:
        path: of the file.
        words: the user's texts; letter case counts.
        without_folder: its name without the folders is enough.
    """
    name = normal(path)
    found = [re.escape(name)]
    if without_folder:
        found.append(re.escape(name.rpartition("/")[2]))
    whole = re.compile(rf"{_BEFORE}(?:{'|'.join(found)})(?![\w~-]|[./\\@]\w)")
    return any(whole.search(unicodedata.normalize("NFC", text)) for text in words)


def is_called(path: str, words: Iterable[str], workspace: Path) -> bool:
    """Whether the words of a text's name mean it.

    "my reading list", "our …" and "the …" mean `notes/reading-list.md`, unless
    another text of the workspace has the same words.
    """
    called = _name_words(path)
    if len("".join(called)) < _SHORTEST or "".join(called).isdecimal():
        return False
    name = r"[ \t_-]++".join(called)  # words have no special characters
    meant = re.compile(rf"(?<!\w)(?:my|our|the)[ \t]++{name}(?!\w)")
    plain = [_plain(text) for text in words]
    plain += [_HYPHEN.sub("", text) for text in plain]  # the to-do list in todo.md
    if not any(meant.search(text) for text in plain):
        return False
    found = [*islice(_texts(workspace), _MOST_FILES + 1)]
    same = [name for name in found if _name_words(name) == called]
    return len(found) <= _MOST_FILES and len(same) == 1


def _texts(workspace: Path) -> Iterator[str]:
    """Yield the names of the workspace's texts, those of hidden folders aside."""
    for _, folders, names in walk_tree(workspace):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (name for name in names if name.lower().endswith(_TEXTS))


def _name_words(path: str) -> list[str]:
    stem, suffix = os.path.splitext(path.rpartition("/")[2])
    return words_of(stem) if suffix.lower() in _TEXTS else []


def _plain(text: str) -> str:
    """Return a request in one form, without its addresses and paths."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    parts = re.split(r"([^\S\n]+)", folded)
    return "".join("|" if PATH.search(part) else part for part in parts)


def words_of(text: str) -> list[str]:
    """Return the words of a text, of letters and digits, case folded."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char if char.isalnum() else " " for char in plain).split()
