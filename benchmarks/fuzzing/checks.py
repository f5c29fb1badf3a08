"""What must hold of the answers of the readers; `Finding` where it does not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args

from neuraxis.call_errors import to_json
from neuraxis.messages import CallError, ErrorCode, Problem, Reply

CODES = frozenset(get_args(ErrorCode))
SECONDS = 0.3
"""Processor time for each 10,000 characters that are read: four times the slowest."""
slowness = 1.0
"""How much more a reader may take: its code is slower while it is traced."""

_T = TypeVar("_T")


class Finding(Exception):
    """A promise that an input breaks."""


def must(holds: object, message: str) -> None:
    """Raise a finding where something does not hold."""
    if not holds:
        raise Finding(message)


def timed(size: int, work: Callable[[], _T], seconds: float = SECONDS) -> _T:
    """What `work` gives, in time: the best of three where the first was too slow."""
    most = seconds * max(1.0, size / 10_000) * slowness
    started = time.thread_time()
    found = work()
    spent = time.thread_time() - started
    if spent > most:
        best = spent
        for _ in range(2):
            started = time.thread_time()
            work()
            best = min(best, time.thread_time() - started)
        must(best <= most, f"slow: {best * 1000:.0f} ms for {size} characters")
    return found


def can_be_stored(value: Any) -> bool:
    """Whether it is JSON that can be written as UTF-8."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return _plain(value)


def _plain(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if type(item) is dict:
            if not all(type(key) is str for key in item):
                return False
            stack += item.values()
        elif type(item) is list:
            stack += item
        elif item is not None and not isinstance(item, str | int | float):
            return False
    return True


def is_whole(text: str) -> bool:
    """Whether the text has no half characters: no server can send one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types: 1 is not 1.0 nor true; keys in the same order."""
    return repr(one) == repr(other)


def check_errors(errors: Sequence[CallError], whole: bool) -> None:
    """Errors that a model can be told."""
    for error in errors:
        must(error.code in CODES, f"an unknown error code: {error.code}")
        must(isinstance(error.message, str), "an error without a sentence")
        must(error.message.strip(), "an error with an empty sentence")
        must(len(error.message) < 20_000, "an error of over 20,000 characters")
        said = to_json(error)
        must(not whole or can_be_stored(said), "an error that cannot be told")


def check_problems(problems: Sequence[Problem]) -> None:
    """Problems that a sentence can be made of."""
    for problem in problems:
        must(type(problem.path) is tuple, "a problem without a path")
        for part in problem.path:
            must(isinstance(part, str | int), "a path with odd parts")
        must(isinstance(problem.expected, str), "a problem that expects no text")
        must(isinstance(problem.got, str), "a problem that got no text")
        must(len(problem.got) < 5_000, "a problem that quotes over 5,000 characters")


def check_reply(
    reply: Reply, made: Sequence[str], whole: bool, native: bool = False
) -> None:
    """Calls or errors, never both; every call can be checked, stored and told."""
    must(not (reply.calls and reply.errors), "calls beside errors")
    ids = [call.id for call in reply.calls]
    must(len(set(ids)) == len(ids), "two calls with one id")
    must(set(ids) <= set(made), "an id that nobody gave")
    for call in reply.calls:
        must(type(call.command) is str, "a call of nothing")
        # A server's own call is answered under its id, even without a name.
        must(call.command or native, "a call without a name")
        must(call.plugin is None or type(call.plugin) is str, "an odd plugin")
        must(call.name is None or (type(call.name) is str and call.name), "odd name")
        must(type(call.literal) is bool, "an odd literal")
        must(type(call.max_items) in (int, type(None)), "odd max_items")
        must(can_be_stored(call.arguments), "arguments that cannot be stored")
        must(can_be_stored(call.for_each), "for_each that cannot be stored")
        names = [call.command, call.plugin, call.name]
        must(not whole or can_be_stored(names), "odd names")
    for text in (*reply.texts, *reply.thoughts, *reply.notes):
        must(type(text) is str, "a text that is none")
        must(not whole or is_whole(text), "a text with half a character")
    must(all(text.strip() or text == "" for text in reply.notes), "an empty note")
    check_errors(reply.errors, whole)
