"""Result of a call as the journal recorded it."""

from __future__ import annotations

from typing import cast

from neuraxis import call_errors
from neuraxis.events import CallFinished, CallStarted
from neuraxis.messages import Call, CallError, Result
from neuraxis.specs import Json


def result_of(
    call: Call, begun: CallStarted | None, end: CallFinished | None
) -> Result:
    """Return how a call ended.

    Without its end it is unknown; without its beginning it did not begin.
    """
    if end is not None:
        return Result(
            call=call,
            status=end.status,
            plugin=end.plugin or None,
            command=end.command,
            value=end.value,
            stored=end.asset is not None,
            error=_error(end.error),
            warnings=end.warnings,
            seconds=end.seconds,
            shown=end.shown,
        )
    if begun is not None:
        return Result(
            call=call,
            status="failed",
            plugin=begun.plugin,
            command=begun.command,
            error=call_errors.outcome_unknown(
                call.target, changes=begun.effects not in ("none", "read")
            ),
        )
    error = call_errors.not_begun(call.target)
    return Result(call=call, status="skipped", error=error)


def _error(told: Json) -> CallError | None:
    if not isinstance(told, dict):
        return None
    error = cast("dict[str, Json]", told)
    return CallError(
        code=str(error.get("code")),  # pyright: ignore[reportArgumentType] - as written
        message=str(error.get("message")),
        where=str(error.get("where", "")),
        fixable_by=str(error.get("fixable_by", "model")),  # pyright: ignore[reportArgumentType] - the same
    )
