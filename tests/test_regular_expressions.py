"""H1: no regular expression over untrusted text is worse than linear."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import neuraxis
import regex_attacks
from neuraxis.models.http import answers

SOURCE = Path(neuraxis.__file__).parent
SIZE = 1_000_000
_MOST_SECONDS = 1.0
_ANCHORED = {"match", "fullmatch"}
_METHODS = {
    *_ANCHORED, "compile", "search", "sub", "subn", "split", "findall", "finditer"
}  # fmt: skip
_NOT_LOADED = ("sandbox.process.child.", "__main__")
"""What runs in the child, without patterns; and the entry point."""

TRUSTED = {
    "models.offline.model": "reads the request of the user, which is cut before",
    "models.offline.tokens": "likewise, and values of examples, which are cut, too",
}
"""Modules whose patterns meet nothing untrusted, and why."""


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(SOURCE.rglob("*.py")):
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        name = name.removesuffix("__init__").rstrip(".")
        if not name.startswith(_NOT_LOADED) and not name.startswith(tuple(TRUSTED)):
            yield name, ast.parse(file.read_text("utf-8"))


def _uses() -> dict[str, set[str]]:
    """Module and name of a pattern -> methods of it that are called or passed on."""
    found: dict[str, set[str]] = {}
    for module, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                base = node.value
                name = getattr(base, "id", getattr(base, "attr", ""))
                # another module can only use a name that is not private
                where = f"{module}:{name}" if name.startswith("_") else name
                found.setdefault(where, set()).add(node.attr)
    return found


def _inside(value: Any, depth: int = 3) -> Iterator[re.Pattern[Any]]:
    """The patterns in a value of a module: itself, or in lists, mappings, data."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, tuple | list):
        for item in value:
            yield from _inside(item, depth - 1)
    elif depth and isinstance(value, dict):
        yield from _inside(list(value.values()), depth)
    elif depth and isinstance(value, msgspec.Struct):
        yield from _inside([getattr(value, name) for name in value.__struct_fields__])


class _Recorder:
    """`re` that stores what a function makes of its arguments."""

    def __init__(self, found: list[tuple[re.Pattern[Any], str]]) -> None:
        self.found = found

    def __getattr__(self, name: str) -> Any:
        real = getattr(re, name)
        if name not in _METHODS:
            return real

        def call(pattern: Any, *rest: Any, **named: Any) -> Any:
            flags = named.get("flags", 0)
            flags |= rest[-1] if rest and isinstance(rest[-1], re.RegexFlag) else 0
            self.found.append((re.compile(pattern, flags), name))
            return real(pattern, *rest, **named)

        return call


def _csv(call: Callable[..., object]) -> None:
    for separator in (",", ";", "\t", "|"):
        call(b'a,;\t|b\n\n"c', separator)


MADE: dict[str, Callable[[Any], object]] = {
    "assets.readers.csv:_without_blank_lines": lambda at: _csv(at._without_blank_lines),
    "assets.readers.csv:_has_loose_quote": lambda at: _csv(at._has_loose_quote),
    "assets.readers.csv:_quoted": lambda at: [
        _csv(partial(at._quoted, spaced=spaced)) for spaced in (True, False)
    ],
    "builtin.python_file.traceback_hints:hint": lambda at: at.hint(
        "x", "a.py", Path(), network=False
    ),
    "dialects.results:json_text": lambda at: at.json_text("<"),
    "bridges.mcp_server.offers:arguments": lambda at: at.Address(
        uri="a://{x}/{y}.{z}-j", name="n", offered=None
    ).arguments("a://b/c.d-j"),
}
"""Functions that put patterns together: a call that makes them do it."""
COVERED = {
    "dialects.families.tagged:_tags": "its patterns stand in `TAGGED`",
    "models.http.optional_parts:option": "its patterns are fields of what it gives",
    "parsing.json_scan:markers_pattern": "its patterns stand in the dialects' modules",
    "sandbox.files.named_files:is_called": "the words of a name, between letters",
    "sandbox.files.named_files:is_named": "a file's name, escaped, between letters",
    "planning.save:_rewrite_text": "a name of an answer, escaped, between letters",
}
AT_A_PLACE = {
    "dialects.families.harmony:_END",
    "dialects.families.named_json:_FENCE_END",
    "parsing.json_reader:_LOOSE_SPACE",
    "parsing.json_scan:_STRAY_CLOSERS",
    "parsing.json_strings:_COMMA_OR_COLON",
}
"""Only given to `end_of`, which matches them at one place."""
ENDS_OF_FORMS = {
    "dialects.families.cut:GEMMA": (1, {0}),
    "dialects.families.cut:HARMONY": (1, {0}),
    "dialects.families.cut:NAMED_JSON": (2, {0, 1}),
    "dialects.families.cut:PYTHON": (1, {0}),
    "dialects.families.cut:TAGGED": (4, {0, 1, 2}),
}
"""Rows of so many patterns, of which these are matched at one place."""
SHORTER = {
    "models.openai.rejections:": answers.MOST_TEXT,
    "models.http.optional_parts:": answers.MOST_TEXT,
    "dialects.call_context:": 400,  # of the words before and behind a call
}
"""Texts that are cut before: their length."""


def _patterns() -> dict[str, tuple[re.Pattern[Any], bool]]:
    """Place -> the pattern, and whether it is only matched in place."""
    uses = _uses()
    found: dict[str, tuple[re.Pattern[Any], bool]] = {}
    seen: set[int] = set()
    for name, tree in _modules():
        module = importlib.import_module(f"neuraxis.{name}".rstrip("."))
        for variable, value in list(vars(module).items()):
            where = f"{name}:{variable}"
            how = uses.get(where if variable.startswith("_") else variable, set())
            how &= _METHODS
            anchored = where in AT_A_PLACE or (bool(how) and how <= _ANCHORED)
            for place, pattern in enumerate(_inside(value)):
                if id(pattern) not in seen:
                    seen.add(id(pattern))
                    each, later = ENDS_OF_FORMS.get(where, (1, set[int]()))
                    found[f"{where}:{place}"] = (
                        pattern,
                        anchored or place % each in later,
                    )
        for place, (pattern, method) in enumerate(_in_functions(name, tree, module)):
            found[f"{name}:in functions:{place}"] = pattern, method in _ANCHORED
    return found


def _in_functions(
    name: str, tree: ast.Module, module: Any
) -> Iterator[tuple[re.Pattern[Any], str]]:
    """Patterns that a function makes, of its own text or of its arguments."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        where = f"{name}:{function.name}"
        for call in ast.walk(function):
            match call:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="re"), attr=method),
                    args=[first, *_],
                ) if method in _METHODS:
                    if isinstance(first, ast.Constant):
                        yield re.compile(first.value), method
                    else:
                        assert where in MADE or where in COVERED, where
                case _:
                    pass
        if where in MADE:
            made: list[tuple[re.Pattern[Any], str]] = []
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(module, "re", _Recorder(made))
                MADE[where](module)
            assert made, where
            yield from dict.fromkeys(made)


PATTERNS = _patterns()


def _use(pattern: re.Pattern[Any], *, anchored: bool) -> Callable[[str], object]:
    def use(text: str) -> None:
        given: Any = text
        if isinstance(pattern.pattern, bytes):
            given = text.encode("utf-8", "replace")
        if anchored:
            pattern.match(given)
            pattern.fullmatch(given)
        else:
            for _ in pattern.finditer(given):
                pass

    return use


@pytest.mark.timeout(600)  # 45 s of processor time
def test_h1_no_regular_expression_is_worse_than_linear() -> None:
    """H1: each reads 1 MB of the worst case found for it in under a second."""
    slow: list[str] = []
    for where, (pattern, anchored) in PATTERNS.items():
        size = next((SHORTER[key] for key in SHORTER if where.startswith(key)), SIZE)
        use, most = _use(pattern, anchored=anchored), _MOST_SECONDS * size / SIZE + 0.2
        taken, attack = regex_attacks.worst(pattern, use, size)
        if taken > most:  # others on the machine may slow one attempt down
            again = (regex_attacks.seconds(use, attack, size, 1.5) for _ in range(5))
            taken = min(again)
        if taken > most:
            slow.append(f"{where} {pattern.pattern!r}: {taken:.1f} s for {attack}")
    assert not slow, "\n".join(slow)


@pytest.mark.parametrize(
    "pattern",
    [r"<frame\b[^<>]*?\ssrc=([^<>\s]+)[^<>]*>", r"(a|a)*b", r"\s*:", r"x[^y]*y"],
)
def test_the_search_finds_patterns_that_are_worse(pattern: str) -> None:
    """Patterns that are known to be worse than linear are found."""
    compiled = re.compile(pattern)
    use = _use(compiled, anchored=False)
    assert regex_attacks.worst(compiled, use)[0] > _MOST_SECONDS


def test_patterns_are_collected_from_every_room() -> None:
    """Those of modules, of data in them, and of functions."""
    assert len(PATTERNS) > 150
    rooms = {where.partition(".")[0] for where in PATTERNS}
    assert rooms >= {"assets", "builtin", "dialects", "models", "parsing", "sandbox"}
    assert any(":in functions:" in where for where in PATTERNS)
