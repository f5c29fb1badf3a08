"""A native value flows in; its text flows out, within a budget.

A string is its own text, any other JSON value is written as JSON (rule C20). What JSON
cannot hold has no text: it travels as the object it is or not at all.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import pathlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, cast

from neuraxis.errors import NeuraxisError
from neuraxis.messages import Problem
from neuraxis.sentences import problem_text, type_name
from neuraxis.specs import Json

MOST_STEPS = 20_000
MOST_TEXT = 1 << 20


class ReferenceFailure(NeuraxisError):
    """A reference cannot be given its value; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem_text(problem))

    @property
    def message(self) -> str:
        """The problem as a sentence without its full stop."""
        return problem_text(self.problem)


class Budget:
    """What one template may still cost."""

    __slots__ = ("steps", "text")

    def __init__(self, steps: int = MOST_STEPS, text: int = MOST_TEXT) -> None:
        self.steps = steps
        self.text = text

    def spend_steps(self, count: int) -> None:
        """Count elements before they are touched."""
        self.steps -= count
        if self.steps < 0:
            raise failure(
                f"at most {MOST_STEPS:,} elements in one reference",
                "a larger value",
            )

    def spend_text(self, length: int) -> None:
        """Count characters before they are written."""
        self.text -= length
        if self.text < 0:
            raise failure(
                f"at most {MOST_TEXT:,} characters of text from references",
                "more; pass the value whole, without text around and filters",
            )


def failure(
    expected: str, got: str, candidates: tuple[str, ...] = ()
) -> ReferenceFailure:
    """A failure whose place is filled in by `references.evaluate`."""
    return ReferenceFailure(
        Problem(
            expected=expected, got=got, candidates=candidates[:20], keyword="reference"
        )
    )


def as_text(value: Any, budget: Budget, indent: int | None = None) -> str:
    """A string as it is, any other JSON value as JSON (rule C20)."""
    if isinstance(value, str):
        budget.spend_text(len(value))
        return value
    return to_json(value, budget, indent)


def to_json(value: Any, budget: Budget, indent: int | None = None) -> str:
    """JSON text of a value, within the budget."""
    nodes = _measure(value, budget.text)
    if indent is not None:
        # The indenting encoder is a slow one: count each element.
        budget.spend_steps(nodes)
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, indent=indent, default=_plain
        )
    except RecursionError:
        raise failure("a value that is less deeply nested", "a deeper one") from None
    except (TypeError, ValueError):
        raise failure(
            "a value that JSON can hold, to make text of it", type_name(value)
        ) from None
    budget.spend_text(len(text))
    return text


_SCALARS = frozenset({int, float, bool, type(None)})


def _measure(value: Any, limit: int) -> int:
    """How many elements; stops as soon as the JSON text must be over the limit.

    Each element counts with the fewest characters that it and its comma can take.
    """
    nodes, length = 1, 0
    stack: list[Any] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, (list, tuple)):
            inner = cast("Sequence[Any]", node)
        elif isinstance(node, str):
            length += len(node) + 4
            continue
        elif isinstance(node, Mapping):
            inner = list(cast("Mapping[Any, Any]", node).values())
            length += 4 * len(inner)
        else:
            length += 3
            continue
        count = len(inner)
        nodes += count
        length += 4
        if length + 3 * (len(stack) + count) > limit:
            Budget(text=0).spend_text(1)
        large = [item for item in inner if type(item) not in _SCALARS]
        length += 3 * (count - len(large))
        stack += large
    return nodes


def _plain(value: Any) -> Json:
    """JSON for the few classes that have one obvious written form (rule B57)."""
    match value:
        case datetime.date() | datetime.time():
            return value.isoformat()
        case uuid.UUID() | decimal.Decimal() | pathlib.PurePath():
            return str(value)
        case enum.Enum():
            return value.value
        case Mapping():
            return dict(cast("Mapping[Any, Any]", value))
        case _:
            raise TypeError(type_name(value))
