"""Types that are joined by `allOf`, refer to each other, or are cut for length."""

from typing import Any

import pytest

from neuraxis.bridges import openapi
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
