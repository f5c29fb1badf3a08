"""Replay of the origins of a session's earlier part."""

from __future__ import annotations

from collections.abc import Collection, Iterable

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
    FILES,
    OWN,
    PROGRAM,
    Label,
    from_told,
    is_outside,
)
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.provenance.words import leaves
from neuraxis.specs import Json


def replay(
    origins: Origins, events: Iterable[Event | Unknown], untold: Collection[str] = ()
) -> None:
    """Take up what an earlier part of this session knew.

    A call that never told its end may have written any file that it names.
    """
    running: dict[tuple[str, ...], tuple[Json, Json]] = {}
    started: set[str] = set()
    of_tool: dict[tuple[str, str], Label] = {}
    changed: dict[int, list[str]] = {}
    given: Label = OWN
    for event in events:
        match event:
            case SessionStarted():
                given = from_told(event.origins)
                origins.reads(given)
            case MessageSent(sender="user"):
                if not is_outside(given):
                    origins.said(event.content)
            case AssetStored() if event.id not in started:
                own = PROGRAM if event.own else FILES
                label = given if origins.is_nested else own
                origins.is_made_of(label, event.id)  # attached
            case CallStarted():
                # `shown` has what its references led to
                running[event.id,] = (event.arguments, event.shown)
                started.add(event.id)
                tool = (event.plugin, event.command)
                of_tool[tool] = of_tool.get(tool, OWN) | _replay_start(origins, event)
            case Inside():
                _replay_inside(origins, event, running)
            case CallFinished():
                running.pop((event.id,), None)
                label = of_tool.get((event.plugin, event.command), OWN)
                _replay_finish(origins, event, started, label)
            case FileChanged() | RunUndone():
                _replay_undo(origins, event, changed)
            case _:
                pass
    for (call_id, *_), arguments in running.items():
        label = origins.results.get(call_id, OWN)
        for _, value in (pair for one in arguments for pair in leaves(one)):
            if is_outside(label) and isinstance(value, str) and len(value) < 300:
                origins.wrote(value, label)
    origins.told(
        [own for own in origins.results if own.partition(".")[0] not in untold]
    )


def _replay_undo(
    origins: Origins, event: FileChanged | RunUndone, changed: dict[int, list[str]]
) -> None:
    if isinstance(event, FileChanged):
        changed.setdefault(event.run, []).append(event.path)
        if event.before and event.kind in ("append", "edit", "move"):
            label = origins.files.get(event.path, FILES)
            origins.kept[event.call] = origins.kept.get(event.call, OWN) | label
        return
    for path in changed.get(event.run, ()):
        origins.restored(path)


def _replay_finish(
    origins: Origins, event: CallFinished, started: set[str], label: Label
) -> None:
    """Take up a call's end; `label`: of earlier calls like it."""
    if event.id not in started:  # answered with what one of them gave (`same`)
        origins.is_made_of(label, event.id)
    for path in event.wrote:
        kept = origins.kept.get(event.id, OWN)
        origins.wrote(path, origins.results.get(event.id, OWN) | kept)
    origins.kept.pop(event.id, None)
    if event.status == "skipped":  # also if it ran: it was given up
        origins.forget({event.id})


def _replay_inside(
    origins: Origins,
    event: Inside,
    running: dict[tuple[str, ...], tuple[Json, Json]],
) -> None:
    told = innermost(event.event)
    if told.get("type") in ("session_started", "call_started"):
        origins.adds(event.id, from_told(told.get("origins") or ()))
    label = origins.results.get(event.id, OWN)
    for path in (*(told.get("wrote") or ()), *(told.get("files") or ())):
        if is_outside(label):  # what is the user's own is told by the call itself
            origins.wrote(str(path), label)
    own = (event.id, event.session, str(told.get("id")))
    if told.get("type") == "call_started":
        running[own] = (told.get("arguments"), told.get("shown"))
    elif told.get("type") == "call_finished":
        running.pop(own, None)


def _replay_start(origins: Origins, event: CallStarted) -> Label:
    label = from_told(event.origins)
    if label:
        origins.is_made_of(label, event.id)
        source = f"{event.plugin}.{event.command}"
        if others := frozenset(one for one in label if one.source != source):
            origins.inputs[event.id] = others
    return label
