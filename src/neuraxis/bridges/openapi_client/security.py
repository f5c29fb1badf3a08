"""Authentication of requests; the model never sees it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import cast
from urllib.parse import quote

import msgspec

from neuraxis.bridges.openapi_client.load import Document
from neuraxis.bridges.openapi_client.tolerant_access import (
    CannotImport,
    Node,
    Notes,
    as_text,
)
from neuraxis.errors import CommandError, ConfigError
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.specs import Json

_SECRET = re.compile(r"secret://[A-Za-z][A-Za-z0-9_]{0,63}")
Auth = str | Mapping[str, str] | None
"""`secret://NAME`, or one for each security scheme of the document."""


class Scheme(msgspec.Struct, frozen=True, kw_only=True):
    """Security scheme: how a key is sent."""

    name: str
    """Its name in the document; empty: the document names none."""
    kind: str = "bearer"
    """`bearer`, `basic` or `key`."""
    place: str = "header"
    field: str = "Authorization"
    """The header, query parameter or cookie that holds a key."""


BEARER = Scheme(name="")


def check_auth(auth: Auth) -> None:
    """Refuse values that are not names of secrets.

    Raises:
        ConfigError: there is a value where only a name is allowed.
    """
    values = [auth] if isinstance(auth, str) else list((auth or {}).values())
    for text in values:
        if not _SECRET.fullmatch(text):
            raise ConfigError(
                "auth: expected the name of a secret, such as 'secret://PETSTORE', got "
                "another text; set the value in NEURAXIS_SECRET_PETSTORE"
            )


def schemes_of(document: Document, notes: Notes) -> dict[str, Scheme]:
    """Return the usable security schemes of a document, by name."""
    root = document.root
    definitions = as_map(as_map(root.get("components")).get("securitySchemes"))
    definitions = definitions or as_map(root.get("securityDefinitions"))
    schemes: dict[str, Scheme] = {}
    for name, value in definitions.items():
        try:
            node, _ = document.deref(value)
        except CannotImport:
            continue
        if (scheme := _scheme(name, node)) is not None:
            schemes[name] = scheme
            sent = as_text(node.get("scheme")).lower()
            if scheme.kind == "bearer" and sent not in ("", "bearer"):
                notes.add(
                    f"the security scheme {name!r} is {sent!r}, which is not "
                    "supported: its key is sent as a bearer token"
                )
    return schemes


def _scheme(name: str, node: Node) -> Scheme | None:
    kind = as_text(node.get("type")).lower()
    if kind == "apikey":
        place, field = as_text(node.get("in")).lower(), as_text(node.get("name"))
        if place not in ("header", "query", "cookie") or not field:
            return None
        return Scheme(name=name, kind="key", place=place, field=field)
    if kind == "basic" or (
        kind == "http" and as_text(node.get("scheme")).lower() == "basic"
    ):
        return Scheme(name=name, kind="basic")
    return Scheme(name=name) if kind in ("http", "oauth2", "openidconnect") else None


def needed(
    operation: Node, root: Node, schemes: Mapping[str, Scheme], auth: Auth
) -> tuple[Scheme, ...]:
    """Return the schemes whose keys a request of this operation sends."""
    written = operation.get("security", root.get("security"))
    if written is None:
        # many documents list a scheme and forget to require it
        return (_only(schemes),) if auth is not None else ()
    choices = [as_map(item) for item in as_list(written)]
    if not choices:
        return ()
    chosen = set(auth) if isinstance(auth, Mapping) else None
    for choice in choices:
        applicable = [schemes[name] for name in choice if name in schemes]
        if (
            applicable
            and len(applicable) == len(choice)
            and (chosen is None or chosen >= {scheme.name for scheme in applicable})
        ):
            return tuple(applicable)
    if any(not choice for choice in choices):
        return ()
    return (_only(schemes),) if isinstance(auth, str) else ()


def _only(schemes: Mapping[str, Scheme]) -> Scheme:
    return next(iter(schemes.values()), BEARER)


def _value_of(scheme: Scheme, filled: Json) -> str:
    is_mapping = isinstance(filled, Mapping)
    secret: Json = cast("Node", filled).get(scheme.name) if is_mapping else filled
    return secret if isinstance(secret, str) else ""


def values(
    schemes: tuple[Scheme, ...], filled: Json
) -> tuple[dict[str, str], list[str], list[str]]:
    """Return headers, query pairs and cookies with the keys in them.

    Args:
        schemes: the operation's schemes.
        filled: `auth` with the values of its secrets; None: there is none.

    Raises:
        CommandError: a secret's value is not allowed in a header.
    """
    headers: dict[str, str] = {}
    query: list[str] = []
    cookies: list[str] = []
    for scheme in schemes:
        value = _value_of(scheme, filled)
        if not value:
            continue
        if not value.isprintable() or not value.isascii():
            raise CommandError(
                "the secret for this API has characters that a request cannot hold"
            )
        if scheme.kind == "basic":
            encoded = base64.b64encode(value.encode()).decode()
            headers["Authorization"] = f"Basic {encoded}"
        elif scheme.kind == "bearer":
            headers["Authorization"] = f"Bearer {value}"
        elif scheme.place == "query":
            query.append(f"{quote(scheme.field, safe='')}={quote(value, safe='')}")
        elif scheme.place == "cookie":
            cookies.append(f"{scheme.field}={quote(value, safe='')}")
        else:
            headers[scheme.field] = value
    return headers, query, cookies
