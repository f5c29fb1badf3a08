"""Ask the user for approval of a call or plan.

The user sees the exact call, or plan, and the origin of each value. An approval
covers only what was shown: if it changes meanwhile, the approval is void.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.in_words import beginning
from neuraxis.events import ApprovalAnswered, ApprovalAsked
from neuraxis.formatting import preview
from neuraxis.messages import Path
from neuraxis.planning.for_each import items_of
from neuraxis.planning.plan import Step
from neuraxis.policy.approvals import MOST_REFUSALS, call_digest, with_integers
from neuraxis.policy.decision import Decision, Facts
from neuraxis.policy.deferred_questions import Waits, step_of
from neuraxis.policy.files.lost_lines import lost_of_call
from neuraxis.policy.gate import Gate, NobodyToAsk
from neuraxis.policy.provenance.labels import describe_traced
from neuraxis.policy.provenance.words import is_own
from neuraxis.sandbox.files.paths import normal
from neuraxis.specs import Json

_LOG = logging.getLogger("neuraxis.policy")
BEFORE = "written by the model, which had read nothing from outside"
SAID = "your words"
GIVEN = "given with this call"
"""Origin of arguments where there is no model: of a call by the program."""
_INSIDE = "from an answer that holds nothing from outside"
"""Origins of values without a label, in words for the user."""
MOST_SHOWN = 200_000
"""Maximum characters of one value in a question; a longer one cannot be approved."""


class TooLong(Exception):
    """A call is too long to be shown to the user whole."""


async def ask_person(asked: ApprovalAsked, now: Callable[[], str], gate: Gate) -> str:
    """Ask the user; return the refusal, or an empty text if approved.

    `now` returns the current digest of what was shown.

    Raises:
        Waits: the answer comes later.
    """
    if (later := _later_answer(asked, gate)) is not None:
        return later
    if gate.approve is None:
        return f"{asked.reason}; {call_errors.NOBODY}"
    if len(gate.refused) >= MOST_REFUSALS:
        return call_errors.said_no_often(MOST_REFUSALS, asked.reason)
    gate.emit(asked)
    if gate.settled is not None:
        await gate.settled()
    by, wider, why = "user", "", ""
    try:
        async with asyncio.timeout(gate.approvals.expires):
            allowed, wider = _read(await gate.approve(asked), asked)
    except TimeoutError:
        allowed, by = False, "nobody: the question expired"
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        allowed, by = False, "nobody: the question was cancelled"
    except NobodyToAsk as nobody:
        allowed, by, why = False, f"nobody: {nobody}", f"{asked.reason}; "
    except Exception as raised:  # noqa: BLE001 - the program's own code asks
        failure = f"asking for it failed: {type(raised).__name__}: {raised}"
        allowed, by = False, f"nobody: {failure}"
        _LOG.error(
            "approve= raised for %s, so it is denied; a question may be for several "
            "calls, which are in its `calls`", asked.id, exc_info=raised,
        )  # fmt: skip
    if allowed and now() != asked.digest:
        allowed, by = False, "nobody: the call had changed since it was asked about"
    gate.approvals.note(asked, allowed=allowed, wider=wider)
    gate.emit(
        ApprovalAnswered(
            id=asked.id, allowed=allowed, by=by, digest=asked.digest, offer=wider
        )
    )
    if gate.settled is not None:
        await gate.settled()
    if allowed:
        return ""
    if by == "user":
        gate.refused.append(asked.id)
    return why + call_errors.no_from(by)


def _read(answer: object, asked: ApprovalAsked) -> tuple[bool, str]:
    """Return whether the answer approves, and the wider approval in it.

    Any other text is no approval, since it may say no; the log has it.

    Raises:
        NobodyToAsk: it is not a valid answer.
    """
    wider = answer if isinstance(answer, str) and answer in asked.offers else ""
    allowed = answer is True or bool(wider)
    if not (allowed or answer is None or answer is False):
        _LOG.error(
            "approve= returned %.60r for %s, so it is denied; to approve, return True "
            "or one of the texts in `offers`", answer, asked.id,
        )  # fmt: skip
        raise NobodyToAsk(
            "`approve` returned neither True, False nor one of the offers"
        )
    return allowed, wider


def _later_answer(asked: ApprovalAsked, gate: Gate) -> str | None:
    """Return the answer to a deferred question, if any."""
    step = step_of(asked.id, gate.approvals.steps)
    if gate.later is None or step is None:
        return None
    answer = gate.later.answer_to(asked, step)
    if answer is None and gate.later.postpones:
        postpone(asked, step, gate)
        raise Waits
    return answer


def postpone(asked: ApprovalAsked, step: Step, gate: Gate) -> None:
    """Record a question about a step, to be answered later."""
    if gate.later is None:
        return
    call = cast("dict[str, Json]", asked.call)
    if step.loop is not None:  # all items are shown
        items = shown_whole(items_of(step.loop, gate.assets.resolve))
        call = {**call, "arguments": step.call.arguments, "for_each": items}
    question = gate.later.question(replace(asked, call=call), step)
    if not gate.later.is_open(question):
        gate.emit(question)


def question_of(facts: Facts, decision: Decision) -> ApprovalAsked:
    """Return the question about one call.

    Raises:
        TooLong: it is too long to be shown whole.
    """
    step, seen = facts.step, _files_of(facts)
    call = shown_call(step, facts.arguments) | seen
    if "code" in seen:
        call["code"] = shown_whole(seen["code"])
    if lost := lost_of_call(facts):
        call["lost"] = list(lost)
    return ApprovalAsked(
        id=step.call.id,
        call=call,
        reason=decision.reason,
        # of the files as first read: a later change makes the approval void
        digest=digest_of(facts, seen),
        origins=_origins_of(facts),
        summary=call_errors.summary(step.tool, call["arguments"], decision.reason),
        offers=decision.offers,
        refuses=(key_of(facts),),
    )


def digest_of(facts: Facts, seen: dict[str, Json] | None = None) -> str:
    """Return a call's digest, with its files as `seen` or now."""
    command, seen = facts.step.command, _files_of(facts) if seen is None else seen
    bound: Json = [facts.arguments, seen] if seen else facts.arguments
    return call_digest(command.plugin.name, command.spec, bound)


def _files_of(facts: Facts) -> dict[str, Json]:
    """Return the text of the scripts, and the digests of the files."""
    code: dict[str, Json] = {}
    for path in facts.named("run"):
        place = facts.workspace / path
        if os.path.isfile(place):
            with suppress(OSError), place.open(encoding="utf-8", errors="replace") as f:
                code[path] = f.read(MOST_SHOWN)
    found: dict[str, Json] = {"code": code}
    if facts.files is not None:
        digest = facts.files.digest
        # a folder has none, and is emptied before it is deleted
        found["replaces"] = {path: d for path in facts.risky if (d := digest(path))}
        found["reads"] = {path: digest(path) for path in facts.named("read")}
    return {what: files for what, files in found.items() if files}


def own_no(call_id: str, gate: Gate) -> str:
    """Return the refusal of this call, which no wider approval overrides."""
    later = gate.later.refused(call_id) if gate.later is not None else ""
    return later or gate.approvals.refused(call_id)


def is_allowed(
    facts: Facts, decision: Decision, gate: Gate, keys: Sequence[str] = ()
) -> bool:
    """Whether an earlier or wider approval covers the call.

    `keys`: the digests of everything it does; empty: that of the call.
    """
    approvals, step = gate.approvals, facts.step
    offers = {*decision.offers, *map(call_errors.also_own, decision.offers)}
    is_covered = not approvals.offered.isdisjoint(offers)
    return (
        approvals.always(step.tool)
        or (is_covered and approvals.said_no.isdisjoint(keys or (key_of(facts),)))
        or approvals.holds(digest_of(facts))
    )


def key_of(facts: Facts) -> str:
    """Return the digest of a call, or of its files.

    Defaults that are left out or written out, and equal numbers, make the same call.
    """
    command = facts.step.command
    paths: Json = [[use, normal(path)] for _, path, use in facts.uses if use != "read"]
    bound = paths or with_integers(facts.with_defaults)
    return call_digest(command.plugin.name, command.spec, bound)


def _origins_of(facts: Facts) -> dict[str, str]:
    """Return where each argument came from, in words for the user."""
    step, origins, arguments = facts.step, facts.origins, facts.arguments
    told: dict[str, str] = {}
    if isinstance(arguments, dict):
        # once untrusted content was read, every other value has a label
        before = BEFORE if origins.request else GIVEN
        told = {
            name: SAID if origins.read or is_own(value, origins.own_words) else before
            for name, value in cast("dict[str, Json]", arguments).items()
        }
    places = [place.path for place in step.bindings] + [at for at, _ in step.asset_refs]
    told |= {_name(path): _INSIDE for path in places}
    defaults = step.command.spec.defaults
    for item in facts.traced:
        name = _name(item.path)
        # an omitted argument is not shown, unless its default names a file; nor is a
        # loop, which the reason mentions
        if item.how != "loop" and (not item.path or name in told or defaults.get(name)):
            told[name] = describe_traced(item)
    return told


def _name(path: Path) -> str:
    return str(path[0]) if path else "the argument"


def shown_call(step: Step, arguments: Json) -> dict[str, Json]:
    """Return a call as a question shows it.

    Raises:
        TooLong: it is too long to be shown whole.
    """
    return {
        "plugin": step.command.plugin.name,
        "command": step.command.spec.name,
        "arguments": shown_whole(arguments),
    }


def shown_whole(arguments: Json) -> Json:
    """Return the arguments as a question shows them, uncut.

    Raises:
        TooLong: it is too long to be shown whole.
    """
    shown = preview(arguments, text=MOST_SHOWN, items=MOST_SHOWN, show_object=beginning)
    if len(repr(shown)) > MOST_SHOWN:
        raise TooLong(call_errors.too_long_to_ask(MOST_SHOWN))
    return shown
