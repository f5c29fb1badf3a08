"""Schema: a compiled JSON Schema that validates and coerces values.

It reports every problem at once (rule D7) and returns leniently coerced copies (rule
D4). Nothing here raises for a value, whatever it is. A valid value costs one compiled
call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from neuraxis.formatting import quote, type_name
from neuraxis.messages import Path, Problem
from neuraxis.schema import coerce
from neuraxis.schema.describe import type_text
from neuraxis.schema.navigate import (
    NO_JSON,
    Node,
    all_kinds,
    arms,
    as_node,
    child,
    is_json,
    is_open,
    kinds,
    leaves,
    not_json,
    refers_to_itself,
    resolved,
    with_uri_references,
)
from neuraxis.schema.python_values import native_problem
from neuraxis.specs import Json

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

MOST = 50
"""Maximum problems reported for one value."""

SLICE = 1000
"""Items of a list that are checked in one call."""
_REMARKS = frozenset({"description", "title", "default", "examples", "$defs"})
_ITEMS_ONLY = _REMARKS | {"type", "items", "x-asset-ref"}
"""Keys of a list's schema with which its items can be checked separately."""
_ENTRIES_ONLY = _REMARKS | {"type", "properties", "required", "additionalProperties"}
_LOOKS_INSIDE = frozenset(
    {"anyOf", "oneOf", "enum", "const", "not", "uniqueItems", "contains", "allOf"}
    | {"dependentSchemas", "dependentRequired", "if", "then", "else", "maxContains"}
    | {"unevaluatedProperties", "unevaluatedItems"}
)


class Schema:
    """JSON Schema that values are checked against; compiled on first use.

    Formats (`date`, `uuid`, …) are checked, as the notation's types require; an
    external schema, for which 2020-12 makes them annotations only, has `"x-formats":
    "annotation"` at its root.
    """

    __slots__ = ("_compiled", "_defect", "_open", "json")

    def __init__(self, json: Mapping[str, Json]) -> None:
        self.json = json
        self._compiled: Validator | None = None
        self._defect: str | None = None
        self._open = True

    @property
    def defect(self) -> str | None:
        """Return why the schema itself is invalid, or None."""
        self._validator()
        return self._defect

    def valid(self, value: Any) -> bool:
        """Return whether the value fits; False for anything but JSON."""
        return self.valid_json(value) and not (self._open and not is_json(value))

    def valid_json(self, value: Any) -> bool:
        """Return whether a value fits; it must be finite JSON."""
        validator = self._compiled or self._validator()
        if validator is None:
            return False
        try:
            return _is_valid(value, self.json, validator)
        except (ValueError, RecursionError, OverflowError):
            return False  # a key that is not text, a native object, a lone surrogate

    def problems(
        self, value: Any, *, holes: Collection[Path] = (), strict: bool = False
    ) -> tuple[Problem, ...]:
        """Return every problem, in the order of the schema; `()`: none.

        `holes` are places of unresolved references: checks that depend on a value there
        are skipped until it is known. `strict` refuses 3.0 for an integer, which JSON
        Schema accepts (rule D4).
        """
        results: list[Problem] = []
        if strict and coerce.has_whole_float(value):
            results += self._whole_floats(value)
        if self.valid(value):
            return tuple(results)
        validator = self._validator()
        if validator is None:
            return (self._broken(),)
        foreign = not_json(value)
        blind = [*holes]
        for path, expected, detail in foreign:
            blind.append(path)
            if not any(_under(path, hole) for hole in holes):
                got = quote(detail) if isinstance(detail, str) else type_name(detail)
                got = repr(detail) if isinstance(detail, float) else got
                node = self._node(path)
                if expected == NO_JSON and node:  # the format is the more helpful error
                    expected += f" ({type_text(dict(node))})"
                results.append(
                    Problem(path=path, expected=expected, got=got, keyword="json")
                )
        checked = _without(value, {path for path, _, _ in foreign}, ())
        try:
            errors = list(islice(validator.iter_errors(checked), MOST * 4))
        except (ValueError, RecursionError, OverflowError) as error:
            text = f"a value that can be checked ({str(error).splitlines()[0][:80]})"
            results.append(Problem(expected=text, got=type_name(value), keyword="json"))
            return tuple(results)
        # only mistakes need it
        from neuraxis.schema.explain import explain, only_causes

        for error in errors:
            if not _in_hole(error, blind):
                results += explain(error, self.json, checked)
        results = only_causes(results)
        # A wrong type may break several keywords with the same message.
        unique = {(one.path, one.expected, one.got): one for one in reversed(results)}
        return tuple(reversed(unique.values()))[:MOST]

    def _whole_floats(self, value: Any) -> list[Problem]:
        return [
            Problem(path=path, expected="integer", got=quote(part), keyword="type")
            for path, part in leaves(value)
            if isinstance(part, float)
            and part.is_integer()
            and (node := self._node(path)) is not None
            and "integer" in (allowed := all_kinds(node, self.json))
            and "number" not in allowed
        ]

    def coerce(self, value: Any) -> tuple[Any, tuple[str, ...]]:
        """Return the value with lossless coercions (rule D4), and their notes.

        What would need a guess stays unchanged, for `problems` to report. The passed
        value is never changed.
        """
        if self.valid(value) and not coerce.has_whole_float(value):
            return value, ()
        if self._validator() is None:
            return value, ()  # an invalid schema cannot be checked
        return coerce.coerce(self.json, value, _Fits(self.json))

    def at(self, path: Path) -> dict[str, Json] | None:
        """Return the sub-schema at a value's path; None: nothing is allowed there.

        The result can be used alone: it has the definitions it refers to.
        """
        node = self._node(path)
        if node is None:
            return None
        if path and "$defs" in self.json and "$ref" in repr(node):
            return {**node, "$defs": self.json["$defs"]}
        return dict(node)

    def _node(self, path: Path) -> Node | None:
        if self._compiled is None and self._validator() is None:
            return None
        node: Node | None = resolved(self.json, self.json)
        for part in path:
            if node is None:
                return None
            node = child(node, part, self.json)
        return node

    def takes_reference(self, path: Path) -> bool:
        """Return whether a path accepts an asset reference (B42, B45, B46)."""
        if self._marked(path):
            return True
        return bool(path) and isinstance(path[-1], int) and self._marked(path[:-1])

    def _marked(self, path: Path) -> bool:
        node = self._node(path)
        if node is None:
            return False
        return node.get("x-asset-ref") is True or any(
            arm.get("x-asset-ref") is True for arm in arms(node, self.json)
        )

    def accepts_native(self, path: Path, value: Any) -> Problem | None:
        """Return a native object's problem at a path (B41, B42), or None."""
        if self._validator() is None:
            return self._broken()
        node = self._node(path)
        if node is None:
            return Problem(path=path, expected="nothing here", got=type_name(value))
        return native_problem(node, self.json, value, path, _Fits(self.json))

    def classes_at(self, path: Path) -> tuple[str, ...]:
        """Return the names of the Python classes that a node accepts."""
        node = self._node(path)
        nodes = () if node is None else arms(node, self.json)
        return tuple([str(arm["x-type"]) for arm in nodes if "x-type" in arm])

    def wants_text(self, path: Path) -> bool:
        """Return whether the node accepts text only."""
        node = self._node(path)
        return node is not None and _is_text(node, self.json)

    def _broken(self) -> Problem:
        text = f"a schema that can be used ({self._defect})"
        return Problem(expected=text, got="a broken schema", keyword="schema")

    def _validator(self) -> Validator | None:
        if self._compiled is None and self._defect is None:
            import jsonschema_rs

            written, formats = repr(self.json), None
            # registered formats cost a quarter of every check, even unused
            if "'format'" in written:
                from neuraxis.schema.formats import FORMATS as formats
            try:
                has_references = "$ref" in written
                if has_references and refers_to_itself(self.json):
                    raise ValueError("a type refers to itself with nothing between")
                self._compiled = jsonschema_rs.validator_for(
                    with_uri_references(self.json) if has_references else {**self.json},
                    validate_formats=self.json.get("x-formats") != "annotation",
                    offline=True,
                    formats=formats,
                )
            except (ValueError, RecursionError) as error:
                lines = str(error).splitlines()
                self._defect = lines[0][:200] if lines else type(error).__name__
            else:
                self._open = is_open(self.json, self.json)
        return self._compiled

    def __repr__(self) -> str:
        return f"Schema({type_text(self.json)})"


class _Fits:
    """Checks values against sub-schemas of one root; each is compiled once."""

    __slots__ = ("known", "root")

    def __init__(self, root: Node) -> None:
        self.root = root
        # the node is stored with its validator, so that its id is not reused
        self.known: dict[int, tuple[Node, Schema]] = {}

    def __call__(self, node: Node, value: Any) -> bool:
        entry = self.known.get(id(node))
        if entry is None:
            standalone = node
            if "$defs" in self.root and "$defs" not in node and "$ref" in repr(node):
                standalone = {**node, "$defs": self.root["$defs"]}
            entry = self.known[id(node)] = (node, Schema(standalone))
        return entry[1].valid(value)


def _is_text(node: Node, root: Node) -> bool:
    names = set(kinds(node)) - {"null"}
    if names:
        return names == {"string"}
    members: Json = node.get("enum")
    if isinstance(members, list):
        parts_ = [
            member for member in cast("list[Json]", members) if member is not None
        ]
        return bool(parts_) and all(isinstance(member, str) for member in parts_)
    parts = arms(node, root)
    if parts == [node]:
        return False
    non_null = [part for part in parts if kinds(part) != ("null",)]
    return bool(non_null) and all(_is_text(part, root) for part in non_null)


def _is_valid(value: Any, node: Node, validator: Validator) -> bool:
    """Validate a value, its long lists in slices.

    That is possible if only their items are constrained. The validator blocks the
    interpreter, and so every event loop, for each value.
    """
    if value.__class__ is list and len(value) > SLICE and node.keys() <= _ITEMS_ONLY:
        slices = (value[at : at + SLICE] for at in range(0, len(value), SLICE))
        return all(map(validator.is_valid, slices))
    if value.__class__ is dict and node.keys() <= _ENTRIES_ONLY:
        for key, item in cast("dict[Any, Any]", value).items():
            if item.__class__ is not list or len(item) <= SLICE:
                continue
            inner = as_node(node.get("properties", {}).get(key))
            if inner is not None and inner.keys() <= _ITEMS_ONLY:
                standalone = Schema({"$defs": node.get("$defs", {}), **inner})
                if not standalone.valid_json(item):
                    return False
                value = {**value, key: []}
    return validator.is_valid(value)


def _under(path: Sequence[str | int], hole: Path) -> bool:
    return tuple(path[: len(hole)]) == hole


def _in_hole(error: ValidationError, holes: Collection[Path]) -> bool:
    """Return whether the error depends on an unfilled hole."""
    if not holes:
        return False
    path = tuple(error.instance_path)
    if any(_under(path, hole) for hole in holes):
        return True
    looks = error.kind.name in _LOOKS_INSIDE or any(
        part in ("then", "else", "dependentSchemas") for part in error.evaluation_path
    )
    return looks and any(_under(hole, path) for hole in holes)


def _without(value: Any, bad: set[Path], path: Path) -> Any:
    """Return the value with null at bad places; copies what changes."""
    if not bad:
        return value
    if path in bad:
        return None
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        return [_without(item, bad, (*path, i)) for i, item in enumerate(items)]
    if isinstance(value, dict):
        return {
            str(key): _without(item, bad, (*path, str(key)))
            for key, item in cast("dict[Any, Any]", value).items()
        }
    return value
