"""A call that was made too often flows in; the answer of an earlier one flows out.

And what tells that two calls are the same: their command and their arguments.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import replace

from neuraxis import call_errors
from neuraxis.assets.describe import size_of
from neuraxis.assets.store import Kept, ReferenceLost
from neuraxis.events import AssetStored, Event
from neuraxis.execution.runtime import Runtime
from neuraxis.formatting import is_short
from neuraxis.messages import Result
from neuraxis.planning.plan import Step
from neuraxis.specs import Json

_LARGE = 10_000
"""Bytes of arguments that are compared by their references, not written out."""


def written_key(tool: str, step: Step) -> str:
    """What two calls without references have in common; `run_step` has it inline."""
    read = step.call.read
    if read is not None and read[0] is step.arguments:
        return read[1]
    return f"{tool} {step.arguments!r}"


def same_key(tool: str, arguments: Json, step: Step) -> str:
    """What two calls with the same resolved arguments have in common."""
    if is_short(arguments):
        return f"{tool} {arguments!r}"
    if size_of(arguments, _LARGE) > _LARGE:
        # what is stored never changes, so the same references mean the same values
        refs = [binding.template.refs for binding in step.bindings]
        item = None if step.item is None else (step.item.part_of, step.item.index)
        return f"{tool} {step.arguments!r} {refs!r} {item}"
    try:
        return f"{tool} {json.dumps(arguments)}"
    except (TypeError, ValueError):
        # a native object: never the same as another
        return f"{tool} {id(arguments)} {time.perf_counter_ns()}"


def again(earlier: Result, step: Step, times: int, runtime: Runtime) -> Result:
    """The result of a call that is not run, since it was run `times` - 1 times."""
    call, assets = step.call, runtime.assets
    warning = call_errors.repeated_call(call.target, times).message
    if step.item is None:  # a later step may refer to it by its own id
        value = earlier.value
        with contextlib.suppress(ReferenceLost):
            value = assets.native(earlier.call.id)["content"]["response"]
        kept = assets.keep(call.id, step.command.spec.name, value)
        tell_stored(call.id, kept, runtime.emit)
    runtime.gate.origins.same(call.id, earlier.call.id)
    warnings = (*earlier.warnings, warning)
    return replace(earlier, call=call, warnings=warnings, seconds=0.0)


def tell_stored(call_id: str, kept: Kept, emit: Callable[[Event], None]) -> None:
    """Tell the journal of an object that was not said but kept as an asset."""
    if kept.stored:
        kind = call_errors.type_name(kept.value)
        emit(AssetStored(id=call_id, kind=kind, meta=kept.meta, bytes=kept.bytes))
