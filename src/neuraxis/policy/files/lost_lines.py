"""Lines that a call would remove from the user's files."""

from __future__ import annotations

from typing import Any, cast

from neuraxis import call_errors
from neuraxis.assets.in_words import in_words
from neuraxis.formatting import preview
from neuraxis.policy.decision import Facts
from neuraxis.policy.provenance.words import leaves
from neuraxis.sandbox.files.removed_lines import lost_lines, text_of
from neuraxis.specs import Json


def lost_of_call(facts: Facts) -> list[str]:
    """Return the lines that the user's files would lose.

    If a text replaces a file, these are the lines that are neither in the text nor in
    a file that the call reads. The content that an object becomes is not known before,
    so the object is described instead. What a call moves is not lost. The files are
    read as they are now, with the changes of the same run.
    """
    objects, given = _objects(facts.arguments, facts), leaves(facts.arguments)
    texts = [value for _, value in given if isinstance(value, str)]
    kept = [line for text in texts for line in text.splitlines()]
    for name in facts.named("read", "move", "remove"):
        kept.extend(text_of(facts.workspace, name)[0].splitlines())
    shown: list[str] = []
    for _, name, use in facts.uses:
        if use not in ("write", "remove") or name not in facts.risky:
            continue
        text, why = text_of(facts.workspace, name)
        if why:
            shown.append(call_errors.lines_not_shown(name, why))
        elif text and use == "write" and objects:
            lines = len(text.splitlines())
            shown.append(call_errors.replaced_by(name, lines, objects))
        else:
            shown += lost_lines(name, text, kept if use == "write" else ())
    return shown


def _objects(arguments: Json, facts: Facts) -> list[str]:
    """Describe the objects that a call would write."""
    if not isinstance(arguments, dict):
        return []
    paths = {place[0] for place, _ in facts.marks.files if place}
    given = cast("dict[str, Any]", arguments)
    content = [value for name, value in given.items() if name not in paths]
    found: list[str] = []
    preview(content, show_object=lambda value: found.append(in_words(value)) or "")
    if not found and not any(isinstance(value, str) for value in content):
        found = [in_words(one) for one in content if isinstance(one, dict | list)]
    return found
