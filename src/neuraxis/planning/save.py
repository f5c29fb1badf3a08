"""Save the plans of a run as one plan.

A run may have several replies with calls. In the file they become one plan, in which
every reference leads to the same step as before. Only successful steps are saved.
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
from neuraxis.planning.plan import ITEM
from neuraxis.planning.references import PARAMS
from neuraxis.references.asset_ref import AssetRef
from neuraxis.references.find import find_asset_refs, find_places
from neuraxis.references.parser import Malformed, split
from neuraxis.references.path import fill
from neuraxis.specs import Json

_RESULTS = re.compile(r"results\s*\[\s*-?[0-9]+\s*\]")
_BRACES = "{{ '{{' }}"


class _Reply(Struct, frozen=True, kw_only=True):
    """Calls of one reply, with the index of each in the file."""

    calls: Sequence[Call]
    places: Mapping[int, int]
    """Index in the file by index in the reply, without omitted steps."""
    names: Mapping[str, str]
    """Name in the file by name in the reply."""
    all_names: frozenset[str]
    """All names in the file: text of the reply must not look like a reference."""


def join_replies(replies: Sequence[Sequence[Result]]) -> list[Call]:
    """Join the successful calls of all replies into one plan."""
    done_indexes = [
        [place for place, item in enumerate(results) if item.status == "done"]
        for results in replies
    ]
    # a reply may give a step the name of a root
    used_names = {PARAMS, ITEM}
    names: list[dict[str, str]] = []
    for results, places in zip(replies, done_indexes, strict=True):
        names.append({})
        for place in places:
            name = results[place].call.name
            if name is not None:
                names[-1][name] = _unused_name(name, used_names)
                used_names.add(names[-1][name])
    calls: list[Call] = []
    for results, places, names_in_file in zip(
        replies, done_indexes, names, strict=True
    ):
        reply = _Reply(
            calls=[result.call for result in results],
            places={place: len(calls) + new for new, place in enumerate(places)},
            names=names_in_file,
            all_names=frozenset({*used_names} - {ITEM}),
        )
        calls += [_call_in_file(place, reply) for place in places]
    return calls


def _unused_name(name: str, used_names: set[str]) -> str:
    number = 1
    candidate = name
    while candidate in used_names:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def _call_in_file(place: int, reply: _Reply) -> Call:
    call = reply.calls[place]
    name = None if call.name is None else reply.names[call.name]
    if call.literal:
        return replace(call, name=name)
    if place == 0 and call.for_each is None and _has_bare_word(call.arguments):
        # the first call of a reply: the word was text, and so was everything in braces
        return replace(
            call, name=name, literal=True, arguments=_literal_arguments(call.arguments)
        )
    return replace(
        call,
        name=name,
        arguments=_rewrite(
            call.arguments, place, reply, () if call.for_each is None else (ITEM,)
        ),
        for_each=_rewrite([call.for_each], place, reply)[0],
    )


def _has_bare_word(arguments: Json) -> bool:
    return any(value == "PREVIOUS" for _, value in find_places(arguments))


def _literal_arguments(arguments: Json) -> Json:
    """Return arguments without references, with escaped braces unescaped."""
    texts = {
        path: "".join(map(str, split(text, ())))
        for path, text in find_places(arguments)
        if isinstance(text, str) and "{{" in text
    }
    return fill(arguments, texts)


def _rewrite(value: Json, place: int, reply: _Reply, more: Sequence[str] = ()) -> Json:
    texts = {
        path: _rewrite_text(text, place, reply, {*reply.names, *more})
        for path, text in find_places(value)
        if isinstance(text, str) and "{{" in text
    }
    return fill(value, texts)


def _rewrite_text(text: str, place: int, reply: _Reply, roots: set[str]) -> str:
    """Return the text with every reference rewritten for the file."""
    pieces: list[str] = []
    changed = False
    for piece in split(text, roots):
        if isinstance(piece, Malformed):
            return text  # no successful step has one
        if isinstance(piece, str):
            # what was text in the reply might be a reference in the file
            changed = changed or split(piece, reply.all_names, strict=True) != [piece]
            pieces.append(piece.replace("{{", _BRACES))
            continue
        root, expression = piece.root, piece.text
        if piece.index is not None:
            index = piece.index if piece.index >= 0 else place + piece.index
            expression = _RESULTS.sub(
                f"results[{reply.places[index]}]", expression, count=1
            )
        elif root in reply.names and reply.names[root] != root:
            pattern = rf"(?<![\w-]){re.escape(root)}(?![\w-])"
            expression = re.sub(pattern, reply.names[root], expression, count=1)
        changed = changed or expression != piece.text
        pieces.append(f"{{{{ {expression} }}}}")
    return "".join(pieces) if changed else text


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
        if _survives_round_trip(text, tree):
            return text
    # JSON escapes the line breaks that YAML cannot represent
    return json.dumps(tree, indent=2)


def external_assets(calls: Sequence[Call]) -> list[str]:
    """Return the assets that the plan uses but does not create."""
    call_ids = {call.id for call in calls}
    referred = [ref.asset_id for call in calls for ref in _refs(call)]
    return [asset for asset in dict.fromkeys(referred) if asset not in call_ids]


def _survives_round_trip(text: str, tree: Mapping[str, Json]) -> bool:
    """Return whether parsing the text returns the same values."""
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
