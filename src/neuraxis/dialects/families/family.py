"""Interface of a family: where calls begin, how one is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol, cast

from msgspec import Struct

from neuraxis.parsing.json_errors import Broken, Fault, broken
from neuraxis.parsing.json_scan import ReadValue, Value, Written
from neuraxis.specs import Json

BAR = r"[|｜]"
NAME = r"(?P<name>[\w.-]{1,200})"


_OWN = re.compile(r"\A(?:functions|default_api|tools)\.")


def bare(name: str) -> str:
    """Return a tool's name without the namespace that models were trained with."""
    return _OWN.sub("", name)


class Reading(Struct):
    """JSON at a place, the known tools, and what stands before."""

    value: ReadValue
    is_tool: Callable[[str], bool]
    framed: bool = False
    """True: a token of the model's own says that a call follows."""
    is_alone: Callable[[], bool] = bool
    """Whether nothing but frames and fences stands before it in the reply."""
    is_fenced: Callable[[], bool] = bool
    """Whether only code without functions stands before it, in one fence."""
    reach: int = 0
    """End of what was read in vain."""


class Taken(Struct, frozen=True, kw_only=True):
    """Calls that were read, and where the text continues."""

    calls: tuple[Written, ...]
    end: int
    notes: tuple[str, ...] = ()


def arguments(text: str, at: int, name: str, value: Value | Fault) -> dict[str, Json]:
    """Return the object that a call's arguments must be."""
    if isinstance(value, Fault):
        raise Broken(value)
    given: Json = value.value
    if not isinstance(given, dict):
        raise broken(text, at, f"expected the arguments of {name}: a JSON object")
    return cast("dict[str, Json]", given)


class Family(Protocol):
    """Form of a call in some models' chat templates."""

    @property
    def models(self) -> str:
        """Return which models write it."""
        ...

    @property
    def begin(self) -> re.Pattern[str]:
        """Return what the form begins with."""
        ...

    def read(self, text: str, begin: re.Match[str], reading: Reading) -> Taken | None:
        """Read what begins there; None: it is text.

        Raises:
            Broken: it was meant as a call, and cannot be read.
        """
        ...
