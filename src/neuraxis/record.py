"""Data made on the way of every call: frozen for the type checker, quick to make.

A frozen dataclass sets each field through `object.__setattr__`, which made a third of
the cost of a call. Such a value is still never changed: pyright refuses it. At run
time it is an ordinary slotted dataclass, with the hash that a frozen one would have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

fresh = object.__new__
"""An instance with nothing set. `Kind.__init__(made := fresh(Kind), …)` is `Kind(…)` at
half its cost: a class that is called packs its arguments twice. For hot places only."""

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from neuraxis.later import dataclass

    def record(**options):
        """`dataclass(**options)`, not frozen, with a hash."""
        return dataclass(**{**options, "frozen": False, "unsafe_hash": True})


__all__ = ["fresh", "record"]
