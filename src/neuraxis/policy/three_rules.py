"""The three rules of the default policy: Out, Deeds, Outside.

Out: what may leave. Deeds: what may be done after something from outside was shown.
Outside, what counts as such, stands in `provenance.tracker`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.messages import Path
from neuraxis.policy.decision import ALLOWED, Decision, Facts
from neuraxis.policy.documents import is_document, is_free_file_use, is_plain
from neuraxis.policy.provenance.labels import (
    OWN,
    Label,
    Traced,
    describe,
    describe_traced,
    is_outside,
    is_private,
    private_in,
)
from neuraxis.policy.provenance.words import is_own, leaves, named_files, place_of
from neuraxis.sandbox.files import operations
from neuraxis.sandbox.files.named_files import is_named
from neuraxis.sandbox.files.paths import normal
from neuraxis.schema.annotations import ANY, CHANGES, covers, is_covered
from neuraxis.specs import CommandSpec, Json


def by_rules(
    target: str, spec: CommandSpec, arguments: Json, facts: Facts, *, mild: bool = False
) -> Decision:
    """Decide by the three rules; `mild`: only destroying deeds are asked about."""
    if spec.effects.kind == "none":
        return ALLOWED
    asked = out(target, arguments, facts)
    if asked is None:
        asked = deeds(target, spec, arguments, facts, mild)
    return asked or ALLOWED


# --- Out ------------------------------------------------------------------------------


def out(target: str, arguments: Json, facts: Facts) -> Decision | None:
    """Rule Out: private things do not leave for where somebody outside chose.

    Once both was read, only addresses that the user wrote in this request go out, one
    or a flat list, in the order in which they stand there. Before, a whole value of
    one answer does.
    """
    origins, places = facts.origins, facts.marks.sends_out
    if not places:
        return None
    traced = [item for item in facts.traced if _meets(places, item.path)]
    label = OWN.union(*(item.label for item in traced))
    sent = [*sent_values(arguments, places)]
    if not origins.read:
        mixed = next(filter(_is_mixed, traced), None)
        mixed = mixed or _carrier(traced, arguments, facts)
        return mixed and _out(target, mixed.path, sent, mixed.label, facts)
    if not facts.may_tell and not is_private(label):
        return None
    said = "\n".join(origins.request)
    last = max((place_of(address, said) for address in origins.sent), default=-1)
    nothing: list[tuple[Path, Json]] = [(places[0], None)]
    for path, value in sent or nothing:
        place = place_of(value, said)
        if place <= last:
            return _out(target, path, sent, origins.read | label, facts)
        last = place
    return None


def _meets(places: tuple[Path, ...], path: Path) -> bool:
    """Whether a value is, holds or stands in one that is sent."""
    return any(
        covers(place[: len(path)], path) or covers(place, path) for place in places
    )


def sent_values(
    arguments: Json, places: tuple[Path, ...]
) -> Iterator[tuple[Path, Json]]:
    """Yield what stands in these places, a list's values singly."""
    for place in places:
        found: list[tuple[Path, Json]] = [((), arguments)]
        for mark in place:
            parts = [part for one in found for part in _parts(*one)]
            found = [(path, part) for path, part in parts if mark in (path[-1], ANY)]
        for path, value in found:
            if isinstance(value, list | tuple):
                yield from _parts(path, value) or [(path, value)]
            elif value is not None:
                yield path, value


def _parts(path: Path, value: Json) -> list[tuple[Path, Json]]:
    """Return what is in a list or mapping, with its place."""
    if isinstance(value, dict):
        named = cast("dict[Any, Json]", value)
        return [((*path, str(key)), part) for key, part in named.items()]
    items = cast("list[Json]", value) if isinstance(value, list | tuple) else ()
    return [((*path, index), part) for index, part in enumerate(items)]


def _is_mixed(item: Traced) -> bool:
    """Whether something private and something else from outside are in one value."""
    if not (is_outside(item.label) and is_private(item.label)):
        return False
    return item.how == "text" or any(
        origin.private and (not origin.open_world or origin.source == "files")
        for origin in item.label
    )


def _carrier(traced: Sequence[Traced], arguments: Json, facts: Facts) -> Traced | None:
    """Return an address from outside that is sent something private."""
    secret = any(
        isinstance(leaf, str) and "secret://" in leaf for _, leaf in leaves(arguments)
    )
    for chosen in traced:
        others = OWN.union(*(item.label for item in facts.traced if item is not chosen))
        told = secret or is_private(others - chosen.label)
        if told and is_outside(chosen.label):
            return chosen
    return None


def _out(
    target: str,
    path: Path,
    sent: Sequence[tuple[Path, Json]],
    label: Label,
    facts: Facts,
) -> Decision:
    hosts = {host_of(value) for _, value in sent}  # a yes for a host is one for all
    host = hosts.pop() if len(hosts) == 1 else ""
    some = (call_errors.offer_host(host),) if "." in host else ()
    path = path or facts.marks.sends_out[0]  # of a loop, whose list is no argument
    reason = call_errors.asks_out(path, describe(label), private_in(label))
    offers, way_out = (*some, _every(target, facts)), call_errors.out_way_out(target)
    return _asks(target, facts, reason, way_out, offers)


def host_of(value: Json, *, port: bool = True) -> str:
    """The host that a web address leads to; empty if unclear.

    Programs differ in what they make of a backslash, and of a name before the host.
    """
    text = str(value)
    if not text.isprintable() or any(char in text for char in " \\"):
        return ""
    try:
        found = urlsplit(text if "://" in text else f"//{text}")
        host = found.netloc.lower() if port else found.hostname
    except ValueError:
        return ""
    is_web = found.scheme in ("", "http", "https") and "@" not in found.netloc
    return host or "" if is_web else ""


# --- Deeds ----------------------------------------------------------------------------


def deeds(
    target: str, spec: CommandSpec, arguments: Json, facts: Facts, mild: bool = False
) -> Decision | None:
    """Rule Deeds: a plan written before reading runs; later, a yes.

    No value from outside may stand where the command takes the user's only. After
    something from outside was shown, every effect takes a yes but for new files and
    additions to those that the request names. `mild`: only effects that destroy.
    """
    origins, effects, marks = facts.origins, spec.effects, facts.marks
    if effects.asks_inside:
        return None
    free = bool(origins.read) and not effects.readonly
    free = free and is_free_file_use(arguments, facts)
    for item in facts.traced:
        if not is_outside(item.label) or item.how in ("file", "near"):
            continue
        if item.how == "literal" and (free or marks.file_use(item.path) == "run"):
            continue  # what runs is decided below
        if _is_unsaid(spec, item, facts):
            if item.how == "loop":
                reason = call_errors.asks_repeated(describe(item.label))
            elif marks.file_use(item.path) and item.how == "literal":
                reason = _asks_deed(arguments, facts, item)
            else:
                reason = call_errors.asks_guarded(item.path, describe_traced(item))
            decision = _deed(target, arguments, facts, reason)
            if marks.trusted_only or (origins.read and not free):
                return decision  # a declaration alone would not help
            told = call_errors.undeclared_way_out(target, spec.name)
            return replace(decision, way_out=told)
    scripts = named_files(arguments, marks, "run")
    for script in scripts:
        if label := origins.code_from_outside(script):
            reason = call_errors.asks_code(describe(label))
            return _deed(target, arguments, facts, reason)
    if scripts:
        free = origins.walls and all(_is_chosen(one, facts) for one in scripts)
    if effects.readonly or not origins.read or free:
        return None
    if mild and not (effects.destructive or scripts):
        return None
    return _deed(target, arguments, facts, _asks_deed(arguments, facts))


def _asks_deed(arguments: Json, facts: Facts, item: Traced | None = None) -> str:
    """Why a deed is asked about; `item`: an unnamed path."""
    marks, words = facts.marks, facts.origins.own_words
    written = named_files(arguments, marks, "write", "change")
    code = [path for path in written if not is_document(path, words)]
    name = "" if item is None else str(item.value)
    if (
        item is None or code or any(name == path for path, _, why in facts.own if why)
    ):  # to name it would not be enough
        return call_errors.asks_deed(describe(facts.origins.read), code)
    # what lies outside of the workspace is nothing to tell the model of
    is_new = is_plain(name) and operations.look(facts.workspace, name) is None
    use = str(marks.file_use(item.path))
    use = "move" if use == "remove" and marks.moves else use
    return call_errors.asks_path(name, use, is_new=is_new)


def _is_unsaid(spec: CommandSpec, item: Traced, facts: Facts) -> bool:
    """Whether a place for the user's values only holds another."""
    places, path = facts.marks.trusted_only, item.path
    if is_covered(places, path) or (not places and spec.effects.destructive):
        return not _is_said(item.value, facts)
    if not any(covers(place[: len(path)], path) for place in places):
        return False
    whole: Any = item.value
    if not isinstance(whole, dict | list | tuple):
        return True  # an object has what it has in that place
    inside = leaves(item.value, path)
    return any(
        is_covered(places, at) and not _is_said(value, facts) for at, value in inside
    )


def _is_said(value: Json, facts: Facts) -> bool:
    found = [leaf for _, leaf in leaves(value, ("",))]
    return bool(found) and all(is_own(leaf, facts.origins.own_words) for leaf in found)


def _is_chosen(script: str, facts: Facts) -> bool:
    """Whether this request made a script, or names it."""
    origins = facts.origins
    return normal(script) in origins.fresh or is_named(script, origins.own_words)


def _deed(target: str, arguments: Json, facts: Facts, reason: str) -> Decision:
    way_out = call_errors.deed_way_out(target, {use for _, use in facts.marks.files})
    return _asks(target, facts, reason, way_out, offers_of(target, arguments, facts))


def offers_of(target: str, arguments: Json, facts: Facts) -> tuple[str, ...]:
    """Offer the calls with these recipients and files, then every call."""
    marks, every = facts.marks, _every(target, facts)
    given = [
        value
        for path, value in leaves(arguments)
        if is_covered(marks.trusted_only, path) or marks.file_use(path) in CHANGES
    ]
    if not given or any(use == "run" for _, use in marks.files):
        return (every,)
    return _every(target, facts, given), every


def _every(target: str, facts: Facts, given: Sequence[Json] = ()) -> str:
    own = bool(facts.own) if facts.marks.changes_files else None
    return call_errors.offer_calls(target, given, own=own)


def _asks(
    target: str, facts: Facts, reason: str, way_out: str, offers: tuple[str, ...]
) -> Decision:
    return Decision(
        verdict="ask",
        reason=reason,
        way_out=way_out if facts.origins.request else call_errors.yes_way_out(target),
        offers=offers,
    )
