"""Convert tool definitions of an MCP server to command specs.

A server's hints (`readOnlyHint` and the like) are untrusted claims: they can make the
effects stricter, never laxer. Only the user can make them laxer, in `effects` of the
server's configuration.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import msgspec

from neuraxis.bridges.imported_schema import SchemaRefused, import_schema
from neuraxis.bridges.untrusted_text import hides_something, one_line, visible
from neuraxis.parsing.json_access import as_map
from neuraxis.specs import CommandSpec, EffectKind, Effects, Json

MOST_TOOLS = 5_000
"""Maximum tools of a server; more are reported and omitted."""
MOST_TEXT = 8_000
"""Maximum characters of a description; the rest is omitted."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}")
_UNFIT = re.compile(r"[^A-Za-z0-9_./-]+")


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """Imported tool: its name on the server, and its command."""

    name: str
    """The server's own name."""
    spec: CommandSpec


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """Imported tools of a server, and their problems."""

    tools: tuple[Tool, ...] = ()
    problems: tuple[str, ...] = ()


def import_tools(
    definitions: Iterable[Json],
    plugin: str,
    effects: Mapping[str, EffectKind] | None = None,
) -> Imported:
    """Return the commands of tool definitions, and the problems of bad ones.

    Args:
        definitions: the definitions as the server lists them.
        plugin: the plugin's name, which precedes each command's.
        effects: the user's effects: pattern of a command -> effect.
    """
    tools: dict[str, Tool] = {}
    problems: list[str] = []
    for number, definition in enumerate(definitions, 1):
        if number > MOST_TOOLS:
            problems.append(f"{plugin}: only the first {MOST_TOOLS} tools are taken")
            break
        fields = as_map(definition)
        server_name = fields.get("name")
        if not isinstance(server_name, str) or not server_name.strip():
            problems.append(f"{plugin}: tool {number} has no name; it is left out")
            continue
        place = f"{plugin}.{one_line(server_name, 80)}"
        name = (
            server_name
            if _NAME.fullmatch(server_name)
            else _UNFIT.sub("_", server_name)[:128].strip("._-")
        )
        if not name or name in tools:
            problem = "its name is taken" if name else "its name has no letter"
            problems.append(f"{place}: {problem}; it is left out")
            continue
        notes: list[str] = []
        try:
            spec = _command(name, fields, plugin, effects or {}, notes)
        except SchemaRefused as refused:
            problems.append(f"{place}: inputSchema: {refused}; it is left out")
            continue
        if name != server_name:
            notes.append(f"it is called {name} here")
        problems += [f"{place}: {note}" for note in notes]
        tools[name] = Tool(name=server_name, spec=spec)
    return Imported(tools=tuple(tools.values()), problems=tuple(problems))


def _command(
    name: str,
    fields: Mapping[str, Json],
    plugin: str,
    effects: Mapping[str, EffectKind],
    notes: list[str],
) -> CommandSpec:
    parameters, wrong = import_schema(fields.get("inputSchema"))
    if wrong:
        notes.append(f"inputSchema: {wrong}")
    response: dict[str, Json] | None = None
    if fields.get("outputSchema") is not None:
        try:
            response, wrong = import_schema(fields["outputSchema"], parameters=False)
        except SchemaRefused as refused:
            wrong = f"{refused}; answers are not checked"
        if wrong:
            notes.append(f"outputSchema: {wrong}")
    return CommandSpec(
        name=name,
        description=_description(fields, notes),
        parameters=parameters,
        response=response,
        effects=effects_of(name, fields.get("annotations"), effects),
        # with the server's name, so that it does not take other plugins' names
        tool_name=f"{plugin}.{name}",
    )


def _description(fields: Mapping[str, Json], notes: list[str]) -> str:
    given: Json = fields.get("description") or fields.get("title") or ""
    text = given if isinstance(given, str) else ""
    if hides_something(text):
        notes.append("invisible characters were taken out of its description")
    if len(text) > MOST_TEXT:
        notes.append(f"its description is cut after {MOST_TEXT} characters")
    return visible(text, MOST_TEXT)


def effects_of(name: str, hints: Json, given: Mapping[str, EffectKind]) -> Effects:
    """Return a tool's effects: the strictest, unless the user sets others.

    Args:
        name: the command's name.
        hints: the server's annotations; they can only make the user's effects stricter.
        given: the user's effects by pattern of a command's name.
    """
    kind: EffectKind = "once"
    for pattern, chosen in given.items():
        if fnmatchcase(name, pattern):
            kind = chosen
    claims = as_map(hints)
    if claims.get("readOnlyHint") is False and kind in ("none", "read"):
        kind = "once"
    if claims.get("idempotentHint") is False and kind == "idempotent":
        kind = "once"
    return Effects(
        kind=kind,
        destructive=kind not in ("none", "read"),
        open_world=True,  # a server's answers are untrusted
        declared=True,
    )


def definition_digest(definition: Json) -> str:
    """Return the digest by which changes of a tool are detected."""
    return json.dumps(definition, sort_keys=True, default=str)
