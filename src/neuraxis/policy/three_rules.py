"""The three rules of the default policy: Out, Deeds, Outside.

Out: what may be sent out. Deeds: which effects are allowed after the model read
untrusted content. Outside: what counts as untrusted, in `provenance.tracker`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.messages import Path
from neuraxis.policy.decision import ALLOWED, Decision, Facts, declaration_of
from neuraxis.policy.files.file_names import is_document, is_plain
from neuraxis.policy.files.free_files import is_free_file_use
from neuraxis.policy.provenance.file_labels import copied_code
from neuraxis.policy.provenance.labels import (
    ATTACHED,
    FILES,
    OWN,
    Label,
    Traced,
    describe,
    describe_traced,
    is_outside,
    is_private,
    private_in,
)
from neuraxis.policy.provenance.words import is_own, leaves, place_of
from neuraxis.policy.sending import host_of, is_web_address, parts_of, sent_values
from neuraxis.sandbox.files import operations
from neuraxis.schema.annotations import CHANGES, covers, is_covered
from neuraxis.specs import Json


def by_rules(facts: Facts, *, mild: bool = False) -> Decision:
    """Decide by the three rules; `mild`: ask only about effects that destroy."""
    marks, effects = facts.marks, facts.step.command.spec.effects
    if effects.kind == "none" and not (marks.sends_out or marks.trusted_only):
        return ALLOWED
    leaving, deed = out(facts), deeds(facts, mild=mild)
    if leaving and deed:  # approving a host does not approve the deed
        return replace(deed, reason=f"{leaving.reason}; {deed.reason}")
    return leaving or deed or ALLOWED


# --- Out ------------------------------------------------------------------------------


def out(facts: Facts) -> Decision | None:
    """Rule Out: nobody outside chooses where private content is sent.

    Once the model has read both, only addresses that the user wrote in this request go
    out, one or a flat list, in the order of the request. Before that, a whole value of
    one answer does.
    """
    origins, places = facts.origins, facts.marks.sends_out
    if not places:
        return None
    traced = [item for item in facts.traced if _meets(places, item.path)]
    if not origins.read:
        carrier = next((item for item in traced if _carries(item, facts)), None)
        return carrier and _out([carrier.path], carrier.label, facts)
    label = OWN.union(*(item.label for item in traced))
    if not origins.may_tell(facts.step.call.id) and not is_private(label):
        return None
    request = "\n".join(origins.request)
    last = max((place_of(address, request) for address in origins.sent), default=-1)
    defaults = facts.step.command.spec.defaults
    sent = [
        (path, value)
        for path, value in sent_values(facts.arguments, places)
        if value is not None or defaults.get(str(path[0]), ...) is not None
    ]
    others: list[Path] = [] if sent else [places[0]]
    is_said = bool(sent)
    for path, value in sent:
        place = place_of(value, request)
        if place <= last:
            others.append(path)
            is_said = is_said and place >= 0
        last = max(last, place)
    if not others:
        return None
    return _out(others, origins.read | label, facts, is_said=is_said)


def _meets(places: tuple[Path, ...], path: Path) -> bool:
    """Whether a value is at, above or below one of these places."""
    return any(covers(place[: len(path)], path) for place in places)


def _carries(address: Traced, facts: Facts) -> bool:
    """Whether an address from outside sends private content of another source.

    The text that the model wrote around a reference is another source, and so is
    content that nobody outside contributed to.
    """
    if not is_outside(address.label):
        return False
    others = OWN.union(*(one.label for one in facts.traced if one is not address))
    sources = {origin.source for origin in address.label}
    return (
        is_private(others - address.label)
        or (is_private(address.label) and (address.how == "text" or len(sources) > 1))
        or any(
            origin.private and (not origin.open_world or origin in FILES | ATTACHED)
            for origin in address.label
        )
        or any(
            isinstance(leaf, str) and "secret://" in leaf
            for _, leaf in leaves(facts.arguments)
        )
    )


def _out(
    paths: Sequence[Path], label: Label, facts: Facts, *, is_said: bool = False
) -> Decision:
    target, places = facts.step.tool, facts.marks.sends_out
    values = (value for _, value in sent_values(facts.arguments, places))
    sent = [value for value in values if value is not None]
    # a host is offered only if every value goes there: other text may go elsewhere,
    # for example to a search engine
    hosts = {host_of(value) if is_web_address(value) else "" for value in sent}
    host = hosts.pop() if len(hosts) == 1 else ""
    paths = [path or places[0] for path in paths]  # a loop's list is no argument
    words = describe(label), private_in(label)
    reason = call_errors.asks_out(paths, host, *words, is_said=is_said)
    some = call_errors.offer_host(host) if "." in host else ""
    return _asks(facts, reason, call_errors.out_way_out(target), some)


# --- Deeds ----------------------------------------------------------------------------


def deeds(facts: Facts, *, mild: bool = False) -> Decision | None:
    """Rule Deeds: after untrusted content was read, effects need approval.

    A plan written before that runs, unless a value from outside is where the command
    takes only the user's. New files, and additions to files that the request names,
    need no approval. `mild`: only destructive effects need it.
    """
    origins, marks, command = facts.origins, facts.marks, facts.step.command
    effects = command.spec.effects
    if effects.asks_inside:
        return None
    free = bool(origins.read) and is_free_file_use(facts)
    # the user's files that would change come last: the question has a reason of its
    # own for them
    for item in sorted(facts.traced, key=lambda one: _is_risky(one, facts)):
        is_free = item.how in ("file", "near") or (free and item.how == "literal")
        if is_free or not is_outside(item.label) or not _is_unsaid(item, facts):
            continue
        if item.how == "loop":
            reason = call_errors.asks_repeated(describe(item.label))
        elif marks.file_use(item.path) and item.how == "literal":
            reason = _asks_deed(facts, item)
        else:
            reason = call_errors.asks_guarded(item.path, describe_traced(item))
        if marks.trusted_only or (origins.read and not free):
            return _deed(facts, reason)  # a declaration alone would not help
        way_out = call_errors.undeclared_way_out(facts.step.tool, command.spec.name)
        return _deed(facts, reason, way_out)
    for script in facts.named("run"):
        if label := copied_code(origins, script):
            return _deed(facts, call_errors.asks_code(describe(label)))
    if effects.readonly or not origins.read or free:
        return None
    if mild and not effects.destructive:
        return None
    return _deed(facts, _asks_deed(facts))


def _is_risky(item: Traced, facts: Facts) -> bool:
    """Whether a value names a file whose change needs approval."""
    # a list names none, and its text may fill the memory
    is_plain_value = not isinstance(item.value, dict | list | tuple)
    return is_plain_value and str(item.value) in facts.risky


def _asks_deed(facts: Facts, item: Traced | None = None) -> str:
    """Return why a deed needs approval; `item`: an unnamed path."""
    words = facts.origins.own_words
    code = [p for p in facts.named("write", "change") if not is_document(p, words)]
    is_free_if_named = not code and any(use != "read" for *_, use in facts.uses)
    path = item.path if item is not None and is_free_if_named else None
    for at, name, use in facts.uses:
        if at == path and use != "run" and name not in facts.risky:
            # the model learns nothing about files outside of the workspace
            is_new = is_plain(name) and operations.look(facts.workspace, name) is None
            return call_errors.asks_path(name, use, is_new=is_new)
    return call_errors.asks_deed(describe(facts.origins.read), code)


def _is_unsaid(item: Traced, facts: Facts) -> bool:
    """Whether a place for the user's values has another value."""
    value, path, words = item.value, item.path, facts.origins.own_words
    places = facts.marks.trusted_only
    if not places and facts.step.command.spec.effects.destructive:
        places = ((),)  # it does not declare which places take others' values
    if not _meets(places, path):
        return False
    whole = is_covered(places, path)
    found = leaves(value, ("",) if whole else path)
    inside = [leaf for at, leaf in found if whole or is_covered(places, at)]
    if inside:
        return not all(is_own(leaf, words) for leaf in inside)
    # nothing is at that place: an object or a list has no such part, and any other
    # value may not be the user's
    return whole or not isinstance(value, dict | list | tuple)


def _deed(facts: Facts, reason: str, way_out: str = "") -> Decision:
    command, uses = facts.step.command, {use for _, use in facts.marks.files}
    decision = _asks(facts, reason, call_errors.deed_way_out(facts.step.tool, uses))
    way_out = way_out or decision.way_out
    if command.function is None and command.spec.effects.kind == "once":
        way_out += declaration_of(command)  # of an MCP server
    return replace(decision, way_out=way_out)


def offers_of(facts: Facts) -> tuple[str, ...]:
    """Offer the calls with these recipients and files, then every call."""
    marks, tool = facts.marks, facts.step.tool
    given: list[tuple[Path, Json]] = []
    found: list[tuple[Path, Json]] = [((), facts.arguments)]
    others = False
    while found:
        path, value = found.pop()
        if is_covered(marks.trusted_only, path) or marks.file_use(path) in CHANGES:
            given.append((path, value))
        elif parts := parts_of(path, value):
            found += reversed(parts)
        else:
            others = True
    own = bool(facts.own) if marks.changes_files else None
    offers = [call_errors.offer_calls(tool, own=own)]
    # a file that was moved or deleted cannot be so again
    if given and not facts.named("run", "move", "remove"):
        some = call_errors.offer_calls(tool, given, others=others, own=own)
        offers.insert(0, some)
    return tuple(filter(None, offers))


def _asks(facts: Facts, reason: str, way_out: str, host: str = "") -> Decision:
    """Ask for approval of the call; `host`: the offer of its host."""
    if not facts.origins.request:  # no user who could ask for it
        way_out = call_errors.yes_way_out(facts.step.tool)
    offers = tuple(filter(None, (host, *offers_of(facts))))
    return Decision(verdict="ask", reason=reason, way_out=way_out, offers=offers)
