"""One step of a checked plan: resolve, decide, run, keep. Out comes its result.

Whatever a command does ends in a `Result`: this module holds the package's only broad
`except`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from neuraxis import call_errors
from neuraxis.assets.copying import apart
from neuraxis.assets.json_view import consumed, sayable
from neuraxis.assets.store import Kept
from neuraxis.errors import CommandError, StorageError
from neuraxis.events import CallFinished, CallStarted
from neuraxis.execution.failures import (
    CHANGING,
    failed_result,
    failure_of,
    told_failure,
)
from neuraxis.execution.invoke import handed
from neuraxis.execution.repeats import again, same_key, tell_stored
from neuraxis.execution.report import finished
from neuraxis.execution.resolve import resolve_arguments
from neuraxis.execution.runtime import Runtime
from neuraxis.formatting import is_short
from neuraxis.messages import CallError, Result
from neuraxis.planning.plan import Step
from neuraxis.plugins.registry import Command
from neuraxis.policy.ask import shown
from neuraxis.policy.authorize import Refused, decide
from neuraxis.policy.rules import DEFAULT
from neuraxis.record import fresh
from neuraxis.specs import Json

_NOTHING: tuple[Any, ...] = ()


async def run_step(step: Step, runtime: Runtime) -> Result:  # noqa: C901 - see below
    """Resolve, decide, run and keep one step; never raises for what it does.

    This is on the way of every call, so the common way stands here in one piece: a
    call without references, allowed, in its budget, with an answer that can be said.
    """
    call = step.call
    command: Command = step.command  # pyright: ignore[reportAssignmentType] - as found
    spec, plugin = command.spec, command.plugin.name
    started = time.perf_counter()
    try:
        arguments = step.arguments
        tool = f"{plugin}.{spec.name}"
        code = command.run or _no_code
        if step.bindings or step.asset_refs:
            arguments = resolve_arguments(step, runtime)
            key = same_key(tool, arguments, step)
        else:
            read = call.read
            # as `written_key`
            key = read[1] if read and read[0] is arguments else f"{tool} {arguments!r}"
            code = command.exact or code
        if step.item is not None:
            key = f"{key} #{step.item.index}"  # each of the items is asked for
        usage, budget = runtime.usage, runtime.budget
        usage.steps += 1
        times = usage.by_tool[tool] = usage.by_tool.get(tool, 0) + 1
        usage.counted.append((call.id, tool))
        if usage.steps > budget.steps or times > budget.steps_per_tool:
            raise Refused(_exhausted(tool, runtime))
        seen = usage.seen.get(key)
        if seen is not None and len(seen) >= budget.repeats:
            result = again(seen[-1], step, len(seen) + 1, runtime)
        else:
            origins = runtime.gate.origins
            if (
                origins.quiet
                and runtime.gate.policy is DEFAULT
                and arguments is step.arguments
                and step.item is None
            ):
                label = origins.own.get(tool)  # known and empty: nothing to keep
                if label is None or label:
                    label = origins.answers_plainly(tool, call.id, spec, arguments)
            else:
                label = await decide(step, arguments, runtime.gate)
            CallStarted.__init__(
                begins := fresh(CallStarted),
                id=call.id,
                plugin=plugin,
                command=spec.name,
                tool=call.command if call.plugin is None else call.target,
                arguments=call.arguments,
                effects=spec.effects.kind,
                shown=None if arguments is call.arguments else shown(arguments),
                part_of="" if step.item is None else step.item.part_of,
                origins=origins.told_as(label) if label else (),
            )
            runtime.emit(begins)
            passed = arguments
            if "secret://" in key:
                passed, code = _with_secrets(step, command, arguments, runtime)
            if (
                arguments is not step.arguments
                or step.item is not None
                or runtime.on_error == "retry"
            ):
                passed = apart(passed)  # others use it too: it may be changed here
            if spec.effects.kind in CHANGING:
                # earlier calls may answer differently now, also if this one fails
                usage.seen.clear()
                if seen is not None:
                    usage.seen[key] = seen  # but its own are still counted
            if spec.blocking and not command.is_async:
                code = partial(_run_out, code)
            warned: list[str] = []  # by the command itself
            positional, stop = _NOTHING, None
            if command.context_name or command.bare:
                positional, passed, stop = handed(step, passed, label, runtime, warned)
            try:
                value = await runtime.engine.run(
                    code,
                    positional,
                    passed,  # pyright: ignore[reportArgumentType] - an object: not bare
                    stop,
                    is_async=command.is_async,
                    blocking=spec.blocking,
                    seconds=spec.time_limit or runtime.time_limit,
                )
            finally:
                if stop is not None:
                    stop.over = True
            if runtime.secrets.active:
                value = _scrubbed(value, runtime)
            kept = None
            short = step.item is None and is_short(value)
            if step.item is not None:
                kept = Kept(stored=False, value=apart(consumed(value)))
            elif short:
                if value.__class__ is dict:
                    value = value.copy()  # as `apart` does
                runtime.assets.keep_said(call.id, spec.name, value)
            else:
                kept = runtime.assets.keep(call.id, spec.name, value)
                value = kept.value
            Result.__init__(
                result := fresh(Result),
                call=call,
                status="done",
                plugin=plugin,
                command=spec.name,
                value=value if kept is None else kept.value,
                stored=kept is not None and kept.stored,
                short=short,
                seconds=time.perf_counter() - started,
                warnings=tuple(dict.fromkeys(warned)) if warned else (),
            )
            response = command.response
            if (
                result.stored
                or spec.failure_field is not None
                or (response is not None and not response.valid_json(result.value))
            ):
                kept = kept or Kept(stored=False, value=value)
                result = _looked_at(result, kept, command, runtime)
            # one like it may have ended in between
            usage.seen.setdefault(key, []).append(result)
    except asyncio.CancelledError as raised:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            changes = spec.effects.kind in CHANGING
            error = call_errors.cancelled(call.target, changes=changes)
            finished(
                failed_result(call, command, error, started, runtime), runtime, step
            )
            raise
        # nobody stopped it: the command's own tasks were cancelled
        error = call_errors.crashed(call.target, "CancelledError", "")
        result = failed_result(call, command, error, started, runtime, raised)
    except (StorageError, KeyboardInterrupt, GeneratorExit):
        raise  # the journal or the assets cannot be written, or the run is ended
    except BaseException as raised:  # noqa: BLE001 - foreign code may raise anything, also `sys.exit`, or its Rust part a panic
        result = failure_of(raised, call, command, started, runtime)
    if (
        result.error is not None
        or step.item is not None
        or runtime.gate.origins.written
    ):
        finished(result, runtime, step)
        return result
    CallFinished.__init__(  # as `finished` says it, where there is no more to say
        ends := fresh(CallFinished),
        id=call.id,
        plugin=plugin,
        command=spec.name,
        tool=call.command if call.plugin is None else call.target,
        status=result.status,
        value=None if result.stored else result.value,
        asset=call.id if result.stored else None,
        warnings=result.warnings,
        seconds=result.seconds,
    )
    runtime.emit(ends)
    return result


def _exhausted(tool: str, runtime: Runtime) -> CallError:
    budget = runtime.budget
    if runtime.usage.steps > budget.steps:
        return call_errors.budget_exhausted("calls in one run", budget.steps)
    return call_errors.budget_exhausted(f"calls of {tool}", budget.steps_per_tool)


def _with_secrets(
    step: Step, command: Command, arguments: Json, runtime: Runtime
) -> tuple[Json, Callable[..., Any]]:
    """The arguments with the values of the secrets they name, and what takes them."""
    target = f"{command.plugin.name}.{command.spec.name}"
    places = runtime.gate.origins.marks(target, command.spec).secret_ok
    filled = runtime.secrets.arguments(arguments, step.arguments, places)
    return filled, command.run or _no_code


def _scrubbed(value: Any, runtime: Runtime) -> Any:
    """The answer without secrets, those in what an object says of itself among them."""
    value = runtime.secrets.scrub(consumed(value))
    can_be_said, said = sayable(value)
    clean = runtime.secrets.scrub(said)
    return clean if can_be_said and clean != said else value


def _run_out(code: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
    """Run a generator to its end where it may block: in its thread and its time."""
    return consumed(code(*given, **named))


def _no_code(*_: Any, **__: Any) -> Any:
    raise CommandError("the plugin has a description but no code")


def _looked_at(
    result: Result, kept: Kept, command: Command, runtime: Runtime
) -> Result:
    """An answer that is stored, tells a failure, or is not what was declared."""
    call = result.call
    if command.response is not None:
        problem = command.response.accepts_native((), kept.value)
        if problem is not None:
            contract = call_errors.plugin_contract_error(call.target, (problem,))
            if runtime.strict:
                raise Refused(contract)
            result = replace(result, warnings=(*result.warnings, contract.message))
    tell_stored(call.id, kept, runtime.emit)
    error = told_failure(call, command, kept.value)
    return result if error is None else replace(result, status="failed", error=error)
