"""Docstrings: description, parameters and return value.

Google's style is read here; NumPy's and Sphinx's are read by griffe.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_NAMED = frozenset({
    "Args", "Arguments", "Parameters", "Attributes", "Keyword Args",
    "Keyword Arguments",
})  # fmt: skip
_RETURNS = frozenset({"Return", "Returns"})
_SECTIONS = _NAMED | _RETURNS | {
    "Yield", "Yields", "Raises", "Example", "Examples", "Note",
    "Notes", "See Also", "Todo", "Warning", "Warnings", "References",
}  # fmt: skip
_STYLES = {
    "numpy": (
        ("---",),
        re.compile(r"^[ \t]*+(?:Parameters|Returns)[ \t]*+\n[ \t]*+---", re.M),
    ),
    "sphinx": (
        (":param", ":return"),
        re.compile(r"^[ \t]*+:(?:param|returns?)\b", re.M),
    ),
}
"""For each style texts, one of which it contains (found quickly), and its pattern."""
_ENTRY = re.compile(r"\*{0,2}([A-Za-z_]\w*)\s*(?:\([^)]*\))?:(?:\s+(.*))?$")


class Docstring(Struct, frozen=True):
    """Parts of a docstring: description, texts of names, return text."""

    text: str = ""
    names: Mapping[str, str] = {}
    returns: str = ""


def read_docstring(text: str | None) -> Docstring:
    """Parse a docstring; other sections are ignored."""
    text = text.strip() if text else ""
    if "\n" not in text:
        return Docstring(text)
    for style, (words, pattern) in _STYLES.items():
        if any(word in text for word in words) and pattern.search(text):
            return _by_griffe(text, style)
    first, *rest = text.expandtabs().splitlines()
    head = [first]
    names: dict[str, str] = {}
    returns: list[str] = []
    section, margin, indent, current = "", -1, -1, ""
    for line in rest:
        bare = line.strip()
        depth = len(line) - len(line.lstrip())
        if bare and margin < 0:
            margin = depth
        if bare[-1:] == ":" and depth <= margin and bare[:-1] in _SECTIONS:
            section, indent, current = bare[:-1], -1, ""
        elif not section:
            head.append(line[margin:].rstrip() if depth >= margin else bare)
        elif bare and section in _RETURNS:
            returns.append(bare)
        elif bare and section in _NAMED:
            indent = depth if indent < 0 else indent
            entry = _ENTRY.match(bare) if depth <= indent else None
            if entry:
                current = entry.group(1)
                names[current] = entry.group(2) or ""
            elif current:
                names[current] = f"{names[current]} {bare}".strip()
    return Docstring("\n".join(head).strip(), names, " ".join(returns))


def _by_griffe(text: str, style: str) -> Docstring:
    """Parse a docstring in another style; without griffe it stays one text."""
    try:
        import griffe  # few docstrings need it
    except ImportError:
        warnings.warn(
            f"The {style}-style docstring was not parsed, so its parameters have no "
            "descriptions. To parse it: pip install 'neuraxis[docstrings]'",
            stacklevel=2,
        )
        return Docstring(text)
    lines, names, returns = list[str](), dict[str, str](), list[str]()
    parse: Any = griffe.Docstring(inspect.cleandoc(text)).parse
    for section in parse(style, warnings=False):
        kind, value = section.kind.value, section.value
        if kind == "text":
            lines.append(value)
        elif kind in ("parameters", "attributes"):
            names |= {item.name: _line(item.description) for item in value}
        elif kind == "returns":
            returns += [_line(item.description) for item in value]
    return Docstring("\n\n".join(lines).strip(), names, " ".join(returns).strip())


def _line(text: str) -> str:
    return " ".join(text.split())
