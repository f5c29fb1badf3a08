"""Failed results: a command's exception, or a failure its response declares."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import cast

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.engines import NoThreadFree, TimeLimitReached
from neuraxis.errors import CommandError, MissingExtra
from neuraxis.execution.runtime import Runtime
from neuraxis.formatting import public_names
from neuraxis.messages import Call, CallError, Result
from neuraxis.planning.plan import Step
from neuraxis.plugins.registry import Command
from neuraxis.policy.decision import Refused
from neuraxis.policy.secrets import NoSecret
from neuraxis.specs import Json

_LOG = logging.getLogger("neuraxis.commands")
_RUNTIME = (
    *("neuraxis.execution", "neuraxis.engines", "asyncio", "concurrent.futures"),
    *("threading", "types"),
)
"""Packages whose frames stand above a command's own."""
MOST = 4_000
"""Maximum characters of a reported failure reason."""


def declared_failure(call: Call, command: Command, value: Json) -> CallError | None:
    """Return the failure that a response declares, such as `success: false` (C12)."""
    name = command.spec.failure_field
    if name is None or not isinstance(value, dict):
        return None
    response = cast("dict[str, Json]", value)
    if response.get(name) is not False:
        return None
    return call_errors.failed(call.target, _failure_reason(response, name))


def _failure_reason(answer: Mapping[str, Json], failure_field: str) -> str:
    for name in ("error", "reason", "message", "stderr"):
        text = answer.get(name)
        if isinstance(text, str) and text.strip():
            return _short(text.strip())
    return f"it answered {failure_field}: false"


def _short(text: str) -> str:
    """Cut the middle out of a long text."""
    if len(text) <= MOST:
        return text
    end = MOST * 3 // 4
    return f"{text[: MOST - end]} … {text[-end:]}"


def failure_of(
    raised: BaseException, step: Step, started: float, runtime: Runtime
) -> Result:
    """Return the result of a step that was refused or raised."""
    target, spec = step.call.target, step.command.spec
    if isinstance(raised, Refused):
        return failed_result(step, raised.error, started, runtime)
    if isinstance(raised, TimeLimitReached):
        limit = spec.time_limit or runtime.time_limit
        changes = not spec.effects.readonly
        error = (
            call_errors.still_running(target, limit, changes=changes)
            if raised.still_running
            else call_errors.timed_out(target, limit, changes=changes)
        )
        return failed_result(step, error, started, runtime)
    if isinstance(raised, NoThreadFree):
        limit = spec.time_limit or runtime.time_limit
        error = call_errors.no_thread_free(target, limit)
        return failed_result(step, error, started, runtime)
    if isinstance(raised, CommandError | MissingExtra):
        error = call_errors.failed(target, _exception_text(raised))
        if isinstance(raised, NoSecret):
            error = replace(error, fixable_by="user")
    else:
        error = crashed(step.call, raised, runtime)
        _log(raised, step, runtime)
    return failed_result(step, error, started, runtime, raised)


def _log(raised: BaseException, step: Step, runtime: Runtime) -> None:
    """Log an unexpected exception once for all attempts and items."""
    call_id = step.part_of or step.call.id
    if call_id not in runtime.usage.crashed:
        runtime.usage.crashed.add(call_id)
        # text, and not the exception: secrets in it would reach the log
        lines = traceback.format_exception(type(raised), raised, _own_frames(raised))
        trace: str = runtime.secrets.scrub("".join(lines))
        _LOG.warning("%s (%s) raised:\n%s", step.tool, call_id, _short(trace.rstrip()))


def _own_frames(raised: BaseException) -> TracebackType | None:
    """Return the traceback from the command's first line on, without the runtime's."""
    frame = raised.__traceback__
    while frame and frame.tb_frame.f_globals.get("__name__", "").startswith(_RUNTIME):
        frame = frame.tb_next
    return frame or raised.__traceback__


def crashed(call: Call, raised: BaseException, runtime: Runtime) -> CallError:
    """Return the error that the model is shown for an unexpected exception."""
    # scrub first: after shortening, a part of a secret might remain
    text: str = runtime.secrets.scrub(_exception_text(raised))
    first = next(iter(text.splitlines()), "")
    return call_errors.crashed(call.target, type(raised).__name__, first)


def denied_result(step: Step, why: str, runtime: Runtime) -> Result:
    """Return the result of a step that may not run."""
    error = call_errors.denied(step.call.target, why)
    return failed_result(step, error, time.perf_counter(), runtime)


def failed_result(
    step: Step,
    error: CallError,
    started: float,
    runtime: Runtime,
    raised: BaseException | None = None,
) -> Result:
    """Return a failed step's result; `raised` is its command's exception."""
    if runtime.secrets.active:
        error = replace(error, message=runtime.secrets.scrub(error.message))
        if raised is not None:  # the exception's text may hold a secret too
            raised = CommandError(error.message)
    return Result(
        call=step.call,
        status="failed",
        plugin=step.command.plugin.name,
        command=step.command.spec.name,
        error=error,
        seconds=time.perf_counter() - started,
        exception=raised,
    )


def _exception_text(raised: BaseException) -> str:
    """Return an exception's message, or its type if `__str__` itself fails."""
    try:
        return public_names(str(raised))
    except Exception:  # noqa: BLE001 - as in `run_step`
        return ""
