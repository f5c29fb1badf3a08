"""Trace of one call's arguments to where they came from.

A reference is followed exactly. What a model writes after it was shown something from
outside cannot be followed: it counts as made of all of that, unless it is the user's
own word.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as File

from neuraxis.messages import Path
from neuraxis.planning.plan import Step
from neuraxis.planning.references import ITEM
from neuraxis.policy.provenance.labels import FILES, OWN, How, Label, Traced
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.provenance.words import is_own, leaves, named_files
from neuraxis.references.path import walk
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.files.workspace import read_bytes
from neuraxis.schema.annotations import Annotations
from neuraxis.specs import Json


def trace(
    origins: Origins, step: Step, arguments: Json, workspace: File
) -> tuple[Traced, ...]:
    """Every value of a call that has a label; `arguments` are resolved."""
    placed = [*_references(origins, step)]
    found = [
        Traced(path=path, value=walk(arguments, path), label=label, how=how)
        for path, label, how in placed
        if label
    ]
    if origins.read:
        found += [
            Traced(path=path, value=value, label=origins.read)
            for path, value in leaves(step.arguments)
            if not any(path[: len(at)] == at for at, _, _ in placed)
            and not is_own(value, origins.own_words)
        ]
    if label := _repeats(origins, step):
        found.append(Traced(path=(), value=None, label=label, how="loop"))
    return (*found, *_contents(origins, arguments, step.command.marks, workspace))


def _references(origins: Origins, step: Step) -> Iterator[tuple[Path, Label, How]]:
    """Yield what the references of a step are made of, by place."""
    for binding in step.bindings:
        template = binding.template
        label = OWN.union(*(origins.label(ref, step) for ref in template.refs))
        if template.whole:
            yield binding.path, label, "reference"
        else:  # the words around it are the model's
            yield binding.path, label | origins.read, "text"
    for path, ref in step.asset_refs:
        yield path, origins.label(ref, step), "reference"


def _repeats(origins: Origins, step: Step) -> Label:
    """Return the label of a list that only decides how often.

    Of a loop whose calls take nothing of the items.
    """
    if step.item is None:
        return OWN
    refs = [ref for binding in step.bindings for ref in binding.template.refs]
    refs += [ref for _, ref in step.asset_refs]
    if any(ref.asset_id == ITEM for ref in refs):
        return OWN
    return origins.results.get(f"{step.item.part_of}.{ITEM}", OWN)


def _contents(
    origins: Origins, arguments: Json, marks: Annotations, workspace: File
) -> Iterator[Traced]:
    """The files that arguments name, where others may have written them.

    Who names a file that is not there is told names that are nearly so.
    """
    for place, use in marks.files:
        if use not in ("read", "run", "change", "remove"):
            continue
        given = named_files(arguments, marks, use)
        if not given and isinstance(arguments, dict) and place[0] not in arguments:
            given = ["."]  # what is left out is the whole workspace
        for value in given:
            label = OWN
            if use in ("read", "run"):
                label = origins.of_file(workspace, value, run=use == "run")
            if label:
                yield Traced(path=place, value=value, label=label, how="file")
            elif _has_near(workspace, value):
                yield Traced(path=place, value=value, label=FILES, how="near")


def _has_near(workspace: File, path: str) -> bool:
    """Return whether the error of a missing file names others."""
    try:
        read_bytes(workspace, path, limit=0)
    except FileRefused as error:
        return bool(error.near)
    return False
