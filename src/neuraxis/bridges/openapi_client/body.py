"""Request bodies: media type, schema, and encoding of a value."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote, unquote

import msgspec

from neuraxis.bridges.openapi_client.files import FilePart, file_part
from neuraxis.bridges.openapi_client.parameters import Parameter, pairs, plain
from neuraxis.bridges.openapi_client.schemas import Schemas
from neuraxis.bridges.openapi_client.tolerant_access import (
    CannotImport,
    Node,
    as_flag,
    as_text,
    shortened,
)
from neuraxis.errors import CommandError
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.specs import Json

_FORM, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_FILE: Mapping[str, Json] = {
    "description": "the file to send: a reference to an asset, or its text",
    "x-asset-ref": True,
}


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an operation, as one parameter of the command."""

    media_type: str
    kind: str
    """`json`, `form`, `multipart`, `text` or `file`."""
    schema: dict[str, Json]
    required: bool = False
    argument: str = "body"
    encodings: Mapping[str, Node] = {}
    """How fields of a form are written, by name."""


def read_body(node: Node, base: str, schemas: Schemas) -> Body | None:
    """Return the body of a `requestBody`; None: it names no content."""
    content = {
        key.partition(";")[0].strip().lower(): (key, as_map(part))
        for key, part in as_map(node.get("content")).items()
    }
    if not content:
        return None
    kind, media = _chosen(list(content))
    written, part = content[media]
    schema: Json = part.get("schema")
    required = as_flag(node.get("required")) is True
    if kind in ("form", "multipart"):
        fields = _form(schema, base, schemas, files=kind == "multipart")
    elif kind == "file":
        fields = {**_FILE}
    elif kind == "text":
        description = as_text(as_map(schema).get("description"))
        fields = {
            "type": "string",
            "description": description[:300] or f"{media}, as text",
        }
    else:
        fields = schemas.translate(schema, base)
        if _is_binary(schema, schemas, base):
            fields = {**_FILE}
    if text := as_text(node.get("description")):
        fields.setdefault("description", shortened(text))
    return Body(
        media_type=written if "*" not in written else _concrete(kind),
        kind=kind,
        schema=fields,
        required=required,
        encodings={
            name: as_map(value) for name, value in as_map(part.get("encoding")).items()
        },
    )


def old_body(
    parameters: list[tuple[Node, str]], consumes: list[str], schemas: Schemas
) -> Body | None:
    """Return the body of OpenAPI 2.0, which is one of the parameters."""
    for node, base in parameters:
        if node.get("in") == "body":
            kind, media = _chosen(consumes or ["application/json"])
            if kind in ("form", "multipart"):
                kind, media = "json", "application/json"
            schema = schemas.translate(node.get("schema"), base)
            if kind == "text":
                schema = {"type": "string", "description": f"{media}, as text"}
            elif kind == "file":
                schema = {**_FILE}
            if text := as_text(node.get("description")):
                schema.setdefault("description", shortened(text))
            return Body(
                media_type=media,
                kind=kind,
                schema=schema,
                required=as_flag(node.get("required")) is True,
            )
    fields = [
        (node, base)
        for node, base in parameters
        if node.get("in") == "formData" and as_text(node.get("name"))
    ]
    if not fields:
        return None
    has_file = any(node.get("type") == "file" for node, _ in fields)
    types = [item.partition(";")[0].strip().lower() for item in consumes]
    multipart = has_file or (_MULTIPART in types and _FORM not in types)
    properties: dict[str, Json] = {}
    required: list[Json] = []
    encodings: dict[str, Node] = {}
    for node, base in fields:
        name = as_text(node["name"])
        if node.get("type") == "file":
            properties[name] = {**_FILE}
        else:
            inline = {key: part for key, part in node.items() if key != "name"}
            properties[name] = schemas.translate(inline, base)
            explode = node.get("collectionFormat") == "multi"
            encodings[name] = {"style": "form", "explode": explode}
        if as_flag(node.get("required")):
            required.append(name)
    schema: dict[str, Json] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return Body(
        media_type=_MULTIPART if multipart else _FORM,
        kind="multipart" if multipart else "form",
        schema={**schema, "additionalProperties": False},
        required=bool(required),
        encodings=encodings,
    )


def _chosen(media: list[str]) -> tuple[str, str]:
    """Return the kind and media type to send.

    JSON comes first, then forms, then text.
    """
    plain = [item for item in media if item.startswith("application/json")]
    ordered = [*plain, *media]  # before variants such as JSON Patch
    kinds = [(_kind(item.partition(";")[0].strip().lower()), item) for item in ordered]
    for wanted_kind in ("json", "form", "multipart", "text", "file"):
        for kind, item in kinds:
            if kind == wanted_kind:
                return kind, item
    return "json", "application/json"


def _kind(media: str) -> str:
    if media in ("application/json", "*/*", "text/json") or media.endswith("+json"):
        return "json"
    if media == _FORM:
        return "form"
    if media.startswith("multipart/"):
        return "multipart"
    if media == "application/*":
        return "json"
    if media.startswith("text/") or media.endswith(("xml", "yaml", "javascript")):
        return "text"
    return "file"


def _concrete(kind: str) -> str:
    usual = {"json": "application/json", "text": "text/plain", "multipart": _MULTIPART}
    return usual.get(kind, "application/octet-stream")


def _is_binary(value: Json, schemas: Schemas, base: str) -> bool:
    try:
        node, _ = schemas.document.deref(value, base)
    except CannotImport:
        return False
    return node.get("format") in ("binary", "file") or node.get("type") == "file"


def _form(value: Json, base: str, schemas: Schemas, *, files: bool) -> dict[str, Json]:
    """Return the schema of a form; its files are assets."""
    properties: dict[str, Json] = {}
    required: list[str] = []
    hidden: set[str] = set()
    try:
        node, base = schemas.document.deref(value, base)
        parts = [(node, base)]
        for arm in as_list(node.get("allOf")):
            parts.append(schemas.document.deref(arm, base))
    except CannotImport as error:
        raise CannotImport(f"the form: {error}") from None
    if not any("properties" in part for part, _ in parts):
        return schemas.translate(value, base)
    is_open = any(part.get("additionalProperties") for part, _ in parts)
    for part, place in parts:
        for name, inner in as_map(part.get("properties")).items():
            if schemas.is_read_only(inner, place):
                hidden.add(name)
                continue
            items = as_map(inner).get("items")
            if files and _is_binary(inner, schemas, place):
                properties[name] = {**_FILE}
            elif files and items is not None and _is_binary(items, schemas, place):
                properties[name] = {"type": "array", "items": {**_FILE}}
            else:
                properties[name] = schemas.translate(inner, place)
        required += [
            name
            for name in as_list(part.get("required"))
            if isinstance(name, str) and name not in required
        ]
    form: dict[str, Json] = {"type": "object", "properties": properties}
    unsent = hidden - properties.keys()  # in answers only, by every arm
    if needed := [name for name in required if name not in unsent]:
        form["required"] = needed
        form["properties"] = {**{name: {} for name in needed}, **properties}
    return form if is_open else {**form, "additionalProperties": False}


# --- bytes ----------------------------------------------------------------------


def encode(body: Body, value: Any) -> tuple[bytes, str]:
    """Return the bytes of a body, and its content type.

    Raises:
        CommandError: the value cannot be written in that form.
    """
    if body.kind == "form":
        return "&".join(_form_pairs(body, value)).encode("ascii"), _FORM
    if body.kind == "multipart":
        return _multipart(body, value)
    if body.kind == "text":
        return plain(value).encode("utf-8"), body.media_type
    if body.kind == "file" or body.schema.get("x-asset-ref") is True:
        part = file_part(value, "body")
        media = body.media_type
        return part.data, part.media_type if media.endswith("octet-stream") else media
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8"), body.media_type
    except (TypeError, ValueError) as error:
        raise CommandError(
            f"{body.argument}: cannot be sent as JSON: {error}"
        ) from None


def _form_pairs(body: Body, value: Any) -> list[str]:
    form_pairs: list[str] = []
    for name, item in _fields(body, value).items():
        written = _styled(name, body)
        if isinstance(item, Mapping) and not body.encodings.get(name, {}).get("style"):
            form_pairs.append(f"{quote(name, safe='[]')}={quote(plain(item), safe='')}")
        else:
            form_pairs += pairs(written, item)
    return form_pairs


def _styled(name: str, body: Body) -> Parameter:
    """Return the encoding of a form's field, as a parameter."""
    encoding = body.encodings.get(name, {})
    style, explode = (
        as_text(encoding.get("style")) or "form",
        as_flag(encoding.get("explode")),
    )
    return Parameter(
        name=name,
        place="query",
        argument=name,
        style=style,
        explode=style in ("form", "deepObject") if explode is None else explode,
    )


def _fields(body: Body, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise CommandError(f"{body.argument}: expected an object, a field for each key")
    fields = cast("Mapping[str, Any]", value)
    return {name: item for name, item in fields.items() if item is not None}


def _multipart(body: Body, value: Any) -> tuple[bytes, str]:
    mark = f"neuraxis-{secrets.token_hex(16)}"
    properties = as_map(body.schema.get("properties"))
    chunks: list[bytes] = []
    for name, item in _fields(body, value).items():
        if as_text(body.encodings.get(name, {}).get("style")):
            for pair in pairs(_styled(name, body), item):
                label, _, text = (unquote(part) for part in pair.partition("="))
                head = _head(mark, label, FilePart(data=b"", media_type="text/plain"))
                chunks += [head, text.encode("utf-8"), b"\r\n"]
            continue
        items = cast("list[Any]", item) if isinstance(item, list | tuple) else [item]
        for entry in items:
            part = _part(name, entry, as_map(properties.get(name)))
            chosen = as_text(body.encodings.get(name, {}).get("contentType"))
            if chosen and "," not in chosen and "*" not in chosen:
                part = msgspec.structs.replace(part, media_type=chosen)
            chunks += [_head(mark, name, part), part.data, b"\r\n"]
    chunks.append(f"--{mark}--\r\n".encode("ascii"))
    return b"".join(chunks), f"{_MULTIPART}; boundary={mark}"


def _head(mark: str, name: str, part: FilePart) -> bytes:
    label = name.replace('"', "%22").replace("\r", "").replace("\n", "")
    media = part.media_type.replace("\r", "").replace("\n", "")
    head = f'--{mark}\r\nContent-Disposition: form-data; name="{label}"'
    if part.filename:
        head += f'; filename="{part.filename}"'
    return f"{head}\r\nContent-Type: {media}\r\n\r\n".encode()


def _part(name: str, value: Any, schema: Node) -> FilePart:
    items = as_map(schema.get("items"))
    if schema.get("x-asset-ref") is True or items.get("x-asset-ref") is True:
        return file_part(value, name)
    if isinstance(value, Mapping):
        text = json.dumps(value, ensure_ascii=False)
        return FilePart(data=text.encode("utf-8"), media_type="application/json")
    return FilePart(data=plain(value).encode("utf-8"), media_type="text/plain")
