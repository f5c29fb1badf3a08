"""Interface of a family: where a call begins, how it is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol, cast

from msgspec import Struct

from neuraxis.parsing.json_errors import Broken, Fault, broken
from neuraxis.parsing.json_scan import ReadValue, Value, Written
from neuraxis.specs import Json

BAR = r"[|｜]"
SUFFIX = r"(?::\w{1,20})?"
"""What Hunyuan writes behind the name of a tag (`:opensource`)."""
NAME = r"(?P<name>[\w.-]{1,200})"


_OWN = re.compile(r"\A(?:functions|default_api|tools)\.")


def bare(name: str) -> str:
    """Return a tool's name without the namespace that models were trained with."""
    return _OWN.sub("", name)


class Reading(Struct):
    """Context for reading a call: JSON reader, known tools, preceding text."""

    value: ReadValue
    is_tool: Callable[[str], bool]
    framed: bool = False
    """Whether one of the model's special tokens announced a call."""
    is_alone: Callable[[], bool] = bool
    """Whether only frames and fences precede it in the reply."""
    is_fenced: Callable[[], bool] = bool
    """Whether only code without functions precedes it, in one fence."""
    reach: int = 0
    """End of the text that was read in vain."""


class Taken(Struct, frozen=True, kw_only=True):
    """Calls that were read, and where the text continues."""

    calls: tuple[Written, ...]
    end: int
    notes: tuple[str, ...] = ()


def arguments(text: str, at: int, name: str, value: Value | Fault) -> dict[str, Json]:
    """Return a call's arguments, which must be an object."""
    if isinstance(value, Fault):
        raise Broken(value)
    parsed: Json = value.value
    if not isinstance(parsed, dict):
        raise broken(text, at, f"expected the arguments of {name}: a JSON object")
    return cast("dict[str, Json]", parsed)


class Family(Protocol):
    """Form of calls in some models' chat templates."""

    @property
    def models(self) -> str:
        """Return the names of the models that write it."""
        ...

    @property
    def begin(self) -> re.Pattern[str]:
        """Return the pattern that the form begins with."""
        ...

    def read(self, text: str, begin: re.Match[str], reading: Reading) -> Taken | None:
        """Read the calls that begin there; None: it is text.

        Raises:
            Broken: it was meant as a call, and cannot be read.
        """
        ...
