"""What a model is told in each round beside the history: assets, and what is left.

It stands behind the newest message and is not kept, so that the history, and with it
a server's prompt cache, stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from neuraxis import sentences
from neuraxis.assets.store import AssetStore
from neuraxis.messages import Message
from neuraxis.runtime import Budget
from neuraxis.said import Said

TIGHT = 0.25
"""Below this part of a limit the model is told what is left."""


def left_of(budget: Budget, steps: int, turn: int, seconds: float) -> str:
    """A sentence on what is left of the run, or "" where there is plenty.

    Args:
        budget: the limits of the run.
        steps: calls that ran so far.
        turn: the number of the reply that is asked for now, from 1.
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
    return sentences.budget_left(calls, replies, time) if tight else ""


def with_standing(
    history: Sequence[Message], assets: AssetStore, left: str
) -> Sequence[Message]:
    """The history with the AssetMeta list (rule B55) and what is left behind it."""
    told = assets.told
    if not told and not left:
        return history
    text = f"{told}\n\n{left}" if told and left else told or left
    last = history[-1]
    if last.role != "user":
        return Said(history, behind=(Message(role="user", content=text),))
    longer = replace(last, content=f"{last.content}\n\n{text}")
    return Said(history, count=len(history) - 1, behind=(longer,))
