"""A step and its checked arguments flow in; what its command is handed flows out.

Arguments by position and by name, and the `Context` where it wants one.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from neuraxis.events import CallProgress
from neuraxis.execution.cancellation import Linked
from neuraxis.execution.nested import Outer
from neuraxis.execution.runtime import Runtime
from neuraxis.planning.build import is_left_out
from neuraxis.planning.plan import Step
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Command
from neuraxis.policy.provenance.labels import Label
from neuraxis.specs import Json


def handed(
    step: Step, arguments: Json, label: Label, runtime: Runtime, warned: list[str]
) -> tuple[tuple[Any, ...], Any, Linked | None]:
    """Arguments by position, by name, and what tells the command to stop.

    Args:
        step: the call.
        arguments: resolved, with the values of secrets.
        label: what the arguments are made of.
        runtime: of the run.
        warned: gets what the command warns of.
    """
    call = step.call
    command: Command = step.command  # pyright: ignore[reportAssignmentType] - as found
    bare = command.bare
    left_out = bare and is_left_out(command.parameters, arguments)
    positional = (arguments,) if bare and not left_out else ()
    named: dict[str, Any] = {} if bare else dict(arguments)
    if not command.context_name:
        return positional, named, None
    cancelled = Linked(runtime.cancelled)

    def wrote(path: str) -> None:
        # a session inside of the command may have read more since it began
        now = runtime.gate.origins.results.get(call.id, label)
        runtime.gate.origins.wrote(path, now | label, call.id)
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
        warn=lambda text: warned.append(runtime.secrets.scrub(text)),
        assets=runtime.assets.listing,
        outer=Outer(
            runtime=runtime,
            call_id=call.id,
            tool=call.target,
            label=label,
            cancelled=cancelled,
            loop=asyncio.get_running_loop(),
            thread=threading.get_ident(),
        ),
    )
    return positional, named, cancelled
