"""The property that tells types apart is a constant in each of them."""

from typing import Any

import pytest

from neuraxis.bridges import openapi
from neuraxis.dialects.intents.signatures import form_text
from neuraxis.dialects.native.tool_schema import for_server
from neuraxis.schema.schema import Schema


def thing(field: str, **kind: Any) -> dict[str, Any]:
    """A type with a kind and one more field, which it requires."""
    properties = {"kind": {"type": "string", **kind}, field: {"type": "string"}}
    return {"type": "object", "properties": properties, "required": ["kind", field]}


def child(field: str, **kind: Any) -> dict[str, Any]:
    """A type that has `Pet` as its parent."""
    own = {"type": "object", "properties": {field: {"type": "string"}, **kind}}
    return {"allOf": [{"$ref": "#/components/schemas/Pet"}, own]}


def union(*names: str, key: str = "oneOf", **mapping: str) -> dict[str, Any]:
    arms = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    discriminator = {
        "propertyName": "kind",
        **({"mapping": mapping} if mapping else {}),
    }
    return {key: arms, "discriminator": discriminator}


def command(body: dict[str, Any], **schemas: Any) -> Any:
    content = {"application/json": {"schema": body}}
    document: dict[str, Any] = {
        "openapi": "3.0.3",
        "info": {"title": "Pets"},
        "servers": [{"url": "https://pets.example.org"}],
        "components": {"schemas": schemas},
        "paths": {
            "/p": {"post": {"operationId": "p", "requestBody": {"content": content}}}
        },
    }
    return openapi(document).commands["p"]


def kinds(made: Any) -> dict[str, Any]:
    """The constant, or list of values, of `kind` in each type."""
    found: dict[str, Any] = {}
    for name, schema in made.spec.parameters["$defs"].items():
        kind = schema.get("properties", {}).get("kind", {})
        found[name] = kind.get("const", kind.get("enum"))
    return found


@pytest.mark.parametrize("key", ["oneOf", "anyOf"])
def test_keys_of_the_mapping_and_else_names_are_the_values(key: str) -> None:
    """A key may lead by reference or by name; several keys are a list."""
    mapping = {"cat": "#/components/schemas/Cat", "dog": "Dog", "puppy": "Dog"}
    body = union("Cat", "Dog", "Fox", key=key, **mapping)
    made = command(body, Cat=thing("claws"), Dog=thing("bark"), Fox=thing("tail"))
    assert kinds(made) == {"Cat": "cat", "Dog": ["dog", "puppy"], "Fox": "Fox"}
    made = command(union("Cat", "Dog", key=key), Cat=thing("claws"), Dog=thing("bark"))
    assert kinds(made) == {"Cat": "Cat", "Dog": "Dog"}


def test_the_model_reads_the_values_and_a_wrong_pairing_is_explained() -> None:
    """Signatures and native schemas have them; the error names property and value."""
    body = union("Cat", "Dog", cat="Cat", dog="Dog")
    made = command(body, Cat=thing("claws"), Dog=thing("bark"))
    assert '  - `kind` ("cat")' in form_text(made.spec.parameters).splitlines()
    native: Any = for_server(made.spec.parameters)
    assert native["$defs"]["Dog"]["properties"]["kind"]["const"] == "dog"
    checks = Schema(made.spec.parameters)
    assert checks.valid({"body": {"kind": "dog", "bark": "loud"}})
    (problem,) = checks.problems({"body": {"kind": "dog", "claws": "sharp"}})
    assert problem.path == ("body", "bark")
    assert problem.expected == 'string (required), since kind is "dog"'
    (problem,) = checks.problems({"body": {"kind": "cow", "claws": "sharp"}})
    assert problem.path == ("body", "kind")
    assert problem.expected == 'one of "cat", "dog"'


def test_children_have_the_value_that_their_parent_gives_them() -> None:
    """Also alone, and beside their own children; the parent takes any value."""
    pet = {
        **thing("name"),
        "discriminator": union(cat="Cat", lion="Lion")["discriminator"],
    }
    lion = child("mane")
    lion["allOf"][0] = {"$ref": "#/components/schemas/Cat"}
    arms = [{"$ref": f"#/components/schemas/{name}"} for name in ("Cat", "Lion", "Pet")]
    made = command({"anyOf": arms}, Pet=pet, Cat=child("claws"), Lion=lion)
    found = kinds(made)
    assert (found["Cat"], found["Lion"], found["Pet"]) == ("cat", "lion", None)
    made = command(arms[1], Pet=pet, Cat=child("claws"), Lion=lion)
    checks = Schema(made.spec.parameters)
    given = {"name": "Leo", "claws": "sharp", "mane": "long"}
    assert checks.valid({"body": {"kind": "lion", **given}})
    assert not checks.valid({"body": {"kind": "cat", **given}})


def test_a_parent_that_maps_others_says_nothing_of_a_child() -> None:
    """A type between others need not be one of the kinds; without a mapping it is."""
    pet = {**thing("name"), "discriminator": union(cat="Cat")["discriminator"]}
    body = {"$ref": "#/components/schemas/PetUpdate"}
    made = command(body, Pet=pet, Cat=child("claws"), PetUpdate=child("reason"))
    assert kinds(made)["PetUpdate"] is None
    pet["discriminator"] = {"propertyName": "kind"}
    made = command(body, Pet=pet, PetUpdate=child("reason"))
    assert kinds(made)["PetUpdate"] == "PetUpdate"


def test_in_2_0_the_discriminator_is_the_name_of_the_property() -> None:
    """Its values are the names of definitions."""
    document = {
        "swagger": "2.0",
        "info": {"title": "Pets"},
        "host": "pets.example.org",
        "definitions": {
            "Pet": {**thing("name"), "discriminator": "kind"},
            "Cat": {"allOf": [{"$ref": "#/definitions/Pet"}, {"type": "object"}]},
        },
        "paths": {
            "/p": {
                "post": {
                    "operationId": "p",
                    "parameters": [
                        {"name": "body", "in": "body",
                         "schema": {"$ref": "#/definitions/Cat"}},
                    ],
                }
            }
        },
    }  # fmt: skip
    assert kinds(openapi(document).commands["p"])["Cat"] == "Cat"


@pytest.mark.parametrize(
    "kind",
    [
        {"enum": ["cat", "kitten"]},
        {"default": "kitten"},
        {"example": "kitten"},
        {"pattern": "^k"},
        {"type": "integer"},
        {"readOnly": True},
    ],
)
def test_an_arm_that_says_otherwise_is_left_alone(kind: dict[str, Any]) -> None:
    """What the type itself says of the property stays."""
    body = union("Cat", "Dog", cat="Cat", dog="Dog")
    schemas = {"Cat": thing("claws", **kind), "Dog": thing("bark")}
    assert kinds(command(body, **schemas)) == {"Cat": kind.get("enum"), "Dog": "dog"}


def test_names_count_only_if_the_document_follows_them() -> None:
    """One arm with another value shows that names are not meant."""
    schemas = {"Cat": thing("claws", enum=["cat"]), "Dog": thing("bark")}
    assert kinds(command(union("Cat", "Dog"), **schemas)) == {
        "Cat": ["cat"],
        "Dog": None,
    }


def test_a_list_that_types_share_is_narrowed() -> None:
    """The parent's enum has the values of all; one without it is no value."""
    pet = thing("name", enum=["cat", "dog"], example="dog")
    body = union("Cat", "Dog", "Fox", cat="Cat", dog="Dog", fox="Fox")
    schemas = {name: child("tail") for name in ("Cat", "Dog", "Fox")}
    found = kinds(command(body, Pet=pet, **schemas))
    assert (found["Cat"], found["Dog"], found["Fox"]) == ("cat", "dog", None)
    kind = {"$ref": "#/components/schemas/Kind"}
    schemas = {
        name: {"type": "object", "properties": {"kind": kind}}
        for name in ("Cat", "Dog")
    }
    body = union("Cat", "Dog", cat="Cat", dog="Dog")
    made = command(body, Kind={"type": "string", "enum": ["cat", "dog"]}, **schemas)
    assert kinds(made) == {"Cat": "cat", "Dog": "dog"}


def test_a_type_of_two_unions_has_the_value_of_each() -> None:
    """The same type under other values is another one, and plain where it is alone."""
    pet = {"$ref": "#/components/schemas/Cat"}
    properties = {
        "one": union("Cat", "Dog", cat="Cat", dog="Dog"),
        "two": union("Cat", "Dog", feline="Cat", canine="Dog"),
        "alone": pet,
    }
    schemas = {"Cat": thing("claws"), "Dog": thing("bark")}
    made = command({"type": "object", "properties": properties}, **schemas)
    values = [kind for name, kind in kinds(made).items() if name.startswith("Cat")]
    assert {*values} == {"cat", "feline", None}
