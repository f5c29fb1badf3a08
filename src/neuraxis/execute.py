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
from dataclasses import replace
from typing import Any, cast

from neuraxis import sentences
from neuraxis.assets.sayable import consumed, sayable
from neuraxis.assets.store import Kept, ReferenceLost
from neuraxis.engines import TimeLimitReached
from neuraxis.errors import CommandError, MissingExtra, StorageError
from neuraxis.events import (
    ApprovalAnswered,
    ApprovalAsked,
    AssetStored,
    CallFinished,
    CallProgress,
    CallStarted,
)
from neuraxis.messages import Call, CallError, Path, Result
from neuraxis.plan import Step, is_left_out
from neuraxis.plan_references import ITEM
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Command
from neuraxis.policy import EVERYTHING
from neuraxis.references import AssetRef, ReferenceFailure, evaluate, fill
from neuraxis.runtime import Runtime
from neuraxis.specs import Json

_CHANGING = frozenset({"idempotent", "once"})


class Refused(Exception):
    """A step is not run; `error` is what the model is told."""

    def __init__(self, error: CallError) -> None:
        super().__init__(error.message)
        self.error = error


async def run_step(step: Step, runtime: Runtime) -> Result:
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
            key = _same(tool, arguments)
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
            result = _again(seen[1], call, seen[0] + 1)
            if step.item is None:  # a later step may refer to it by its own id
                runtime.assets.keep(call.id, spec.name, result.value)
        else:
            if runtime.policy is not EVERYTHING:
                await _decide(call, command, arguments, runtime)
            runtime.emit(
                CallStarted(
                    id=call.id,
                    plugin=plugin,
                    command=spec.name,
                    tool=call.target,
                    arguments=call.arguments,
                    effects=spec.effects.kind,
                    shown=None if arguments is call.arguments else shown(arguments),
                    part_of=step.item.part_of if step.item is not None else "",
                )
            )
            value = await runtime.engine.run(
                code,
                *_passed(call, command, arguments, runtime)
                if command.context_name or command.takes_value
                else ((), cast("dict[str, Any]", arguments), _Unheard(runtime)),
                is_async=command.is_async,
                blocking=spec.blocking,
                seconds=spec.time_limit or runtime.time_limit,
            )
            kept = (
                runtime.assets.keep(call.id, spec.name, value)
                if step.item is None
                else Kept(stored=False, value=consumed(value))
            )
            fits = command.response is None or command.response.valid(kept.value)
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
            usage.seen[key] = (1 if seen is None else seen[0] + 1, result)
    except asyncio.CancelledError as raised:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            error = sentences.cancelled(call.target)
            finished(_failure(call, command, error, started), runtime, step)
            raise
        # nobody stopped it: the command's own tasks were cancelled
        error = sentences.crashed(call.target, "CancelledError", "")
        result = _failure(call, command, error, started, raised)
    except Refused as refused:
        result = _failure(call, command, refused.error, started)
    except TimeLimitReached:
        error = sentences.timed_out(call.target, spec.time_limit or runtime.time_limit)
        result = _failure(call, command, error, started)
    except (CommandError, MissingExtra) as told:
        error = sentences.failed(call.target, str(told))
        result = _failure(call, command, error, started, told)
    except StorageError:
        raise  # the journal or the assets cannot be written: nothing more is run
    except Exception as raised:  # noqa: BLE001 - foreign code may raise anything
        first = next(iter(str(raised).splitlines()), "")
        error = sentences.crashed(call.target, type(raised).__name__, first)
        result = _failure(call, command, error, started, raised)
    finished(result, runtime, step)
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
    for path, value in replaced.items():
        problem = schema.accepts_native(path, value)
        if problem is not None:
            where = sentences.path_text(path, target)
            raise Refused(
                sentences.invalid_asset_type(where, problem.expected, problem.got)
            )
    problems = schema.problems(arguments, holes=tuple(replaced))
    if problems:
        raise Refused(
            sentences.invalid_param(target, problems, command.spec.parameter_names)
        )
    return arguments


def _exhausted(tool: str, runtime: Runtime) -> CallError:
    budget = runtime.budget
    if runtime.usage.steps > budget.steps:
        return sentences.budget_exhausted("calls in one run", budget.steps)
    return sentences.budget_exhausted(f"calls of {tool}", budget.steps_per_tool)


def _same(tool: str, arguments: Json) -> str:
    """What two calls with the same resolved arguments have in common."""
    try:
        return f"{tool} {json.dumps(arguments)}"
    except (TypeError, ValueError):
        # a native object: never the same as another
        return f"{tool} {id(arguments)} {time.perf_counter_ns()}"


def _again(earlier: Result, call: Call, times: int) -> Result:
    warning = sentences.repeated_call(call.target, times).message
    return replace(earlier, call=call, warnings=(warning,), seconds=0.0)


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
        raise Refused(sentences.denied(call.target, reason))
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
        raise Refused(sentences.denied(call.target, "the user said no"))


def _no_code(*_: Any, **__: Any) -> Any:
    raise CommandError("the plugin has a description but no code")


def _passed(
    call: Call, command: Command, arguments: Json, runtime: Runtime
) -> tuple[tuple[Any, ...], Mapping[str, Any], threading.Event]:
    """Arguments by position, by name, and what tells the command to stop."""
    bare = command.takes_value
    left_out = bare and is_left_out(command.parameters, arguments)
    positional = (arguments,) if bare and not left_out else ()
    named: dict[str, Any] = {} if bare else dict(arguments)
    if not command.context_name:
        return positional, named, _Unheard(runtime)
    cancelled = _Linked(runtime.cancelled)
    named[command.context_name] = Context(
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
        assets=runtime.assets.listing,
    )
    return positional, named, cancelled


class _Unheard(threading.Event):
    """For a command that cannot hear it: its time limit must not stop the others."""

    def __init__(self, runtime: Runtime) -> None:
        self._run = runtime.cancelled  # and nothing of Event's own: this is cheap

    def is_set(self) -> bool:
        return self._run.is_set()

    def set(self) -> None:
        """Nobody hears it."""


class _Linked(threading.Event):
    """Set for one call by its time limit, or for all by the run."""

    def __init__(self, run: threading.Event) -> None:
        super().__init__()
        self._run = run

    def is_set(self) -> bool:
        return self._run.is_set() or super().is_set()


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


def finished(result: Result, runtime: Runtime, step: Step | None = None) -> None:
    """Tell the journal how a step, or one item of it, ended."""
    call = result.call
    value, item = result.value, None if step is None else step.item
    if item is not None:
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
            part_of="" if item is None else item.part_of,
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
