"""Operations of a document: their parameters, bodies and servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

import msgspec

from neuraxis.bridges.openapi_client.body import Body, old_body, read_body
from neuraxis.bridges.openapi_client.load import Document, is_url
from neuraxis.bridges.openapi_client.parameters import (
    Parameter,
    argument_name,
    read_parameter,
)
from neuraxis.bridges.openapi_client.schemas import Schemas, shape
from neuraxis.bridges.openapi_client.security import Auth, Scheme, needed
from neuraxis.bridges.openapi_client.tolerant_access import (
    CannotImport,
    Node,
    Notes,
    as_text,
    maps,
)
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.specs import Effects, Json

METHODS = ("get", "head", "options", "put", "post", "patch", "delete")
_FIELD = re.compile(r"\{([^{}/]+)\}")


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of a document, ready to be called."""

    method: str
    path: str
    server: str
    """The address before the path; empty: the document names none."""
    node: Node
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    schemes: tuple[Scheme, ...] = ()
    accept: str = "*/*"
    response: dict[str, Json] | None = None


def effects_of(method: str) -> Effects:
    """Return what a method may change, by the rules of HTTP."""
    kind = {"put": "idempotent", "delete": "idempotent", "post": "once"}
    if method in ("get", "head", "options"):
        return Effects(kind="read", destructive=False, open_world=True, declared=True)
    return Effects(
        kind="idempotent" if kind.get(method) == "idempotent" else "once",
        destructive=True,
        open_world=True,
        declared=True,
    )


def operations(
    document: Document,
    schemas: Schemas,
    notes: Notes,
    schemes: dict[str, Scheme],
    auth: Auth,
) -> Iterator[Operation]:
    """Yield every operation that can be called; note the others."""
    for path, value in as_map(document.root.get("paths")).items():
        if not path.startswith("/"):
            if not path.startswith("x-"):
                notes.add(f"the path {path[:80]!r} is skipped: it must begin with /")
            continue
        try:
            item, base = document.deref(value)
        except CannotImport as error:
            notes.add(f"the path {path[:80]} is skipped: {error}")
            continue
        for method in METHODS:
            if not isinstance(item.get(method), dict):
                continue
            reading = _Reading(
                document=document, schemas=schemas, notes=notes, base=base, item=item
            )
            try:
                yield reading.operation(method, path, schemes, auth)
            except CannotImport as error:
                notes.add(f"{method.upper()} {path[:80]} is skipped: {error}")


class _Reading(msgspec.Struct, kw_only=True):
    """One path of a document while its operations are read."""

    document: Document
    schemas: Schemas
    notes: Notes
    base: str
    item: Node

    def operation(
        self, method: str, path: str, schemes: dict[str, Scheme], auth: Auth
    ) -> Operation:
        node = as_map(self.item[method])
        used = needed(node, self.document.root, schemes, auth)
        given = self._given(node)
        parameters = self._parameters(given, path, f"{method.upper()} {path}", schemes)
        body = self._body(node, given, method)
        taken = {parameter.argument for parameter in parameters}
        if body is not None and body.argument in taken:
            body = msgspec.structs.replace(body, argument="request_body")
        accept, response = self._response(node)
        return Operation(
            method=method,
            path=path,
            server=self._server(node),
            node=node,
            parameters=parameters,
            body=body,
            schemes=used,
            accept=accept,
            response=response,
        )

    def _given(self, node: Node) -> list[tuple[Node, str]]:
        """Return all parameters; one of the operation replaces one of the path."""
        found: dict[tuple[str, str], tuple[Node, str]] = {}
        for owner in (self.item, node):
            for value in as_list(owner.get("parameters")):
                part, base = self.document.deref(value, self.base)
                key = (as_text(part.get("name")), as_text(part.get("in")))
                found[key] = (part, base)
        return list(found.values())

    def _parameters(
        self,
        given: list[tuple[Node, str]],
        path: str,
        where: str,
        schemes: dict[str, Scheme],
    ) -> tuple[Parameter, ...]:
        keys = {(s.place, s.field.lower()) for s in schemes.values()}
        fields = _FIELD.findall(path)
        found: list[Parameter] = []
        for node, base in given:
            if node.get("in") in ("body", "formData"):
                continue
            try:
                parameter = read_parameter(node, base, self.schemas)
            except CannotImport as error:
                self.notes.add(f"{where}: {error}")
                continue
            if parameter is None or (parameter.place, parameter.name.lower()) in keys:
                continue  # set by the client, or a key that no model sees
            if parameter.place == "path" and parameter.name not in fields:
                self.notes.add(
                    f"{where}: {parameter.name!r} does not stand in the path"
                )
                continue
            found.append(parameter)
        declared = {item.name for item in found if item.place == "path"}
        for field in dict.fromkeys(fields):
            if field not in declared:
                self.notes.add(f"{where}: {field!r} of the path is not described")
                found.append(_undeclared(field))
        return _distinct(found)

    def _body(
        self, node: Node, given: list[tuple[Node, str]], method: str
    ) -> Body | None:
        if method in ("get", "head", "options") and "requestBody" in node:
            own = as_text(node.get("operationId"))
            self.notes.add(f"the body of {method.upper()} {own} is not sent")
            return None
        if "requestBody" in node:
            part, base = self.document.deref(node["requestBody"], self.base)
            return read_body(part, base, self.schemas)
        consumes = node.get("consumes", self.document.root.get("consumes"))
        listed = [as_text(item) for item in as_list(consumes) if as_text(item)]
        return old_body(given, listed, self.schemas)

    def _response(self, node: Node) -> tuple[str, dict[str, Json] | None]:
        responses = as_map(node.get("responses"))
        good = [key for key in responses if str(key).startswith("2")]
        for key in (*sorted(good), "default"):
            if key not in responses:
                continue
            try:
                part, base = self.document.deref(responses[key], self.base)
            except CannotImport:
                continue
            content = as_map(part.get("content"))
            for media, inner in content.items():
                if "json" in media:
                    made = shape(self.document, as_map(inner).get("schema"), base)
                    return "application/json", made if "type" in made else None
            if content:
                return f"{', '.join(list(content)[:5])}, */*;q=0.1", None
            if isinstance(part.get("schema"), dict):
                made = shape(self.document, part["schema"], base)
                return "application/json, */*;q=0.5", made if "type" in made else None
        return "application/json, */*;q=0.5", None

    def _server(self, node: Node) -> str:
        root = self.document.root
        for owner in (node, self.item, root):
            for server in maps(as_list(owner.get("servers"))):
                if address := _address(server, self.document.place):
                    return address
        host = as_text(root.get("host"))
        own = urlsplit(self.document.place) if is_url(self.document.place) else None
        if "swagger" in root and (host or own is not None):
            kinds = [as_text(item) for item in as_list(root.get("schemes"))]
            scheme = "http" if kinds and "https" not in kinds else "https"
            if own is not None and not host:
                host, scheme = own.netloc, own.scheme
            path = as_text(root.get("basePath")).strip("/")
            return f"{scheme}://{host}/{path}".rstrip("/")
        return f"{own.scheme}://{own.netloc}" if own is not None else ""


def _address(server: Node, place: str) -> str:
    """Return a server's address with its variables' defaults in it."""
    address = as_text(server.get("url"))
    for name, variable in as_map(server.get("variables")).items():
        chosen = as_map(variable).get("default")
        listed = as_list(as_map(variable).get("enum"))
        text = chosen if chosen is not None else next(iter(listed), "")
        address = address.replace("{" + name + "}", str(text))
    if address and not is_url(address):
        address = urljoin(place, address) if is_url(place) else ""
    return "" if "{" in address else address.rstrip("/")


def _undeclared(field: str) -> Parameter:
    return Parameter(
        name=field,
        place="path",
        argument=argument_name(field),
        style="simple",
        explode=False,
        required=True,
        schema={"type": "string"},
    )


def _distinct(found: list[Parameter]) -> tuple[Parameter, ...]:
    """Return the parameters, each under an argument of its own."""
    made: list[Parameter] = []
    taken: set[str] = set()
    order = sorted(found, key=lambda item: item.place != "path")
    for parameter in order:
        argument = parameter.argument
        if argument in taken:
            argument = f"{argument}_{parameter.place}"
        number = 2
        while argument in taken:
            argument, number = f"{parameter.argument}_{number}", number + 1
        taken.add(argument)
        made.append(msgspec.structs.replace(parameter, argument=argument))
    return tuple(made)
