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

`params` stands for the parameters, as `results[0]`, `previous_result`, `item` and the
names of steps stand for results. `plan_saving.py` writes such a file.
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
from neuraxis.planning.for_each import HARD_MOST
from neuraxis.planning.plan import OnError
from neuraxis.planning.references import Unknown
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

VERSION = 1
TYPES = ("string", "integer", "number", "boolean", "array", "object")
"""Types of parameters: those of JSON."""

DATA_KEYS = ("arguments", "for_each")
"""Keys of plain YAML data: `id: 5` is a number below them."""

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
    """None: the file does not say."""

    def values(
        self, given: Sequence[tuple[str, str]], *, samples: bool = False
    ) -> dict[str, Json]:
        """Return the value of each parameter: as given (texts), else its default.

        Args:
            given: names and values as they were typed, each name once.
            samples: parameters without a value become `Unknown`: enough for a check.

        Raises:
            ConfigError: a name is unknown, a value is missing or does not fit.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        found: dict[str, Json] = {}
        wrong: list[str] = []
        for name, text in given:
            parameter = known.get(name)
            if parameter is None:
                hint = did_you_mean(nearest(name, known))
                there = ", ".join(known) or "none"
                wrong.append(f"{name}: no such parameter; there are: {there}.{hint}")
                continue
            schema = Schema(parameter.schema)
            value, _ = schema.coerce(text)
            if name in found:
                wrong.append(f"{name}: given twice; a list is written as JSON: [1, 2]")
            faults = {problem_text(item, name) for item in schema.problems(value)}
            if faults and parameter.schema["type"] in ("array", "object"):
                faults = {f"{item} (write it as JSON)" for item in faults}
            wrong += sorted(faults)
            found[name] = value
        for name, parameter in known.items():
            if name not in found:
                kind = parameter.schema["type"]
                if not samples and "default" not in parameter.schema:
                    wrong.append(f"{name}: expected a value ({kind}): --set {name}=…")
                found[name] = parameter.schema.get("default", Unknown(kind=kind))
        if wrong:
            raise ConfigError("; ".join(wrong))
        return found


class _Reading(Struct, kw_only=True):
    """Document of a plan, and its mistakes so far."""

    tree: Tree
    wrong: list[str] = []

    def tell(self, path: Path, expected: str, got: Json) -> None:
        """Add one mistake with its line."""
        line = self.tree.line(path)
        where = f"{self.tree.file}:{line}" if line else self.tree.file
        place = path_text(path) or "the plan"
        self.wrong.append(f"{where}: {place}: expected {expected}, got {quote(got)}")

    def keys(self, value: Json, known: Sequence[str], path: Path) -> dict[str, Json]:
        """Return a mapping with known keys only; report it otherwise."""
        if not isinstance(value, dict):
            self.tell(path, "a mapping", value)
            return {}
        entries = cast("dict[str, Json]", value)
        for key in entries:
            if key not in known:
                self.tell((*path, key), f"one of the keys {', '.join(known)}", key)
                if hint := did_you_mean(nearest(key, known)):
                    self.wrong[-1] += f".{hint}"
        return entries


def read_plan(text: str, file: str = "the plan") -> SavedPlan:
    """Read the plan that a YAML or JSON text describes.

    Raises:
        ConfigError: it is none; every mistake at once, each with its line.
    """
    reading = _Reading(tree=_document(text, file))
    root = reading.keys(reading.tree.value, _KEYS, ())
    if root.get("version") != VERSION or isinstance(root.get("version"), bool):
        reading.tell(("version",), f"`version: {VERSION}`", root.get("version"))
    on_error = root.get("on_error")
    if on_error is not None and on_error not in get_args(OnError):
        reading.tell(("on_error",), f"one of {', '.join(get_args(OnError))}", on_error)
    description = root.get("description", "")
    if not isinstance(description, str):
        reading.tell(("description",), "a string", description)
    parameters = _parameters(root.get("parameters"), reading)
    calls = _calls(root.get("steps"), reading)
    if reading.wrong:
        raise ConfigError("\n".join(reading.wrong))
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
        wrong = [item for item in tree.problems if item.severity == "error"]
        if wrong:
            raise _unreadable(text, ManifestError(tuple(wrong)))
        return tree
    try:
        value = strict_json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: not valid JSON: {error}") from error
    return Tree(value=value, file=file, lines={})


def _unreadable(text: str, error: ManifestError) -> ConfigError:
    """Return the error of an unreadable file, with its most frequent cause."""
    lines = text.splitlines()
    near = {
        line  # once, also where many problems are on it
        for problem in error.problems
        for line in lines[max(0, problem.line - 2) : problem.line]
    }
    hint = ""
    if any(_BARE_BRACES.search(line) for line in near):
        hint = '\nwrite a reference in quotes in YAML: text: "{{ results[0] }}"'
    return ConfigError(f"{error}{hint}")


def _parameters(value: Json, reading: _Reading) -> tuple[Parameter, ...]:
    if value is None:
        return ()
    if not isinstance(value, dict):
        reading.tell(("parameters",), "a mapping of names to {type, …}", value)
        return ()
    found: list[Parameter] = []
    for name, given in cast("dict[str, Json]", value).items():
        path: Path = ("parameters", name)
        if not name.isidentifier():
            reading.tell(path, "a name of letters, digits and _", name)
        if isinstance(given, str):
            given = {"type": given}
        entries = reading.keys({} if given is None else given, _PARAMETER_KEYS, path)
        kind = entries.get("type", "string")
        if kind not in TYPES:
            reading.tell((*path, "type"), f"one of {', '.join(TYPES)}", kind)
            continue
        schema: dict[str, Json] = {"type": kind}
        if "enum" in entries:
            if not isinstance(entries["enum"], list) or not entries["enum"]:
                reading.tell((*path, "enum"), "a list of values", entries["enum"])
                continue
            schema["enum"] = entries["enum"]
        if "default" in entries:
            for problem in Schema(schema).problems(entries["default"]):
                reading.tell((*path, "default"), problem.expected, entries["default"])
            schema["default"] = entries["default"]
        found.append(
            Parameter(
                name=name,
                schema=schema,
                description=str(entries.get("description") or ""),
            )
        )
    return tuple(found)


def _calls(value: Json, reading: _Reading) -> tuple[Call, ...]:
    if not isinstance(value, list) or not value:
        reading.tell(("steps",), "a list of steps {tool, arguments}", value)
        return ()
    steps = cast("list[Json]", value)
    taken = {
        str(cast("dict[str, Json]", step).get("id"))
        for step in steps
        if isinstance(step, dict)
    }
    return tuple(_call(step, index, reading, taken) for index, step in enumerate(steps))


def _call(value: Json, index: int, reading: _Reading, taken: set[str]) -> Call:
    path: Path = ("steps", index)
    step = reading.keys(value, _STEP_KEYS, path)
    tool = step.get("tool")
    if not isinstance(tool, str) or not tool.strip():
        reading.tell((*path, "tool"), "the name of a tool, or plugin.command", tool)
        tool = ""
    for key in ("as", "id"):
        if key in step and (not isinstance(step[key], str) or not step[key]):
            reading.tell((*path, key), "a name", step[key])
    if not isinstance(step.get("literal", False), bool):
        reading.tell((*path, "literal"), "true or false", step["literal"])
    most = step.get("max_items")
    if most is not None and (type(most) is not int or not 1 <= most <= HARD_MOST):
        reading.tell((*path, "max_items"), f"1 to {HARD_MOST}", most)
    if "for_each" in step and step["for_each"] is None:
        reading.tell((*path, "for_each"), "a list, or a reference to one", None)
    if most is not None and "for_each" not in step:
        reading.tell((*path, "max_items"), "for_each beside it", most)
    arguments = step.get("arguments")
    own = f"s{index + 1}"
    while own in taken:
        own += "_"
    return Call(
        id=str(step.get("id") or own),
        plugin=None,
        command=tool.strip(),
        arguments={} if arguments is None else arguments,
        name=step.get("as"),
        literal=step.get("literal") is True,
        for_each=step.get("for_each"),
        max_items=most,
    )
