"""Make a plugin of an OpenAPI document: a command per operation."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from neuraxis.bridges.imported_schema import hiding_name, unfolds_too_far
from neuraxis.bridges.openapi_client.call import CONTEXT, Target, run
from neuraxis.bridges.openapi_client.discriminators import Discriminators
from neuraxis.bridges.openapi_client.load import Document, is_url, load
from neuraxis.bridges.openapi_client.names import command_name, plugin_name
from neuraxis.bridges.openapi_client.operations import (
    Operation,
    effects_of,
    operations,
    without_server,
)
from neuraxis.bridges.openapi_client.outlines import whole, without_unevaluated
from neuraxis.bridges.openapi_client.pages import paging
from neuraxis.bridges.openapi_client.schemas import Schemas
from neuraxis.bridges.openapi_client.security import Auth, check_auth, schemes_of
from neuraxis.bridges.openapi_client.tolerant_access import (
    Node,
    Notes,
    as_text,
    shortened,
)
from neuraxis.errors import ConfigError, ManifestError, ManifestProblem
from neuraxis.formatting import listed
from neuraxis.parsing.json_access import as_map
from neuraxis.plugins.registry import Command, Plugin
from neuraxis.plugins.source import ReadSource
from neuraxis.sandbox.http.urls import RequestRefused, check_url
from neuraxis.schema.schema import Schema
from neuraxis.specs import CommandSpec, Json, PluginSpec

SCHEMA_CHARACTERS = 12_000
"""Maximum characters of a command's parameters as JSON; then types are shortened."""
_DESCRIPTION = 700


def openapi(
    source: str | Path | Mapping[str, Json],
    *,
    auth: Auth = None,
    server: str | None = None,
    name: str | None = None,
    include: Collection[str] = ("*",),
    allow_hosts: Collection[str] = (),
    folder: str | Path | None = None,
) -> Plugin:
    """Return the plugin of an OpenAPI document or an old `ai-plugin.json`.

    Args:
        source: a file, a URL, or the document itself.
        auth: `secret://NAME`, or a mapping from the document's security schemes to
            such names. The model sees neither the name nor the value.
        server: the API's address, for every operation; default: those of the document.
        name: the plugin's name; default: from the document's title.
        include: patterns of the commands' names that are wanted.
        allow_hosts: inside addresses, as `host:port`, that requests may reach beside
            the host of `source` and of `server`.
        folder: references to files must stay in this folder; default: the document's
            own.

    Raises:
        ConfigError: it cannot be read, or an option does not fit.
        ManifestError: none of its operations can be used; says why.
    """
    check_auth(auth)
    allowed = (*allow_hosts, *_hosts(source, server))
    document, manifest = load(source, allow_hosts=allowed, folder=folder)
    notes = Notes(file=document.place)
    schemas = _schemas(document, notes)
    schemes = schemes_of(document, notes)
    if isinstance(auth, Mapping) and (wrong := set(auth) - set(schemes)):
        raise ConfigError(
            f"auth: {document.place} has no security scheme {sorted(wrong)[0]!r}; it "
            f"has: {', '.join(schemes) or 'none'}"
        )
    specs: dict[str, CommandSpec] = {}
    targets: dict[str, Target] = {}
    names: set[str] = set()
    for operation in operations(document, schemas, notes, schemes, auth):
        command = _name(operation, names)
        names.add(command)
        if not any(fnmatch.fnmatchcase(command, pattern) for pattern in include):
            continue
        spec = _command(command, operation, schemas, notes)
        if spec is None:
            continue
        specs[command] = spec
        base = (server or operation.server).rstrip("/")
        if not base and (sentence := without_server(operation)):
            notes.add(sentence)
        targets[command] = Target(operation=operation, server=base, allow_hosts=allowed)
    _check_any(specs, notes, include)
    return _plugin(document, manifest, specs, targets, auth, name, notes, allowed)


def from_name(text: str) -> ReadSource:
    """Return the source `openapi:SOURCE auth=secret://NAME server=URL name=NAME`.

    This is the form in which a settings file and the command line name one. There may
    be `folder=FOLDER`, too.

    Raises:
        ConfigError: an option is not known.
    """
    try:
        source, *options = shlex.split(text)
    except ValueError:
        source, options = "", []
    given: dict[str, str] = {}
    for option in options:
        key, _, given[key] = option.partition("=")
    wrong = set(given) - {"auth", "server", "name", "folder"}
    if not source or wrong:
        problem = f"the option {sorted(wrong)[0]!r}" if source else repr(text)
        raise ConfigError(
            "openapi: expected SOURCE, then auth=secret://NAME, server=URL, name=NAME "
            f"or folder=FOLDER, got {problem}"
        )
    return ReadSource(
        partial(
            openapi,
            source,
            auth=given.get("auth"),
            server=given.get("server"),
            name=given.get("name"),
            folder=given.get("folder"),
        )
    )


def _hosts(*named: object) -> list[str]:
    """Return the hosts that the user named: they may be private.

    Raises:
        ConfigError: an address has half a bracket.
    """
    texts = [item for item in named if isinstance(item, str) and is_url(item)]
    try:
        return [host for text in texts if (host := urlsplit(text).netloc)]
    except ValueError as error:
        raise ConfigError(
            f"{' or '.join(texts)}: not a URL: {error}; expected http:// or https:// "
            "and a host"
        ) from error


def _schemas(document: Document, notes: Notes) -> Schemas:
    return Schemas(
        document=document,
        notes=notes,
        modern=str(document.root.get("openapi") or "").startswith("3.1"),
        discriminators=Discriminators(document=document),
    )


def _name(operation: Operation, taken: Collection[str]) -> str:
    operation_id, method = operation.node.get("operationId"), operation.method
    return command_name(operation_id, method, operation.own_path, taken)


def _command(
    name: str, operation: Operation, schemas: Schemas, notes: Notes
) -> CommandSpec | None:
    """Return an operation's command, or None with a note."""
    try:
        spec = _spec(name, operation, schemas, notes)
    except RecursionError:  # of examples and the like
        notes.add(f"{name} is skipped: nested too deep")
        return None
    if hidden := hiding_name([spec.parameters, spec.response]):
        notes.add(f"{name} is skipped: {hidden}")
        return None
    return spec


def _spec(
    name: str, operation: Operation, schemas: Schemas, notes: Notes
) -> CommandSpec:
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for parameter in operation.parameters:
        properties[parameter.argument] = parameter.schema
        if parameter.required:
            required.append(parameter.argument)
    body = operation.body
    if body is not None:
        properties[body.argument] = body.schema
        if body.required:
            required.append(body.argument)
    full_schema: dict[str, Json] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        # formats in such documents are comments, and often wrong
        "x-formats": "annotation",
    }
    if required:
        full_schema["required"] = required
    schema, cut = schemas.whole(full_schema, SCHEMA_CHARACTERS)
    if cut:
        notes.add(f"{name}: {cut} of its types are too large to be shown in full")
    schema = _usable(name, schema, notes)
    return CommandSpec(
        name=name,
        description=_description(operation),
        parameters=schema,
        response=operation.response,
        effects=effects_of(operation.method),
        raw={},
    )


def _usable(name: str, schema: dict[str, Json], notes: Notes) -> dict[str, Json]:
    """Return the schema, or one without checks if it cannot be enforced."""
    if unfolds_too_far(schema):
        schema = without_unevaluated(schema)
        if not unfolds_too_far(schema):
            notes.add(f"{name}: unknown keys are taken, since its types nest too deep")
    defect = _defect(schema)
    if defect is None:
        return schema
    notes.add(f"{name}: parameters that are not checked, since {defect}")
    types = schema.get("$defs", {})
    properties: dict[str, Json] = {}
    for key, part in schema["properties"].items():
        standalone, _ = whole(part, types, SCHEMA_CHARACTERS)
        text = as_text(part.get("description"))
        loose: dict[str, Json] = {"description": text} if text else {}
        properties[key] = part if _defect(standalone) is None else loose
    bare = {key: part for key, part in schema.items() if key != "$defs"}
    loosened, _ = whole({**bare, "properties": properties}, types, SCHEMA_CHARACTERS)
    if _defect(loosened) is not None:
        loosened.pop("$defs", None)
        loosened["properties"] = {key: {} for key in properties}
    return loosened


def _defect(schema: dict[str, Json]) -> str | None:
    """Return why a schema cannot be enforced, or None."""
    if unfolds_too_far(schema):
        return "its types refer to each other too often"
    return Schema(schema).defect


def _description(operation: Operation) -> str:
    node = operation.node
    summary, text = as_text(node.get("summary")), as_text(node.get("description"))
    description = " ".join(text.split())
    first = " ".join(summary.split())
    if first and not description.startswith(first.rstrip(".")):
        description = f"{first.rstrip('.')}. {description}" if description else first
    if not description:
        description = f"{operation.method.upper()} {operation.own_path}"
    description = shortened(description, _DESCRIPTION)
    if node.get("deprecated") is True:
        description += " (deprecated)"
    if pages := paging(operation.parameters):
        description += f" Answers in pages, chosen by {', '.join(pages)}."
    return description


def _check_any(
    specs: Mapping[str, CommandSpec], notes: Notes, include: Collection[str]
) -> None:
    if specs:
        return
    problems = notes.problems()
    message = "no operation can be used as a command"
    if tuple(include) != ("*",):
        message += f" (of include={list(include)})"
    first = ManifestProblem(file=notes.file, message=message)
    raise ManifestError((first, *problems))


def _check_servers(
    servers: Collection[str],
    targets: Mapping[str, Target],
    notes: Notes,
    allowed: Collection[str],
) -> None:
    for server in servers:
        try:
            check_url(server, allowed)
        except RequestRefused as refused:
            notes.add(f"calls need a server that requests may reach: {refused}")
    homeless = [item.operation for item in targets.values() if not item.server]
    if not all(map(without_server, homeless)):
        notes.add(
            "the document names no server that can be used: calls need "
            "openapi(..., server=URL), which is for all operations and their key"
        )


def _plugin(
    document: Document,
    manifest: Node,
    specs: Mapping[str, CommandSpec],
    targets: Mapping[str, Target],
    auth: Auth,
    name: str | None,
    notes: Notes,
    allowed: Collection[str],
) -> Plugin:
    info = as_map(document.root.get("info"))
    title = as_text(manifest.get("name_for_human")) or as_text(info.get("title"))
    title_for_model = as_text(manifest.get("name_for_model")) or title
    description = as_text(manifest.get("description_for_model"))
    description = " ".join(
        (description or as_text(info.get("description")) or title).split()
    )
    servers = sorted({target.server for target in targets.values() if target.server})
    # the lock file covers the addresses, since keys are sent there
    server_text = f"Its server is {', '.join(servers[:3])}." if servers else ""
    description = description[:_DESCRIPTION].rstrip()
    joint = (
        " " if description.endswith((".", "!", "?", ":")) or not description else ". "
    )
    if auth is None and any(target.operation.schemes for target in targets.values()):
        notes.add(
            "the document says that calls need a key, and none is given: "
            "openapi(..., auth='secret://NAME')"
        )
    _check_servers(servers, targets, notes, allowed)
    if hooks := as_map(document.root.get("webhooks")):
        notes.add(f"webhooks are no commands: {listed([*hooks], 5)}")
    spec = PluginSpec(
        name=name
        or plugin_name(title_for_model, Path(urlsplit(document.place).path).stem),
        title=title or title_for_model,
        description=(description + joint * bool(server_text) + server_text).strip(),
        description_for_human=as_text(manifest.get("description_for_human")) or None,
        commands=tuple(specs.values()),
        config={} if auth is None else {"auth": auth},
        source=f"openapi:{document.place}",
    )
    commands = {
        key: Command(
            plugin=spec,
            spec=item,
            run=partial(run, targets[key]),
            context_name=CONTEXT,
        )
        for key, item in specs.items()
    }
    return Plugin(spec=spec, commands=commands, problems=notes.problems())
