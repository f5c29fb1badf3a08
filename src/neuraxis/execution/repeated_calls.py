"""Repeated calls: answer with an earlier result instead of running again."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Sequence

from msgspec.json import encode
from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.describe import size_of
from neuraxis.assets.store import ReferenceLost
from neuraxis.execution.offload import in_thread_if, is_large
from neuraxis.execution.report import report_stored
from neuraxis.execution.runtime import Runtime
from neuraxis.formatting import is_short_json
from neuraxis.messages import Result
from neuraxis.planning.plan import Step, belongs_to
from neuraxis.policy.decision import Refused
from neuraxis.specs import Json

_LARGE = 10_000
"""Bytes of arguments above which their references are compared instead."""


def call_key(step: Step, arguments: Json) -> str:
    """Return a key that is equal for calls with equal resolved arguments."""
    key = _arguments_key(step, arguments)
    # each item counts as its own call
    item = "" if step.item is None else f" #{step.item.index}"
    return f"{step.tool} {key}{item}"


def _arguments_key(step: Step, arguments: Json) -> str:
    if not (step.bindings or step.asset_refs) or is_short_json(arguments):
        try:
            return encode(arguments).decode()
        except (TypeError, ValueError, OverflowError, RecursionError):
            return repr(arguments)  # a lone surrogate, a number beyond 64 bits
    if size_of(arguments, _LARGE) > _LARGE:
        # stored values never change, so equal references mean equal values
        refs = [binding.template.refs for binding in step.bindings]
        item = None if step.item is None else (step.item.part_of, step.item.index)
        return f"{step.arguments!r} {refs!r} {item}"
    try:
        return json.dumps(arguments)
    except (TypeError, ValueError, RecursionError):
        # a native object, or one nested too deeply: equal to no other
        return f"{id(arguments)} {time.perf_counter_ns()}"


def is_repeated(earlier: Sequence[Result], runtime: Runtime) -> bool:
    """Return whether a call ran too often to run again.

    Equal calls of one reply are all meant (rule C17): only those of earlier replies
    count, since the model may be stuck.
    """
    planned = runtime.usage.planned
    before = sum(not belongs_to(result.call.id, planned) for result in earlier)
    return before >= max(1, runtime.budget.repeats)


async def reuse_result(
    earlier: Result, step: Step, count: int, runtime: Runtime
) -> Result:
    """Return the earlier result of a call that already ran `count` times.

    Raises:
        Refused: the call has an effect, so that no earlier result can replace it.
    """
    call, assets = step.call, runtime.assets
    error = call_errors.repeated_call(call.target, count)
    if not step.command.spec.effects.readonly:
        raise Refused(error)
    warning = error.message
    if step.item is None:  # a later step may refer to it by its own id
        value = earlier.value
        with contextlib.suppress(ReferenceLost):
            value = assets.native(earlier.call.id)["content"]["response"]
        name, large = step.command.spec.name, is_large(value)
        stored = assets.put(
            await in_thread_if(large, assets.prepare, call.id, name, value)
        )
        report_stored(call.id, stored, runtime.emit)
    runtime.gate.origins.same(call.id, earlier.call.id)
    warnings = (*earlier.warnings, warning)
    return replace(earlier, call=call, warnings=warnings, seconds=0.0)
