"""Labels of the workspace's files: where they came from."""

from __future__ import annotations

import os
from pathlib import Path as File

from neuraxis.policy.provenance.labels import FILES, OWN, Label
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.sandbox.files.history import FileHistory
from neuraxis.sandbox.files.paths import normal
from neuraxis.sandbox.files.walk import walk_tree

IMPORTED = (".py", ".pyc", ".pyw", ".so", ".pth", ".pyd")
"""Files that a script may load as code without naming them."""


def label_of_file(
    origins: Origins,
    workspace: File,
    files: FileHistory | None,
    path: str,
    *,
    run: bool = False,
) -> Label:
    """Return the label of a file or folder; `run`: a script's input.

    What the runtime did not write for the user, or somebody changed since, is outside.
    """
    name = "." if run else normal(path)
    full = workspace / name

    def is_known(name: str) -> bool:
        return name in origins.files and (files is None or files.is_as_left(name))

    if full.is_dir():
        label = OWN.union(*origins.files.values())
        there = (File(at, one) for at, _, names in walk_tree(full) for one in names)
        inside = (os.path.relpath(one, workspace) for one in there)
        return label if all(is_known(normal(one)) for one in inside) else label | FILES
    if is_known(name):
        return origins.files[name]
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
