"""Explain YAML syntax errors: the wrong line, and how to correct it.

The parser reports where it stopped, in terms of YAML's grammar. A beginner needs the
line that is wrong, and its correction.
"""

from __future__ import annotations

import yaml

_QUOTE = "must be in quotes"
_COLUMN = "what belongs together must begin at the same column"


def fault(error: yaml.MarkedYAMLError, text: str) -> tuple[int, str]:
    """Return the line (1-based; 0: none) and what is wrong with it."""
    mark = error.problem_mark or error.context_mark
    start = error.context_mark or mark
    if mark is None or start is None:
        return 0, _words(error)
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    before = line[: mark.column + 1]
    if "\t" in before and not before.strip():
        return mark.line + 1, "the line is indented with a tab; use spaces"
    problem, context = error.problem or "", error.context or ""
    if "maximum nesting depth" in problem:  # newer libyaml counts before we do
        return mark.line + 1, "the document is nested too many levels deep"
    if "could not find expected ':'" in problem and "simple key" in context:
        key = _of(lines, start.line)
        return start.line + 1, f"there is no `: ` in {key}; write `key: value`"
    if "mapping values are not allowed" in problem:
        if ": " in line[: mark.column]:  # else the line's own key is at fault
            return mark.line + 1, f"a text with `: ` in it {_QUOTE}"
        return mark.line + 1, f"{_words(error)}; {_COLUMN}"
    if "quoted scalar" in context and "end of stream" in problem:
        return start.line + 1, "a quote is opened here and never closed"
    if "cannot start any token" in problem:
        return mark.line + 1, f"a text that begins with {line[mark.column]} {_QUOTE}"
    value = line.partition(": ")[2].strip()
    if value.startswith(("{", "[", "*", "&", "!", "|", ">")):
        advice = f"a text that begins with {value[0]} {_QUOTE}"
        return mark.line + 1, f"{_words(error)}; {advice}"
    if context.startswith("while parsing a block"):
        return mark.line + 1, f"{_words(error)}; {_COLUMN}"
    return mark.line + 1, _words(error)


def _words(error: yaml.MarkedYAMLError) -> str:
    return " ".join(part for part in (error.context, error.problem) if part)


def _of(lines: list[str], index: int) -> str:
    text = lines[index].strip() if index < len(lines) else ""
    return repr(text if len(text) <= 40 else text[:39] + "…")
