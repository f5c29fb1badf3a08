"""Targets that are given trees: the notation, schemas, references, events."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

from fuzzing import Target, checks
from fuzzing.checks import must, same
from fuzzing.inputs import ODD, RAISING, Text, read_tree
from fuzzing.words import EXPRESSIONS, NODE_WORDS, SCHEMA_WORDS
from neuraxis.events import NAMES, Unknown, from_json, to_json
from neuraxis.messages import Path, Problem
from neuraxis.references.asset_ref import (
    AssetRef,
    format_object,
    format_url,
    parse_embedded,
    parse_reference,
    reference_fault,
)
from neuraxis.references.evaluate import evaluate, fill
from neuraxis.references.find import find_asset_refs, find_places
from neuraxis.references.path import WalkError, walk
from neuraxis.references.render import ReferenceFailure
from neuraxis.references.template import Binding, Scope, read_template
from neuraxis.schema.describe import type_text
from neuraxis.schema.notation.nodes import (
    parameter_schema,
    parameters_schema,
    response_schema,
)
from neuraxis.schema.notation.type_refs import collect_types
from neuraxis.schema.notation.types import NotationProblem
from neuraxis.schema.notation.write import node_from_schema
from neuraxis.schema.schema import Schema


def _dumps(*trees: Any) -> list[bytes]:
    return [json.dumps(tree).encode() for tree in trees]


def _templates(arguments: Any, scope: Scope) -> tuple[list[Binding], list[Problem]]:
    """All templates in the arguments, and all mistakes in them."""
    bindings: list[Binding] = []
    problems: list[Problem] = []
    for path, value in find_places(arguments):
        if isinstance(value, str):
            template = read_template(value, scope, path, problems)
            if template is not None:
                bindings.append(Binding(path=path, template=template))
    return bindings, problems


def _containers(value: Any) -> list[tuple[Path, Any]]:
    """Every part of a tree of plain dicts and lists that does not hold itself."""
    found: list[tuple[Path, Any]] = []
    stack: list[tuple[Path, Any]] = [((), value)]
    while stack and len(found) < 300:
        path, here = stack.pop()
        found.append((path, here))
        if len(path) > 101:
            continue
        if type(here) is dict:
            keyed = [(key, item) for key, item in here.items() if type(key) is str]
            stack += [((*path, key), item) for key, item in keyed]
        elif type(here) is list:
            stack += [((*path, index), item) for index, item in enumerate(here)]
    return found


def _yaml_can_be(tree: Any) -> bool:
    """The reader of YAML gives no deeper tree, no half characters, no odd texts."""
    parts = _containers(tree)
    if any(len(path) > 100 or type(part) is Text for path, part in parts):
        return False
    shown = _repr(tree)
    return shown != "deep" and "\\ud" not in shown


# --- the notation ---------------------------------------------------------------


def read_notation(data: bytes) -> None:
    """Any tree is a schema and a list of mistakes; without mistakes it can be used."""
    tree = read_tree(data)
    if not _yaml_can_be(tree):
        return
    size = len(_repr(tree))
    noted: list[NotationProblem] = []
    types = checks.timed(size, lambda: collect_types(tree, problems=noted), 0.5)
    for read in (parameter_schema, parameters_schema, response_schema):
        problems: list[NotationProblem] = []
        schema = checks.timed(
            size, lambda r=read, p=problems: r(tree, types, problems=p), 0.5
        )
        for problem in (*noted, *problems):
            must(isinstance(problem.message, str), "a mistake without a sentence")
            must(problem.message.strip(), "a mistake without a sentence")
            must(len(problem.message) < 70_000, "a sentence of over 70,000 characters")
            for part in problem.path:
                must(type(part) in (str, int), "a path with odd parts")
        if schema is None:
            continue
        must(type(type_text(schema)) is str, "a schema without a short text")
        wrong = [item for item in (*noted, *problems) if item.severity == "error"]
        if not wrong:
            must(checks.can_be_stored(schema), "a schema that is no JSON")
            compiled = Schema(schema)
            must(compiled.defect is None, f"an unusable schema: {compiled.defect}")
            node_from_schema(schema)


_FIELD: dict[str, Any] = {"type": "List[node]", "description": "d", "required": False}
_NODES: tuple[Any, ...] = (
    {"type": "string", "enum": ["a", "b"], "default": "a", "nullable": True},
    {"type": {"a": {"type": "int", "minimum": 1, "example": 5}, "b": _FIELD}},
    {"type": [{"name": "a", "type": "str"}, {"_type_ref": "node"}]},
    [{"name": "a", "type": "List[int]", "required": True}, {"name": "b", "type": "x"}],
    {
        "commands": [
            {
                "parameter": {"type": {"_type_ref": "node", "a": _FIELD}},
                "response": {"type": {"t": {"type": "node", "optional": True}}},
            }
        ]
    },
    {"type": "list", "items": {"type": "int", "enum": [1, 2]}, "max_items": 3},
    {"type": "numpy.ndarray", "asset_ref_acceptable": True, "description": None},
    {"type": "string", "pattern": "^a+$", "min_length": 2, "format": "date"},
)


# --- schemas and values ---------------------------------------------------------


def check_values(data: bytes) -> None:
    """No value makes a schema raise; a value without problems is valid."""
    tree = read_tree(data)
    if not isinstance(tree, dict):
        return
    node, value = tree.get("node"), tree.get("value")
    given = tree.get("schema")
    if node is not None:
        if not _yaml_can_be(node):
            return
        schema = parameter_schema(node, collect_types(node))
    elif isinstance(given, dict) and checks.can_be_stored(given):
        schema = given
    else:
        return
    compiled = Schema(schema)
    before = _repr(value)
    size = len(before) + len(_repr(schema))
    valid = checks.timed(size, lambda: compiled.valid(value), 0.5)
    problems = checks.timed(size, lambda: compiled.problems(value), 0.5)
    checks.check_problems(problems)
    must(valid is (not problems), f"valid is {valid}, problems: {problems[:1]}")
    compiled.problems(value, strict=True)
    changed, notes = checks.timed(size, lambda: compiled.coerce(value), 0.5)
    must(before == _repr(value), "coercing changed the value given")
    must(notes or _same_or_deep(changed, value), "changed without a note")
    if valid and compiled.defect is None:
        must(compiled.valid(changed), "coercing made a valid value invalid")
    if compiled.valid(changed):
        again, more = compiled.coerce(changed)
        must(not more and _same_or_deep(again, changed), "coercing twice is not once")
    if checks.can_be_stored(value):
        must(checks.can_be_stored(changed), "coercing made something that is no JSON")
    for path, part in _containers(value)[:20]:
        compiled.problems(value, holes=(path,))
        compiled.at(path)
        compiled.takes_reference(path)
        compiled.wants_text(path)
        problem = compiled.accepts_native(path, part)
        checks.check_problems((problem,) if problem else ())
    start = zlib.crc32(data) % len(ODD)
    for odd in (*ODD.values(), *ODD.values())[start : start + 3]:
        compiled.accepts_native((), odd)
        compiled.at((odd,) if isinstance(odd, str) else ("a", 0))


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except RecursionError:
        return "deep"


def _same_or_deep(one: Any, other: Any) -> bool:
    return one is other or _repr(one) == _repr(other)


_A: dict[str, Any] = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}
_VALUES: tuple[Any, ...] = (
    *({"node": node, "value": {"a": "5", "b": [1.0, None]}} for node in _NODES),
    {"schema": {"$defs": {"a": _A}, "$ref": "#/$defs/a"}, "value": {"a": {"a": "{}"}}},
    {
        "schema": {"anyOf": [{"type": "integer"}, {"type": "null"}, {"enum": ["a"]}]},
        "value": "5",
    },
    {
        "schema": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        "value": "[1, 2.0]",
    },
    {
        "schema": {
            "type": "object",
            "properties": {"a": {"type": "boolean"}, "b": {"oneOf": [{}, {}]}},
            "required": ["a"],
            "additionalProperties": {"type": "string", "format": "date"},
        },
        "value": {"a": "true", "c": "2024-01-01", "d": None},
    },
    {"schema": {"x-type": "PIL.Image.Image", "not": {}}, "value": {"$py": "object"}},
    {"schema": {}, "value": {"$py": "itself"}},
)


# --- references -----------------------------------------------------------------


def read_references(data: bytes) -> None:
    """Any arguments: references are read, written again, evaluated and filled in."""
    tree = read_tree(data)
    if not isinstance(tree, dict):
        return
    arguments = tree.get("arguments")
    # What reaches this reader is JSON that a dialect has read.
    if not checks.can_be_stored(arguments):
        return
    ids = tuple(f"call{index}" for index in range(4))
    here = tree.get("here")
    here = here % 5 if type(here) is int else 2
    scope = Scope(ids=ids, here=here, names={"first": 0, "a-b": 1}, extra={"item": "i"})
    size = len(data)
    for _, part in _containers(arguments):
        _one_reference(part)
    before = repr(arguments)
    bindings, problems = checks.timed(size, lambda: _templates(arguments, scope))
    checks.check_problems(problems)
    root = tree.get("root")
    for value in (root, {"content": {"response": root}}):
        for binding in bindings[:20]:
            for ref in binding.template.refs:
                must(ref.asset_id in (*ids[:here], "i"), "a reference to a later step")
            for wants_text in (True, False):
                _evaluate(binding, value, wants_text, size)
        for _, ref in find_asset_refs(arguments):
            try:
                walk(value, ref.field_path)
            except WalkError as error:
                str(error)
    filled = fill(arguments, {binding.path: "\0" for binding in bindings})
    must(repr(arguments) == before, "filling changed the arguments")
    must(bindings or same(filled, arguments), "nothing was filled, yet it differs")


def _evaluate(binding: Any, root: Any, wants_text: bool, size: int) -> None:
    def work() -> Any:
        try:
            return evaluate(binding.template, lambda _: root, wants_text)
        except ReferenceFailure as failure:
            checks.check_problems((failure.problem,))
            return None

    found = checks.timed(size, work)
    if wants_text or not binding.template.whole:
        must(found is None or isinstance(found, str), "no text where text is wanted")


def _one_reference(part: Any) -> None:
    ref = parse_reference(part)
    fault = reference_fault(part)
    must(type(fault) is str, "an odd fault")
    must(ref is None or not fault, "a reference with a fault")
    if ref is not None:
        must(same(parse_reference(format_object(ref)), ref), "object form differs")
        # No list has an index that is negative or of over 18 digits: it is a key.
        indices = [part for part in ref.field_path if isinstance(part, int)]
        if all(0 <= index < 10**18 for index in indices):
            must(same(parse_reference(format_url(ref)), ref), "URL form differs")
    if isinstance(part, str):
        end = 0
        for start, stop, inner in parse_embedded(part):
            must(end <= start < stop <= len(part), "spans that overlap")
            must(part[start:stop].startswith("<|"), "a span of something else")
            must(isinstance(inner, AssetRef), "no reference")
            end = stop


_ROOT: dict[str, Any] = {"a": [{"b": 1.5, "a": "x"}, {"a": None}], "b": {"$py": "date"}}
_REFERENCES: tuple[Any, ...] = (
    *(
        {"arguments": {"x": text, "y": [f"a {text} b"]}, "root": _ROOT, "here": 3}
        for text in EXPRESSIONS[:24]
    ),
    {
        "arguments": [{"asset_id": "a", "field_path": ["a", 0]}, "asset://a/a/0"],
        "root": {"$py": "itself"},
    },
    {"arguments": "{{ item | tojson }}", "root": {"$py": "deeper"}},
    {"arguments": "{{ item.a }} {{ item['missing'] }}", "root": {"$py": "mapping"}},
)


# --- events ---------------------------------------------------------------------


def read_event(data: bytes) -> None:
    """Any line of a journal is an event, or one that this version does not know."""
    tree = read_tree(data)
    # The journal holds JSON objects, or somebody changed it.
    if not isinstance(tree, dict) or not checks.can_be_stored(tree):
        return
    event = from_json(tree)
    if isinstance(event, Unknown):
        must(type(event.type) is str, "an event of no type")
        return
    written = to_json(event)
    must(checks.can_be_stored(written), "an event that cannot be written")
    must(same(from_json(written), event), "written and read again it differs")


_EVENTS: tuple[Any, ...] = (
    {"type": "session_started", "session": "s", "model": "m", "dialect": "intents"},
    {"type": "session_started", "v": 1, "session": "s", "model": "m", "dialect": "d",
     "plugins": ["a"], "resumed": True, "later": 1},
    {"type": "message", "sender": "user", "receiver": "model", "content": "hello"},
    {"type": "model_finished", "text": "x", "finish_reason": "stop", "notes": ["a"]},
    {"type": "plan_checked", "steps": [{"id": "a", "tool": "t"}], "problems": []},
    {"type": "call_started", "id": "a", "plugin": "p", "command": "c", "tool": "t",
     "arguments": {}},
    {"type": "call_finished", "id": "a", "plugin": "p", "command": "c", "tool": "t",
     "status": "done", "value": 5, "warnings": ["w"]},
    {"type": "session_finished", "outcome": "answered"},
    {"type": "of another version", "a": 1},
)  # fmt: skip
_EVENT_WORDS = (*NAMES, *("type", "v", "session", "steps", "plugins", "notes", "a"))


def hostile_lookups(data: bytes) -> None:
    """A plugin's own mapping that raises never ends the run."""
    tree = read_tree(data)
    if not isinstance(tree, dict) or "arguments" not in tree:
        return
    if not checks.can_be_stored(tree["arguments"]):
        return
    scope = Scope(ids=("a", "b"), here=1, names={"first": 0}, extra={"item": "i"})
    bindings, _ = _templates(tree["arguments"], scope)
    for binding in bindings[:10]:
        for root in (RAISING, {"a": RAISING, "b": [RAISING]}, [RAISING]):
            for wants_text in (True, False):
                _evaluate(binding, root, wants_text, len(data))


def _targets() -> Sequence[Target]:
    made: list[tuple[str, Any, Sequence[str], Sequence[Any]]] = [
        ("notation", read_notation, NODE_WORDS, _NODES),
        ("schema", check_values, (*SCHEMA_WORDS, *NODE_WORDS), _VALUES),
        ("references", read_references, EXPRESSIONS, _REFERENCES),
        ("hostile_lookups", hostile_lookups, EXPRESSIONS, _REFERENCES),
        ("events", read_event, _EVENT_WORDS, _EVENTS),
    ]
    return [
        Target(
            name=name,
            run=run,
            kind="tree",
            words=words,
            seeds=lambda trees=trees: _dumps(*trees),
        )
        for name, run, words, trees in made
    ]


TARGETS = tuple(_targets())
