"""Requests made from generated arguments are what the original documents describe.

Each command is called with arguments made from its schema alone; the request that a
server on loopback got is judged by `openapi-core` against the document as published.
"""

import copy
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

import api_samples
from bridges.openapi_client.captured import Captured, serving
from neuraxis.bridges.openapi_client.load import parse
from neuraxis.bridges.openapi_client.plugin import openapi
from neuraxis.errors import CommandError
from neuraxis.plugins.context import Context

openapi_core = pytest.importorskip(
    "openapi_core", reason="openapi-core judges the requests"
)
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
HOST = "http://api.test"
FLAGS = ("required", "nullable", "explode", "additionalProperties", "deprecated")
COMMANDS = 40
"""Of one document."""


def documents(shared_data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every OpenAPI 3 document of the shared data."""
    folder = shared_data / "openapi"
    for row in json.loads((folder / "index.json").read_text("utf-8")):
        file = folder / Path(row["file"]).name
        yield file.name, parse(file.read_bytes(), file.name)
    rows = shared_data / "chatgpt_plugins" / "manifest_and_spec.jsonl"
    for line in rows.read_text("utf-8").splitlines():
        row = json.loads(line)
        yield row["id"], parse(row["spec_text"].encode(), row["id"])


def judged(document: dict[str, Any]) -> dict[str, Any]:
    """The document as openapi-core can judge by it; nothing else is changed.

    Addresses and keys are taken out. `"true"` is read as true (many manifests write it
    so); `readOnly` counts for a property only, as the specification says; an enum none
    of whose members is of its own type has no valid value, and is left out; a value may
    fit several types of a `oneOf`, since those of real documents overlap.
    """
    made = _plain(copy.deepcopy(document), under="")
    made["servers"] = [{"url": HOST}]
    for path in made["paths"].values():
        for owner in (path, *path.values()):
            if isinstance(owner, dict):
                owner.pop("servers", None)
                owner.pop("security", None)
    made.pop("security", None)
    return made


def _plain(node: Any, under: str) -> Any:
    if isinstance(node, list):
        return [_plain(item, "") for item in node]
    if not isinstance(node, dict):
        return node
    made: dict[str, Any] = {}
    for key, value in node.items():
        if under != "properties" and key in FLAGS and value in ("true", "false"):
            value = value == "true"
        if key == "readOnly" and under != "property":
            continue
        inner = "property" if under == "properties" else key
        made["anyOf" if key == "oneOf" and inner == key else key] = _plain(value, inner)
    kinds = {"integer": int, "number": (int, float), "array": list, "string": str}
    kind = kinds.get(made.get("type")) if isinstance(made.get("type"), str) else None
    members = made.get("enum")
    if (
        kind
        and isinstance(members, list)
        and not any(isinstance(item, kind) for item in members)
    ):
        del made["enum"]
    return made


class Request:
    """A captured request in the form that openapi-core reads."""

    def __init__(self, captured: Captured) -> None:
        from openapi_core.datatypes import RequestParameters
        from werkzeug.datastructures import Headers, ImmutableMultiDict

        url = urlsplit(captured.target)
        cookies = (captured.headers.get("cookie") or "").split("; ")
        self.host_url, self.path = HOST, unquote(url.path)
        self.method = captured.method.lower()
        self.body = captured.body or None
        self.content_type = captured.headers.get("content-type") or ""
        self.parameters = RequestParameters(
            query=ImmutableMultiDict(parse_qsl(url.query, keep_blank_values=True)),
            header=Headers(list(captured.headers.items())),
            cookie=ImmutableMultiDict(
                [tuple(part.split("=", 1)) for part in cookies if "=" in part]
            ),
        )


def beyond_core(operation: Any, paths: Collection[str]) -> bool:
    """Whether openapi-core itself cannot read what the operation sends.

    It has no matrix and label styles without a template of its own, reads no media type
    `…+json`, no styled field of multipart, and no object of a cookie, and takes the
    first of two paths that differ only in the names of their fields.
    """
    body = operation.body
    shapes = [re.sub(r"\{[^{}]*\}", "{}", path) for path in paths]
    return (
        shapes.count(re.sub(r"\{[^{}]*\}", "{}", operation.path)) > 1
        or any(
            item.style in ("matrix", "label") or item.place == "cookie"
            for item in operation.parameters
        )
        or (
            body is not None
            and (
                body.media_type.endswith("+json")
                or (body.kind == "multipart" and any(body.encodings.values()))
            )
        )
    )


def test_requests_are_valid_by_the_original_documents(
    shared_data: Path, tmp_path: Path
) -> None:
    """Minimal and full arguments of every command give requests that are valid."""
    counted: Counter[str] = Counter()
    wrong: list[str] = []
    with serving() as server:
        for name, document in documents(shared_data):
            if "swagger" in document:
                continue
            plugin = openapi(document, server=server.url)
            try:
                core = openapi_core.OpenAPI.from_dict(judged(document))
            except Exception:  # noqa: BLE001 - of many kinds
                counted["documents that openapi-core refuses"] += 1
                continue
            counted["documents"] += 1
            for command in list(plugin.commands.values())[:COMMANDS]:
                operation = command.run.args[0].operation
                if beyond_core(operation, document["paths"]):
                    counted["beyond openapi-core"] += 1
                    continue
                for full in (False, True):
                    said = check(command, core, server, tmp_path, full=full)
                    counted[said.partition(":")[0]] += 1
                    if said.startswith("wrong"):
                        wrong.append(f"{name} {command.spec.name} {said}")
    print(dict(counted))
    assert not wrong, "\n".join(wrong)
    assert counted["documents"] >= 80
    assert counted["valid"] >= 1200
    assert counted["no sample"] < 0.1 * counted["valid"]


def check(command: Any, core: Any, server: Any, folder: Path, *, full: bool) -> str:
    try:
        given = api_samples.arguments(command.spec.parameters, full=full)
    except (api_samples.NoSample, RecursionError):
        return "no sample"
    server.requests.clear()
    try:
        command.run(**given, **{command.context_name: Context(workspace=folder)})
    except CommandError as error:
        # a sample such as {} or "" cannot stand in an address
        is_ours = "fits into the address" in str(error)
        return "no sample" if is_ours else f"wrong: {error}"
    request = Request(server.requests[0])
    try:
        core.validate_request(request)
    except Exception as error:  # noqa: BLE001 - of many kinds
        cause = error.__cause__ or error
        details = getattr(cause, "schema_errors", None) or type(cause).__name__
        return f"wrong: {request.method} {request.path} {error} {details!r}"[:400]
    return "valid"
