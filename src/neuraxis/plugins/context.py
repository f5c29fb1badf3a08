"""What a running command may use beside its arguments: one value, handed in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from neuraxis.settings import Settings
from neuraxis.specs import Json


def _no_progress(text: str, fraction: float | None = None) -> None:
    """Tell nobody."""


def _no_file(path: str) -> None:
    """Tell nobody."""


def _no_warning(text: str) -> None:
    """Tell nobody."""


def _no_assets() -> Sequence[Mapping[str, Json]]:
    return ()


class Context(Struct, frozen=True, kw_only=True):
    """Passed to a parameter annotated `Context`; the model does not see it.

    `progress(text, fraction)` tells the person how far the command is. A command that
    runs long looks at `cancelled`. `wrote` names a file of the workspace, relative to
    it. `warn(text)` is told to the model beside the answer: what it lacks, or holds in
    another form than asked. `config` is the plugin's own section. `assets()` lists
    what the session keeps.
    A session that the command makes is held by this one: `Session(within=context)`.
    """

    workspace: Path
    call_id: str = ""
    settings: Settings = field(default_factory=Settings)
    config: Mapping[str, Json] = field(default_factory=dict[str, Json])
    progress: Callable[[str, float | None], None] = _no_progress
    cancelled: threading.Event = field(default_factory=threading.Event)
    allowed_hosts: tuple[str, ...] = ()
    wrote: Callable[[str], None] = _no_file
    warn: Callable[[str], None] = _no_warning
    assets: Callable[[], Sequence[Mapping[str, Json]]] = _no_assets
    outer: object = None
    """The run around the command, for `within`."""
