"""Which tests show which rule: `rules.yaml` and the tests in, `docs/rules.md` out.

A test shows the rules that its name has (`test_A11_…`), a golden case of `tests/wire`
those of its key `rules`. Run `PYTHONPATH=tests python -m conformance.rules`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

TESTS = Path(__file__).resolve().parent.parent
PAGE = TESTS.parent / "docs" / "rules.md"
MOST = 2
"""Tests that the page names for one rule."""

_ID = re.compile(r"(?<![A-Za-z0-9])([ABCDK][0-9]{1,2}|defect_[0-9]{2})(?![0-9A-Za-z])")
_RANGE = re.compile(r"([ABCDK])([0-9]{1,2})_to_\1([0-9]{1,2})")
_HEAD = """# The rules, and the tests that show them

Each rule of the wire protocols in one line. `pytest -k B42` runs the tests of rule B42.
It is written by `PYTHONPATH=tests python -m conformance.rules`; a test keeps it true.
"""
_TAIL = """## Parts of a rule that are not there yet

- C25: giving back only results that were named; `show_results="final"` leaves out
  those that a later step took.
"""


def rules() -> dict[str, dict[str, str]]:
    """Every rule by its part: id and text."""
    text = (TESTS / "conformance" / "rules.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


@cache
def shown_by() -> dict[str, list[str]]:
    """The tests and golden cases of each rule."""
    found: dict[str, list[str]] = {}
    for rule, test in [*_tests(), *_cases()]:
        found.setdefault(rule, []).append(test)
    return found


def _tests() -> Iterator[tuple[str, str]]:
    for file in sorted(TESTS.rglob("test_*.py")):
        where = file.relative_to(TESTS).as_posix()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("test_"):
                for rule in _ids(node.name):
                    yield rule, f"`{where}` {node.name}"


def _ids(name: str) -> list[str]:
    found = [match[1] for match in _ID.finditer(name)]
    for part, first, last in _RANGE.findall(name):
        found += [f"{part}{number}" for number in range(int(first), int(last) + 1)]
    return list(dict.fromkeys(found))


def _cases() -> Iterator[tuple[str, str]]:
    """The golden cases; their rules stand in the names pytest gives them."""
    for file in sorted((TESTS / "wire").rglob("*.yaml")):
        where = file.relative_to(TESTS).as_posix()
        for case in yaml.safe_load(file.read_text(encoding="utf-8")):
            for rule in case.get("rules", ()):
                yield rule, f"`{where}` {case['name']}"


def _ours_last(test: str) -> bool:
    """The tests made for the rules come first: they seldom change."""
    return not test.startswith("`conformance/")


def page() -> str:
    """The whole page."""
    tests = shown_by()
    lines = [_HEAD]
    for part, texts in rules().items():
        lines += [f"## {part}", "", "| rule | says | shown by |", "|---|---|---|"]
        for rule, text in texts.items():
            named = sorted(tests.get(rule, []), key=_ours_last)
            said = "; ".join(named[:MOST])
            lines.append(f"| {rule.replace('defect_', '#')} | {text} | {said} |")
        lines.append("")
    return "\n".join([*lines, _TAIL])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
