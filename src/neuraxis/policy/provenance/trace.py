"""Taint tracking: label every argument value of one call.

A reference is followed exactly. What a model writes after it has seen untrusted
content cannot be followed: it counts as made from all of that content, unless it
occurs in the user's own words, in a trusted result, or in what the user named
(`trusted`). What the user wrote or named is the user's also where a reference leads
to it.
"""

from __future__ import annotations

from collections.abc import Iterable

from neuraxis.messages import Path
from neuraxis.planning.plan import Step
from neuraxis.policy.provenance.labels import OWN, Label, Traced, is_foreign
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.provenance.trusted import Known
from neuraxis.policy.provenance.wording import leaves
from neuraxis.references.path import walk
from neuraxis.schema.annotations import Annotations, is_covered
from neuraxis.specs import Json


def trace(
    origins: Origins, step: Step, arguments: Json, marks: Annotations, known: Known
) -> tuple[Traced, ...]:
    """Every value of a call that has a label, with the label.

    Args:
        origins: of the session.
        step: as checked, references unresolved.
        arguments: with the references resolved.
        marks: of the command.
        known: what may be looked up of what was said.
    """
    found: list[Traced] = []
    placed: set[Path] = set()
    for binding in step.bindings:
        placed.add(binding.path)
        refs = binding.template.refs
        label = OWN.union(*(origins.label(ref, step) for ref in refs))
        if not binding.template.whole and origins.read:
            label |= origins.read  # the words around it are the model's
        value: Json = walk(arguments, binding.path) if label else None
        label = _unless_known(label, binding.path, value, step, marks, known)
        if label:
            how = "reference" if binding.template.whole else "text"
            found.append(Traced(path=binding.path, value=value, label=label, how=how))
    for path, ref in step.asset_refs:
        placed.add(path)
        if label := origins.label(ref, step):
            value = walk(arguments, path)
            label = _unless_known(label, path, value, step, marks, known)
            if label:
                found.append(
                    Traced(path=path, value=value, label=label, how="reference")
                )
    if origins.read:
        found += _literals(origins, step, placed, marks, known)
    if marks.files and origins.files:
        found += _contents(origins, arguments, marks)
    return tuple(found)


def _unless_known(
    label: Label, path: Path, value: Json, step: Step, marks: Annotations, known: Known
) -> Label:
    """Return a reference's label, without origins of values known as trusted.

    Only where it is asked: contents may be foreign, and are not looked up.
    """
    if not is_foreign(label) or not isinstance(value, str | int | float | list):
        return label
    guarded = is_covered(marks.trusted_only, path)
    silent = not marks.trusted_only and _destroys(step)
    strict = guarded and _destroys(step)
    if (guarded or silent) and all(
        known.is_meant(leaf, strict=strict) for _, leaf in leaves(value, path)
    ):
        return frozenset(origin for origin in label if not origin.open_world)
    return label


def _literals(
    origins: Origins, step: Step, placed: set[Path], marks: Annotations, known: Known
) -> Iterable[Traced]:
    """What the model wrote itself and nobody it may trust said before.

    Who or what something destructive is done to must be the user's own word, or of a
    record that the user named: a trusted listing offers, it does not choose.
    """
    strict = marks.trusted_only if _destroys(step) else ()
    for path, value in leaves(step.arguments):
        if path in placed or any(path[: len(at)] == at for at in placed):
            continue
        if value is None or isinstance(value, bool) or value == "":
            continue  # it names nobody
        if known.is_trusted(value, strict=is_covered(strict, path)):
            continue
        if (
            not _destroys(step)
            and is_covered(marks.trusted_only, path)
            and known.is_address_of(value, _others(step, path, marks))
        ):
            continue
        yield Traced(
            path=path, value=value, label=origins.read, quoted=known.seen(value)
        )


def _others(step: Step, path: Path, marks: Annotations) -> list[Json]:
    """Return the values at the call's other trusted-only places."""
    return [
        value
        for place, value in leaves(step.arguments)
        if place != path and is_covered(marks.trusted_only, place)
    ]


def _destroys(step: Step) -> bool:
    return step.command.spec.effects.destructive


def _contents(
    origins: Origins, arguments: Json, marks: Annotations
) -> Iterable[Traced]:
    """The files that arguments name, where strangers had a part in them."""
    for path, value in leaves(arguments):
        use = marks.file_use(path)
        if use in ("read", "run") and isinstance(value, str):
            label = origins.of_file(value, run=use == "run")
            if label:
                yield Traced(path=path, value=value, label=label, how="reference")
