"""Trace the values of a call's arguments to their origins (taint tracking).

References are followed exactly. What the model writes after it read untrusted content
cannot be followed: it counts as made of all of that content, unless the user wrote it.
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
    """Return every argument value that has a label, and the loop's."""
    origins, step = facts.origins, facts.step
    refers = step.bindings or step.asset_refs or step.item or facts.marks.files
    if not (refers or origins.read):
        return ()  # all of it is by the model, which read nothing untrusted
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
    """Yield the values that the references of a step lead to."""
    origins, step, arguments = facts.origins, facts.step, facts.arguments
    for binding in step.bindings:
        template, at = binding.template, binding.path
        how: How = "reference" if template.whole else "text"
        # the model wrote the words around a reference
        label = OWN if template.whole else origins.read
        label = label.union(*[origins.label(ref, step) for ref in template.refs])
        yield Traced(path=at, value=walk(arguments, at), label=label, how=how)
    for at, ref in step.asset_refs:
        label, value = origins.label(ref, step), walk(arguments, at)
        yield Traced(path=at, value=value, label=label, how="reference")


def _contents(facts: Facts) -> Iterator[Traced]:
    """Yield the named files that others may have written.

    The error about a missing file contains similar names, which are content, too.
    """
    named = facts.uses
    uses = [one for one in named if one[2] not in ("write", "folder")]
    for place, use in facts.marks.files:
        if use == "read" and not any(covers(place, path) for path, *_ in named):
            uses.append((place, ".", use))  # without a name: the whole workspace
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
