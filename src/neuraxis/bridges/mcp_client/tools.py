"""Tool definitions of an MCP server as command specs.

A server's own hints (`readOnlyHint` and the like) are claims of somebody untrusted:
they can make the effects stricter, never laxer. What makes them laxer is written by
the person, in `effects` of the server's configuration.
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
"""Tools of one server; more are reported and left out."""
MOST_TEXT = 8_000
"""Characters of a description; the rest is left out."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}")
_UNFIT = re.compile(r"[^A-Za-z0-9_./-]+")


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One imported tool: what it is called there, and its command here."""

    name: str
    """The server's own name."""
    spec: CommandSpec


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The imported tools of one server, and their problems."""

    tools: tuple[Tool, ...] = ()
    problems: tuple[str, ...] = ()


def import_tools(
    definitions: Iterable[Json],
    plugin: str,
    effects: Mapping[str, EffectKind] | None = None,
) -> Imported:
    """Return the commands of tool definitions, and problems of bad ones.

    Args:
        definitions: as the server lists them.
        plugin: the plugin's name, which stands before each command's.
        effects: those that the person gives: pattern of a command -> effect.
    """
    tools: dict[str, Tool] = {}
    problems: list[str] = []
    for number, given in enumerate(definitions, 1):
        if number > MOST_TOOLS:
            problems.append(f"{plugin}: only the first {MOST_TOOLS} tools are taken")
            break
        fields = as_map(given)
        own = fields.get("name")
        if not isinstance(own, str) or not own.strip():
            problems.append(f"{plugin}: tool {number} has no name; it is left out")
            continue
        where = f"{plugin}.{one_line(own, 80)}"
        name = own if _NAME.fullmatch(own) else _UNFIT.sub("_", own)[:128].strip("._-")
        if not name or name in tools:
            what = "its name is taken" if name else "its name has no letter"
            problems.append(f"{where}: {what}; it is left out")
            continue
        notes: list[str] = []
        try:
            spec = _command(name, fields, plugin, effects or {}, notes)
        except SchemaRefused as refused:
            problems.append(f"{where}: inputSchema: {refused}; it is left out")
            continue
        if name != own:
            notes.append(f"it is called {name} here")
        problems += [f"{where}: {note}" for note in notes]
        tools[name] = Tool(name=own, spec=spec)
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
        # with the server's name, so that no other plugin's plain name is taken
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
    """Return a tool's effects: the strictest ones, unless the person says otherwise.

    Args:
        name: of the command.
        hints: the server's annotations; they can only take back what a person gave.
        given: effects by pattern of a command's name, written by the person.
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
        open_world=True,  # whatever a server answers was written by somebody else
        declared=True,
    )


def definition_digest(definition: Json) -> str:
    """Return what is compared when a server lists its tools anew."""
    return json.dumps(definition, sort_keys=True, default=str)
