"""Save the plans that a run carried out as one plan.

A run may have had several replies with calls; in the file they are one plan, in which
every reference still leads to the step it led to. Only steps that worked are saved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import yaml
from msgspec import Struct
from msgspec.structs import replace

from neuraxis.errors import NeuraxisError
from neuraxis.messages import Call, Result
from neuraxis.parsing.yaml import read_yaml
from neuraxis.planning.load import DATA_KEYS, VERSION
from neuraxis.planning.references import ITEM, PARAMS
from neuraxis.references.asset_ref import AssetRef
from neuraxis.references.evaluate import fill as filled
from neuraxis.references.find import find_asset_refs, find_places
from neuraxis.references.parser import Malformed, split
from neuraxis.specs import Json

_RESULTS = re.compile(r"results\s*\[\s*-?[0-9]+\s*\]")
_BRACES = "{{ '{{' }}"


class _Reply(Struct, frozen=True, kw_only=True):
    """Calls of one reply, with the index of each in the file."""

    calls: Sequence[Call]
    places: Mapping[int, int]
    """Index in the reply -> index in the file; without omitted steps."""
    names: Mapping[str, str]
    """A step's name -> its name in the file."""
    others: frozenset[str]
    """All names in the file, which text of the reply may resemble."""


def joined(replies: Sequence[Sequence[Result]]) -> list[Call]:
    """Join the successful calls of all replies to one plan's calls."""
    kept = [
        [place for place, item in enumerate(results) if item.status == "done"]
        for results in replies
    ]
    # a reply may give a step the name of a root
    taken = {PARAMS, ITEM}
    names: list[dict[str, str]] = []
    for results, places in zip(replies, kept, strict=True):
        names.append({})
        for place in places:
            name = results[place].call.name
            if name is not None:
                names[-1][name] = _free(name, taken)
                taken.add(names[-1][name])
    calls: list[Call] = []
    for results, places, own in zip(replies, kept, names, strict=True):
        reply = _Reply(
            calls=[result.call for result in results],
            places={place: len(calls) + new for new, place in enumerate(places)},
            names=own,
            others=frozenset({*taken} - {ITEM}),
        )
        calls += [_moved(place, reply) for place in places]
    return calls


def _free(name: str, taken: set[str]) -> str:
    number = 1
    free = name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def _moved(place: int, reply: _Reply) -> Call:
    call = reply.calls[place]
    name = None if call.name is None else reply.names[call.name]
    if call.literal:
        return replace(call, name=name)
    if place == 0 and call.for_each is None and _has_bare_word(call.arguments):
        # nothing stood before it, so the word was text, as all between braces was
        return replace(
            call, name=name, literal=True, arguments=_as_read(call.arguments)
        )
    return replace(
        call,
        name=name,
        arguments=_rewritten(
            call.arguments, place, reply, () if call.for_each is None else (ITEM,)
        ),
        for_each=_rewritten([call.for_each], place, reply)[0],
    )


def _has_bare_word(arguments: Json) -> bool:
    return any(value == "PREVIOUS" for _, value in find_places(arguments))


def _as_read(arguments: Json) -> Json:
    """Return arguments without references, their escaped braces written out."""
    texts = {
        path: "".join(map(str, split(text, ())))
        for path, text in find_places(arguments)
        if isinstance(text, str) and "{{" in text
    }
    return filled(arguments, texts)


def _rewritten(
    value: Json, place: int, reply: _Reply, more: Sequence[str] = ()
) -> Json:
    texts = {
        path: _text(text, place, reply, {*reply.names, *more})
        for path, text in find_places(value)
        if isinstance(text, str) and "{{" in text
    }
    return filled(value, texts)


def _text(text: str, place: int, reply: _Reply, roots: set[str]) -> str:
    """Return the text with every reference rewritten for the file."""
    written: list[str] = []
    changed = False
    for piece in split(text, roots):
        if isinstance(piece, Malformed):
            return text  # reported when it was read: no step that worked has one
        if isinstance(piece, str):
            # what the model wrote as text would be a reference in a file
            changed = changed or split(piece, reply.others, strict=True) != [piece]
            written.append(piece.replace("{{", _BRACES))
            continue
        root, inside = piece.root, piece.text
        if piece.index is not None:
            old = piece.index if piece.index >= 0 else place + piece.index
            inside = _RESULTS.sub(f"results[{reply.places[old]}]", inside, count=1)
        elif root in reply.names and reply.names[root] != root:
            pattern = rf"(?<![\w-]){re.escape(root)}(?![\w-])"
            inside = re.sub(pattern, reply.names[root], inside, count=1)
        changed = changed or inside != piece.text
        written.append(f"{{{{ {inside} }}}}")
    return "".join(written) if changed else text


def plan_text(
    calls: Sequence[Call], *, description: str = "", on_error: str | None = None
) -> str:
    """Return the YAML of a plan; `load.read_plan` reads it again."""
    referred = {ref.asset_id for call in calls for ref in _refs(call)}
    tree: dict[str, Json] = {"version": VERSION}
    if description:
        tree["description"] = description
    if on_error is not None:
        tree["on_error"] = on_error
    tree["steps"] = [_step(call, referred) for call in calls]
    for unicode in (True, False):
        text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=unicode, width=88)
        if _says(text, tree):
            return text
    # JSON escapes the line breaks that YAML cannot represent
    return json.dumps(tree, indent=2)


def made_elsewhere(calls: Sequence[Call]) -> list[str]:
    """Return the ids of assets used but not made by the plan."""
    own = {call.id for call in calls}
    referred = [ref.asset_id for call in calls for ref in _refs(call)]
    return [asset for asset in dict.fromkeys(referred) if asset not in own]


def _says(text: str, tree: Mapping[str, Json]) -> bool:
    """Return whether reading the text restores the same values."""
    try:
        return read_yaml(text, "", DATA_KEYS).value == tree
    except NeuraxisError:
        return False


def _refs(call: Call) -> list[AssetRef]:
    return [ref for _, ref in find_asset_refs([call.arguments, call.for_each])]


def _step(call: Call, referred: set[str]) -> dict[str, Json]:
    step: dict[str, Json] = {"tool": call.target}
    if call.id in referred:
        step["id"] = call.id
    if call.name is not None:
        step["as"] = call.name
    if call.for_each is not None:
        step["for_each"] = call.for_each
    if call.max_items is not None:
        step["max_items"] = call.max_items
    if call.literal:
        step["literal"] = True
    if call.arguments != {}:
        step["arguments"] = call.arguments
    return step
