"""Code that this session copied from outside."""

from __future__ import annotations

from neuraxis.policy.provenance.labels import OWN, Label
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.sandbox.files.paths import normal

IMPORTED = (".py", ".pyc", ".pyw", ".so", ".pth", ".zip", ".egg", ".pyd")
"""Files that a script may load as code without naming them."""


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
