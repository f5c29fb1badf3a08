"""Read a document's operations: their parameters, bodies and servers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urljoin, urlsplit

import msgspec

from neuraxis.bridges.openapi_client.answers import shape
from neuraxis.bridges.openapi_client.body import Body, old_body, read_body
from neuraxis.bridges.openapi_client.load import Document, is_url
from neuraxis.bridges.openapi_client.parameters import (
    Parameter,
    argument_name,
    read_parameter,
)
from neuraxis.bridges.openapi_client.schemas import Schemas
from neuraxis.bridges.openapi_client.security import Auth, Scheme, needed
from neuraxis.bridges.openapi_client.tolerant_access import (
    CannotImport,
    Node,
    Notes,
    as_text,
    as_written,
    maps,
)
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.specs import Effects, Json

METHODS = ("get", "head", "options", "put", "post", "patch", "delete")
_FIELD = re.compile(r"\{([^{}/]+)\}")
_ANY_FIELD = re.compile(r"\{([^{}/]+)\}|(?<=/):(\w+)(?=/|$)")


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """Operation of a document, ready to be called."""

    method: str
    path: str
    """The path with its fields written as the parameters are."""
    own_path: str
    """The path as the document has it, which names come from."""
    server: str
    """The address before the path; empty: the document names none to use."""
    unknown_server: str = ""
    """The operation's own server, if its address is not known."""
    node: Node
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    schemes: tuple[Scheme, ...] = ()
    accept: str = "*/*"
    response: dict[str, Json] | None = None


def without_server(operation: Operation) -> str:
    """Return the sentence that its server is not known, or nothing."""
    if not operation.unknown_server:
        return ""
    return (
        f"{operation.method.upper()} {operation.own_path[:80]}: its own server "
        f"{operation.unknown_server[:200]!r} is not known; it cannot be called"
    )


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
    """Yield every operation that can be called; report the others."""
    for path, value in as_map(document.root.get("paths")).items():
        if not path.startswith("/"):
            if not path.startswith("x-"):
                notes.add(f"the path {path[:80]!r} is skipped: it must begin with /")
            continue
        try:
            item = _joined(document, value, document.place)
        except CannotImport as error:
            notes.add(f"the path {path[:80]} is skipped: {error}")
            continue
        if item.lost:
            notes.add(f"the path {path[:80]} is read in part: {item.lost}")
        for method in METHODS:
            if not isinstance(item.node.get(method), Mapping):
                continue
            place = f"{method.upper()} {path[:80]}"
            try:
                own = _joined(document, item.node[method], item.bases[method])
                if own.lost:
                    notes.add(f"{place} is read in part: {own.lost}")
                reading = _Reading(
                    document=document, schemas=schemas, notes=notes, item=item, own=own
                )
                yield reading.operation(method, path, schemes, auth)
            except CannotImport as error:
                notes.add(f"{place} is skipped: {error}")
            except RecursionError:
                notes.add(f"{place} is skipped: nested too deep")


class _Part(msgspec.Struct, kw_only=True):
    """A path item or operation, merged with the keys beside `$ref`."""

    node: dict[str, Json] = {}
    bases: dict[str, str] = {}
    """The document that each key is from, which references in it start from."""
    lost: str = ""
    """Why the rest cannot be read."""

    def inner(self, key: str) -> tuple[Json, str]:
        """Return the value of a key and its document."""
        return self.node.get(key), self.bases.get(key, "")


def _joined(document: Document, value: Json, base: str) -> _Part:
    """Return an object with its `$ref` followed; keys beside it win.

    Raises:
        CannotImport: the reference has no target, and nothing to use is beside it.
    """
    part = _Part()
    for _ in range(20):
        here = as_map(value)
        for key, inner in here.items():
            if key != "$ref" and key not in part.node:
                part.node[key], part.bases[key] = inner, base
        ref = here.get("$ref")
        if not isinstance(ref, str):
            return part
        try:
            value, base, _ = document.find(ref, base)
        except CannotImport as error:
            if not part.node.keys() - {"summary", "description"}:
                raise
            part.lost = str(error)
            return part
    raise CannotImport("$ref: it leads from reference to reference, without end")


class _Reading(msgspec.Struct, kw_only=True):
    """State of reading one operation of a document."""

    document: Document
    schemas: Schemas
    notes: Notes
    item: _Part
    """The path's item, which the operation is in."""
    own: _Part
    """The operation; some documents keep each in a file of its own."""

    def operation(
        self, method: str, path: str, schemes: dict[str, Scheme], auth: Auth
    ) -> Operation:
        node = self.own.node
        used = needed(node, self.document.root, schemes, auth)
        place = f"{method.upper()} {path}"
        parameter_nodes = self._parameter_nodes(place)
        own_path = path
        path = _with_fields(path, [part for part, _ in parameter_nodes])
        parameters = self._parameters(parameter_nodes, path, place, schemes)
        body = self._body(node, parameter_nodes, method)
        names = {parameter.argument for parameter in parameters}
        if body is not None and body.argument in names:
            body = msgspec.structs.replace(body, argument="request_body")
        accept, response = self._response()
        server, unknown_server = self._server()
        return Operation(
            method=method,
            path=path,
            own_path=own_path,
            server=server,
            unknown_server=unknown_server,
            node=node,
            parameters=parameters,
            body=body,
            schemes=used,
            accept=accept,
            response=response,
        )

    def _parameter_nodes(self, place: str) -> list[tuple[Node, str]]:
        """Return all parameters; one of the operation replaces one of the path."""
        nodes: dict[tuple[str, str], tuple[Node, str]] = {}
        for owner in (self.item, self.own):
            values, place_of_owner = owner.inner("parameters")
            for value in as_list(values):
                try:
                    part, base = self.document.deref(value, place_of_owner)
                except CannotImport as error:
                    self.notes.add(f"{place}: a parameter is left out: {error}")
                    continue
                key = (as_text(part.get("name")), as_text(part.get("in")))
                nodes[key] = (part, base)
        return list(nodes.values())

    def _parameters(
        self,
        nodes: list[tuple[Node, str]],
        path: str,
        place: str,
        schemes: dict[str, Scheme],
    ) -> tuple[Parameter, ...]:
        keys = {(s.place, s.field.lower()) for s in schemes.values()}
        fields = _FIELD.findall(path)
        parameters: list[Parameter] = []
        for node, base in nodes:
            if node.get("in") in ("body", "formData"):
                continue
            try:
                parameter = read_parameter(node, base, self.schemas)
            except CannotImport as error:
                self.notes.add(f"{place}: {error}")
                continue
            if parameter is None or (parameter.place, parameter.name.lower()) in keys:
                continue  # set by the client, or a secret key
            if parameter.place == "path" and parameter.name not in fields:
                self.notes.add(f"{place}: {parameter.name!r} is not in the path")
                continue
            parameters.append(parameter)
        declared = {item.name for item in parameters if item.place == "path"}
        for field in dict.fromkeys(fields):
            if field not in declared:
                self.notes.add(f"{place}: {field!r} of the path is not described")
                parameters.append(_undeclared(field))
        return _distinct(parameters)

    def _body(
        self, node: Node, nodes: list[tuple[Node, str]], method: str
    ) -> Body | None:
        if method in ("get", "head", "options") and "requestBody" in node:
            operation_id = as_text(node.get("operationId"))
            self.notes.add(f"the body of {method.upper()} {operation_id} is not sent")
            return None
        if "requestBody" in node:
            part, base = self.document.deref(*self.own.inner("requestBody"))
            return read_body(part, base, self.schemas)
        consumes = node.get("consumes", self.document.root.get("consumes"))
        types = [as_text(item) for item in as_list(consumes) if as_text(item)]
        return old_body(nodes, types, self.schemas)

    def _response(self) -> tuple[str, dict[str, Json] | None]:
        written, place = self.own.inner("responses")
        responses = as_map(written)
        good = [key for key in responses if str(key).startswith("2")]
        for key in (*sorted(good), "default"):
            if key not in responses:
                continue
            try:
                part, base = self.document.deref(responses[key], place)
            except CannotImport:
                continue
            content = as_map(part.get("content"))
            for media, inner in content.items():
                if "json" in media:
                    schema = shape(self.document, as_map(inner).get("schema"), base)
                    return "application/json", schema if "type" in schema else None
            if content:
                return f"{', '.join(list(content)[:5])}, */*;q=0.1", None
            if isinstance(part.get("schema"), dict):
                schema = shape(self.document, part["schema"], base)
                return (
                    "application/json, */*;q=0.5",
                    schema if "type" in schema else None,
                )
        return "application/json, */*;q=0.5", None

    def _server(self) -> tuple[str, str]:
        """Return the server's address, or the own one that is not known."""
        root, place = self.document.root, self.document.place
        host = as_text(root.get("host"))
        owners = (self.own.inner("servers"), self.item.inner("servers"))
        for is_own, (written, base) in (
            *((True, owner) for owner in owners),
            (False, (root.get("servers"), place)),
        ):
            servers = [item for item in maps(as_list(written)) if "url" in item]
            for server in servers:
                if address := _address(server, base):
                    return address, ""
            if servers and (is_own or not host):
                # another server must not get what is meant for this one
                return "", _url(servers[0]) if is_own else ""
        home = urlsplit(place) if is_url(place) else None
        if "swagger" in root and (host or home is not None):
            kinds = [as_text(item) for item in as_list(root.get("schemes"))]
            scheme = "http" if kinds and "https" not in kinds else "https"
            if home is not None and not host:
                host, scheme = home.netloc, home.scheme
            path = as_text(root.get("basePath")).strip("/")
            return f"{scheme}://{host}/{path}".rstrip("/"), ""
        return f"{home.scheme}://{home.netloc}" if home is not None else "", ""


def _url(server: Node) -> str:
    return as_text(server.get("url")) or "/"  # an empty one is relative, too


def _address(server: Node, place: str) -> str:
    """Return a server's address with its variables' defaults; empty: not known.

    OpenAPI resolves a relative address by that of the document, which a file lacks.
    """
    address = _url(server)
    for name, variable in as_map(server.get("variables")).items():
        chosen = as_map(variable).get("default")
        values = as_list(as_map(variable).get("enum"))
        text = chosen if chosen is not None else next(iter(values), None)
        if text is not None:
            address = address.replace("{" + name + "}", as_written(text))
    is_other = "://" in address and not is_url(address)
    if not address or is_other or re.search(r"[{}\s]", address):
        return ""
    try:
        address = urljoin(place, address) if is_url(place) else address
        parts = urlsplit(address)
        labels = (parts.hostname or "").removesuffix(".").split(".")
        is_usable = is_url(address) and all(labels) and parts.port != 0
    except ValueError:  # no port, or half a bracket
        return ""
    return address.rstrip("/") if is_usable else ""


def _with_fields(path: str, nodes: list[Node]) -> str:
    """Return a path whose fields are written as its parameters are.

    Some documents write `:id`, or `{userId}` for the parameter `userID`.
    """
    names = [as_text(node.get("name")) for node in nodes if node.get("in") == "path"]
    fields = [match[1] or match[2] for match in _ANY_FIELD.finditer(path)]
    described = {field: field for field in {*fields} & {*names}}
    free: dict[str, list[str]] = {}
    for name in names:
        if name not in described:
            free.setdefault(name.lower(), []).append(name)
    for field in fields:
        # a parameter is one field: `{ID}` beside `{id}` is another
        if field not in described and (same := free.get(field.lower())):
            described[field] = same.pop(0)

    def written(match: re.Match[str]) -> str:
        name = described.get(match[1] or match[2])
        return f"{{{name}}}" if name else match[0]

    return _ANY_FIELD.sub(written, path)


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


def _distinct(parameters: list[Parameter]) -> tuple[Parameter, ...]:
    """Return the parameters, each with a unique argument name."""
    distinct: list[Parameter] = []
    names: set[str] = set()
    order = sorted(parameters, key=lambda item: item.place != "path")
    for parameter in order:
        argument = parameter.argument
        if argument in names:
            argument = f"{argument}_{parameter.place}"
        number = 2
        while argument in names:
            argument, number = f"{parameter.argument}_{number}", number + 1
        names.add(argument)
        distinct.append(msgspec.structs.replace(parameter, argument=argument))
    return tuple(distinct)
