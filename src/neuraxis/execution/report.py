"""the events of a step."""

from __future__ import annotations

from typing import Any

from neuraxis import call_errors
from neuraxis.assets.json_view import sayable
from neuraxis.assets.store import Kept
from neuraxis.errors import StorageError
from neuraxis.events import CallFinished
from neuraxis.execution.failures import crashed
from neuraxis.execution.repeats import tell_stored
from neuraxis.execution.runtime import Runtime
from neuraxis.messages import Result
from neuraxis.planning.plan import Step
from neuraxis.policy.authorize import Refused
from neuraxis.specs import Json


def keep_all(values: list[Any], step: Step, runtime: Runtime) -> Kept:
    """Keep the answers of a loop; one of them may be what cannot be looked at."""
    call = step.call
    try:
        kept = runtime.assets.keep(call.id, step.command.spec.name, values)
    except StorageError:
        raise
    except Exception as raised:
        raise Refused(crashed(call, raised, runtime)) from raised
    tell_stored(call.id, kept, runtime.emit)
    return kept


def _as_told(value: Any) -> Json:
    try:
        return sayable(value)[1]
    except Exception:  # noqa: BLE001 - `keep_all` says what is wrong with it
        return None


def finished(result: Result, runtime: Runtime, step: Step | None = None) -> None:
    """Tell the journal how a step, or one item of it, ended."""
    call, value = result.call, result.value
    part_of = "" if step is None else step.part_of
    if part_of:
        value = _as_told(value)  # the object itself is kept with the whole list
    runtime.emit(
        CallFinished(
            id=call.id,
            plugin=result.plugin or "",
            command=result.command or call.command,
            tool=call.target,
            status=result.status,
            value=None if result.stored else value,
            asset=call.id if result.stored else None,
            error=None
            if result.error is None
            else call_errors.error_json(result.error),
            warnings=result.warnings,
            seconds=result.seconds,
            part_of=part_of,
            wrote=runtime.gate.origins.ended(call.id, runtime.workspace)
            if runtime.gate.origins.written
            else (),
        )
    )
