"""The type language: type texts, mappings, lists of fields, `_type_ref`, additions."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

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

PLAIN = {"string": "string", "str": "string", "int": "integer", "integer": "integer"}
PLAIN |= {"float": "number", "number": "number", "double": "number", "bool": "boolean"}
PLAIN |= {"boolean": "boolean", "null": "null", "None": "null", "List": "array"}
PLAIN |= {"list": "array", "array": "array", "Sequence": "array", "Dict": "object"}
PLAIN |= {"dict": "object", "Mapping": "object", "Map": "object", "Tuple": "array"}


def translated(text: str) -> tuple[dict[str, Any], list[NotationProblem]]:
    """The schema and mistakes of a `parameter:` written in YAML."""
    tree = yaml.safe_load(text)
    problems: list[NotationProblem] = []
    types = collect_types({"parameter": tree}, problems=problems)
    return parameter_schema(tree, types, problems=problems), problems


def of_type(text: str) -> dict[str, Any]:
    """The schema of one field's type; it must hold no mistake."""
    problems: list[NotationProblem] = []
    tree = {"type": {"x": {"type": text}}}
    schema = parameter_schema(tree, problems=problems)
    assert [] == problems
    return schema["properties"]["x"]


def errors(problems: list[NotationProblem]) -> list[tuple[Any, ...]]:
    return [problem.path for problem in problems if problem.severity != "warning"]


@pytest.mark.parametrize(("text", "name"), PLAIN.items())
def test_D3_spellings(text: str, name: str) -> None:
    """Every spelling of a simple type name means the same."""
    assert {"type": name} == of_type(text)


@pytest.mark.parametrize("text", ["Any", "Object", "object"])
def test_D3_any(text: str) -> None:
    """`Any` takes any JSON value."""
    assert {} == of_type(text)


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("List[int]", {"type": "array", "items": {"type": "integer"}}),
        ("List[Any]", {"type": "array"}),
        ("Dict[str, Any]", {"type": "object"}),
        (
            "Dict[str, int]",
            {"type": "object", "additionalProperties": {"type": "integer"}},
        ),
        (
            "Set[str]",
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        ),
        ("Tuple[int, ...]", {"type": "array", "items": {"type": "integer"}}),
        (
            "Tuple[int, str]",
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": False,
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        ("Optional[int]", {"type": ["integer", "null"]}),
        ("int | None", {"type": ["integer", "null"]}),
        ("Union[int, str]", {"type": ["integer", "string"]}),
        ("int | Any", {}),
        ('Literal["a", 3]', {"type": ["string", "integer"], "enum": ["a", 3]}),
        (
            'Optional[Literal["a"]]',
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ("date", {"type": "string", "format": "date"}),
        ("datetime.datetime", {"type": "string", "format": "date-time"}),
        ("bytes", {"type": "string", "format": "byte"}),
        ("typing.List[uuid]", {"type": "array", "items": of_type("uuid")}),
        ("numpy.ndarray", {"x-type": "numpy.ndarray", "not": {}}),
        (
            "Union[numpy.ndarray, List[List[int]]]",
            {
                "anyOf": [
                    {"x-type": "numpy.ndarray", "not": {}},
                    {"type": "array", "items": of_type("List[int]")},
                ]
            },
        ),
    ],
)
def test_D3_generics(text: str, schema: dict[str, Any]) -> None:
    """Generics, unions, literals, formats and opaque classes."""
    assert schema == of_type(text)


@pytest.mark.parametrize(
    "text",
    [
        "List[",
        "List[int",
        "List]",
        "Optional",
        "Dict[str]",
        "Dict[int, str]",
        "Lisst",
        "int[str]",
        "",
        "List[int, str]",
        "Literal[a]",
        "[int]",
        "int ||",
        "List[...]",
        "Message",
        "List[" * 40 + "int" + "]" * 40,
        "intt",
        "Literal",
        f"Literal[{'9' * 5000}]",
        f"Literal[{'9' * 400}.5]",
    ],
)
def test_bad_type_texts(text: str) -> None:
    """What is no type is one mistake at its place, never an exception."""
    problems: list[NotationProblem] = []
    parameter_schema({"type": {"x": {"type": text}}}, problems=problems)
    assert [("type", "x", "type")] == errors(problems)


def test_misspelled_type_names_the_nearest() -> None:
    """An unknown type comes with the nearest known ones."""
    _, problems = translated("{type: {x: {type: strng}}}")
    assert "Did you mean string" in problems[0].message


def test_B29_mapping() -> None:
    """A mapping under `type` is an object, to any depth; `{}` takes no key."""
    schema, problems = translated(
        """
        type:
          box:
            type: {x: {type: int}, y: {type: int, required: false}}
          none: {type: {}}
        """
    )
    assert [] == problems
    box = schema["properties"]["box"]
    assert ["x"] == box["required"]
    assert Schema(schema).valid({"box": {"x": 1}, "none": {}})
    assert not Schema(schema).valid({"box": {"x": 1}, "none": {"a": 1}})
    assert not Schema(schema).valid({"box": {"y": 1}, "none": {}})


def test_B34_list_of_fields() -> None:
    """A YAML list under `type` is a list of objects with these fields."""
    schema, problems = translated(
        "type: {rows: {type: [{name: a, type: int}, {name: b, type: str, "
        "required: false}]}}"
    )
    assert [] == problems
    checked = Schema(schema)
    assert checked.valid({"rows": [{"a": 1}, {"a": 2, "b": "x"}]})
    assert not checked.valid({"rows": {"a": 1}})
    assert not checked.valid({"rows": [{"b": "x"}]})


def test_B34_mistakes() -> None:
    """A field without a name, a name twice, a bare word: each at its place."""
    _, problems = translated(
        "type: {rows: {type: [{type: int}, {name: a, type: int}, {name: a, "
        "type: int}, string]}}"
    )
    rows = ("type", "rows", "type")
    assert [(*rows, 0), (*rows, 2, "name"), (*rows, 3)] == errors(problems)


def test_B36_type_ref_everywhere() -> None:
    """Defined once, used forward, inside generics and in itself."""
    schema, problems = translated(
        """
        type:
          first: {type: "List[point]"}
          maybe: {type: "Optional[point]", required: false}
          tree:
            type:
              _type_ref: node
              at: {type: {_type_ref: point, x: {type: int}}}
              below: {type: "List[node]", required: false}
          rows: {type: [{_type_ref: table}, {name: a, type: int}], required: false}
          more: {type: "Dict[str, table]", required: false}
        """
    )
    assert [] == problems
    assert {"point", "node", "table"} == set(schema["$defs"])
    checked = Schema(schema)
    assert checked.defect is None
    tree = {"at": {"x": 1}, "below": [{"at": {"x": 2}, "below": []}]}
    assert checked.valid({"first": [{"x": 1}], "tree": tree, "maybe": None})
    assert checked.valid({"first": [], "tree": tree, "more": {"k": [{"a": 1}]}})
    tree["below"][0]["below"] = [{"at": {"x": "no"}}]  # type: ignore[index]
    (problem,) = checked.problems({"first": [], "tree": tree})
    assert ("tree", "below", 0, "below", 0, "at", "x") == problem.path
    assert "node" not in schema["properties"]["tree"]


def test_B36_only_used_definitions() -> None:
    """A command's schema holds the definitions it uses, across commands of a file."""
    tree = yaml.safe_load(
        """
        commands:
          - command_name: a
            response: {type: {p: {type: {_type_ref: point, x: {type: int,
                       optional: true}}}}}
          - command_name: b
            parameter: {type: {q: {type: point}}}
          - command_name: c
            parameter: {type: {z: {type: int}}}
        """
    )
    types = collect_types(tree)
    second = parameter_schema(tree["commands"][1]["parameter"], types)
    third = parameter_schema(tree["commands"][2]["parameter"], types)
    assert "$defs" not in third
    # B40: `optional` of the response is read as `required: false` here.
    assert Schema(second).valid({"q": {}})
    assert not Schema(second).valid({"q": {"y": 1}})


def test_B36_whole_parameter_is_a_named_type() -> None:
    """Its fields stand at the root, where parameter names are read."""
    schema, _ = translated("type: {_type_ref: p, x: {type: int}}")
    assert ["x"] == list(schema["properties"])
    assert "$defs" not in schema
    schema, _ = translated(
        "type: {_type_ref: p, x: {type: int}, below: {type: 'List[p]'}}"
    )
    assert ["x", "below"] == schema["required"]
    assert Schema(schema).valid({"x": 1, "below": [{"x": 2, "below": []}]})


def test_B36_mistakes() -> None:
    """Twice, a builtin's name, an unknown name, no text: errors with their place."""
    _, problems = translated(
        """
        type:
          a: {type: {_type_ref: point, x: {type: int}}}
          b: {type: {_type_ref: point, y: {type: int}}}
          c: {type: {_type_ref: str, y: {type: int}}}
          d: {type: poin}
          e: {type: {_type_ref: 7, y: {type: int}}}
        """
    )
    assert {
        ("parameter", "type", "b", "type", "_type_ref"),
        ("parameter", "type", "c", "type", "_type_ref"),
        ("type", "d", "type"),
        ("parameter", "type", "e", "type", "_type_ref"),
    } == set(errors(problems))


def test_B36_broken_definition_is_told_once() -> None:
    """A mistake inside a definition is not told again at each use."""
    _, problems = translated(
        "type: {a: {type: {_type_ref: p, x: {type: intt}}}, b: {type: p}, c: {type: p}}"
    )
    assert [("type", "a", "type", "x", "type")] == errors(problems)


def test_B37_simple_parameter() -> None:
    """A simple type as the whole parameter; null and nothing mean no parameters."""
    assert {"type": "string"} == parameter_schema({"type": "string"})
    for nothing in (None, {"type": None}):
        assert {} == parameter_schema(nothing)["properties"]
    assert parameter_schema({"type": "str", "required": False})["x-optional"] is True


def test_B39_flags_of_a_response() -> None:
    """`optional` in a response; `required` there is read, with a warning."""
    problems: list[NotationProblem] = []
    schema = response_schema(
        {
            "type": {
                "a": {"type": "int"},
                "b": {"type": "int", "optional": True},
                "c": {"type": "int", "required": False},
            }
        },
        problems=problems,
    )
    assert schema is not None
    assert ["a"] == schema["required"]
    assert ["warning"] == [problem.severity for problem in problems]


def test_contradicting_flags() -> None:
    """required and optional that contradict each other are a mistake."""
    _, problems = translated("type: {a: {type: int, required: true, optional: true}}")
    assert ("type", "a") in errors(problems)


def test_K1_v1_lists() -> None:
    """v1: parameters and response are lists of named fields; null is none."""
    schema = parameters_schema(
        [
            {"name": "query", "type": "string"},
            {"name": "n", "type": "int", "required": False},
        ]
    )
    assert ["query"] == schema["required"]
    assert ["query", "n"] == list(schema["properties"])
    assert {} == parameters_schema(None)["properties"]
    response = response_schema([{"name": "r", "type": "List", "optional": True}])
    assert response is not None
    assert "required" not in response
    assert response_schema(None) is None


def test_B30_unknown_key_is_a_warning() -> None:
    """A misspelled key of a node is named, with the nearest."""
    _, problems = translated("type: {a: {type: int, requird: false}}")
    assert ["warning"] == [problem.severity for problem in problems]
    assert ("type", "a", "requird") == problems[0].path
    assert "required" in problems[0].message


def test_B42_flags() -> None:
    """asset_ref_acceptable at a field and at the whole parameter."""
    schema, _ = translated(
        "{type: {a: {type: numpy.ndarray, asset_ref_acceptable: true}, b: {type: int}},"
        " asset_ref_acceptable: true}"
    )
    assert schema["x-asset-ref"] is True
    assert schema["properties"]["a"]["x-asset-ref"] is True
    assert "x-asset-ref" not in schema["properties"]["b"]


def test_additions() -> None:
    """default, nullable, item enum, format and limits hold."""
    schema, problems = translated(
        """
        type:
          a: {type: int, default: 3, minimum: 1, maximum: 5, required: false}
          b: {type: "List[str]", items: {enum: [x, y]}, min_items: 1}
          c: {type: str, nullable: true, pattern: "^a", max_length: 3}
          d: {type: str, enum: [p, q], nullable: true}
          e: {type: str, default: null, required: false}
          f: {type: "List[str]", enum: [x, y]}
          g: {type: str, format: date}
        """
    )
    assert [("type", "f", "enum")] == [problem.path for problem in problems]
    good = {"a": 1, "b": ["x"], "c": None, "d": None, "e": None, "f": ["y"]}
    good["g"] = "2026-01-31"
    checked = Schema(schema)
    assert () == checked.problems(good)
    for bad in (
        {"a": 6},
        {"b": []},
        {"b": ["z"]},
        {"c": "b"},
        {"c": "aaaa"},
        {"d": "r"},
        {"f": ["z"]},
        {"g": "no"},
    ):
        assert [next(iter(bad))] == [p.path[0] for p in checked.problems(good | bad)]


def test_B32_default_of_a_required_parameter() -> None:
    """It is never used, and the author is told; in a response it means nothing."""
    tree = "type: {a: {type: [{name: b, type: int, default: 3}]}}"
    _, problems = translated(tree)
    assert [p.path for p in problems] == [("type", "a", "type", 0, "default")]
    assert "write required: false" in problems[0].message
    assert not errors(problems)
    found: list[NotationProblem] = []
    response_schema({"type": {"b": {"type": "int", "default": 3}}}, problems=found)
    assert found == []


def test_A15_values_of_yaml() -> None:
    """Words that YAML reads as numbers, truth values or dates become text again."""
    schema, problems = translated(
        "type: {a: {type: str, enum: [yes, 3.10, 2024-01-01, ok]}, 7: {type: int}}"
    )
    assert ["true", "3.1", "2024-01-01", "ok"] == schema["properties"]["a"]["enum"]
    assert "7" in schema["properties"]
    assert {"warning"} == {problem.severity for problem in problems}


@pytest.mark.parametrize(
    "node",
    [
        "{type: int, enum: [a]}",
        "{type: int, enum: []}",
        "{type: int, enum: a}",
        "{type: str, pattern: '('}",
        "{type: str, minLength: -1}",
        "{type: str, minLength: yes}",
        "{type: int, minimum: low}",
        "{type: int, required: perhaps}",
        "{type: int, items: {enum: [1]}}",
        "{type: 7}",
        "{type: [str, null]}",
        "just text",
        "{type: float, default: .nan}",
    ],
)
def test_bad_nodes(node: str) -> None:
    """A wrong value beside a type is an error, never an exception."""
    _, problems = translated(f"type: {{a: {node}}}")
    assert errors(problems)


def test_A26_example_that_does_not_fit() -> None:
    """An example of the wrong type is a warning; one written as text is none."""
    _, problems = translated(
        "type: {a: {type: int, example: '5'}, b: {type: int, example: many}}"
    )
    assert [("type", "b", "example")] == [problem.path for problem in problems]


def test_all_mistakes_at_once() -> None:
    """Several mistakes of a tree are told together."""
    _, problems = translated("type: {a: {type: x}, b: {type: y}, c: {type: 'List['}}")
    assert 3 == len(errors(problems))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("int", "integer"),
        ("float", "number"),
        ("List[int]", "List[int]"),
        ("Optional[int]", "Optional[int]"),
        ("Dict[str, List[bool]]", "Dict[str, List[bool]]"),
        ("Tuple[int, str]", "Tuple[int, string]"),
        ("numpy.ndarray", "numpy.ndarray"),
        ('Literal["a", "b"]', 'one of "a", "b"'),
        ("Union[numpy.ndarray, List[int]]", "Union[numpy.ndarray, List[int]]"),
        ("Any", "Any"),
        ("date", "date"),
    ],
)
def test_type_text(text: str, said: str) -> None:
    """A schema is said in the words of the notation."""
    assert said == type_text(of_type(text))


def test_type_text_of_objects() -> None:
    """An object is said by its fields, shortly."""
    schema, _ = translated("type: {a: {type: int}, b: {type: str, required: false}}")
    assert "object {a: int, b?: string}" == type_text(schema)
    assert "List[{a: int, b?: string}]" == type_text({"type": "array", "items": schema})


def test_node_from_schema_round_trip() -> None:
    """A translated node is written as a node that means the same."""
    text = """
    type:
      city: {type: string, description: a city, example: Lyon}
      n: {type: int, required: false, default: 3, minimum: 1}
      tags: {type: "List[string]", items: {enum: [a, b]}, required: false}
      at:
        type: {_type_ref: point, x: {type: float}, y: {type: float}}
        asset_ref_acceptable: true
      path: {type: "List[point]", nullable: true}
      rows: {type: [{name: a, type: int}, {name: b, type: date, required: false}]}
      image: {type: "Union[numpy.ndarray, PIL.Image.Image]", asset_ref_acceptable: true}
      kind: {type: string, enum: [p, q]}
    """
    schema, problems = translated(text)
    assert [] == problems
    loss: list[str] = []
    node = node_from_schema(schema, loss=loss)
    assert [] == loss
    again: list[NotationProblem] = []
    types = collect_types({"parameter": node}, problems=again)
    assert schema == parameter_schema(node, types, problems=again)
    assert [] == again


def test_node_from_schema_names_what_is_lost() -> None:
    """What the notation cannot say is named with its place."""
    loss: list[str] = []
    node_from_schema(
        {"type": "object", "properties": {"a": {"type": "string", "if": {}}}}, loss=loss
    )
    assert ["a: if", "root: additionalProperties"] == sorted(loss)


def test_concopilot_configs(shared_data: Any) -> None:
    """Every public plugin file of both generations is translated without errors."""
    seen = 0
    for path in sorted((shared_data / "concopilot" / "configs").glob("*.yaml")):
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
        problems: list[NotationProblem] = []
        types = collect_types(tree, problems=problems)
        for command in tree.get("commands") or []:
            if "parameters" in command:
                parts = [parameters_schema(command["parameters"], types)]
            else:
                parts = [parameter_schema(command.get("parameter"), types)]
            parts.append(
                response_schema(command.get("response"), types, problems=problems) or {}
            )
            assert [None, None] == [Schema(part).defect for part in parts]
            seen += 1
        assert [] == errors(problems), path.name
    assert seen > 15


def test_B43_a_raw_reference_is_written_as_it_was() -> None:
    """`resolve: false` of any type becomes the same node again; alone it is told."""
    text = """
    type:
      a: {type: numpy.ndarray, asset_ref_acceptable: true, resolve: false,
          description: an array}
      b: {type: "List[int]", asset_ref_acceptable: true, resolve: false, example: [1]}
      c: {type: Any, asset_ref_acceptable: true, resolve: false}
    """
    schema, problems = translated(text)
    assert [] == problems
    checker = Schema(schema)
    reference = {"asset_id": "a1", "field_path": ["content", 0]}
    assert checker.valid(dict.fromkeys("abc", reference))
    assert not checker.valid({"a": 1, "b": [1], "c": 1})
    assert not checker.takes_reference(("a",))
    loss: list[str] = []
    node = node_from_schema(schema, loss=loss)
    assert [] == loss
    assert schema == parameter_schema({"type": node["type"]})
    _, problems = translated("type: {a: {type: int, resolve: false}}")
    assert ["error"] == [problem.severity for problem in problems]
    assert "needs asset_ref_acceptable" in problems[0].message


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("{type: int, minimum: 5, maximum: 3}", "minimum 5 is above maximum 3"),
        ("{type: str, min_length: 5, max_length: 3}", "minLength 5 is above maxLength"),
        ("{type: list, min_items: 2, max_items: 1}", "minItems 2 is above maxItems 1"),
        ("{type: str, pattern: '['}", "pattern: expected a regular expression, got"),
    ],
)
def test_limits_that_no_value_fits(node: str, said: str) -> None:
    """They are errors; a default in words, as real files have it, is a warning."""
    _, problems = translated(f"type: {{a: {node}}}")
    (error,) = problems
    assert (error.severity, said in error.message) == ("error", True)
    _, words = translated(
        "type: {a: {type: int, default: the current year, required: false}}"
    )
    assert (len(words), errors(words)) == (1, [])
