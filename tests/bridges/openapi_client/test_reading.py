"""How documents are read: texts of YAML, references, paths and servers."""

import json
from pathlib import Path
from typing import Any

import pytest

from bridges.openapi_client.captured import serving
from neuraxis.bridges import openapi
from neuraxis.bridges.openapi_client import load

TEXTS = """
openapi: 3.0.3
info: {title: Calls}
servers:
  - url: "https://x.example/{version}/{flag}"
    variables: {version: {default: 1.10}, flag: {default: true}}
paths:
  /call:
    post:
      operationId: 404
      parameters:
        - {name: to, in: query, schema: {type: string}, example: +14155552671}
        - {name: zip, in: query, schema: {type: string, default: 02139}}
        - {name: api, in: query, schema: {type: string, enum: [1.9, 1.10, 1.0, true]}}
        - {name: any, in: query, schema: {enum: [001, 002, +1, 1e3, 4]}}
        - {name: ids, in: query, schema: {type: array, items: {type: string}, default: [007, 8]}}
        - {name: rate, in: query, schema: {type: number, enum: [0.5, 1.50], minimum: 0.50, default: 1.50}}
        - {name: old, in: query, schema: {type: boolean, default: "false"}}
        - {name: 1, in: query, required: true, schema: {type: string}}
        - {name: true, in: query, schema: {type: string}}
      requestBody:
        content:
          application/json:
            schema: {type: object, required: [12], properties: {12: {type: string}}}
"""  # noqa: E501


def test_texts_of_yaml_keep_their_characters(tmp_path: Path) -> None:
    """A text without quotes may look like a number; the type decides what it is."""
    file = tmp_path / "api.yaml"
    file.write_text(TEXTS, "utf-8")
    (command,) = openapi(file).commands.values()
    assert command.spec.name == "post_404"
    schema: Any = command.spec.parameters
    fields = schema["properties"]
    assert fields["to"]["examples"] == ["+14155552671"]
    assert fields["zip"]["default"] == "02139"
    assert fields["api"]["enum"] == ["1.9", "1.10", "1.0", "true"]
    assert fields["any"]["enum"] == ["001", "002", "+1", "1e3", 4]
    assert fields["ids"]["default"] == ["007", "8"]
    assert fields["rate"] == {
        "type": "number", "enum": [0.5, 1.5], "minimum": 0.5, "default": 1.5,
    }  # fmt: skip
    assert fields["old"]["default"] is False
    assert schema["required"] == ["1"]
    assert "true" in fields
    assert fields["body"]["required"] == ["12"]
    assert "https://x.example/1.10/true." in openapi(file).spec.description


def document_of(paths: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A document with these paths."""
    return {
        "openapi": "3.0.3",
        "info": {"title": "Post"},
        "servers": [{"url": "https://post.example.org"}],
        "paths": paths,
        **changed,
    }


def getting(*schemas: Any, **changed: Any) -> dict[str, Any]:
    """The paths of one operation with a parameter of each schema."""
    parameters = [
        {"name": f"p{number}", "in": "query", "schema": schema}
        for number, schema in enumerate(schemas)
    ]
    return {"/a": {"get": {"operationId": "look", "parameters": parameters, **changed}}}


@pytest.mark.parametrize("limit", ["MOST_NODES", "MOST_BYTES"])
@pytest.mark.parametrize("kind", ["yaml", "json"])
def test_all_documents_of_an_import_have_one_limit(
    limit: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many files that are each small enough are refused together."""
    text = "a: &a [1, 1, 1, 1]\nenum: [*a, *a, *a, *a]\ntype: array\n"
    if kind == "json":
        text = json.dumps({"enum": [[1] * 20], "type": "array"})
    for number in range(50):
        (tmp_path / f"x{number}.{kind}").write_text(text, "utf-8")
    paths = getting(*({"$ref": f"x{number}.{kind}"} for number in range(50)))
    file = tmp_path / "api.json"
    file.write_text(json.dumps(document_of(paths)), "utf-8")
    assert not openapi(file).problems
    monkeypatch.setattr(load, limit, {"MOST_NODES": 600, "MOST_BYTES": 5_500}[limit])
    said = [problem.message for problem in openapi(file).problems]
    assert 0 < len(said) < 50
    assert "in all documents of one import" in said[0]


def test_a_reference_that_fails_is_fetched_once() -> None:
    """Also where many places refer to it; failures count for the limit."""
    broken = [{"$ref": "broken.json"} for _ in range(10)]
    others = [{"$ref": f"x{number}.json"} for number in range(100)]
    document = json.dumps(document_of(getting(*broken, *others))).encode()
    with serving() as server:

        def page(path: str) -> bytes:
            return document if path == "/api.json" else b"{"

        server.page = page
        said = [item.message for item in openapi(f"{server.url}/api.json").problems]
        targets = [request.target for request in server.requests]
    assert len(targets) == len({*targets}) == load.MOST_FETCHED + 1
    assert any("more than 40 other documents" in text for text in said)
