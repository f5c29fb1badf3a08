"""A Google-style docstring in; its description and the texts of its names out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Attributes|Returns?|Yields?|Raises|Examples?|Notes?"
    r"|See Also|Todo|Warnings?|Keyword Args|Keyword Arguments|References):$"
)
_ENTRY = re.compile(r"\*{0,2}([A-Za-z_]\w*)\s*(?:\([^)]*\))?:(?:\s+(.*))?$")
_NAMED = ("Args", "Arguments", "Parameters", "Attributes", "Keyword Args",
          "Keyword Arguments")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Docstring:
    """What a docstring says: of the whole, of each name, of the value given back."""

    text: str = ""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    returns: str = ""


def read_docstring(text: str | None) -> Docstring:
    """The parts of a docstring; sections of other kinds are left out."""
    if not text:
        return Docstring()
    if "\n" not in text:
        return Docstring(text=text.strip())
    head: list[str] = []
    names: dict[str, str] = {}
    returns: list[str] = []
    section, indent, current = "", -1, ""
    for line in inspect.cleandoc(text).splitlines():
        stripped = line.strip()
        if line[:1].strip() and (found := _SECTION.match(stripped)):
            section, indent, current = found.group(1), -1, ""
        elif not section:
            head.append(line.rstrip())
        elif section in _NAMED and stripped:
            depth = len(line) - len(line.lstrip())
            if indent < 0:
                indent = depth
            entry = _ENTRY.match(stripped) if depth <= indent else None
            if entry:
                current = entry.group(1)
                names[current] = (entry.group(2) or "").strip()
            elif current:
                names[current] = f"{names[current]} {stripped}".strip()
        elif section.startswith("Return") and stripped:
            returns.append(stripped)
    return Docstring("\n".join(head).strip(), names, " ".join(returns))
