"""The house keeps its measures: rooms, modules, functions, and plain first lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import neuraxis

ROOT = Path(neuraxis.__file__).resolve().parent
MODULES = sorted(ROOT.rglob("*.py"))

MOST_ROOT_MODULES = 10
MOST_FOLDERS = 18
MOST_IN_A_FOLDER = 20
MOST_LINES = 500
MOST_FUNCTION_LINES = 60
MOST_WORDS = 12
LAYERS = 18

_FLOWS = re.compile(r"\bflows? (?:in|out)\b|\bin; .*\bout\b|, out\.$")
_WORDS = re.compile(r"\b(?:foreign|strangers?)\b", re.IGNORECASE)
"""Words of others for what we call untrusted."""

Named = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _named(path: Path) -> Iterator[tuple[str, Named]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, Named):
            name = "" if isinstance(node, ast.Module) else f":{node.name}"
            yield f"{path.relative_to(ROOT)}{name}", node


def test_the_root_is_small() -> None:
    """Ten modules and eighteen rooms, so that `ls` is a table of contents."""
    modules = list(ROOT.glob("*.py"))
    folders = [path for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "_"]
    assert len(modules) <= MOST_ROOT_MODULES
    assert len(folders) <= MOST_FOLDERS


def test_no_folder_is_crowded() -> None:
    """At most twenty modules on one floor."""
    crowded = {
        str(folder.relative_to(ROOT)): count
        for folder in {path.parent for path in MODULES}
        if (count := len(list(folder.glob("*.py")))) > MOST_IN_A_FOLDER
    }
    assert crowded == {}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_are_short(path: Path) -> None:
    """500 lines for a subject, 60 for a thought."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
    long = {
        name: length
        for name, node in _named(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > MOST_FUNCTION_LINES
    }
    assert long == {}


def test_the_contract_has_few_layers() -> None:
    """One floor plan that fits into a head."""
    import tomllib

    text = (ROOT.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    (layers,) = [item["layers"] for item in contracts if item["type"] == "layers"]
    assert len(layers) <= LAYERS


def test_first_lines_name_the_thing() -> None:
    """At most twelve words, no formulas, one word for one thing."""
    found: set[str] = set()
    for path in MODULES:
        for name, node in _named(path):
            text = ast.get_docstring(node) or ""
            first = text.partition("\n\n")[0].replace("\n", " ")
            words = text.partition("\n")[0].split()
            if len(words) > MOST_WORDS or _FLOWS.search(first) or _WORDS.search(first):
                found.add(name)
    assert sorted(found) == []
