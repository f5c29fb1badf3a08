"""Faults of malformed JSON: where they are, and their messages.

A `Fault` holds a sentence for the model about a position in a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from neuraxis.call_errors import duplicate_key, malformed_reply, truncated_reply
from neuraxis.formatting import path_text, quote
from neuraxis.messages import CallError, Path

FaultCode = Literal["malformed", "truncated", "duplicate_key"]


class Fault(Struct, frozen=True, kw_only=True):
    """Reason why a text is not the expected JSON."""

    code: FaultCode
    message: str
    position: int
    path: Path = ()
    """Keys and indices that lead to the place in the value."""
    key: str = ""
    reach: int = 0
    """End of the examined text, if after the fault."""


class Broken(Exception):
    """Raised with a fault by the reader; never leaves the JSON modules."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)


def place(text: str, position: int) -> str:
    """Return `line 3, column 5`, and the text there."""
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    following = text[position : position + 20]
    description = quote(following) if following else "the end of the text"
    return f"line {line}, column {column}, at {description}"


def broken(
    text: str, position: int, message: str, *, path: Iterable[str | int] = ()
) -> Broken:
    """Return the exception for a malformed text; `message` says what was expected."""
    return Broken(
        Fault(
            code="malformed",
            message=f"{place(text, position)}: {message}",
            position=position,
            path=tuple(path),
        )
    )


def cut_off(text: str, message: str, *, path: Iterable[str | int] = ()) -> Broken:
    """Return the exception for a text that ends too early."""
    return Broken(
        Fault(
            code="truncated",
            message=f"the text ends {message}",
            position=len(text),
            path=tuple(path),
        )
    )


def call_error(fault: Fault) -> CallError:
    """Return the fault as an error for the model."""
    match fault.code:
        case "truncated":
            return truncated_reply(f"{fault.message[0].upper()}{fault.message[1:]}.")
        case "duplicate_key":
            return duplicate_key(fault.key, path_text(fault.path))
        case "malformed":
            return malformed_reply(f"{fault.message}.", path_text(fault.path))


def end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Return the end of the match at `position`, or `position` itself."""
    match = pattern.match(text, position)
    return match.end() if match else position
