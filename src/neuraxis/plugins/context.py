"""Context of a running command: progress, cancellation, files, warnings, assets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from msgspec import Struct, field

from neuraxis.settings import Settings
from neuraxis.specs import Json

if TYPE_CHECKING:
    from typing_extensions import TypeVar as _TypeVar

    Deps = _TypeVar("Deps", default=Any)
else:
    Deps = TypeVar("Deps")


def _nothing(*ignored: object) -> None:
    """Do nothing: there is no session."""


def _no_assets() -> Sequence[Mapping[str, Json]]:
    return ()


class Context(Struct, Generic[Deps], frozen=True, kw_only=True):
    """Runtime services for a command, in a parameter annotated `Context`.

    The model does not see this parameter. `Context[Shop]` gives the type of `deps`. A
    command that opens a session nests it in this run with
    `Session(options=Options(parent=context))`.
    """

    workspace: Path
    """The folder that commands may write to."""
    call_id: str = ""
    """The id of the call and of its result."""
    session_id: str = ""
    """The session's id."""
    deps: Deps = cast("Any", None)
    """The value that your program passed to `session.run(text, deps=...)`."""
    idempotency_key: str = ""
    """Key of this call: the same for each attempt at it, and for no other call."""
    settings: Settings = field(default_factory=Settings)
    """The session's settings."""
    config: Mapping[str, Json] = {}
    """The plugin's own section of the configuration."""
    progress: Callable[[str, float | None], None] = _nothing
    """`progress(text, fraction)` shows the user how far the command is."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the call should stop; a long-running command checks it."""
    allowed_hosts: tuple[str, ...] = ()
    """Private addresses that requests may reach."""
    wrote: Callable[[str], None] = _nothing
    """`wrote(path)` reports a file that was written, relative to the workspace."""
    warn: Callable[[str], None] = _nothing
    """`warn(text)` adds a warning to the result that the model sees."""
    show: Callable[[], None] = _nothing
    """`show()` sends the returned picture or PDF file to a model with vision."""
    assets: Callable[[], Sequence[Mapping[str, Json]]] = _no_assets
    """`assets()` lists the session's stored assets."""
    files: object = None
    """Guarded file access for the built-in plugins; None: no session."""
    outer: object = None
    """The parent run of a nested session, for `Options.parent`."""
