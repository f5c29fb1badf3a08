"""Types that are joined by `allOf`, refer to each other, or are cut for length."""

import ast
import time
from typing import Any

import pytest

from neuraxis import Session
from neuraxis.bridges import openapi
from neuraxis.bridges.imported_schema import SchemaRefused, import_schema
from neuraxis.models.scripted import ScriptedModel
from neuraxis.schema.schema import Schema

KEY: dict[str, Any] = {
    "type": "object",
    "properties": {"key": {"type": "string"}},
    "required": ["key"],
    "additionalProperties": False,
}
REFERENCE = {"$ref": "#/components/schemas/Key"}


def document(
    body: Any,
    types: dict[str, Any] | None = None,
    version: str = "3.0.3",
    media: str = "application/json",
) -> dict[str, Any]:
    post = {
        "operationId": "send",
        "requestBody": {"content": {media: {"schema": body}}},
        "responses": {},
    }
    return {
        "openapi": version,
        "info": {"title": "Post"},
        "servers": [{"url": "https://post.example.org"}],
        "components": {"schemas": {"Key": KEY} if types is None else types},
        "paths": {"/send": {"post": post}},
    }


def schema_of(*given: Any, **more: Any) -> Schema:
    """The parameters of a command with this body."""
    return Schema(openapi(document(*given, **more)).commands["send"].spec.parameters)


@pytest.mark.parametrize("extra", [True, False])
def test_what_stands_beside_a_reference_of_an_allof_holds(extra: bool) -> None:
    """In 3.1 it may add fields, whether the type is closed or not."""
    beside = {**REFERENCE, "required": ["to"], "properties": {"to": {"type": "string"}}}
    schema = schema_of(
        {"allOf": [beside]},
        {"Key": {**KEY, "additionalProperties": extra}},
        version="3.1.0",
    )
    assert schema.valid({"body": {"key": "k", "to": "you"}})
    assert not schema.valid({"body": {"key": "k"}})
    assert not schema.valid({"body": {"key": "k", "to": 1}})


@pytest.mark.parametrize(
    "wrapped",
    [
        {"allOf": [REFERENCE], "description": "the key", "nullable": True},
        {"allOf": [REFERENCE, {"description": "the key"}, {"nullable": True}]},
        {"allOf": [REFERENCE], "oneOf": [{"required": ["key"]}]},
    ],
)
def test_a_closed_type_with_a_description_stays_closed(wrapped: Any) -> None:
    """In 3.0 an `allOf` of one type is the way to add one."""
    schema = schema_of({"type": "object", "properties": {"k": wrapped}})
    assert schema.valid({"body": {"k": {"key": "a"}}})
    assert not schema.valid({"body": {"k": {"key": "a", "kee": "b"}}})


@pytest.mark.parametrize("wrapper", [REFERENCE, {"allOf": [REFERENCE]}])
def test_a_wrapped_type_is_joined_like_the_type_itself(wrapper: Any) -> None:
    """A name for a closed type is no second closed type."""
    schema = schema_of(
        {
            "allOf": [
                {"$ref": "#/components/schemas/Alias"},
                {"properties": {"to": {"type": "string"}}},
            ]
        },
        {"Key": KEY, "Alias": wrapper},
    )
    assert schema.valid({"body": {"key": "k", "to": "you"}})
    assert not schema.valid({"body": {"to": "you"}})


def test_a_form_asks_for_a_field_that_one_arm_only_reads() -> None:
    """The other arm says that it is sent."""
    arms = [
        {"properties": {"id": {"type": "string", "readOnly": True}}},
        {"properties": {"id": {"type": "string"}}, "required": ["id"]},
    ]
    schema = schema_of({"allOf": arms}, media="application/x-www-form-urlencoded")
    assert schema.valid({"body": {"id": "a"}})
    assert not schema.valid({"body": {}})


def nested(levels: int) -> dict[str, Any]:
    """Closed types, each of two types of the next level."""
    types: dict[str, Any] = {f"{name}{levels}": {"type": "object"} for name in "TU"}
    for level in range(levels):
        arms = [
            {"$ref": f"#/components/schemas/{name}{level + 1}"} for name in ("T", "U")
        ]
        for name in "TU":
            types[f"{name}{level}"] = {
                "type": "object",
                "properties": {f"p{level}": {"type": "string"}},
                "allOf": [{"anyOf": arms}],
                "additionalProperties": False,
            }
    return types


@pytest.mark.parametrize("levels", [10, 14])
def test_closed_types_in_many_levels_take_no_time(levels: int) -> None:
    """What is checked is given up before the time of a check."""
    start = time.process_time()
    plugin = openapi(
        document({"$ref": "#/components/schemas/T0"}, nested(levels), "3.0.3")
    )
    schema = Schema(plugin.commands["send"].spec.parameters)
    assert schema.valid({"body": {"p0": "x"}})
    assert time.process_time() - start < 2
    (problem,) = plugin.problems
    assert "too deep" in problem.message or "too often" in problem.message
    if levels == 10:  # all but the unknown keys is still checked
        assert not schema.valid({"body": {"p0": 1}})


def test_an_imported_schema_that_looks_for_unknown_keys_anew_is_refused() -> None:
    """The same types, of a server's tool."""
    text = str(nested(12)).replace("#/components/schemas", "#/$defs")
    text = text.replace("additionalProperties", "unevaluatedProperties")
    types = ast.literal_eval(text)
    with pytest.raises(SchemaRefused, match="too often"):
        import_schema({"type": "object", **types["T0"], "$defs": types})


def test_a_type_that_is_cut_takes_its_fields_also_in_a_closed_one() -> None:
    """Otherwise every complete call would be refused."""
    names = [f"field{number}" for number in range(900)]
    big = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": names,
    }
    body = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "allOf": [{"$ref": "#/components/schemas/Big"}],
        "additionalProperties": False,
    }
    schema = schema_of(body, {"Big": big})
    assert schema.valid({"body": dict.fromkeys(["name", *names], "x")})


def test_a_cut_type_keeps_the_required_fields_of_its_arms() -> None:
    """They are short, and no call is complete without them."""
    fields = {f"f{number}": {"type": "string"} for number in range(900)}
    whole = {
        "allOf": [
            {"$ref": "#/components/schemas/Base"},
            {"type": "object", "properties": fields, "required": ["f1"]},
        ]
    }
    base = {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
    }
    types = {"Whole": whole, "Base": base}
    schema = schema_of({"$ref": "#/components/schemas/Whole"}, types)
    assert schema.valid({"body": {"id": "a", "f1": "b", "f2": "c"}})
    assert not schema.valid({"body": {"id": "a"}})
    assert not schema.valid({"body": {"f1": "b"}})
    assert not schema.valid({"body": 7})


def answering(types: dict[str, Any], name: str) -> dict[str, Any]:
    """A document whose body and answer are the type of that name."""
    reference = {"$ref": f"#/components/schemas/{name}"}
    made = document(reference, types)
    content = {"content": {"application/json": {"schema": reference}}}
    made["paths"]["/send"]["post"]["responses"] = {"200": content}
    return made


def chain(length: int, key: str) -> dict[str, Any]:
    """Types that each refer to the next."""
    types: dict[str, Any] = {f"T{length}": {"type": "string"}}
    for number in range(length):
        part = {"$ref": f"#/components/schemas/T{number + 1}"}
        types[f"T{number}"] = {
            "properties": {"properties": {"next": part}},
            "items": {"items": part},
            "allOf": {"allOf": [part]},
        }[key]
    return types


def inline(levels: int, key: str) -> dict[str, Any]:
    node: Any = {"type": "string"}
    for _ in range(levels):
        node = {"items": node} if key == "items" else {"properties": {"next": node}}
    return {"T0": node}


def data(levels: int, key: str) -> dict[str, Any]:
    node: Any = "x"
    for _ in range(levels):
        node = [node]
    return {"T0": {"type": "string", key: [node] if key == "enum" else node}}


@pytest.mark.parametrize(
    "types",
    [
        {"T0": {"type": "array", "items": {"$ref": "#/components/schemas/T0"}}},
        *(chain(300, key) for key in ("properties", "items", "allOf")),
        *(inline(levels, "properties") for levels in (60, 3000)),
        *(inline(levels, "items") for levels in (60, 3000)),
        *(data(400, key) for key in ("default", "const", "enum")),
        *(data(3000, key) for key in ("default", "const", "enum")),
    ],
)
def test_no_depth_of_a_document_ends_in_an_exception(types: dict[str, Any]) -> None:
    """It is read, or left out with a note, and the other operations stay."""
    given = answering(types, "T0")
    given["paths"]["/look"] = {"get": {"operationId": "look", "responses": {}}}
    plugin = openapi(given)
    assert "look" in plugin.commands
    with Session(model=ScriptedModel(["done"]), plugins=[plugin]) as session:
        assert session.run_sync("Look.").text == "done"


def test_many_types_of_one_name_take_no_time() -> None:
    """Each gets a number, which is not searched for from the beginning."""
    types = {f"T{n}": {"properties": {"id": {"type": "string"}}} for n in range(8000)}
    fields = {
        f"p{n}": {"$ref": f"#/components/schemas/T{n}/properties/id"}
        for n in range(8000)
    }
    start = time.process_time()
    openapi(document({"type": "object", "properties": fields}, types))
    assert time.process_time() - start < 3


def test_an_answer_with_a_list_of_its_own_type_has_an_end() -> None:
    """At the depth where the outline ends, the list's items went on without end."""
    inner = {"$ref": "#/components/schemas/Node"}
    node = {"properties": {"next": {"type": "array", "items": inner}, "up": inner}}
    content = {"application/json": {"schema": inner}}
    answers = {"200": {"description": "", "content": content}}
    document = {
        "openapi": "3.0.3",
        "info": {"title": "Nodes"},
        "servers": [{"url": "https://nodes.example.org"}],
        "components": {"schemas": {"Node": {"type": "object", **node}}},
        "paths": {"/n": {"get": {"operationId": "n", "responses": answers}}},
    }
    assert "n" in openapi(document).commands
