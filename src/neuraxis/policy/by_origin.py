"""the default."""

from __future__ import annotations

from neuraxis.formatting import path_text
from neuraxis.messages import Path
from neuraxis.policy.decision import ALLOWED, Decision, Facts
from neuraxis.policy.provenance.labels import (
    Traced,
    describe,
    describe_traced,
    is_foreign,
    is_private,
)
from neuraxis.schema.annotations import is_covered
from neuraxis.specs import CommandSpec


def by_origin(spec: CommandSpec, facts: Facts) -> Decision:
    """Decide by origin (the default): untrusted values may require approval."""
    if spec.effects.kind == "none":
        return ALLOWED
    for item in facts.traced:
        if is_covered(facts.marks.sends_out, item.path) and _carries_away(item, facts):
            return _ask(item, "an address that could carry away what is private")
    if spec.effects.readonly:
        for item in facts.traced:
            if (
                item.how == "literal"
                and is_foreign(item.label)
                and is_covered(facts.marks.trusted_only, item.path)
            ):
                return _ask(item, "a value that it takes from the user only")
        return ALLOWED
    return _with_effect(spec, facts)


def _with_effect(spec: CommandSpec, facts: Facts) -> Decision:
    marks, origins = facts.marks, facts.origins
    places = marks.trusted_only
    # a command that says nothing of its parameters takes trusted values in all
    silent = not places and spec.effects.destructive
    harmless: set[Path] = set()
    for item in facts.traced:
        if not is_foreign(item.label) or not (silent or is_covered(places, item.path)):
            continue
        if (
            marks.file_use(item.path) == "write"
            and item.how == "literal"
            and not item.quoted
            and origins.may_create(facts.workspace, item.value)
        ):
            harmless.add(item.path)
            continue
        if marks.file_use(item.path) == "run":
            return _ask(item, "code that strangers had a part in")
        return _ask(item, "a value that it takes from the user only")
    if origins.read and not harmless and not facts.wished:
        return Decision(
            verdict="ask",
            reason=f"the model chose it after it read {describe(origins.read)}, and "
            "nothing in it is the user's own",
        )
    return ALLOWED


def weighed(spec: CommandSpec, facts: Facts) -> list[Traced]:
    """Return the untrusted values that the decision depends on."""
    marks = facts.marks
    silent = not marks.trusted_only and spec.effects.destructive
    return [
        item
        for item in facts.traced
        if is_foreign(item.label)
        and (
            silent
            or is_covered(marks.trusted_only, item.path)
            or is_covered(marks.sends_out, item.path)
            or marks.file_use(item.path) is not None
        )
    ]


def _carries_away(item: Traced, facts: Facts) -> bool:
    if not is_foreign(item.label):
        return False
    if item.how == "literal":
        return not item.quoted and facts.origins.read_private
    return is_private(item.label)


def _ask(item: Traced, what: str) -> Decision:
    where = path_text(item.path) or "the argument"
    return Decision(verdict="ask", reason=f"{where} is {what}: {describe_traced(item)}")
