"""Invoke a command: bind its arguments, make its `Context`, run its code."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from neuraxis.assets.copying import copy_value
from neuraxis.assets.json_view import drain, to_json_value
from neuraxis.call_errors import NOBODY
from neuraxis.errors import CommandError
from neuraxis.events import CallProgress
from neuraxis.execution.cancellation import CallCancellation
from neuraxis.execution.nested import ParentRun
from neuraxis.execution.offload import in_thread_if, is_large, leads_to_object
from neuraxis.execution.runtime import Runtime
from neuraxis.formatting import refuse
from neuraxis.planning.build import omits_parameter
from neuraxis.planning.plan import Step
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Command
from neuraxis.policy.authorize import ask_about_files
from neuraxis.policy.files.free_files import is_free_document
from neuraxis.policy.provenance.labels import Label
from neuraxis.sandbox.files.call_files import CallFiles
from neuraxis.specs import Json


async def invoke(
    step: Step, arguments: Json, label: Label, runtime: Runtime
) -> tuple[Any, tuple[str, ...]]:
    """Run a step's command; return its response and its warnings.

    Args:
        step: the authorised call.
        arguments: the call's arguments, with their references resolved.
        label: the origins of the arguments.
        runtime: the runtime of the plan.

    Raises:
        Exception: the command's own exception.
        TimeLimitReached: the command took longer than its limit.
    """
    command = step.command
    spec = command.spec
    warnings: list[str] = []
    large = leads_to_object(step, runtime)
    own_arguments = await in_thread_if(large, _own_copy, step, arguments, runtime)
    positional, named = bind_arguments(command, own_arguments)
    cancelled: CallCancellation | None = None
    if command.context_name:
        cancelled = CallCancellation(runtime.cancelled)
        named[command.context_name] = _context(
            step, label, runtime, cancelled, warnings
        )
    code = command.run or _no_code
    if spec.blocking and not command.is_async:
        code = partial(_exhaust, code)
    try:
        value = await runtime.engine.run(
            code,
            positional,
            named,
            cancelled,
            is_async=command.is_async,
            blocking=spec.blocking,
            seconds=spec.time_limit or runtime.time_limit,
        )
    finally:
        if cancelled is not None:
            cancelled.over = True
    if runtime.secrets.active:
        value = await in_thread_if(is_large(value), _scrubbed, value, runtime)
    return value, tuple(dict.fromkeys(warnings))


def bind_arguments(
    command: Command, arguments: Json
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and keyword arguments, as the command's code takes them."""
    if not command.bare:
        return (), dict(arguments)
    if omits_parameter(command.parameters, arguments):
        return (), {}
    return (arguments,), {}


def _with_secrets(step: Step, arguments: Json, runtime: Runtime) -> Json:
    """Replace the secret names in the arguments with the secrets' values."""
    places = step.command.marks.secret_ok
    if not places:
        return arguments
    # a value behind a reference must not name secrets
    return runtime.secrets.arguments(arguments, step.arguments, places)


def _own_copy(step: Step, arguments: Json, runtime: Runtime) -> Json:
    """Copy arguments that other steps share: a command may change them."""
    arguments = _with_secrets(step, arguments, runtime)
    is_shared = (
        arguments is not step.arguments
        or step.item is not None
        or runtime.on_error == "retry"
    )
    return copy_value(arguments) if is_shared else arguments


def _context(
    step: Step,
    label: Label,
    runtime: Runtime,
    cancelled: CallCancellation,
    warnings: list[str],
) -> Context:
    """Build the command's `Context`; `warnings` collects its warnings."""
    call, origins = step.call, runtime.gate.origins

    def wrote(path: str, exists: bool = True) -> None:
        path = _in_workspace(path, runtime.workspace)
        # a session inside the command may have read more since it began
        current = origins.results.get(call.id, label)
        origins.wrote(path, current | label, call.id)
        if exists:
            runtime.wrote(path)

    def listing() -> Sequence[Mapping[str, Json]]:
        origins.sums_up(call.id)  # it tells names and columns of everything stored
        return runtime.assets.listing()

    return Context(
        call_id=call.id,
        session_id=runtime.session,
        deps=runtime.deps,
        idempotency_key=_idempotency_key(step, runtime),
        workspace=runtime.workspace,
        settings=runtime.settings,
        config=runtime.secrets.config(step.command.plugin.config),
        progress=lambda text, part=None: runtime.emit(
            CallProgress(id=call.id, message=runtime.secrets.scrub(text), fraction=part)
        ),
        cancelled=cancelled,
        allowed_hosts=runtime.allowed_hosts,
        wrote=wrote,
        warn=lambda text: warnings.append(runtime.secrets.scrub(text)),
        show=lambda: runtime.shown.add(call.id),
        assets=listing,
        files=_files(step, runtime, warnings, wrote),
        outer=ParentRun(
            runtime=runtime,
            call_id=call.id,
            tool=call.target,
            source=step.tool,
            cancelled=cancelled,
            loop=asyncio.get_running_loop(),
            thread=threading.get_ident(),
        ),
    )


def _in_workspace(path: str, workspace: Path) -> str:
    """Return the path that a command reports, relative to the workspace.

    Raises:
        ConfigError: it leads out of it.
    """
    inside = os.path.relpath(os.path.join(workspace, path), workspace)
    if inside == os.pardir or inside.startswith(f"{os.pardir}{os.sep}"):
        refuse("context.wrote", f"a path in the workspace {workspace}", path)
    return inside


def _idempotency_key(step: Step, runtime: Runtime) -> str:
    """Return a key that is unique to all attempts at this call.

    The id is unique in the session, but not if the journal was restored from a copy.
    So the key includes the command and its arguments.
    """
    from hashlib import blake2b  # see `formatting.sha256`

    call = step.call
    key = (runtime.key, call.id, step.part_of, step.tool, call.arguments)
    return blake2b(repr(key).encode(errors="replace"), digest_size=16).hexdigest()


def _files(
    step: Step,
    runtime: Runtime,
    warnings: list[str],
    on_write: Callable[[str, bool], None],
) -> CallFiles | None:
    """Return the object with which the command changes workspace files."""
    gate, call = runtime.gate, step.call
    if gate.files is None:
        return None
    loop = asyncio.get_running_loop()

    def ask(changes: Mapping[str, Sequence[str]], lost: Sequence[str]) -> str:
        question = ask_about_files(step, changes, lost, gate)
        if threading.get_ident() == loop_thread:  # an async command cannot wait here
            question.close()
            return NOBODY
        try:
            return asyncio.run_coroutine_threadsafe(question, loop).result()
        except RuntimeError:  # the loop is closed
            question.close()
            return NOBODY

    loop_thread = threading.get_ident()
    return CallFiles(
        history=gate.files,
        call_id=call.id,
        target=step.tool,
        warn=lambda text: warnings.append(runtime.secrets.scrub(text)),
        ask=ask,
        words=gate.origins.own_words,
        free=call.id in gate.approvals.free,
        note=on_write,
        # of a script that runs after something from outside was read
        holds=None
        if not gate.origins.read
        else lambda path: not is_free_document(path, gate),
    )


def _exhaust(code: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Exhaust a generator within its command's thread and time limit."""
    return drain(code(*args, **kwargs))


def _no_code(*_: Any, **__: Any) -> Any:
    raise CommandError("the plugin has a description but no code")


def _scrubbed(value: Any, runtime: Runtime) -> Any:
    """Remove secrets from the response, also from descriptions of objects."""
    value = runtime.secrets.scrub(drain(value))
    is_json, json_value = to_json_value(value)
    clean = runtime.secrets.scrub(json_value)
    return clean if is_json and clean != json_value else value
