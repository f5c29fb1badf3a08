"""Render a value as text, within a budget.

A string is its own text, any other JSON value is written as JSON (rule C20). A value
that JSON cannot represent has no text: it can only be passed as an object.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from neuraxis.call_errors import problem_text
from neuraxis.errors import NeuraxisError
from neuraxis.formatting import type_name
from neuraxis.messages import Problem
from neuraxis.specs import Json

MOST_STEPS = 20_000
MOST_TEXT = 1 << 20
MOST_COPIED = 10_000_000
"""Maximum elements or characters that slices of one template may copy."""
MOST_NESTED = 200
_UNDER_WAY = (-1, -1)


class ReferenceFailure(NeuraxisError):
    """Raised for a reference that has no value; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem_text(problem))

    @property
    def message(self) -> str:
        """Return the problem as a sentence without its full stop."""
        return problem_text(self.problem).removeprefix("the arguments: ")


class Budget:
    """Remaining cost of one template."""

    __slots__ = ("copied", "steps", "text")

    def __init__(self, steps: int = MOST_STEPS, text: int = MOST_TEXT) -> None:
        self.copied = MOST_COPIED
        self.steps = steps
        self.text = text

    def spend_copied(self, count: int) -> None:
        """Count the elements of a slice before it copies them."""
        self.copied -= count
        if self.copied < 0:
            raise failure(
                f"slices of at most {MOST_COPIED:,} elements in one reference", "more"
            )

    def spend_steps(self, count: int) -> None:
        """Count elements before they are read."""
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
    """Return a failure; `references.evaluate` fills in its place."""
    return ReferenceFailure(
        Problem(
            expected=expected, got=got, candidates=candidates[:20], keyword="reference"
        )
    )


def as_text(value: Any, budget: Budget, indent: int | None = None) -> str:
    """Return a string unchanged, any other value as JSON (C20)."""
    if isinstance(value, str):
        budget.spend_text(len(value))
        return value
    if type(value) not in _SCALARS and not isinstance(value, (list, tuple, Mapping)):
        with contextlib.suppress(TypeError):
            plain = _plain(value)
            if isinstance(plain, str):  # a date is also text, without quotes
                budget.spend_text(len(plain))
                return plain
    return to_json(value, budget, indent)


def to_json(value: Any, budget: Budget, indent: int | None = None) -> str:
    """Return a value's JSON text, within the budget."""
    _, elements = _Measure(budget.text).size(value)
    if indent is not None:
        # the indenting encoder is slow: count each element
        budget.spend_steps(elements)
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


def to_python(value: Any, budget: Budget) -> str:
    """Return the value as a Python literal (C20): `['a', True, None]`."""
    # only what JSON can represent: `repr` of a plugin's class may be anything
    text = repr(json.loads(to_json(value, budget)))
    budget.spend_text(len(text))
    return text


_SCALARS = frozenset({int, float, bool, type(None)})


class _Measure:
    """Measures a value's elements and the minimal length of its JSON.

    Each container is measured once, however often it occurs in the value: a few nested
    lists can represent a text of any length.
    """

    __slots__ = ("held", "limit", "sizes")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.sizes: dict[int, tuple[int, int]] = {}
        # keeps objects that a plugin's mapping creates on the fly: ids are reused
        self.held: list[Any] = []

    def size(self, node: Any, depth: int = 0) -> tuple[int, int]:
        """Return the number of characters and elements."""
        if isinstance(node, str):
            return len(node) + 2, 1
        if isinstance(node, (list, tuple)):
            inner = cast("Sequence[Any]", node)
            length = 2 + 2 * len(inner)
        elif isinstance(node, Mapping):
            inner = list(cast("Mapping[Any, Any]", node).values())
            length = 2 + 6 * len(inner)
            self.held.append(inner)
        else:
            return 1, 1
        key = id(cast("Any", node))
        cached = self.sizes.get(key)
        if cached == _UNDER_WAY:
            raise failure("a value that does not contain itself", "one that does")
        if cached is not None:
            return cached
        if depth > MOST_NESTED:
            raise failure("a value that is less deeply nested", "a deeper one")
        self.sizes[key] = _UNDER_WAY
        elements = 1
        for item in inner:
            if type(item) in _SCALARS:
                length += 1
                elements += 1
            else:
                size_, nodes = self.size(item, depth + 1)
                length += size_
                elements += nodes
            if length > self.limit:
                Budget(text=0).spend_text(length)
        self.sizes[key] = length, elements
        return length, elements


def _plain(value: Any) -> Json:
    """Return JSON for classes with one obvious written form (rule B57)."""
    # imported when a result has such a value, not with the package
    import datetime
    import decimal
    import enum
    import pathlib
    import uuid

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
