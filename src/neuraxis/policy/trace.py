"""Trace of one call's arguments to where they came from.

A reference is followed exactly. What a model writes after it was shown something from
outside cannot be followed: it counts as made of all of that, unless it is the user's
own word.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as File

from neuraxis.planning.plan import ITEM, refs_of
from neuraxis.policy.decision import Facts
from neuraxis.policy.provenance.file_labels import label_of_file
from neuraxis.policy.provenance.labels import FILES, OWN, How, Traced
from neuraxis.policy.provenance.words import is_own, leaves
from neuraxis.references.path import walk
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.files.workspace import read_bytes
from neuraxis.schema.annotations import covers


def trace(facts: Facts) -> tuple[Traced, ...]:
    """Every value of a call that has a label."""
    origins, step = facts.origins, facts.step
    refers = step.bindings or step.asset_refs or step.item or facts.marks.files
    if not (refers or origins.read):
        return ()  # all of it is the model's, which was shown nothing from outside
    found = [*_references(facts)]
    if origins.read:
        placed = {item.path for item in found}
        found += [
            Traced(path=path, value=value, label=origins.read)
            for path, value in leaves(step.arguments)
            if not any(path[:end] in placed for end in range(len(path) + 1))
            and not is_own(value, origins.own_words)
        ]
    if step.item is not None and all(ref.asset_id != ITEM for ref in refs_of(step)):
        label = origins.results.get(f"{step.part_of}.{ITEM}", OWN)
        found.append(Traced(path=(), value=None, label=label, how="loop"))
    found += _contents(facts)
    return tuple([item for item in found if item.label])


def _references(facts: Facts) -> Iterator[Traced]:
    """Yield what the references of a step led to."""
    origins, step, arguments = facts.origins, facts.step, facts.arguments
    for binding in step.bindings:
        template, at = binding.template, binding.path
        how: How = "reference" if template.whole else "text"
        # the words around a reference are the model's
        label = OWN if template.whole else origins.read
        label = label.union(*[origins.label(ref, step) for ref in template.refs])
        yield Traced(path=at, value=walk(arguments, at), label=label, how=how)
    for at, ref in step.asset_refs:
        label, value = origins.label(ref, step), walk(arguments, at)
        yield Traced(path=at, value=value, label=label, how="reference")


def _contents(facts: Facts) -> Iterator[Traced]:
    """The files that arguments name, where others may have written them.

    Who names a file that is not there is told names that are nearly so.
    """
    named = facts.uses
    uses = [one for one in named if one[2] not in ("write", "folder")]
    for place, use in facts.marks.files:
        if use == "read" and not any(covers(place, path) for path, *_ in named):
            uses.append((place, ".", use))  # who names none reads the whole workspace
    for place, path, use in uses:
        label = OWN
        if use in ("read", "run"):  # a script reads the whole workspace
            label = label_of_file("." if use == "run" else path, facts)
        if label:
            yield Traced(path=place, value=path, label=label, how="file")
        elif _has_near(facts.workspace, path):
            yield Traced(path=place, value=path, label=FILES, how="near")


def _has_near(workspace: File, path: str) -> bool:
    """Return whether the error of a missing file names others."""
    try:
        read_bytes(workspace, path, limit=0)
    except FileRefused as error:
        return bool(error.near)
    return False
