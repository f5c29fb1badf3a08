"""What is known of the workspace's files: where they came from."""

from __future__ import annotations

import os
from pathlib import Path as File

from msgspec import Struct, field

from neuraxis.policy.provenance.labels import FILES, OWN, Label
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.sandbox.files.history import FileHistory
from neuraxis.sandbox.files.paths import normal
from neuraxis.sandbox.files.walk import walk_tree

IMPORTED = (".py", ".pyc", ".pyw", ".so", ".pth", ".pyd")
"""Files that a script may load as code without naming them."""


class Known(Struct, frozen=True, kw_only=True):
    """What the runtime knows of origins and of the workspace's files."""

    workspace: File
    origins: Origins = field(default_factory=Origins)
    files: FileHistory | None = None
    """What is known of the workspace's files; None: no file is protected."""

    def is_own(self, name: str) -> bool:
        """Whether the runtime wrote a file as a whole, unchanged since."""
        return self.files is not None and self.files.is_own(name)

    def _is_left(self, name: str) -> bool:
        """Whether this session wrote a file, unchanged since."""
        files = self.files
        return name in self.origins.files and (files is None or files.is_as_left(name))

    def label_of_file(self, path: str) -> Label:
        """Return a file's label; of a folder, that of every file.

        What the runtime did not write for the user, or somebody changed since, is
        outside.
        """
        labels, name = self.origins.files, normal(path)
        full = self.workspace / name
        if full.is_dir():
            there = (File(at, one) for at, _, names in walk_tree(full) for one in names)
            inside = (normal(os.path.relpath(one, self.workspace)) for one in there)
            others = () if all(map(self._is_left, inside)) else FILES
            return OWN.union(*labels.values(), others)
        if self._is_left(name):
            return labels[name]
        return FILES if os.path.lexists(full) else OWN


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
