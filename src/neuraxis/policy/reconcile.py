"""Reconcile unknown calls of a `once` command before it is called again.

The plugin is asked first (`reconcile(call_id)`: True, it had its effect; False, it had
none; None, unknown), then the user. If nobody can be asked, the call is refused.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from neuraxis import call_errors
from neuraxis.engines.threads import THREADS
from neuraxis.events import CallStarted
from neuraxis.planning.plan import Step
from neuraxis.policy.ask import TooLong, ask_person, digest_of, question_of
from neuraxis.policy.decision import Decision, Refused, declaration_of
from neuraxis.policy.gate import Gate, evaluate_policy
from neuraxis.policy.unknown_calls import settlement
from neuraxis.specs import Json

_SECONDS = 30.0
"""Seconds that a plugin has for its answer."""


async def settle_earlier(step: Step, arguments: Json, gate: Gate) -> None:
    """Settle the earlier calls of a step's command.

    Raises:
        Refused: one of them had its effect, or it stays unknown.
    """
    command, target = step.command, step.call.target
    plugin, spec = command.plugin.name, command.spec
    open_calls: list[CallStarted] = []
    for call in gate.unknown.of(plugin, spec.name):
        happened = await _reconciled(command.reconcile, call.id)
        if happened is None:
            open_calls.append(call)
            continue
        error = call_errors.to_json(call_errors.had_no_effect(call.tool))
        gate.emit(settlement(call, happened, "the plugin", error))
        if happened:
            raise Refused(call_errors.had_its_effect(target, call.id))
    if not open_calls:
        return
    ids = [call.id for call in open_calls]
    reason = call_errors.unknown_before(target, ids)
    _, facts = evaluate_policy(step, arguments, gate)
    decision = Decision(verdict="ask", reason=reason)
    try:
        asked = question_of(facts, decision)
    except TooLong as error:
        raise Refused(call_errors.denied(target, str(error))) from None
    async with gate.approvals.one_by_one:
        no = await ask_person(asked, lambda: digest_of(facts), gate)
    if no:
        way_out = call_errors.unknown_way_out(ids) + declaration_of(command)
        raise Refused(call_errors.denied(target, call_errors.refused(no, way_out)))
    gate.approvals.grant(asked.digest)  # the same call is not asked about twice


async def _reconciled(
    reconcile: Callable[..., Any] | None, call_id: str
) -> bool | None:
    """Return the plugin's answer about a call; None: it does not know."""
    if reconcile is None:
        return None
    try:
        async with asyncio.timeout(_SECONDS):
            if inspect.iscoroutinefunction(reconcile):
                answer: Any = await reconcile(call_id)
            else:
                answer = await THREADS.run(partial(reconcile, call_id))
    except Exception:  # noqa: BLE001 - the plugin's own code: the user is asked instead
        return None
    return answer if isinstance(answer, bool) else None
