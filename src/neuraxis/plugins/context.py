"""Context of a running command: progress, cancellation, files, warnings, assets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from neuraxis.settings import Settings
from neuraxis.specs import Json


def _no_progress(text: str, fraction: float | None = None) -> None:
    """Do nothing."""


def _no_file(path: str) -> None:
    """Do nothing."""


def _no_warning(text: str) -> None:
    """Do nothing."""


def _no_assets() -> Sequence[Mapping[str, Json]]:
    return ()


class Context(Struct, frozen=True, kw_only=True):
    """Runtime services for a command; passed to a parameter annotated `Context`.

    The model does not see this parameter. `progress(text, fraction)` reports progress
    to the user. A long-running command checks `cancelled`. `wrote` names a file of
    the workspace, relative to it. `warn(text)` adds a warning to the result that the
    model sees. `config` is the plugin's own section of the configuration. `assets()`
    lists the session's stored assets. A command that opens a session nests it in this
    run: `Session(options=Options(parent=context))`.
    """

    workspace: Path
    call_id: str = ""
    session_id: str = ""
    idempotency_key: str = ""
    """The same for each try of one call, and for no other call."""
    settings: Settings = field(default_factory=Settings)
    config: Mapping[str, Json] = field(default_factory=dict[str, Json])
    progress: Callable[[str, float | None], None] = _no_progress
    cancelled: threading.Event = field(default_factory=threading.Event)
    allowed_hosts: tuple[str, ...] = ()
    wrote: Callable[[str], None] = _no_file
    warn: Callable[[str], None] = _no_warning
    assets: Callable[[], Sequence[Mapping[str, Json]]] = _no_assets
    files: object = None
    """The guarded way to change files, for the plugins that ship; None: no session."""
    outer: object = None
    """The parent run of a nested session, for `Options.parent`."""
