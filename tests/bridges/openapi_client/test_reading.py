"""How documents are read: texts of YAML, references, paths and servers."""

from pathlib import Path
from typing import Any

from neuraxis.bridges import openapi

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
