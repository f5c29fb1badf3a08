"""Read the `commands:` of a manifest into command specs.

A command of protocol v1 has `parameters`, a list; one of v2 has `parameter`, a node
(rules K1, K2, D1). The Neuraxis extensions are read the same for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from msgspec.structs import replace

from neuraxis.call_errors import problem_text
from neuraxis.formatting import path_text, quote, yaml_type
from neuraxis.messages import Path as Place
from neuraxis.plugins.effects_and_examples import (
    no_flag,
    parse_effects,
    parse_examples,
    reference_places,
)
from neuraxis.plugins.functions.hints import Defs, inlined
from neuraxis.plugins.functions.validate import TIME_LIMIT, is_time_limit
from neuraxis.plugins.manifest.problems import Notes
from neuraxis.schema.notation.nodes import (
    parameter_schema,
    parameters_schema,
    response_schema,
)
from neuraxis.schema.notation.type_refs import collect_types
from neuraxis.schema.notation.types import NotationProblem, TypeTable
from neuraxis.schema.schema import Schema
from neuraxis.specs import CommandSpec, Effects, Example, Json

_KEYS = (
    "command_name", "description", "parameter", "parameters", "response", "effects",
    "examples", "example_output", "tool_name", "time_limit", "blocking", "concurrency",
    "failure_field",
)  # fmt: skip


def is_v1(commands: Json) -> bool:
    """Return whether a manifest is v1: `parameters` or a response list."""
    if not isinstance(commands, list):
        return False
    given = [
        cast("dict[str, Json]", item)
        for item in cast("list[Json]", commands)
        if isinstance(item, dict)
    ]
    return not any("parameter" in item for item in given) and any(
        "parameters" in item or isinstance(item.get("response"), list) for item in given
    )


def read_commands(
    root: Mapping[str, Json], listed: bool, notes: Notes
) -> tuple[CommandSpec, ...]:
    """Return the specs of all commands that could be read."""
    commands = root.get("commands")
    if commands is None or commands == []:
        if listed:
            hint = "[{command_name: …, description: …}]"
            notes.missing(root, "commands", hint)
        return ()
    if not isinstance(commands, list):
        message = (
            f"commands: expected a list, got {yaml_type(commands)}; each command "
            "begins with `- command_name: NAME`"
        )
        notes.error(("commands",), message)
        return ()
    problems: list[NotationProblem] = []
    types = collect_types(root, problems=problems)
    for problem in problems:  # a type of the whole file: no command can be left out
        severity = "warning" if problem.severity == "warning" else "error"
        notes.error(problem.path, problem.message, severity)
    specs: dict[str, CommandSpec] = {}
    left_out: set[str] = set()
    for index, item in enumerate(cast("list[Json]", commands)):
        place = ("commands", index)
        before = len(notes.found)
        command = notes.mapping(item, place, "command")
        if not command:
            if not isinstance(item, dict | str | list):
                notes.error(place, "the command is empty")
            continue
        spec = _command(command, place, types, notes)
        if spec.name in specs:
            where = (*place, "command_name")
            notes.error(where, f"the command {spec.name!r} is declared twice")
        elif spec.name:
            specs[spec.name] = spec
            if any(problem.severity == "command" for problem in notes.found[before:]):
                left_out.add(spec.name)
    return _without(specs, left_out, notes)


def _without(
    specs: Mapping[str, CommandSpec], left_out: set[str], notes: Notes
) -> tuple[CommandSpec, ...]:
    """Leave commands out; if none remains, their mistakes are errors."""
    remaining = tuple(spec for name, spec in specs.items() if name not in left_out)
    severity = "warning" if remaining and not notes.strict else "error"
    hint = "; the command is left out" if severity == "warning" else ""
    notes.found[:] = [
        replace(problem, severity=severity, message=f"{problem.message}{hint}")
        if problem.severity == "command"
        else problem
        for problem in notes.found
    ]
    return remaining


def _command(
    command: Mapping[str, Json], place: Place, types: TypeTable, notes: Notes
) -> CommandSpec:
    notes.unknown(command, _KEYS, place, ("command_name",))
    raw_name = command.get("command_name")
    name = notes.text(raw_name, (*place, "command_name"))
    if name is None:
        if raw_name is None or isinstance(raw_name, str):
            notes.error(place, "command_name: expected the name of the command")
    elif not name.isprintable():
        where = (*place, "command_name")
        notes.error(where, f"the name {quote(name)} holds control characters")
    description = notes.text(command.get("description"), (*place, "description"))
    if not description:
        notes.warn(place, f"the command {f'{name} ' if name else ''}has no description")
    parameters = _parameters(command, place, types, notes)
    response = _response(command, place, types, notes)
    tool_name = notes.text(command.get("tool_name"), (*place, "tool_name"))
    examples = _examples(command, tool_name or name or "", parameters, place, notes)
    _check_output(command, response, place, notes)
    return CommandSpec(
        name=name or "",
        description=description or "",
        parameters=parameters,
        response=response,
        effects=_effects(command, place, notes),
        examples=examples,
        example_output=command.get("example_output"),
        tool_name=tool_name,
        time_limit=_time_limit(command, place, notes),
        blocking=_blocking(command, place, notes),
        concurrency=_concurrency(command, place, notes),
        failure_field=_failure_field(command, response, place, notes),
        raw=command,
    )


def _note(problems: list[NotationProblem], place: Place, notes: Notes) -> None:
    for problem in problems:
        notes.error((*place, *problem.path), problem.message, problem.severity)


def _parameters(
    command: Mapping[str, Json], place: Place, types: TypeTable, notes: Notes
) -> dict[str, Json]:
    problems: list[NotationProblem] = []
    if "parameters" in command and "parameter" in command:
        notes.error(
            (*place, "parameter"),
            "expected parameters (protocol v1) or parameter (v2), got both",
        )
        return parameter_schema(None, types)
    if "parameters" in command:
        nodes = command["parameters"]
        where = (*place, "parameters")
        if isinstance(nodes, dict):
            return _other_form(where, "a list", "a mapping", types, notes)
        schema = _rooted(parameters_schema(nodes, types, problems=problems))
        _note(problems, where, notes)
        if isinstance(nodes, list):
            _lint_v1(cast("list[Json]", nodes), where, notes)
        _check_classes(schema, where, notes)
        return schema
    node = command.get("parameter")
    where = (*place, "parameter")
    if isinstance(node, list):
        return _other_form(where, "a mapping with a type", "a list", types, notes)
    schema = _rooted(parameter_schema(node, types, problems=problems))
    _note(problems, where, notes)
    if isinstance(node, dict):
        fields = cast("dict[str, Json]", node).get("type")
        if isinstance(fields, dict):
            for key, part in cast("dict[str, Json]", fields).items():
                if key != "_type_ref":
                    _lint(part, key, (*where, "type", key), notes)
    _check_classes(schema, where, notes)
    return schema


def _check_classes(schema: Mapping[str, Json], where: Place, notes: Notes) -> None:
    """Report classes that no call can supply (rules B41, B44)."""
    for path, cls in _without_reference(schema, ()):
        below = (*where, "type", *path[:1]) if where[-1] == "parameter" else where
        message = (
            f"{path_text(path) or where[-1]}: an object of the class {cls} is passed "
            "by reference only; write asset_ref_acceptable: true beside its type"
        )
        notes.error(below, message, "warning")


def _without_reference(
    node: Mapping[str, Json], path: Place
) -> Iterator[tuple[Place, str]]:
    """Yield the classes that accept no reference, each with its path."""
    if node.get("x-asset-ref") is True:
        return
    if "x-type" in node:
        yield path, str(node["x-type"])
    for name, field in node.get("properties", {}).items():
        yield from _without_reference(field, (*path, name))
    for inner in (node.get("items"), *node.get("prefixItems", ())):
        if isinstance(inner, dict):
            yield from _without_reference(cast("dict[str, Json]", inner), path)


_OTHER = {
    "parameters": ("protocol v1", "protocol v2 writes `parameter:`"),
    "parameter": ("protocol v2", "protocol v1 writes `parameters:`"),
}


def _other_form(
    where: Place, expected: str, got: str, types: TypeTable, notes: Notes
) -> dict[str, Json]:
    """Report a key written in the other protocol's form, as no parameters."""
    key = str(where[-1])
    protocol, hint = _OTHER[key]
    notes.error(where, f"{key}: expected {expected} ({protocol}), got {got}; {hint}")
    return parameter_schema(None, types)


def _lint_v1(nodes: list[Json], where: Place, notes: Notes) -> None:
    for index, node in enumerate(nodes):
        if not isinstance(node, dict):
            continue
        schema = cast("dict[str, Json]", node)
        name = str(schema.get("name", ""))
        _lint(schema, name, (*where, index), notes)
        if "required" not in schema and "optional" not in schema:
            notes.warn(
                (*where, index),
                f"parameter {name}: protocol v1 states no default for required; "
                "true is taken",
            )


def _lint(node: Json, name: str, where: Place, notes: Notes) -> None:
    if isinstance(node, dict):
        schema = cast("dict[str, Json]", node)
        if not schema.get("description"):
            notes.warn(where, f"parameter {name} has no description")


def _response(
    command: Mapping[str, Json], place: Place, types: TypeTable, notes: Notes
) -> dict[str, Json] | None:
    problems: list[NotationProblem] = []
    schema = response_schema(command.get("response"), types, problems=problems)
    _note(problems, (*place, "response"), notes)
    return None if schema is None else _rooted(schema)


def _rooted(schema: dict[str, Json]) -> dict[str, Json]:
    """Return the schema with its fields at the root, resolving `_type_ref`."""
    definitions: dict[str, dict[str, Json]] = schema.get("$defs", {})
    if "$ref" not in schema:
        return schema
    bare = {key: value for key, value in schema.items() if key != "$defs"}
    return inlined(bare, Defs(schemas=definitions))


def _effects(command: Mapping[str, Json], place: Place, notes: Notes) -> Effects:
    if command.get("effects") is None:
        return Effects()
    effects = parse_effects(command["effects"])
    if isinstance(effects, str):
        notes.error((*place, "effects"), effects)
        return Effects()
    return effects


def _examples(
    command: Mapping[str, Json],
    own_tool: str,
    parameters: Mapping[str, Json],
    place: Place,
    notes: Notes,
) -> tuple[Example, ...]:
    where = (*place, "examples")
    examples, problems = parse_examples(command.get("examples"), own_tool)
    for path, message in problems:
        notes.error((*where, *path), message)
    check_examples(examples, {own_tool: parameters}, where, notes)
    return examples


def check_examples(
    examples: Sequence[Example],
    tools: Mapping[str, Mapping[str, Json]],
    where: Place,
    notes: Notes,
) -> None:
    """Warn of invalid example calls; other plugins' tools are unknown here."""
    for index, example in enumerate(examples):
        for call in example.calls:
            if call.tool not in tools:
                continue
            arguments = {
                key: part for key, part in call.arguments.items() if key != "as"
            }
            schema = Schema(tools[call.tool])
            for problem in schema.problems(
                arguments, holes=reference_places(arguments)
            ):
                text = problem_text(problem)
                notes.warn((*where, index), f"the example does not fit: {text}")


def _check_output(
    command: Mapping[str, Json],
    response: Mapping[str, Json] | None,
    place: Place,
    notes: Notes,
) -> None:
    output = command.get("example_output")
    if output is None or response is None:
        return
    for problem in Schema(response).problems(output):
        text = problem_text(problem)
        notes.warn((*place, "example_output"), f"the output does not fit: {text}")


def _time_limit(
    command: Mapping[str, Json], place: Place, notes: Notes
) -> float | None:
    value = command.get("time_limit")
    if value is None:
        return None
    if not is_time_limit(value):
        message = f"time_limit: expected {TIME_LIMIT}, got {quote(value)}"
        notes.error((*place, "time_limit"), message)
        return None
    return float(value)


def _blocking(command: Mapping[str, Json], place: Place, notes: Notes) -> bool:
    value = command.get("blocking", True)
    if isinstance(value, bool):
        return value
    message = f"blocking: expected true or false, got {quote(value)}"
    notes.error((*place, "blocking"), message)
    return True


def _concurrency(command: Mapping[str, Json], place: Place, notes: Notes) -> int | None:
    value = command.get("concurrency")
    if value is None or (type(value) is int and value > 0):
        return value
    message = f"concurrency: expected a whole number above 0, got {quote(value)}"
    notes.error((*place, "concurrency"), message)
    return None


def _failure_field(
    command: Mapping[str, Json],
    response: Mapping[str, Json] | None,
    place: Place,
    notes: Notes,
) -> str | None:
    where = (*place, "failure_field")
    name = notes.text(command.get("failure_field"), where)
    if name is None:
        return None
    if wrong := no_flag(name, response):
        notes.error(where, wrong)
        return None
    return name
