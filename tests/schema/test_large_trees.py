"""Trees that are very deep, and enums that are very long: told, or read in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cpu_time import least
from neuraxis.formatting import QUOTED, quote
from neuraxis.schema.describe import FULL, type_text
from neuraxis.schema.notation.nodes import (
    parameter_schema,
    parameters_schema,
    response_schema,
)
from neuraxis.schema.notation.type_refs import collect_types
from neuraxis.schema.notation.types import NotationProblem
from neuraxis.schema.notation.write import node_from_schema
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

LEVELS = 20_000


def deep(wrap: Callable[[Any], Any], inside: Any = 1) -> Any:
    for _ in range(LEVELS):
        inside = wrap(inside)
    return inside


LISTS = deep(lambda value: [value])
LOOP: list[Any] = []
LOOP.append({"again": LOOP})

NODES: dict[str, Any] = {
    "fields": deep(lambda node: {"type": {"a": node}}, {"type": "int"}),
    "listed fields": deep(
        lambda node: {"type": [{"name": "a", **node}]}, {"type": "int"}
    ),
    "items": deep(lambda node: {"type": "List", "items": node}, {"type": "int"}),
    "default": {"type": {"a": {"type": "Any", "default": LISTS}}},
    "example": {"type": {"a": {"type": "List", "example": LISTS}}},
    "enum": {"type": {"a": {"type": "Any", "enum": [LISTS]}}},
    "flag": {"type": {"a": {"type": "int", "required": LISTS}}},
    "limit": {"type": {"a": {"type": "int", "minimum": LISTS}}},
    "description": {"type": "int", "description": LISTS},
    "itself": {"type": {"a": {"type": "Any", "default": LOOP}}},
}
READERS: dict[str, Callable[[Any, list[NotationProblem]], object]] = {
    "parameter": lambda node, found: parameter_schema(node, problems=found),
    "parameters": lambda node, found: parameters_schema(
        [{"name": "z", **node}], problems=found
    ),
    "response": lambda node, found: response_schema(node, problems=found),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", NODES)
def test_a_tree_of_any_depth_is_told_with_its_place(name: str, reader: str) -> None:
    """No RecursionError: one problem, and a path that leads down into the tree."""
    found: list[NotationProblem] = []
    READERS[reader](NODES[name], found)
    (problem,) = found
    assert problem.message == "nested deeper than 200 levels"
    assert problem.severity == "error"
    assert len(problem.path) == 201
    here = [{"name": "z", **NODES[name]}] if reader == "parameters" else NODES[name]
    for part in problem.path:
        here = here[part]
    assert isinstance(here, dict | list)
    collect_types(NODES[name])


def test_values_of_ordinary_depth_are_no_problem() -> None:
    """What stands just above the limit is read, checked and kept."""
    value: Any = 1
    for _ in range(180):
        value = [value]
    found: list[NotationProblem] = []
    field = {"type": "Any", "default": value, "enum": [value], "required": False}
    node = {"type": {"a": field}}
    schema = parameter_schema(node, problems=found)
    assert found == []
    assert schema["properties"]["a"]["default"] == value


SCHEMAS: dict[str, Any] = {
    "properties": deep(lambda node: {"type": "object", "properties": {"a": node}}),
    "items": deep(lambda node: {"type": "array", "items": node}),
    "values": deep(lambda node: {"type": "object", "additionalProperties": node}),
    "arms": deep(lambda node: {"anyOf": [node, {"type": "null"}]}),
    "tuple": deep(lambda node: {"prefixItems": [node], "items": False}),
    "enum": {"enum": [LISTS]},
    "default": {"type": "string", "default": LISTS},
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_of_any_depth_has_a_text_and_a_node(name: str) -> None:
    """The text stops somewhere; the node names what was lost."""
    assert len(type_text(SCHEMAS[name])) < 200
    assert len(type_text(SCHEMAS[name], FULL)) <= FULL.characters
    loss: list[str] = []
    node_from_schema(SCHEMAS[name], loss=loss)
    assert loss == ["root: what is nested deeper than 64 levels"]


def test_a_value_of_any_depth_is_quoted() -> None:
    """By its type, where it is too deep for Python to write it (3.14: it never is)."""
    assert quote(LISTS) in ("<array>", "[" * (QUOTED - 1) + "…")


def test_an_enum_of_thousands_is_read_in_time() -> None:
    """Linear in the number of members."""

    def read(members: int) -> None:
        names: list[Json] = [f"m{index}" for index in range(members)]
        numbers: list[Json] = list(range(members))
        node: Json = {
            "type": {
                "name": {"type": "string", "enum": names},
                "number": {"type": "int", "enum": numbers},
                "all": {"type": "List[string]", "items": {"enum": names}},
            }
        }
        found: list[NotationProblem] = []
        schema = parameter_schema(node, problems=found)
        assert found == []
        assert schema["properties"]["number"]["enum"] == numbers

    assert least(lambda: read(5_000)) < 15 * least(lambda: read(1_000))


def test_an_enum_keeps_values_that_python_takes_for_one() -> None:
    """1, 1.0 and true differ in JSON, inside of lists too; what is twice goes."""
    members: list[Json] = [1, True, [1], [True], {"a": 1}, {"a": True}, 1, [True]]
    schema = parameter_schema({"type": {"a": {"type": "Any", "enum": members}}})
    kept = schema["properties"]["a"]["enum"]
    assert [repr(value) for value in kept] == [repr(value) for value in members[:6]]


def test_a_union_with_a_long_enum_is_written_whole() -> None:
    """A manifest made of a schema allows what the schema allows, to the letter."""
    values: list[Json] = [f'{index} "\\ {"x" * 50}' for index in range(20)]
    schema: dict[str, Json] = {"anyOf": [{"enum": values}, {"type": "integer"}]}
    loss: list[str] = []
    node = node_from_schema(schema, loss=loss)
    assert loss == []
    again = Schema(parameter_schema(node))
    assert all(again.valid(value) for value in [*values, 5])
    assert not again.valid('1 "')
    odd: dict[str, Json] = {"anyOf": [{"enum": [[1], 1e30]}, {"type": "integer"}]}
    assert node_from_schema(odd, loss=loss)["type"] == "Union[Any, int]"
    assert loss == ["root: enum inside"]


def test_a_mistake_is_told_in_bounded_words() -> None:
    """What was written may be long; the sentence about it is not (found by fuzzing)."""
    problems: list[NotationProblem] = []
    tree: Any = {"type": {"a": {"type": "int"}}, "default": [list(range(5000))]}
    parameter_schema(tree, collect_types(tree, problems=[]), problems=problems)
    assert problems
    assert all(len(problem.message) <= 500 for problem in problems)


def test_a_text_of_a_class_of_its_own_becomes_a_text() -> None:
    """The validator refuses it, deep in an enum too (found by fuzzing)."""

    class Name(str):
        __slots__ = ()

    problems: list[NotationProblem] = []
    tree: Any = {"type": "Any", "enum": [[[{"a": Name("x")}]], Name("y")]}
    schema = parameter_schema(tree, collect_types(tree, problems=[]), problems=problems)
    assert [item for item in problems if item.severity == "error"] == []
    assert schema is not None
    assert Schema(schema).defect is None
    assert Schema(schema).valid([[{"a": "x"}]])
