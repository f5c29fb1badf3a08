"""One step of a checked plan: resolve, decide, run, keep. Out comes its result.

Whatever a command does ends in a `Result`: this module holds the package's only broad
`except`.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from neuraxis import sentences
from neuraxis.assets.describe import size_of
from neuraxis.assets.sayable import consumed, sayable
from neuraxis.assets.store import Kept, ReferenceLost
from neuraxis.deciding import Refused, decide, shown
from neuraxis.engines import TimeLimitReached
from neuraxis.errors import CommandError, MissingExtra, StorageError
from neuraxis.events import (
    AssetStored,
    CallFinished,
    CallProgress,
    CallStarted,
)
from neuraxis.labels import Label
from neuraxis.messages import Call, CallError, Path, Result
from neuraxis.paths import RESPONSE
from neuraxis.plan import Step, is_left_out
from neuraxis.plan_references import ITEM
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Command
from neuraxis.policy import DEFAULT
from neuraxis.references import (
    AssetRef,
    ReferenceFailure,
    WalkError,
    evaluate,
    fill,
    format_url,
    walk,
)
from neuraxis.runtime import Linked, Runtime
from neuraxis.specs import Json

_CHANGING = frozenset({"idempotent", "once"})
_LARGE = 10_000
"""Bytes of arguments that are compared by their references, not written out."""


async def run_step(step: Step, runtime: Runtime) -> Result:  # noqa: C901 - see below
    """Resolve, decide, run and keep one step; never raises for what it does.

    This is on the way of every call, so the common way stands here in one piece: a
    call without references, allowed, in its budget, with an answer that can be said.
    """
    call, command = step.call, cast("Command", step.command)
    spec, plugin = command.spec, command.plugin.name
    started = time.perf_counter()
    try:
        arguments = step.arguments
        tool = f"{plugin}.{spec.name}"
        code = command.run or _no_code
        if step.bindings or step.asset_refs:
            arguments = resolve_arguments(step, runtime)
            key = _same(tool, arguments, step)
        else:
            key = f"{tool} {arguments!r}"
            code = command.exact or code
        usage, budget = runtime.usage, runtime.budget
        usage.steps += 1
        times = usage.by_tool[tool] = usage.by_tool.get(tool, 0) + 1
        if usage.steps > budget.steps or times > budget.steps_per_tool:
            raise Refused(_exhausted(tool, runtime))
        seen = usage.seen.get(key)
        if seen is not None and seen[0] >= budget.repeats:
            result = _again(seen[1], step, seen[0] + 1, runtime)
        else:
            origins = runtime.origins
            if (
                origins.quiet
                and runtime.policy is DEFAULT
                and arguments is step.arguments
                and step.item is None
            ):
                label = origins.own.get(tool)  # known and empty: nothing to keep
                if label is None or label:
                    label = origins.answers_plainly(tool, call.id, spec)
            else:
                label = await decide(step, arguments, runtime)
            runtime.emit(
                CallStarted(
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
            )
            passed = arguments
            if "secret://" in key:
                passed, code = _with_secrets(step, command, arguments, runtime)
            value = await runtime.engine.run(
                code,
                *_passed(call, command, passed, label, runtime)
                if command.context_name or command.bare
                else ((), cast("dict[str, Any]", passed), None),
                is_async=command.is_async,
                blocking=spec.blocking,
                seconds=spec.time_limit or runtime.time_limit,
            )
            if runtime.secrets.active:
                value = runtime.secrets.scrub(value)
            kept = (
                runtime.assets.keep(call.id, spec.name, value)
                if step.item is None
                else Kept(stored=False, value=consumed(value))
            )
            response = command.response
            fits = response is None or (
                not kept.stored and response.valid_json(kept.value)
            )
            plain = fits and not kept.stored and spec.failure_field is None
            result = Result(
                call=call,
                status="done",
                plugin=plugin,
                command=spec.name,
                value=kept.value,
                stored=kept.stored,
                seconds=time.perf_counter() - started,
            )
            if not plain:
                result = _looked_at(result, kept, command, runtime)
            if seen is None and spec.effects.kind in _CHANGING:
                usage.seen.clear()  # earlier calls may answer differently now
            now = usage.seen.get(key)  # one like it may have ended in between
            usage.seen[key] = (1 if now is None else now[0] + 1, result)
    except asyncio.CancelledError as raised:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            error = sentences.cancelled(call.target)
            finished(_failure(call, command, error, started, runtime), runtime, step)
            raise
        # nobody stopped it: the command's own tasks were cancelled
        error = sentences.crashed(call.target, "CancelledError", "")
        result = _failure(call, command, error, started, runtime, raised)
    except Refused as refused:
        result = _failure(call, command, refused.error, started, runtime)
    except TimeLimitReached:
        error = sentences.timed_out(call.target, spec.time_limit or runtime.time_limit)
        result = _failure(call, command, error, started, runtime)
    except (CommandError, MissingExtra) as told:
        error = sentences.failed(call.target, str(told))
        result = _failure(call, command, error, started, runtime, told)
    except StorageError:
        raise  # the journal or the assets cannot be written: nothing more is run
    except Exception as raised:  # noqa: BLE001 - foreign code may raise anything
        first = next(iter(str(raised).splitlines()), "")
        error = sentences.crashed(call.target, type(raised).__name__, first)
        result = _failure(call, command, error, started, runtime, raised)
    if result.error is not None or step.item is not None or runtime.origins.written:
        finished(result, runtime, step)
        return result
    runtime.emit(  # as `finished` says it, where there is nothing more to say
        CallFinished(
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
    )
    return result


def resolve_arguments(step: Step, runtime: Runtime) -> Json:
    """The arguments with the objects in the places of the references (B42, C20).

    Raises:
        Refused: a reference leads nowhere, or to what the command does not take.
    """
    command, target = step.command, step.call.target
    schema = command.parameters
    replaced: dict[Path, Any] = {}

    def resolve(ref: AssetRef) -> Any:
        if step.item is not None and ref.asset_id == ITEM:
            return step.item.value
        return runtime.assets.resolve(ref)

    try:
        for binding in step.bindings:
            replaced[binding.path] = evaluate(
                binding.template,
                resolve,
                schema.wants_text(binding.path),
                path=binding.path,
            )
        for path, ref in step.asset_refs:
            replaced[path] = runtime.assets.resolve(ref)
    except ReferenceLost as lost:
        raise Refused(lost.error) from None
    except ReferenceFailure as failure:
        raise Refused(sentences.reference_not_found(target, failure.message)) from None
    arguments = fill(step.arguments, replaced)
    if schema.valid(arguments):
        return arguments  # all of it JSON that fits
    for path, value in replaced.items():
        problem = schema.accepts_native(path, value)
        if problem is not None:
            where = sentences.path_text(path, target)
            got = problem.got + _that_fits(step, path, value)
            raise Refused(sentences.invalid_asset_type(where, problem.expected, got))
    problems = schema.problems(arguments, holes=tuple(replaced))
    if problems:
        raise Refused(
            sentences.invalid_param(target, problems, command.spec.parameter_names)
        )
    return arguments


def _that_fits(step: Step, path: Path, value: Any) -> str:
    """For a reference to a whole asset: that to its answer, where it fits (B54)."""
    ref = next((ref for place, ref in step.asset_refs if place == path), None)
    for tail in (RESPONSE, RESPONSE[1:], RESPONSE[:1]):
        try:
            inside = walk(value, tail)
        except WalkError:
            continue
        if ref and step.command.parameters.accepts_native(path, inside) is None:
            longer = AssetRef(asset_id=ref.asset_id, field_path=ref.field_path + tail)
            return f" (did you mean {format_url(longer)}?)"
    return ""


def _exhausted(tool: str, runtime: Runtime) -> CallError:
    budget = runtime.budget
    if runtime.usage.steps > budget.steps:
        return sentences.budget_exhausted("calls in one run", budget.steps)
    return sentences.budget_exhausted(f"calls of {tool}", budget.steps_per_tool)


def _same(tool: str, arguments: Json, step: Step) -> str:
    """What two calls with the same resolved arguments have in common."""
    if size_of(arguments) > _LARGE:
        # what is stored never changes, so the same references mean the same values
        refs = [binding.template.refs for binding in step.bindings]
        item = None if step.item is None else (step.item.part_of, step.item.index)
        return f"{tool} {step.arguments!r} {refs!r} {item}"
    try:
        return f"{tool} {json.dumps(arguments)}"
    except (TypeError, ValueError):
        # a native object: never the same as another
        return f"{tool} {id(arguments)} {time.perf_counter_ns()}"


def _again(earlier: Result, step: Step, times: int, runtime: Runtime) -> Result:
    call = step.call
    warning = sentences.repeated_call(call.target, times).message
    if step.item is None:  # a later step may refer to it by its own id
        runtime.assets.keep(call.id, step.command.spec.name, earlier.value)
    runtime.origins.same(call.id, earlier.call.id)
    return replace(earlier, call=call, warnings=(warning,), seconds=0.0)


def _with_secrets(
    step: Step, command: Command, arguments: Json, runtime: Runtime
) -> tuple[Json, Callable[..., Any]]:
    """The arguments with the values of the secrets they name, and what takes them."""
    target = f"{command.plugin.name}.{command.spec.name}"
    places = runtime.origins.marks(target, command.spec).secret_ok
    filled = runtime.secrets.arguments(arguments, step.arguments, places)
    return filled, command.run or _no_code


def _no_code(*_: Any, **__: Any) -> Any:
    raise CommandError("the plugin has a description but no code")


def _passed(
    call: Call, command: Command, arguments: Json, label: Label, runtime: Runtime
) -> tuple[tuple[Any, ...], Mapping[str, Any], threading.Event | None]:
    """Arguments by position, by name, and what tells the command to stop."""
    bare = command.bare
    left_out = bare and is_left_out(command.parameters, arguments)
    positional = (arguments,) if bare and not left_out else ()
    named: dict[str, Any] = {} if bare else dict(arguments)
    if not command.context_name:
        return positional, named, None
    cancelled = Linked(runtime.cancelled)

    def wrote(path: str) -> None:
        runtime.origins.wrote(path, label, call.id)
        runtime.wrote(path)

    named[command.context_name] = Context(
        call_id=call.id,
        workspace=runtime.workspace,
        settings=runtime.settings,
        config=runtime.secrets.config(command.plugin.config),
        progress=lambda text, part=None: runtime.emit(
            CallProgress(id=call.id, message=runtime.secrets.scrub(text), fraction=part)
        ),
        cancelled=cancelled,
        allowed_hosts=runtime.allowed_hosts,
        wrote=wrote,
        assets=runtime.assets.listing,
    )
    return positional, named, cancelled


def _looked_at(
    result: Result, kept: Kept, command: Command, runtime: Runtime
) -> Result:
    """An answer that is stored, tells a failure, or is not what was declared."""
    call = result.call
    if command.response is not None:
        problem = command.response.accepts_native((), kept.value)
        if problem is not None:
            contract = sentences.plugin_contract_error(call.target, (problem,))
            if runtime.strict:
                raise Refused(contract)
            result = replace(result, warnings=(contract.message,))
    if kept.stored:
        kind = sentences.type_name(kept.value)
        runtime.emit(
            AssetStored(id=call.id, kind=kind, meta=kept.meta, bytes=kept.bytes)
        )
        return result
    error = _told_failure(call, command, kept.value)
    return result if error is None else replace(result, status="failed", error=error)


def _told_failure(call: Call, command: Command, said: Json) -> CallError | None:
    """The failure that an answer tells by its own field, `success: false` (C12)."""
    name = command.spec.failure_field
    if name is None or not isinstance(said, dict):
        return None
    answer = cast("dict[str, Json]", said)
    if answer.get(name) is not False:
        return None
    return sentences.failed(call.target, _why(answer, name))


def _why(answer: Mapping[str, Json], failure_field: str) -> str:
    for name in ("error", "reason", "message", "stderr"):
        text = answer.get(name)
        if isinstance(text, str) and text.strip():
            return text.strip()
    return f"it answered {failure_field}: false"


def _failure(
    call: Call,
    command: Command,
    error: CallError,
    started: float,
    runtime: Runtime,
    raised: BaseException | None = None,
) -> Result:
    if runtime.secrets.active:
        error = replace(error, message=runtime.secrets.scrub(error.message))
        if raised is not None:  # what it raised may hold a secret too
            raised = CommandError(error.message)
    return Result(
        call=call,
        status="failed",
        plugin=command.plugin.name,
        command=command.spec.name,
        error=error,
        seconds=time.perf_counter() - started,
        exception=raised,
    )


def finished(result: Result, runtime: Runtime, step: Step | None = None) -> None:
    """Tell the journal how a step, or one item of it, ended."""
    call, value = result.call, result.value
    part_of = "" if step is None else step.part_of
    if part_of:
        _, value = sayable(value)  # the object itself is kept with the whole list
    runtime.emit(
        CallFinished(
            id=call.id,
            plugin=result.plugin or "",
            command=result.command or call.command,
            tool=call.target,
            status=result.status,
            value=None if result.stored else value,
            asset=call.id if result.stored else None,
            error=None if result.error is None else sentences.error_json(result.error),
            warnings=result.warnings,
            seconds=result.seconds,
            part_of=part_of,
            wrote=runtime.origins.ended(call.id, runtime.workspace)
            if runtime.origins.written
            else (),
        )
    )
