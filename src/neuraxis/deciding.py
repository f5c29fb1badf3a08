"""A step about to run flows in; it may, or `Refused` says why not.

What its values came from is traced, the policy decides, and where it says so a person
is asked, who sees the exact call and the origin of each argument. A yes is for that
call only.
"""

from __future__ import annotations

import asyncio
from typing import cast

from neuraxis import sentences
from neuraxis.approvals import MOST_REFUSALS, call_digest
from neuraxis.events import ApprovalAnswered, ApprovalAsked
from neuraxis.labels import Label, Traced, describe_traced, is_foreign
from neuraxis.messages import CallError
from neuraxis.plan import Step
from neuraxis.plugins.registry import Command
from neuraxis.policy import Decision, Facts
from neuraxis.runtime import Runtime
from neuraxis.snapshots import snapshot
from neuraxis.specs import Json


class Refused(Exception):
    """A step is not run; `error` is what the model is told."""

    def __init__(self, error: CallError) -> None:
        super().__init__(error.message)
        self.error = error


async def decide(step: Step, arguments: Json, runtime: Runtime) -> Label:
    """Let a step run with these resolved arguments; gives the label of its answer.

    Raises:
        Refused: the policy or a person said no, or there is nobody to ask.
    """
    command, origins = cast("Command", step.command), runtime.origins
    target = f"{command.plugin.name}.{command.spec.name}"
    marks = origins.marks(target, command.spec)
    traced = origins.trace(step, arguments, marks, runtime.assets.said)
    facts = Facts(
        traced=traced,
        marks=marks,
        origins=origins,
        workspace=runtime.workspace,
        wished=not origins.read
        or command.spec.effects.readonly
        or origins.is_wished(command.plugin.name, arguments, runtime.assets.said),
    )
    decision = runtime.policy.decide(
        command.plugin.name, command.spec, arguments, facts
    )
    if decision.verdict == "deny":
        raise Refused(sentences.denied(step.call.target, decision.reason))
    if decision.verdict == "ask":
        await _ask(step, arguments, decision, traced, runtime)
    label = origins.answers(target, step, traced)
    if is_foreign(label) and any(use == "run" for _, use in marks.files):
        # what the script writes is made of what it may read
        origins.written[step.call.id] = []
        origins.watched[step.call.id] = await asyncio.to_thread(
            snapshot, runtime.workspace
        )
    return label


async def _ask(
    step: Step,
    arguments: Json,
    decision: Decision,
    traced: tuple[Traced, ...],
    runtime: Runtime,
) -> None:
    command, approvals = cast("Command", step.command), runtime.approvals
    plugin, spec, target = command.plugin.name, command.spec, step.call.target
    if approvals.always(f"{plugin}.{spec.name}") or approvals.always(target):
        return
    digest = call_digest(plugin, spec, arguments)
    if approvals.take(digest):
        return
    if runtime.approve is None:
        reason = f"{decision.reason}; it needs a person's yes, and nobody can be asked"
        raise Refused(sentences.denied(target, reason))
    if runtime.usage.refusals >= MOST_REFUSALS:
        reason = f"{decision.reason}; the user said no {MOST_REFUSALS} times already"
        raise Refused(sentences.denied(target, reason))
    asked = ApprovalAsked(
        id=step.call.id,
        call={"plugin": plugin, "command": spec.name, "arguments": shown(arguments)},
        reason=decision.reason,
        digest=digest,
        origins=_origins(arguments, traced),
    )
    runtime.emit(asked)
    by = "user"
    try:
        async with asyncio.timeout(approvals.expires):
            allowed = await runtime.approve(asked)
    except TimeoutError:
        allowed, by = False, "nobody: the question expired"
    if allowed and call_digest(plugin, spec, arguments) != digest:
        allowed, by = False, "nobody: the call had changed"
    runtime.emit(
        ApprovalAnswered(id=step.call.id, allowed=allowed, by=by, digest=digest)
    )
    if not allowed:
        runtime.usage.refusals += by == "user"
        said = "the user said no" if by == "user" else by
        raise Refused(sentences.denied(target, said))


def _origins(arguments: Json, traced: tuple[Traced, ...]) -> dict[str, str]:
    """Where each argument came from, in words for a person."""
    told: dict[str, str] = {}
    if isinstance(arguments, dict):
        told = dict.fromkeys(
            cast("dict[str, Json]", arguments),
            "written by the model before it read anything foreign, or the user's words",
        )
    for item in traced:
        name = str(item.path[0]) if item.path else "the argument"
        told[name] = describe_traced(item)
    return told


def shown(arguments: Json) -> Json:
    """A short form of resolved arguments for people: no object, no long text."""
    if isinstance(arguments, dict):
        named = cast("dict[str, Json]", arguments)
        return {key: shown(value) for key, value in named.items()}
    if isinstance(arguments, str):
        cut = len(arguments) - 500
        return arguments if cut <= 0 else f"{arguments[:500]}… (+{cut} characters)"
    if arguments is None or isinstance(arguments, bool | int | float):
        return arguments
    if isinstance(arguments, list):
        items = cast("list[Json]", arguments)
        told = [shown(item) for item in items[:10]]
        return told if len(items) <= 10 else [*told, f"… ({len(items)} items)"]
    return f"<{sentences.type_name(arguments)}>"
