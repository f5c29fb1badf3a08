"""Replay of the origins of a session's earlier part."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from neuraxis.events import (
    AssetStored,
    CallFinished,
    CallStarted,
    Event,
    FileChanged,
    Inside,
    MessageSent,
    RunUndone,
    SessionStarted,
    Unknown,
    innermost,
)
from neuraxis.policy.provenance.labels import (
    ATTACHED,
    FILES,
    OWN,
    PROGRAM,
    Label,
    from_told,
    is_outside,
)
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.provenance.words import leaves
from neuraxis.sandbox.files.paths import normal
from neuraxis.specs import Json


def replay(
    origins: Origins, events: Iterable[Event | Unknown], untold: Collection[str] = ()
) -> None:
    """Restore the provenance of an earlier part of this session.

    A call without an end may have written any file that it names.
    """
    past = _Past(origins=origins)
    for event in events:
        past.hear(event)
    for (call_id, *_), arguments in past.running.items():
        label = origins.results.get(call_id, OWN)
        for _, value in leaves([*arguments]):
            if is_outside(label) and isinstance(value, str) and len(value) < 300:
                origins.wrote(value, label)
    shown = [own for own in origins.results if own.partition(".")[0] not in untold]
    origins.shown(shown)
    # it is unknown what an unfinished request has read
    origins.earlier, origins.before = set(), ()


class _Past(Struct):
    """State of a replay."""

    origins: Origins
    given: Label = OWN
    running: dict[tuple[str, ...], tuple[Json, Json]] = {}
    """Arguments of the calls without an end: as written, and resolved."""
    started: set[str] = set()
    of_tool: dict[tuple[str, str], Label] = {}
    changed: dict[int, list[str]] = {}

    def hear(self, event: Event | Unknown) -> None:
        origins = self.origins
        match event:
            case SessionStarted():
                self.given = from_told(event.origins)
                origins.reads(self.given)
            case MessageSent(sender="user") if not is_outside(self.given):
                origins.add_request(event.content)
            case AssetStored() if event.id not in self.started:  # attached
                own = PROGRAM if event.own else ATTACHED
                label = own if origins.handed is None else self.given
                origins.adds(event.id, label)
                origins.unseen.append(event.id)
            case CallStarted():
                self.started.add(event.id)
                self.running[event.id,] = (event.arguments, event.shown)
                label, tool = from_told(event.origins), (event.plugin, event.command)
                self.of_tool[tool] = self.of_tool.get(tool, OWN) | label
                origins.is_made_of(label, event.id)
                # an unfinished request goes on: its calls may have sent these
                written = leaves([event.arguments, event.shown])
                origins.sent.update(v for _, v in written if isinstance(v, str))
            case Inside():
                self._hear_inside(event)
            case CallFinished():
                self._hear_end(event)
            case FileChanged():
                self.changed.setdefault(event.run, []).append(event.path)
                if event.before and event.kind in ("append", "edit", "move"):
                    label = origins.files.get(event.path, FILES)
                    label |= origins.kept.get(event.call, OWN)
                    origins.kept[event.call] = label
            case RunUndone():
                for path in self.changed.get(event.run, ()):
                    origins.restored(path)
            case _:
                pass

    def _hear_end(self, event: CallFinished) -> None:
        origins = self.origins
        self.running.pop((event.id,), None)
        if event.id not in self.started:  # answered with an earlier result (`same`)
            label = self.of_tool.get((event.plugin, event.command), OWN)
            origins.is_made_of(label, event.id)
        label = origins.results.get(event.id, OWN) | origins.kept.pop(event.id, OWN)
        for path in event.wrote:
            is_copy = event.copied is None or path in event.copied
            origins.wrote(path, label, is_copy=is_copy)
            origins.fresh.add(normal(path))
        if event.status == "skipped":  # its result is discarded even if it ran
            origins.forget({event.id})

    def _hear_inside(self, event: Inside) -> None:
        inner = innermost(event.event)
        call, kind = (event.id, event.session, str(inner.get("id"))), inner.get("type")
        if kind in ("session_started", "call_started"):
            self.origins.adds(event.id, from_told(inner.get("origins") or ()))
        if kind == "call_started":
            self.running[call] = (inner.get("arguments"), inner.get("shown"))
        elif kind == "call_finished":
            self.running.pop(call, None)
        label = self.origins.results.get(event.id, OWN)
        if is_outside(label):  # the call itself reports the user's own files
            for path in (*(inner.get("wrote") or ()), *(inner.get("files") or ())):
                self.origins.wrote(str(path), label)
