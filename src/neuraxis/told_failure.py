"""A command's answer flows in; the failure that it tells of itself flows out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from neuraxis import sentences
from neuraxis.messages import Call, CallError
from neuraxis.plugins.registry import Command
from neuraxis.specs import Json

MOST = 4_000
"""Characters of the reason that are told."""


def told_failure(call: Call, command: Command, said: Json) -> CallError | None:
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
            return _short(text.strip())
    return f"it answered {failure_field}: false"


def _short(text: str) -> str:
    """A long one without its middle: the answer itself is kept whole."""
    if len(text) <= MOST:
        return text
    end = MOST * 3 // 4
    return f"{text[: MOST - end]} … {text[-end:]}"
