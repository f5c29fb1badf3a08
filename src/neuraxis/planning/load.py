"""Load a saved plan from YAML or JSON.

    version: 1
    description: what it does
    parameters:
      city: {type: string, default: Lyon, description: its English name}
    on_error: fail_fast          # or continue, retry
    steps:
      - tool: population         # a tool name, or plugin.command
        arguments: {city: "{{ params['city'] }}"}
        as: here                 # optional: a name for later steps
      - tool: note
        for_each: "{{ here['names'] }}"
        max_items: 50
        arguments: {text: "{{ item }}"}

`params` refers to the parameters; `results[0]`, `previous_result`, `item` and the names
of steps refer to results. `save.py` writes such a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast, get_args

from msgspec import Struct

from neuraxis.call_errors import problem_text
from neuraxis.errors import ConfigError, ManifestError
from neuraxis.formatting import did_you_mean, nearest, path_text, quote
from neuraxis.messages import Call, Path
from neuraxis.parsing import strict_json
from neuraxis.parsing.yaml import Tree, read_yaml
from neuraxis.planning.for_each import MAX_ITEMS
from neuraxis.planning.plan import OnError
from neuraxis.planning.references import Unknown
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

VERSION = 1
TYPES = ("string", "integer", "number", "boolean", "array", "object")
"""JSON types that a parameter may have."""

DATA_KEYS = ("arguments", "for_each")
"""Keys whose values are plain YAML data, so that `id: 5` is a number there."""

_KEYS = ("version", "description", "parameters", "on_error", "steps")
_STEP_KEYS = ("tool", "arguments", "as", "for_each", "max_items", "literal", "id")
_PARAMETER_KEYS = ("type", "default", "description", "enum")
_JSON = re.compile(r'\s*\{\s*["}]')
"""Beginning of a JSON document; `{version: 1}` is YAML."""
_BARE_BRACES = re.compile(r"[:\-,\[{]\s+\{\{")


class Parameter(Struct, frozen=True, kw_only=True):
    """Parameter of a saved plan; without a default it is required."""

    name: str
    schema: Mapping[str, Json]
    description: str = ""


class SavedPlan(Struct, frozen=True, kw_only=True):
    """Saved plan, not yet checked against any plugin."""

    calls: tuple[Call, ...]
    parameters: tuple[Parameter, ...] = ()
    description: str = ""
    on_error: OnError | None = None
    """None: not set in the file."""

    def values(
        self, assignments: Sequence[tuple[str, str]], *, samples: bool = False
    ) -> dict[str, Json]:
        """Return the value of each parameter, or its default.

        Args:
            assignments: names and values as text, each name once.
            samples: whether parameters without a value become `Unknown`, for a check.

        Raises:
            ConfigError: a name is unknown, or a value is missing or invalid.
        """
        parameters = {parameter.name: parameter for parameter in self.parameters}
        values: dict[str, Json] = {}
        errors: list[str] = []
        for name, text in assignments:
            parameter = parameters.get(name)
            if parameter is None:
                hint = did_you_mean(nearest(name, parameters))
                names = ", ".join(parameters)
                known = f"there are: {names}.{hint}" if names else "the plan has none"
                errors.append(f"{name}: no such parameter; {known}")
                continue
            schema = Schema(parameter.schema)
            value, _ = schema.coerce(text)
            if name in values:
                errors.append(f"{name}: given twice; a list is written as JSON: [1, 2]")
            faults = {problem_text(item, name) for item in schema.problems(value)}
            if faults and parameter.schema["type"] in ("array", "object"):
                faults = {f"{item} (write it as JSON)" for item in faults}
            errors += sorted(faults)
            values[name] = value
        for name, parameter in parameters.items():
            if name not in values:
                kind = parameter.schema["type"]
                if not samples and "default" not in parameter.schema:
                    errors.append(f"{name}: expected a value ({kind}): --set {name}=…")
                values[name] = parameter.schema.get("default", Unknown(kind=kind))
        if errors:
            raise ConfigError("; ".join(errors))
        return values


class _Reading(Struct, kw_only=True):
    """Document of a plan, and the mistakes found so far."""

    tree: Tree
    errors: list[str] = []

    def add_error(self, path: Path, expected: str, got: Json) -> None:
        """Add a mistake with its line."""
        line = self.tree.line(path)
        position = f"{self.tree.file}:{line}" if line else self.tree.file
        location = path_text(path) or "the plan"
        self.errors.append(
            f"{position}: {location}: expected {expected}, got {quote(got)}"
        )

    def check_mapping(
        self, value: Json, allowed: Sequence[str], path: Path
    ) -> dict[str, Json]:
        """Return a mapping; report other values and unknown keys."""
        if not isinstance(value, dict):
            self.add_error(path, "a mapping", value)
            return {}
        entries = cast("dict[str, Json]", value)
        for key in entries:
            if key not in allowed:
                self.add_error(
                    (*path, key), f"one of the keys {', '.join(allowed)}", key
                )
                if hint := did_you_mean(nearest(key, allowed)):
                    self.errors[-1] += f".{hint}"
        return entries


def read_plan(text: str, file: str = "the plan") -> SavedPlan:
    """Parse a plan from YAML or JSON text.

    Raises:
        ConfigError: the text is no plan; names every mistake with its line.
    """
    reading = _Reading(tree=_document(text, file))
    root = reading.check_mapping(reading.tree.value, _KEYS, ())
    if root.get("version") != VERSION or isinstance(root.get("version"), bool):
        reading.add_error(("version",), f"`version: {VERSION}`", root.get("version"))
    on_error = root.get("on_error")
    if on_error is not None and on_error not in get_args(OnError):
        reading.add_error(
            ("on_error",), f"one of {', '.join(get_args(OnError))}", on_error
        )
    description = root.get("description", "")
    if not isinstance(description, str):
        reading.add_error(("description",), "a string", description)
    parameters = _parameters(root.get("parameters"), reading)
    calls = _calls(root.get("steps"), reading)
    if reading.errors:
        raise ConfigError("\n".join(reading.errors))
    return SavedPlan(
        calls=calls,
        parameters=parameters,
        description=description,
        on_error=on_error,
    )


def _document(text: str, file: str) -> Tree:
    text = text.removeprefix("\ufeff")
    if not _JSON.match(text):
        try:
            tree = read_yaml(text, file, DATA_KEYS)
        except ManifestError as error:
            raise _unreadable(text, error) from error
        problems = [item for item in tree.problems if item.severity == "error"]
        if problems:
            raise _unreadable(text, ManifestError(tuple(problems)))
        return tree
    try:
        value = strict_json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: not valid JSON: {error}") from error
    return Tree(value=value, file=file, lines={})


def _unreadable(text: str, error: ManifestError) -> ConfigError:
    """Return the error of an unreadable file, with its most frequent cause."""
    lines = text.splitlines()
    context = {
        line  # once, even if several problems are on it
        for problem in error.problems
        for line in lines[max(0, problem.line - 2) : problem.line]
    }
    hint = ""
    if any(_BARE_BRACES.search(line) for line in context):
        hint = '\nwrite a reference in quotes in YAML: text: "{{ results[0] }}"'
    return ConfigError(f"{error}{hint}")


def _parameters(value: Json, reading: _Reading) -> tuple[Parameter, ...]:
    if value is None:
        return ()
    if not isinstance(value, dict):
        reading.add_error(("parameters",), "a mapping of names to {type, …}", value)
        return ()
    parameters: list[Parameter] = []
    for name, definition in cast("dict[str, Json]", value).items():
        path: Path = ("parameters", name)
        if not name.isidentifier():
            reading.add_error(path, "a name of letters, digits and _", name)
        if isinstance(definition, str):
            definition = {"type": definition}
        entries = reading.check_mapping(
            {} if definition is None else definition, _PARAMETER_KEYS, path
        )
        kind = entries.get("type", "string")
        if kind not in TYPES:
            reading.add_error((*path, "type"), f"one of {', '.join(TYPES)}", kind)
            continue
        schema: dict[str, Json] = {"type": kind}
        if "enum" in entries:
            if not isinstance(entries["enum"], list) or not entries["enum"]:
                reading.add_error((*path, "enum"), "a list of values", entries["enum"])
                continue
            schema["enum"] = entries["enum"]
        if "default" in entries:
            for problem in Schema(schema).problems(entries["default"]):
                reading.add_error(
                    (*path, "default"), problem.expected, entries["default"]
                )
            schema["default"] = entries["default"]
        parameters.append(
            Parameter(
                name=name,
                schema=schema,
                description=str(entries.get("description") or ""),
            )
        )
    return tuple(parameters)


def _calls(value: Json, reading: _Reading) -> tuple[Call, ...]:
    if not isinstance(value, list) or not value:
        reading.add_error(("steps",), "a list of steps {tool, arguments}", value)
        return ()
    steps = cast("list[Json]", value)
    used_ids = {
        str(cast("dict[str, Json]", step).get("id"))
        for step in steps
        if isinstance(step, dict)
    }
    return tuple(
        _call(step, index, reading, used_ids) for index, step in enumerate(steps)
    )


def _call(value: Json, index: int, reading: _Reading, used_ids: set[str]) -> Call:
    path: Path = ("steps", index)
    step = reading.check_mapping(value, _STEP_KEYS, path)
    tool = step.get("tool")
    if not isinstance(tool, str) or not tool.strip():
        reading.add_error(
            (*path, "tool"), "the name of a tool, or plugin.command", tool
        )
        tool = ""
    for key in ("as", "id"):
        if key in step and (not isinstance(step[key], str) or not step[key]):
            reading.add_error((*path, key), "a name", step[key])
    if not isinstance(step.get("literal", False), bool):
        reading.add_error((*path, "literal"), "true or false", step["literal"])
    max_items = step.get("max_items")
    if max_items is not None and (
        type(max_items) is not int or not 1 <= max_items <= MAX_ITEMS
    ):
        reading.add_error((*path, "max_items"), f"1 to {MAX_ITEMS}", max_items)
    if "for_each" in step and step["for_each"] is None:
        reading.add_error((*path, "for_each"), "a list, or a reference to one", None)
    if max_items is not None and "for_each" not in step:
        reading.add_error((*path, "max_items"), "for_each beside it", max_items)
    arguments = step.get("arguments")
    call_id = f"s{index + 1}"
    while call_id in used_ids:
        call_id += "_"
    return Call(
        id=str(step.get("id") or call_id),
        plugin=None,
        command=tool.strip(),
        arguments={} if arguments is None else arguments,
        name=step.get("as"),
        literal=step.get("literal") is True,
        for_each=step.get("for_each"),
        max_items=max_items,
    )
