"""Parameters of an operation: their schemas, and their values as text.

The styles are those of OpenAPI 3 (RFC 6570); the collection formats of 2.0 are read as
the equivalent styles.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote

import msgspec

from neuraxis.bridges.openapi_client.schemas import Schemas
from neuraxis.bridges.openapi_client.tolerant_access import (
    CannotImport,
    Node,
    as_flag,
    as_text,
    as_typed,
    shortened,
)
from neuraxis.errors import CommandError
from neuraxis.parsing.json_access import as_map
from neuraxis.sandbox.http.client import OWN_HEADERS, is_header_name
from neuraxis.specs import Json

_LEGAL = re.compile(r"[^A-Za-z0-9_.-]+")
_RESERVED = frozenset({"tool", "as", "for_each", "max_items"})
"""Keys that have a meaning in a dialect."""
_SET_ELSEWHERE = OWN_HEADERS | {"accept", "content-type", "authorization"}
_SECRET = re.compile(r"(x[-_])?(api[-_]?key|access[-_]?token|auth[-_]?token)", re.I)
_FORMATS = {
    "csv": ("form", False), "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False), "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}  # fmt: skip
"""Collection format of OpenAPI 2.0 -> style and `explode`."""
_BETWEEN = {"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}
_PLACES = ("path", "query", "header", "cookie")


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """Parameter of a request, with its encoding."""

    name: str
    place: str
    """`path`, `query`, `header` or `cookie`."""
    argument: str
    """The command's parameter that has its value."""
    style: str
    explode: bool
    reserved: bool = False
    """Whether characters such as `/` are sent unescaped."""
    as_json: bool = False
    required: bool = False
    schema: dict[str, Json] = {}


def read_parameter(node: Node, base: str, schemas: Schemas) -> Parameter | None:
    """Return a parameter; None: the HTTP client sets it itself.

    Raises:
        CannotImport: it has no name, an unknown place, or a name that no header has.
    """
    name, place = as_text(node.get("name")), as_text(node.get("in")).lower()
    if not name or place not in _PLACES:
        raise CannotImport(
            f"the parameter {name or '(no name)'!r} in {place or 'no place'!r}: "
            f"expected a name and one of {', '.join(_PLACES)}"
        )
    if place == "header" and name.lower() in _SET_ELSEWHERE:
        return None
    if place == "header" and not is_header_name(name):
        raise CannotImport(
            f"the header {name[:80]!r} is left out: a header's name has no spaces and "
            "only a few signs"
        )
    content = as_map(node.get("content"))
    written: Json = node.get("schema")
    if content:
        written = as_map(next(iter(content.values()))).get("schema")
    elif "schema" not in node:  # as in 2.0: the keywords are in the parameter itself
        inline = ("name", "in", "required", "description", "example", "examples")
        written = {key: part for key, part in node.items() if key not in inline}
    schema = schemas.translate(written, base)
    text = as_text(node.get("description"))
    if text:
        schema["description"] = shortened(text)
    example = node.get("example", as_map(written).get("example"))
    if isinstance(example, str | int | float) and "$ref" not in schema:
        schema["examples"] = [as_typed(example, schema)]
    if _SECRET.fullmatch(name):
        schema["x-secret-ok"] = True
    style, explode = _style(node, place)
    return Parameter(
        name=name,
        place=place,
        argument=argument_name(name),
        style=style,
        explode=explode,
        reserved=as_flag(node.get("allowReserved")) is True,
        as_json=bool(content),
        required=place == "path" or as_flag(node.get("required")) is True,
        schema=schema,
    )


def argument_name(name: str) -> str:
    """Return a name that every model server accepts as a key."""
    legal = _LEGAL.sub("_", name).strip("_.-")[:60] or "value"
    return f"{legal}_" if legal in _RESERVED else legal


def _style(node: Node, place: str) -> tuple[str, bool]:
    form = _FORMATS.get(as_text(node.get("collectionFormat")))
    if form is not None:
        return ("simple", False) if place in ("path", "header") else form
    usual = "form" if place in ("query", "cookie") else "simple"
    style = as_text(node.get("style")) or usual
    explode = as_flag(node.get("explode"))
    if explode is not None:
        return style, explode
    is_old = "schema" not in node and "content" not in node
    return style, style in ("form", "deepObject") and not is_old


# --- values ---------------------------------------------------------------------


def plain(value: Any) -> str:
    """Return a value as the text in a request."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError):
        return str(value)


def pairs(parameter: Parameter, value: Any) -> list[str]:
    """Return the `name=value` texts of a query or cookie parameter, encoded."""
    safe = "/?:@!$'()*,;" if parameter.reserved else ""
    name = quote(parameter.name, safe="[]$")

    def text(item: Any) -> str:
        return quote(plain(item), safe=safe)

    if parameter.as_json:
        return [f"{name}={quote(json.dumps(value, ensure_ascii=False), safe='')}"]
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        if parameter.style == "deepObject":
            return _deep(name, fields, text)
        if parameter.explode and parameter.style == "form":
            return [f"{quote(str(key), safe='')}={text(fields[key])}" for key in fields]
        flat = [part for key in fields for part in (quote(str(key)), text(fields[key]))]
        return [f"{name}={_BETWEEN.get(parameter.style, ',').join(flat)}"]
    if isinstance(value, list | tuple):
        items = [text(item) for item in cast("list[Any]", value)]
        if not items:
            return []
        if parameter.explode:
            return [f"{name}={item}" for item in items]
        return [f"{name}={_BETWEEN.get(parameter.style, ',').join(items)}"]
    return [f"{name}={text(value)}"]


def _deep(name: str, fields: Mapping[str, Any], text: Any) -> list[str]:
    parts: list[str] = []
    for key, value in fields.items():
        at = f"{name}[{quote(str(key), safe='')}]"
        if isinstance(value, Mapping):
            parts += _deep(at, cast("Mapping[str, Any]", value), text)
        elif isinstance(value, list | tuple):
            parts += [f"{at}={text(item)}" for item in cast("list[Any]", value)]
        else:
            parts.append(f"{at}={text(value)}")
    return parts


def segment(parameter: Parameter, value: Any) -> str:
    """Return the text of a path parameter, encoded.

    Raises:
        CommandError: the path would lead elsewhere.
    """
    if parameter.as_json:
        return quote(json.dumps(value, ensure_ascii=False), safe="")
    items, is_map = _items(value)
    texts = [quote(item, safe="") for item in items]
    if not "".join(texts) or "".join(texts) in (".", ".."):
        raise CommandError(
            f"{parameter.argument}: expected a string that fits into the address, got "
            f"{plain(value)!r}"
        )
    assignments = [f"{a}={b}" for a, b in zip(texts[::2], texts[1::2], strict=False)]
    if parameter.style == "label":
        parts = assignments if is_map and parameter.explode else texts
        return "." + ("." if parameter.explode else ",").join(parts)
    if parameter.style == "matrix":
        if not parameter.explode:
            return f";{parameter.name}={','.join(texts)}"
        parts = (
            assignments if is_map else [f"{parameter.name}={item}" for item in texts]
        )
        return ";" + ";".join(parts)
    return ",".join(assignments if is_map and parameter.explode else texts)


def header(parameter: Parameter, value: Any) -> str:
    """Return the text of a header parameter.

    Raises:
        CommandError: it has characters that headers cannot have.
    """
    if parameter.as_json:
        text = json.dumps(value)
    else:
        items, is_map = _items(value)
        if is_map and parameter.explode:
            assignments = zip(items[::2], items[1::2], strict=False)
            items = [f"{key}={item}" for key, item in assignments]
        text = ",".join(items)
    if not text.isprintable() or not text.isascii():
        raise CommandError(
            f"{parameter.argument}: a header holds one line of plain characters, got "
            f"{text[:80]!r}"
        )
    return text


def _items(value: Any) -> tuple[list[str], bool]:
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return [plain(part) for pair in fields.items() for part in pair], True
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("list[Any]", value)], False
    return [plain(value)], False
