"""Detect files that a request names, by path or by words."""

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
"""What may precede a name: a space, quotes and brackets."""
_TEXTS = (".md", ".txt", ".rst", ".csv", ".tsv")
PATH = re.compile(r"[/\\@]|\w\.\w")
"""Characters of paths and addresses that plain words do not have."""
_HYPHEN = re.compile(r"(?<=\w)-(?=\w)")
_SHORTEST = 4
"""Minimum letters of a name that a request's words can mean."""
_MOST_FILES = 10_000
"""Maximum workspace files that are checked for the same name."""


def is_named(path: str, words: Iterable[str], *, without_folder: bool = False) -> bool:
    """Return whether the user's texts name this file, as a whole word.

    Args:
        path: the file.
        words: the user's texts; letter case counts.
        without_folder: whether its name without folders is enough.
    """
    name = normal(path)
    alternatives = [re.escape(name)]
    if without_folder:
        alternatives.append(re.escape(name.rpartition("/")[2]))
    pattern = re.compile(
        rf"{_BEFORE}(?:{'|'.join(alternatives)})(?![\w~%+=&$^-]|[./\\@]\w)"
    )
    return any(pattern.search(unicodedata.normalize("NFC", text)) for text in words)


def is_named_alone(path: str, words: Iterable[str], workspace: Path) -> bool:
    """Whether a file is named, and no other has its name."""
    if not is_named(path, words, without_folder=True):
        return False
    wanted = normal(path).rpartition("/")[2].casefold()
    names = [*islice(_names(workspace), _MOST_FILES + 1)]
    return len(names) <= _MOST_FILES and sum(n.casefold() == wanted for n in names) == 1


def is_called(path: str, words: Iterable[str], workspace: Path) -> bool:
    """Return whether the user's texts name this text file by words.

    "my reading list", "our …" and "the …" mean `notes/reading-list.md`, unless
    another text of the workspace has the same words.
    """
    called = _name_words(path)
    if len("".join(called)) < _SHORTEST or "".join(called).isdecimal():
        return False
    name = r"[ \t_-]++".join(called)  # plain words have no special characters
    pattern = re.compile(rf"(?<!\w)(?:my|our|the)[ \t]++{name}(?!\w)")
    plain = [_plain(text) for text in words]
    plain += [_HYPHEN.sub("", text) for text in plain]  # "to-do list" means todo.md
    if not any(pattern.search(text) for text in plain):
        return False
    every = (name for name in _names(workspace) if name.lower().endswith(_TEXTS))
    texts = [*islice(every, _MOST_FILES + 1)]
    matches = [name for name in texts if _name_words(name) == called]
    return len(texts) <= _MOST_FILES and len(matches) == 1


def _names(workspace: Path) -> Iterator[str]:
    """Yield the names of the workspace's files, except in hidden folders."""
    for _, folders, names in walk_tree(workspace):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from names


def _name_words(path: str) -> list[str]:
    stem, suffix = os.path.splitext(path.rpartition("/")[2])
    return words_of(stem) if suffix.lower() in _TEXTS else []


def _plain(text: str) -> str:
    """Normalise a request and remove its addresses and paths."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    parts = re.split(r"([^\S\n]+)", folded)
    return "".join("|" if PATH.search(part) else part for part in parts)


def words_of(text: str) -> list[str]:
    """Return a text's words (letters and digits), case folded."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char if char.isalnum() else " " for char in plain).split()
