"""How documents are read: texts of YAML, references, paths and servers."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bridges.openapi_client.captured import serving
from neuraxis.bridges import openapi
from neuraxis.bridges.openapi_client import load
from neuraxis.bridges.openapi_client.call import request_of
from neuraxis.bridges.openapi_client.discriminators import Discriminators
from neuraxis.bridges.openapi_client.operations import Operation, operations
from neuraxis.bridges.openapi_client.schemas import Schemas
from neuraxis.bridges.openapi_client.tolerant_access import Notes
from neuraxis.errors import CommandError, ConfigError

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


def read_operations(document: dict[str, Any]) -> list[Operation]:
    """The operations of a document."""
    read, _ = load.load(document)
    notes = Notes(file="api.json")
    found = Discriminators(document=read)
    schemas = Schemas(document=read, notes=notes, discriminators=found)
    return [*operations(read, schemas, notes, {}, None)]


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


def test_a_document_that_is_no_file_has_no_files_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document from elsewhere does not read the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.json").write_text('{"db": {"enum": ["hunter2"]}}', "utf-8")
    plugin = openapi(document_of(getting({"$ref": "secret.json#/db"})))
    assert "hunter2" not in json.dumps(plugin.commands["look"].spec.parameters)
    assert "passed as a mapping" in plugin.problems[0].message


def test_a_manifest_names_a_file_beside_it_or_a_web_address(tmp_path: Path) -> None:
    """It reads no other file, also not through a link; a copy beside it is read."""
    folder = tmp_path / "plugin"
    folder.mkdir()
    other, beside = tmp_path / "other.json", folder / "api.json"
    for file in (other, beside):
        file.write_text(json.dumps(document_of(getting())), "utf-8")
    (folder / "link.json").symlink_to(other)
    manifest = folder / "ai-plugin.json"

    def imported(address: str) -> str:
        api = {"type": "openapi", "url": address}
        text = json.dumps({"name_for_model": "m", "api": api})
        manifest.write_text(text, "utf-8")
        return openapi(manifest).spec.source or ""

    for address in ("api.json", "https://x.example/api.json", str(beside)):
        assert imported(address) == f"openapi:{beside}"
    for address in (str(other), "../other.json", "link.json", "..", "", "file:///x"):
        with pytest.raises(ConfigError, match=r"expected the manifest's api\.url"):
            imported(address)


def test_notes_are_kept_once_and_in_order_without_a_search() -> None:
    """A document with many mistakes takes no time by their square."""
    compared = 0

    class Text(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str(self) == str(other)

    notes = Notes(file="api.json")
    for number in [*range(500), *range(500)]:
        notes.add(Text(number))
    assert [*notes.found] == [str(number) for number in range(500)]
    assert compared < 3_000


@pytest.mark.parametrize(
    ("path", "described", "meant"),
    [
        ("/u/{ID}/p/{id}", ["id"], "/u/{ID}/p/{id}"),
        ("/u/:id/p/:ID", ["id"], "/u/{id}/p/:ID"),
        ("/u/{Id}/p/{ID}", ["id"], "/u/{id}/p/{ID}"),
        ("/u/{ID}/p/{ID}", ["id"], "/u/{id}/p/{id}"),
        ("/u/{ID}/p/{id}", ["Id", "id"], "/u/{Id}/p/{id}"),
    ],
)
def test_two_fields_of_a_path_are_two_parameters(
    path: str, described: list[str], meant: str
) -> None:
    """A field takes a parameter's spelling only if no other field has it."""
    parameters = [
        {"name": name, "in": "path", "schema": {"type": "string"}} for name in described
    ]
    document = document_of({path: {"get": {"parameters": parameters}}})
    (operation,) = read_operations(document)
    assert operation.path == meant
    fields = [item.name for item in operation.parameters]
    assert len({*fields}) == len(fields) == len({*re.findall(r"{(.*?)}", meant)})


def test_names_come_from_the_path_as_the_document_has_it() -> None:
    """A parameter in another spelling changes no name, and no name stays long."""

    def parameters(name: str) -> list[Any]:
        return [{"name": name, "in": "path", "schema": {"type": "string"}}]

    operation_id = "read_item_items__item_id__get"
    paths = {
        "/a/{id}": {"get": {"parameters": parameters("ID")}},
        "/items/{item_id}": {
            "get": {"operationId": operation_id, "parameters": parameters("Item_ID")}
        },
    }
    assert list(openapi(document_of(paths)).commands) == ["get_a_by_id", "read_item"]


def test_what_stands_beside_a_reference_of_an_operation_wins(tmp_path: Path) -> None:
    """Its own references start in its file; it counts where the other is missing."""
    (tmp_path / "ops").mkdir()
    files = {
        "id.yaml": "{name: id, in: query, required: true, schema: {type: string}}",
        "ops/size.yaml": "{type: object, properties: {size: {type: string}}}",
        "ops/look.yaml": "operationId: look\nsummary: Look\nparameters: []\n"
        "requestBody: {content: {application/json: {schema: {$ref: size.yaml}}}}",
        "ops/item.yaml": "get: {operationId: other}\ndelete: {operationId: drop}",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    mine = {"operationId": "mine", "parameters": [{"$ref": "id.yaml"}]}
    paths = {
        "/a": {
            "post": {"$ref": "ops/look.yaml", **mine},
            "put": {"$ref": "missing.yaml", "operationId": "put_it"},
            "patch": {"$ref": "missing.yaml", "summary": "No more than a word"},
        },
        "/b": {"$ref": "ops/item.yaml", "get": {"operationId": "own"}},
    }
    file = tmp_path / "api.json"
    file.write_text(json.dumps(document_of(paths)), "utf-8")
    plugin = openapi(file)
    assert list(plugin.commands) == ["put_it", "mine", "own", "drop"]
    mine_spec = plugin.commands["mine"].spec
    assert mine_spec.description == "Look"
    assert mine_spec.parameters["required"] == ["id"]
    assert "size" in json.dumps(mine_spec.parameters["$defs"])
    said = "\n".join(item.message for item in plugin.problems)
    assert "PUT /a is read in part: $ref" in said
    assert "PATCH /a is skipped: $ref" in said


KEY: dict[str, Any] = {
    "components": {
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    },
    "security": [{"key": []}],
}


@pytest.mark.parametrize(
    "server",
    [
        {"url": "{agent_url}"},
        {"url": "wss://stream.example"},
        {"url": "//other.example/v2"},
        {"url": "/v2"},
        {"url": "other.example/v2"},
        {"url": "/"},
        {"url": "https://"},
        {"url": "https://[half"},
        {"url": "https://{t}.x.example", "variables": {"t": {}}},
        {"url": "https://{t}.x.example", "variables": {"t": {"default": ""}}},
    ],
)
@pytest.mark.parametrize("of_path", [True, False])
def test_an_operation_whose_own_server_is_not_known_is_sent_to_no_other(
    server: Any, of_path: bool
) -> None:
    """Import and call say so; its key is not sent to the document's first server."""
    own = {"servers": [server]}
    operation = {"operationId": "chat", **({} if of_path else own)}
    paths = {
        "/chat": {"post": operation, **(own if of_path else {})},
        "/main": {"get": {"operationId": "main"}},
    }
    plugin = openapi(document_of(paths, **KEY), auth="secret://K")
    sentence = f"POST /chat: its own server {server['url']!r} is not known"
    (said,) = [text.message for text in plugin.problems if "server" in text.message]
    assert said.startswith(f"{sentence}; it cannot be called")
    target = plugin.commands["chat"].run.args[0]
    with pytest.raises(CommandError) as caught:
        request_of(target, {}, "KEY")
    assert str(caught.value).startswith(sentence)
    assert "include=['NAME'], server=" in str(caught.value)
    main = request_of(plugin.commands["main"].run.args[0], {}, "KEY")
    assert main.url == "https://post.example.org/main"
    alone = openapi(
        document_of(paths, **KEY), include=["chat"], server="https://agent.example"
    )
    assert not [text for text in alone.problems if "not known" in text.message]
    sent = request_of(alone.commands["chat"].run.args[0], {}, "KEY")
    assert sent.url == "https://agent.example/chat"


@pytest.mark.parametrize(
    ("address", "meant"),
    [
        ("", "{home}"),
        ("/v2", "{home}/v2"),
        ("v2", "{home}/docs/v2"),
        ("../v2/", "{home}/v2"),
        ("//other.example/v2", "http://other.example/v2"),
        ("wss://stream.example", ""),
        ("{nothing}", ""),
        ("{nothing}://other.example", ""),
    ],
)
@pytest.mark.parametrize("own", [True, False])
def test_a_relative_server_is_relative_to_the_documents_address(
    address: str, meant: str, own: bool
) -> None:
    """As OpenAPI says; only a document from a URL has one."""
    variables = {"nothing": {"default": ""}}
    servers = {"servers": [{"url": address, "variables": variables}]}
    paths = {"/a": {"get": {"operationId": "look", **(servers if own else {})}}}
    document = document_of(paths, **({} if own else servers))
    with serving() as server:
        server.page = lambda _: json.dumps(document).encode()
        plugin = openapi(f"{server.url}/docs/api.json")
        target = plugin.commands["look"].run.args[0]
        assert target.server == meant.replace("{home}", server.url)


def test_a_document_without_a_usable_server_says_whom_a_named_one_is_for() -> None:
    """The reason is not that an operation has its own."""
    servers = [{"url": "/v1"}]
    plugin = openapi(document_of(getting(), servers=servers))
    assert "no server that can be used" in plugin.problems[0].message
    with pytest.raises(CommandError, match="for all its operations and their key"):
        request_of(plugin.commands["look"].run.args[0], {}, None)
