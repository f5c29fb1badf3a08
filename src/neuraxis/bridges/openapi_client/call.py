"""Make the request of an operation, and read the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from neuraxis.bridges.openapi_client.body import encode
from neuraxis.bridges.openapi_client.operations import Operation, without_server
from neuraxis.bridges.openapi_client.pages import next_page
from neuraxis.bridges.openapi_client.parameters import header, pairs, segment
from neuraxis.bridges.openapi_client.security import values
from neuraxis.errors import CommandError
from neuraxis.plugins.context import Context
from neuraxis.sandbox.http import client
from neuraxis.specs import Json

CONTEXT = "(context)"
"""Keyword of the `Context`: no API parameter has this name."""
LIMITS = client.Limits(seconds=60, body_bytes=20 * client.MIB, content_types=None)
_ERROR_CHARACTERS = 600
"""Maximum characters shown of a failed answer."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None = None


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Server of an operation, and the allowed private addresses."""

    operation: Operation
    server: str
    allow_hosts: tuple[str, ...] = ()


def request_of(target: Target, arguments: Mapping[str, Any], auth: Json) -> Request:
    """Return the request of a call.

    Raises:
        CommandError: a value is not allowed at its place.
    """
    operation = target.operation
    if not target.server:
        if sentence := without_server(operation):
            raise CommandError(
                f"{sentence}. A person can import it alone with a server: "
                "openapi(..., include=['NAME'], server='https://…')"
            )
        raise CommandError(
            "the document names no server that can be used; a person can name one "
            "for all its operations and their key: openapi(..., server='https://…')"
        )
    headers, query, cookies = values(operation.schemes, auth)
    headers.setdefault("Accept", operation.accept)
    path = operation.path
    for parameter in operation.parameters:
        value = arguments.get(parameter.argument)
        if value is None:
            continue
        if parameter.place == "path":
            text = segment(parameter, value)
            path = path.replace("{" + parameter.name + "}", text)
        elif parameter.place == "query":
            query += pairs(parameter, value)
        elif parameter.place == "cookie":
            cookies += pairs(parameter, value)
        else:
            headers.setdefault(parameter.name, header(parameter, value))
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    body: bytes | None = None
    if operation.body is not None and operation.body.argument in arguments:
        body, headers["Content-Type"] = encode(
            operation.body, arguments[operation.body.argument]
        )
    elif operation.method in ("post", "put", "patch"):
        body = b""
    path = quote(path.partition("#")[0], safe="/?%:@!$&'()*+,;=-._~[]")
    mark = "&" if "?" in path else "?"
    url = f"{target.server}{path}" + (mark + "&".join(query) if query else "")
    method = operation.method.upper()
    return Request(method=method, url=url, headers=headers, body=body)


def run(target: Target, /, **arguments: Any) -> Any:
    """Call the operation; the answer is untrusted data.

    Raises:
        CommandError: the request is refused, or the server reports a failure.
    """
    context: Context = arguments.pop(CONTEXT)
    request = request_of(target, arguments, context.config.get("auth"))
    try:
        answer = client.send(
            request.method,
            request.url,
            headers=request.headers,
            body=request.body,
            limits=LIMITS,
            allowed_hosts=(*context.allowed_hosts, *target.allow_hosts),
            cancelled=context.cancelled,
        )
    except (client.RequestRefused, client.RequestFailed) as error:
        raise CommandError(str(error)) from None
    host = urlsplit(request.url).hostname or ""
    if answer.status >= 300:
        error_text = _text(answer)[:_ERROR_CHARACTERS].strip()
        raise CommandError(
            f"{host} answered {answer.status} {answer.reason}".rstrip()
            + (f": {error_text}" if error_text else ".")
        )
    if answer.truncated:
        context.warn(
            f"{host} sent more than {LIMITS.body_bytes} bytes; the rest is cut."
        )
    value = _value(answer)
    _hint(target.operation, value, answer.links, context)
    return value


def _hint(operation: Operation, value: Any, links: str, context: Context) -> None:
    next_arguments = next_page(operation.parameters, value, links)
    if isinstance(next_arguments, str):
        context.warn(
            f"There are more pages: {next_arguments} of the answer names the next one."
        )
    elif next_arguments:
        arguments_text = ", ".join(
            f"{name} {text!r}" for name, text in next_arguments.items()
        )
        context.warn(
            f"There are more pages; the next one: call again with {arguments_text}."
        )


def _value(answer: client.Response) -> Any:
    if not answer.body:
        return {"status": answer.status}
    kind = answer.content_type
    if "json" in kind or not kind or kind == "text/plain":
        try:
            return json.loads(_text(answer))
        except (ValueError, RecursionError):
            pass
    if kind.startswith("text/") or kind.endswith(("json", "xml", "yaml", "javascript")):
        return _text(answer)
    try:
        return answer.body.decode("utf-8") if not kind else answer.body
    except UnicodeDecodeError:
        return answer.body


def _text(answer: client.Response) -> str:
    try:
        return answer.body.decode(answer.charset or "utf-8", errors="replace")
    except (LookupError, ValueError):
        return answer.body.decode("utf-8", errors="replace")
