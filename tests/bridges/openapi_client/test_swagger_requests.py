"""Requests of OpenAPI 2.0 documents, judged by the documents themselves.

openapi-core reads no 2.0. Here each captured request is taken apart again, and each
value is checked by `jsonschema` against the original definition.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

import api_samples
from bridges.openapi_client.captured import Captured, serving
from neuraxis.bridges.openapi_client.load import parse
from neuraxis.bridges.openapi_client.plugin import openapi
from neuraxis.errors import CommandError
from neuraxis.plugins.context import Context

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema judges the requests")
pytestmark = pytest.mark.timeout(300)
BETWEEN = {"csv": ",", "ssv": " ", "tsv": "\t", "pipes": "|"}
WORDS = {"true": True, "false": False}


def deref(document: Any, node: Any) -> Any:
    while isinstance(node, dict) and "$ref" in node:
        here = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            here = here[part.replace("~1", "/").replace("~0", "~")]
        node = here
    return node


def read(text: str, definition: dict[str, Any]) -> Any:
    """A text of a request as the value that its definition says it is."""
    kind = definition.get("type")
    if kind == "array":
        mark = BETWEEN.get(definition.get("collectionFormat", "csv"), ",")
        inner = definition.get("items", {})
        return [read(part, inner) for part in text.split(mark)]
    if kind == "integer" and re.fullmatch(r"-?\d+", text):
        return int(text)
    if kind == "number" and re.fullmatch(r"-?\d+(\.\d+)?", text):
        return float(text)
    return WORDS.get(text, text) if kind == "boolean" else text


def numeric(node: Any) -> Any:
    """The document with limits as numbers, where their author wrote them as text."""
    if isinstance(node, list):
        return [numeric(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {key: numeric(value) for key, value in node.items()}
    for key in ("minimum", "maximum", "minItems", "maxItems"):
        if isinstance(made.get(key), str):
            made[key] = float(made[key])
    return made


def needed(node: dict[str, Any]) -> bool:
    """Whether it must be given; authors write `"false"` too."""
    return node.get("required") in (True, "true")


def given(captured: Captured, where: str, name: str, path: str) -> list[str] | None:
    url = urlsplit(captured.target)
    if where == "query":
        return parse_qs(url.query, keep_blank_values=True).get(name)
    if where == "formData":
        fields = parse_qs(captured.body.decode(), keep_blank_values=True)
        return fields.get(name)
    if where == "header":
        value = captured.headers.get(name)
        return None if value is None else [value]
    pattern = re.sub(r"\\\{([^{}]*)\\\}", r"([^/]*)", re.escape(path))
    names = re.findall(r"\{([^{}]*)\}", path)
    found = re.fullmatch(pattern, url.path)
    return None if found is None else [unquote(found[names.index(name) + 1])]


def faults(document: Any, path: str, method: str, captured: Captured) -> list[str]:
    """Everything in a request that the document does not describe so."""
    item = deref(document, document["paths"][path])
    if captured.method.lower() != method:
        return [f"method {captured.method}"]
    operation = item[method]
    found: list[str] = []
    listed = [*item.get("parameters", []), *operation.get("parameters", [])]
    kind = captured.headers.get("content-type", "")
    for entry in listed:
        one = deref(document, entry)
        where, name = one.get("in"), one.get("name")
        if where == "body":
            if captured.body and "json" in kind:
                schema = {
                    **one.get("schema", {}),
                    "definitions": document.get("definitions", {}),
                    "parameters": document.get("parameters", {}),
                }
                checked = jsonschema.Draft4Validator(schema)
                errors = checked.iter_errors(json.loads(captured.body))
                found += [f"body: {error.message}" for error in errors]
            elif needed(one) and not captured.body:
                found.append("no body")
            continue
        if where == "formData" and "urlencoded" not in kind:
            continue  # the parts of multipart have a test of their own
        if where == "header" and name.lower() in ("accept", "content-type"):
            continue
        texts = given(captured, where, name, path)
        if texts is None:
            if needed(one) and "authorization" not in name.lower():
                found.append(f"{where} {name} is missing")
            continue
        keys = ("type", "items", "enum", "minimum", "maximum", "pattern", "maxLength")
        schema = {key: one[key] for key in keys if key in one}
        if one.get("collectionFormat") == "multi":
            value: Any = [read(text, one.get("items", {})) for text in texts]
        else:
            value = read(texts[0], one)
        errors = jsonschema.Draft4Validator(schema).iter_errors(value)
        found += [f"{where} {name}: {error.message}" for error in errors]
    return found


def test_requests_fit_their_swagger_documents(
    shared_data: Path, tmp_path: Path
) -> None:
    """Minimal and full arguments of every command of every 2.0 document."""
    folder = shared_data / "openapi"
    counted: Counter[str] = Counter()
    wrong: list[str] = []
    with serving() as server:
        for row in json.loads((folder / "index.json").read_text("utf-8")):
            if row["version"] != "2.0":
                continue
            file = folder / Path(row["file"]).name
            document: Any = numeric(parse(file.read_bytes(), file.name))
            plugin = openapi(file, server=server.url)
            for command in list(plugin.commands.values())[:40]:
                assert command.run is not None
                code: Any = command.run
                operation = code.args[0].operation
                if "not listed here" in json.dumps(command.spec.parameters):
                    counted["shortened"] += 1  # what is not shown is not checked
                    continue
                for full in (False, True):
                    server.requests.clear()
                    try:
                        arguments = api_samples.arguments(
                            command.spec.parameters, full=full
                        )
                        context = {command.context_name: Context(workspace=tmp_path)}
                        command.run(**arguments, **context)
                    except (api_samples.NoSample, RecursionError, CommandError):
                        counted["no sample"] += 1
                        continue
                    said = faults(
                        document, operation.path, operation.method, server.requests[0]
                    )
                    counted["wrong" if said else "valid"] += 1
                    where = f"{file.name} {command.spec.name}"
                    wrong += [f"{where}: {fault}"[:300] for fault in said]
    print(dict(counted))
    assert not wrong, "\n".join(wrong)
    assert counted["valid"] >= 500
