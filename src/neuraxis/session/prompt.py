"""Build the prompt of a turn: the constant part, history, and status.

The status (stored assets, remaining budget) stands behind the newest message and is not
stored, so that the history, and with it a server's prompt cache, stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.store import AssetStore
from neuraxis.dialects import Dialect
from neuraxis.execution.budget import Budget
from neuraxis.messages import Message, Prompt
from neuraxis.plugins.registry import Registry

TIGHT = 0.25
"""Fraction of a limit below which the model sees the remaining budget."""


def remaining_budget(budget: Budget, steps: int, turn: int, seconds: float) -> str:
    """Return a sentence on the remaining budget, or "" if plenty remains.

    Args:
        budget: the limits of the run.
        steps: calls that ran so far.
        turn: the number of the requested reply, from 1.
        seconds: since the run began.
    """
    calls = max(budget.steps - steps, 0)
    replies = budget.model_calls - turn + 1
    time = max(budget.seconds - seconds, 0.0)
    tight = (
        calls <= TIGHT * budget.steps
        or replies <= max(TIGHT * budget.model_calls, 2)
        or time <= TIGHT * budget.seconds
    )
    return call_errors.budget_left(calls, replies, time) if tight else ""


def with_status(
    history: Sequence[Message], assets: AssetStore, left: str
) -> Sequence[Message]:
    """Append the asset list (rule B55) and remaining budget to the history."""
    told = assets.told
    if not told and not left:
        return history
    text = f"{told}\n\n{left}" if told and left else told or left
    last = history[-1]
    if last.role != "user":
        return [*history, Message(role="user", content=text)]
    longer = replace(last, content=f"{last.content}\n\n{text}")
    return [*history[:-1], longer]


def constant_prompt(registry: Registry, dialect: Dialect) -> Prompt:
    """Build the part of the prompt that is constant for a registry."""
    specs, names = registry.specs, registry.tool_names
    form = getattr(dialect, "form", None)  # not every dialect has one
    return Prompt(
        messages=(Message(role="system", content=dialect.prompt(specs, names)),),
        constant=1,
        stop=dialect.stop,
        plugins=specs,
        tool_names=names,
        write=dialect.write,
        form=form and partial(form, specs, names),
        native_tools=dialect.native_tools(specs, names),
    )


def with_messages(constant: Prompt, messages: Sequence[Message]) -> Prompt:
    """Append messages to the constant part."""
    return replace(constant, messages=(*constant.messages, *messages))
