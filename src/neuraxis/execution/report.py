"""Report a step to the journal: its start, its asset, its end."""

from __future__ import annotations

from collections.abc import Callable

from neuraxis import call_errors
from neuraxis.assets.json_view import to_json_value
from neuraxis.assets.store import Stored
from neuraxis.events import AssetStored, CallFinished, CallStarted, Event
from neuraxis.execution.runtime import Runtime
from neuraxis.formatting import preview
from neuraxis.messages import Result
from neuraxis.planning.plan import Step
from neuraxis.policy.provenance.labels import Label, to_tell
from neuraxis.sandbox.files.paths import normal
from neuraxis.specs import Json


def report_started(
    step: Step,
    runtime: Runtime,
    *,
    arguments: Json | None = None,
    label: Label = frozenset(),
    items: int | None = None,
) -> None:
    """Report that a call or a loop is about to run.

    Args:
        step: the step.
        runtime: the runtime of the plan.
        arguments: the call's resolved arguments; None for a loop.
        label: the origins of the arguments.
        items: the number of items of a loop.
    """
    call, spec = step.call, step.command.spec
    is_as_written = arguments is None or arguments is call.arguments
    runtime.emit(
        CallStarted(
            id=call.id,
            plugin=step.command.plugin.name,
            command=spec.name,
            tool=call.target,
            arguments=call.arguments,
            effects=spec.effects.kind,
            shown=None if is_as_written else preview(arguments),
            part_of=step.part_of,
            origins=to_tell(label),
            items=items,
        )
    )


def report_stored(
    asset_id: str, stored: Stored, emit: Callable[[Event], None], *, own: bool = False
) -> None:
    """Report a stored answer or attachment."""
    if stored.stored:
        emit(
            AssetStored(
                id=asset_id,
                kind=call_errors.type_name(stored.value),
                meta=stored.meta,
                bytes=stored.bytes,
                own=own,
            )
        )


def report_finished(result: Result, runtime: Runtime, step: Step | None = None) -> None:
    """Report how a step, or one item of it, ended."""
    call, value, origins = result.call, result.value, runtime.gate.origins
    part_of = "" if step is None else step.part_of
    wrote = origins.ended(call.id) if origins.written else ()
    if (files := runtime.gate.files) is not None:
        for path in wrote:
            files.note_left(normal(path))
    if part_of:
        value = _json_view(value)  # the object itself is stored with the whole list
    error = None if result.error is None else call_errors.to_json(result.error)
    runtime.emit(
        CallFinished(
            id=call.id,
            plugin=result.plugin or "",
            command=result.command or call.command,
            tool=call.target,
            status=result.status,
            value=None if result.stored else value,
            asset=call.id if result.stored else None,
            error=error,
            warnings=result.warnings,
            seconds=result.seconds,
            part_of=part_of,
            shown=result.shown,
            wrote=wrote,
            copied=origins.copies_among(wrote) if wrote else None,
        )
    )


def _json_view(value: object) -> Json:
    try:
        return to_json_value(value)[1]
    except Exception:  # noqa: BLE001 - storing the whole list reports the error
        return None
