"""Labels of the workspace's files."""

from __future__ import annotations

import os
from pathlib import Path as File
from typing import Protocol

from neuraxis.policy.provenance.labels import FILES, OWN, Label
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.sandbox.files.history import FileHistory
from neuraxis.sandbox.files.paths import normal
from neuraxis.sandbox.files.walk import walk_tree

IMPORTED = (".py", ".pyc", ".pyw", ".so", ".pth", ".pyd")
"""Files that a script may load as code without naming them."""


class KnowsFiles(Protocol):
    """Gives access to the workspace and the provenance of its files."""

    @property
    def workspace(self) -> File:
        """Return the folder that commands may write to."""
        ...

    @property
    def origins(self) -> Origins:
        """Return the provenance of the session's values."""
        ...

    @property
    def files(self) -> FileHistory | None:
        """Return the history of the files; None: no file is protected."""
        ...


def is_written(name: str, known: KnowsFiles) -> bool:
    """Whether the runtime wrote a file as a whole, unchanged since."""
    return known.files is not None and known.files.is_own(name)


def label_of_file(path: str, known: KnowsFiles) -> Label:
    """Return a file's label; of a folder, that of every file.

    A file that the runtime did not write, or that was changed since, is outside.
    """
    labels, name = known.origins.files, normal(path)
    full = known.workspace / name
    if os.path.isdir(full):  # also of a name that is too long
        there = (File(at, one) for at, _, names in walk_tree(full) for one in names)
        inside = (normal(os.path.relpath(one, known.workspace)) for one in there)
        others = () if all(_is_left(one, known) for one in inside) else FILES
        return OWN.union(*labels.values(), others)
    if _is_left(name, known):
        return labels[name]
    return FILES if os.path.lexists(full) else OWN


def _is_left(name: str, known: KnowsFiles) -> bool:
    """Whether this session wrote a file, unchanged since."""
    files = known.files
    return name in known.origins.files and (files is None or files.is_as_left(name))


def copied_code(origins: Origins, path: str) -> Label:
    """Return the label of what a script or its modules copied."""
    own = normal(path)
    return OWN.union(
        *(
            origins.files[name]
            for name in origins.copies
            if name == own or name.lower().endswith(IMPORTED)
        )
    )
