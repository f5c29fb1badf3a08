"""One step of a checked plan: resolve, decide, run, keep. Out comes its result.

Whatever a command does ends in a `Result`: this module holds the package's only broad
`except`.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping
from typing import Any, cast

from neuraxis import sentences
from neuraxis.assets.store import ReferenceLost
from neuraxis.engines import TimeLimitReached
from neuraxis.errors import CommandError, MissingExtra
from neuraxis.events import (
    ApprovalAnswered,
    ApprovalAsked,
    AssetStored,
    CallFinished,
    CallProgress,
    CallStarted,
)
from neuraxis.messages import Call, CallError, Path, Result
from neuraxis.plan import Found, Step
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Command
from neuraxis.references import ReferenceFailure, evaluate, fill
from neuraxis.runtime import Runtime
from neuraxis.specs import Json


class _Refused(Exception):
    """A step is not run; `error` is what the model is told."""

    def __init__(self, error: CallError) -> None:
        super().__init__(error.message)
        self.error = error


async def run_step(step: Step, runtime: Runtime) -> Result:
    """Resolve, decide, run and keep one step; never raises for what it does."""
    call = step.call
    command = cast("Command", step.command)
    started = time.perf_counter()
    try:
        arguments = step.arguments
        if step.bindings or step.asset_refs:
            arguments = _resolve(step, command, runtime)
        repeated = _count(call, command, arguments, runtime)
        if repeated is not None:
            result = _again(repeated, call)
        else:
            await _decide(call, command, arguments, runtime)
            value = await _run(call, command, arguments, runtime)
            result = _keep(call, command, value, runtime, started)
            _remember(command, arguments, result, runtime)
    except asyncio.CancelledError:
        finished(
            _failure(call, command, sentences.cancelled(call.target), started),
            call,
            command,
            runtime,
        )
        raise
    except _Refused as refused:
        result = _failure(call, command, refused.error, started)
    except TimeLimitReached:
        seconds = command.spec.time_limit or runtime.time_limit
        error = sentences.timed_out(call.target, seconds)
        result = _failure(call, command, error, started)
    except (CommandError, MissingExtra) as told:
        error = sentences.failed(call.target, str(told))
        result = _failure(call, command, error, started, told)
    except Exception as raised:  # noqa: BLE001 - foreign code may raise anything
        first = next(iter(str(raised).splitlines()), "")
        error = sentences.crashed(call.target, type(raised).__name__, first)
        result = _failure(call, command, error, started, raised)
    finished(result, call, command, runtime)
    return result


def _resolve(step: Step, command: Command, runtime: Runtime) -> Json:
    """The arguments with the objects in the places of the references (B42, C20)."""
    target = step.call.target
    schema = command.parameters
    replaced: dict[Path, Any] = {}
    try:
        for binding in step.bindings:
            replaced[binding.path] = evaluate(
                binding.template,
                runtime.assets.resolve,
                schema.wants_text(binding.path),
            )
        for path, ref in step.asset_refs:
            replaced[path] = runtime.assets.resolve(ref)
    except ReferenceLost as lost:
        raise _Refused(lost.error) from None
    except ReferenceFailure as failure:
        raise _Refused(sentences.reference_not_found(target, failure.message)) from None
    arguments = fill(step.arguments, replaced)
    for path, value in replaced.items():
        problem = schema.accepts_native(path, value)
        if problem is not None:
            where = sentences.path_text(path, target)
            raise _Refused(
                sentences.invalid_asset_type(where, problem.expected, problem.got)
            )
    problems = schema.problems(arguments, holes=tuple(replaced))
    if problems:
        raise _Refused(
            sentences.invalid_param(target, problems, command.spec.parameter_names)
        )
    return arguments


def _count(
    call: Call, command: Command, arguments: Json, runtime: Runtime
) -> Result | None:
    """Charge the budget; the earlier result where the call must not run again."""
    usage, budget = runtime.usage, runtime.budget
    usage.steps += 1
    tool = f"{command.plugin.name}.{command.spec.name}"
    times = usage.by_tool[tool] = usage.by_tool.get(tool, 0) + 1
    if usage.steps > budget.steps:
        raise _Refused(sentences.budget_exhausted("calls in one run", budget.steps))
    if times > budget.steps_per_tool:
        raise _Refused(
            sentences.budget_exhausted(f"calls of {tool}", budget.steps_per_tool)
        )
    if not usage.seen:
        return None
    count, earlier = usage.seen.get(_same(command, arguments), (0, None))
    return earlier if count >= budget.repeats else None


def _same(command: Command, arguments: Json) -> str:
    try:
        text = json.dumps(arguments, sort_keys=True)
    except (TypeError, ValueError):
        text = str(id(arguments))  # a native object: never the same as another
    return f"{command.plugin.name}.{command.spec.name} {text}"


def _remember(
    command: Command, arguments: Json, result: Result, runtime: Runtime
) -> None:
    seen = runtime.usage.seen
    key = _same(command, arguments)
    count = seen.get(key, (0, result))[0]
    if not command.spec.effects.readonly and count == 0:
        seen.clear()  # something changed: earlier calls may answer differently now
    seen[key] = (count + 1, result)


def _again(earlier: Result, call: Call) -> Result:
    return Result(
        call=call,
        status=earlier.status,
        plugin=earlier.plugin,
        command=earlier.command,
        value=earlier.value,
        stored=earlier.stored,
        error=earlier.error,
        warnings=(sentences.repeated_call(call.target, 0).message,),
    )


async def _decide(
    call: Call, command: Command, arguments: Json, runtime: Runtime
) -> None:
    decision = runtime.policy.decide(command.plugin.name, command.spec, arguments)
    if decision.verdict == "allow":
        return
    if decision.verdict == "deny" or runtime.approve is None:
        reason = decision.reason
        if decision.verdict == "ask":
            reason += ", it needs a person's yes, and nobody can be asked"
        raise _Refused(sentences.denied(call.target, reason))
    asked = ApprovalAsked(
        id=call.id,
        call={
            "plugin": command.plugin.name,
            "command": command.spec.name,
            "arguments": shown(arguments),
        },
        reason=decision.reason,
    )
    runtime.emit(asked)
    allowed = await runtime.approve(asked)
    runtime.emit(ApprovalAnswered(id=call.id, allowed=allowed))
    if not allowed:
        raise _Refused(sentences.denied(call.target, "the user said no"))


async def _run(call: Call, command: Command, arguments: Json, runtime: Runtime) -> Any:
    spec = command.spec
    runtime.emit(
        CallStarted(
            id=call.id,
            plugin=command.plugin.name,
            command=spec.name,
            tool=call.target,
            arguments=call.arguments,
            effects=spec.effects.kind,
            shown=shown(arguments),
        )
    )
    if command.run is None:
        raise CommandError("the plugin has a description but no code")
    cancelled = runtime.cancelled
    named: Mapping[str, Any] = {} if command.takes_value else arguments
    if command.wants_context:
        cancelled = _Linked(runtime.cancelled)
        context = Context(
            call_id=call.id,
            workspace=runtime.workspace,
            settings=runtime.settings,
            config=command.plugin.config,
            progress=lambda text, part=None: runtime.emit(
                CallProgress(id=call.id, message=text, fraction=part)
            ),
            cancelled=cancelled,
            allowed_hosts=runtime.allowed_hosts,
            wrote=runtime.wrote,
        )
        named = {**named, command.context_name: context}
    return await runtime.engine.run(
        command.run,
        named,
        positional=(arguments,) if command.takes_value else (),
        is_async=command.is_async,
        blocking=spec.blocking,
        seconds=spec.time_limit or runtime.time_limit,
        cancelled=cancelled,
    )


class _Linked(threading.Event):
    """Set for one call by its time limit, or for all by the run."""

    def __init__(self, run: threading.Event) -> None:
        super().__init__()
        self._run = run

    def is_set(self) -> bool:
        return self._run.is_set() or super().is_set()


def _keep(
    call: Call, command: Command, value: Any, runtime: Runtime, started: float
) -> Result:
    """The command's value as a result: checked (D11), kept, said or stored."""
    warnings: tuple[str, ...] = ()
    kept = runtime.assets.keep(call.id, command.spec.name, value)
    if command.response is not None:
        problem = command.response.accepts_native((), kept.value)
        if problem is not None:
            contract = sentences.plugin_contract_error(call.target, (problem,))
            if runtime.strict:
                raise _Refused(contract)
            warnings = (contract.message,)
    if kept.stored:
        runtime.emit(
            AssetStored(
                id=call.id,
                kind=sentences.type_name(kept.value),
                meta=kept.meta,
                bytes=kept.bytes,
            )
        )
    error = None if kept.stored else _told_failure(call, command, kept.value)
    return Result(
        call=call,
        status="done" if error is None else "failed",
        plugin=command.plugin.name,
        command=command.spec.name,
        value=kept.value,
        stored=kept.stored,
        error=error,
        warnings=warnings,
        seconds=time.perf_counter() - started,
    )


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
    raised: BaseException | None = None,
) -> Result:
    return Result(
        call=call,
        status="failed",
        plugin=command.plugin.name,
        command=command.spec.name,
        error=error,
        seconds=time.perf_counter() - started,
        exception=raised,
    )


def finished(result: Result, call: Call, command: Found, runtime: Runtime) -> None:
    """Tell the journal how a step ended."""
    runtime.emit(
        CallFinished(
            id=call.id,
            plugin=command.plugin.name,
            command=command.spec.name,
            tool=call.target,
            status=result.status,
            value=None if result.stored else result.value,
            asset=call.id if result.stored else None,
            error=None if result.error is None else sentences.error_json(result.error),
            warnings=result.warnings,
            seconds=result.seconds,
        )
    )


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
