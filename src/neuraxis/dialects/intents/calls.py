"""Read calls from the items of an intent list.

Rule C4: `"tool"` names the tool, every other key is a parameter, except for a few keys
of the dialect's own. Leniently the nested forms of other conventions are accepted, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.call_errors import malformed_reply
from neuraxis.dialects.families.family import bare
from neuraxis.formatting import path_text, quote
from neuraxis.messages import Call, CallError, Path
from neuraxis.parsing.json_errors import Fault
from neuraxis.parsing.json_scan import Value, loads
from neuraxis.specs import Json

START = "<!-- RESPONSE_START -->"
END = "<!-- RESPONSE_END -->"
"""The markers around a block of calls."""
RESERVED = ("tool", "as", "$literal", "$value", "$for_each", "$max_items")
"""Keys of an intent that are not parameters; `$` escapes a parameter."""

_OPTIONS = "literal|value|for_each|max_items"
_ESCAPED = re.compile(rf"\$(\$*(?:tool|as|\$(?:{_OPTIONS})))")
_TO_ESCAPE = re.compile(rf"\$*(?:tool|as)|\$+(?:{_OPTIONS})")
_CONTAINER = re.compile(
    r"(?:(?:tool|function)_?)?(?:calls?|uses?)|tools|functions|actions?|commands?"
    r"|messages?|intents?|plan|steps?|requests?|response|reply|output",
    re.IGNORECASE,
)
"""Keys under which models put their calls, in every dialect."""
_NAME_KEYS = (
    *("name", "tool_name", "function", "function_name", "func", "function_call"),
    *("recipient_name", "action"),
)
_ARGUMENT_KEYS = ("parameters", "arguments", "params", "args", "input")
_SPACE = re.compile(r"\s+")
_EXTRA_KEYS = frozenset({"id", "tool_call_id", "type"})
_ITEM_KEYS = frozenset({"call_id", "status"})
"""Keys of a Responses API item that are not part of the call."""
_NESTED_KEYS = (
    *_ARGUMENT_KEYS,
    "action_input",
    "tool_input",
    "tool_args",
    "tool_arguments",
)

ParameterNames = Callable[[str], Collection[str]]
IsTool = Callable[[str], bool]


class Reading(Struct, kw_only=True):
    """Calls and errors found so far, and the reading options."""

    parameter_names: ParameterNames | None
    next_id: Callable[[], str]
    lenient: bool
    notes: dict[str, None]
    errors: list[CallError]
    is_tool: IsTool


def escape_key(key: str) -> str:
    """Return a parameter's key as written in an intent."""
    return f"${key}" if _TO_ESCAPE.fullmatch(key) else key


def no_tools(name: str) -> bool:
    """Default for `is_tool`: no tool is known."""
    return False


def no_parameters(tool: str) -> Collection[str]:
    """Default for `parameter_names`: no parameters are known."""
    return ()


def has_intents(
    value: Value, is_tool: IsTool = no_tools, names: ParameterNames = no_parameters
) -> bool:
    """Return whether a value without markers was meant as intents."""
    content = value.value
    if (inside := passed_intents(content, is_tool)) is not None:
        content = inside
    items = cast("list[Json]", content) if isinstance(content, list) else [content]
    return any(
        _is_intent_like(item, is_tool, names) or _is_flat(item, names) for item in items
    )


def passed_intents(value: Json, is_tool: IsTool) -> list[Json] | None:
    """Return the intents inside other objects; None if they have none."""
    return passed_calls(value, lambda item: _is_intent_like(item, is_tool))


def passed_calls(value: Json, like_call: Callable[[Json], bool]) -> list[Json] | None:
    """Return the calls inside other objects; None if they have none."""
    if isinstance(value, list):
        items = cast("list[Json]", value)
        nested = [passed_calls(item, like_call) for item in items]
        if not any(nested):
            return None
        pairs = zip(items, nested, strict=True)
        return [call for item, inner in pairs for call in inner or [item]]
    if not isinstance(value, dict):
        return None
    message = cast("dict[str, Json]", value)
    containers = [key for key, item in message.items() if isinstance(item, dict | list)]
    if (
        len(containers) != 1
        or not _CONTAINER.fullmatch(containers[0])
        or any(isinstance(message.get(key), str) for key in ("tool", *_NAME_KEYS))
    ):
        return None
    content: Json = message[containers[0]]
    calls = cast("list[Json]", content) if isinstance(content, list) else [content]
    is_certain = containers[0] == "tool_calls" or any(map(like_call, calls))
    return calls if is_certain else None


def holds_call(value: Json, like_call: Callable[[Json], bool]) -> bool:
    """Return whether a value is, or holds, a call."""
    inside = passed_calls(value, like_call)
    content = value if inside is None else inside
    items = cast("list[Json]", content) if isinstance(content, list) else [content]
    return any(map(like_call, items))


def is_message(item: Json) -> bool:
    """Return whether an object is a message of the protocols."""
    if not isinstance(item, dict):
        return False
    message = cast("dict[str, Json]", item)
    is_envelope = isinstance(message.get("receiver"), dict) and "content" in message
    return is_envelope or (
        isinstance(message.get("command"), str) and "param" in message
    )


def _is_intent_like(
    item: Json, is_tool: IsTool, names: ParameterNames = no_parameters
) -> bool:
    if not isinstance(item, dict):
        return False
    intent = cast("dict[str, Json]", item)
    if isinstance(intent.get("tool"), str) or by_tool(intent, is_tool):
        return True
    function = intent.get("function")
    if isinstance(function, dict):
        intent = cast("dict[str, Json]", function)
    name = intent.get(_name_key(intent))
    if not isinstance(name, str):
        return False
    if _SPACE.search(name) and not is_tool(name):
        return is_tool(_SPACE.sub("_", name.strip().lower()))  # else a person's name
    has_usual_name = "name" in intent or "tool_name" in intent
    nested = _NESTED_KEYS if is_tool(name) else _ARGUMENT_KEYS if has_usual_name else ()
    contents = [
        intent[key] for key in nested if isinstance(intent.get(key), dict | str)
    ]
    return bool(contents) and not _is_definition(intent, contents[0], names(name))


def _is_definition(
    intent: Mapping[str, Json], content: Json, parameters: Collection[str]
) -> bool:
    """Return whether a tool is defined here, not called."""
    if not isinstance(content, dict) or "properties" not in content:
        return False
    schema = cast("dict[str, Json]", content)
    is_schema = "description" in intent or schema.get("type") in ("object", "dict")
    return is_schema and not set(schema) <= set(parameters)


def _is_flat(item: Json, names: ParameterNames) -> bool:
    """Return whether a tool's name has only its parameters as other keys."""
    if not isinstance(item, dict):
        return False
    intent = cast("dict[str, Json]", item)
    name_key = _name_key(intent)
    name = intent.get(name_key)
    return (
        isinstance(name, str)
        and len(intent) > 1
        and set(intent) - {name_key} <= set(names(name))
    )


def by_tool(item: Json, is_tool: IsTool) -> list[tuple[str, dict[str, Json]]]:
    """Return the calls of `{"name of a tool": {arguments}}`."""
    if not isinstance(item, dict) or not item:
        return []
    entries = cast("dict[str, Json]", item)
    if not all(
        isinstance(value, dict) and is_tool(key) for key, value in entries.items()
    ):
        return []
    return cast("list[tuple[str, dict[str, Json]]]", list(entries.items()))


def _name_key(intent: Mapping[str, Json]) -> str:
    """Return the key of the tool's name in other conventions."""
    return next((key for key in _NAME_KEYS if isinstance(intent.get(key), str)), "name")


def read_calls(intents: Sequence[Json], reading: Reading) -> tuple[Call, ...]:
    """Return the calls; none, with errors added, if one is wrong."""
    calls: list[Call] = []
    for index, item in enumerate(intents):
        call = _call(item, (index,), reading)
        if call is not None:
            calls.append(call)
    if reading.errors:
        return ()
    return tuple(replace(call, id=reading.next_id()) for call in calls)


def _call(item: Json, path: Path, reading: Reading) -> Call | None:
    if not isinstance(item, dict):
        return _refuse(reading, path, 'an object with the key "tool"', item)
    intent = cast("dict[str, Json]", item)
    if "tool" not in intent and reading.lenient:
        flat = _flattened(intent, path, reading)
        if flat is None:
            return None
        intent = flat
    if "tool" not in intent:
        return _refuse(reading, path, 'the key "tool" with the name of a tool', item)
    tool = intent["tool"]
    if not isinstance(tool, str) or not tool.strip():
        return _refuse(reading, (*path, "tool"), "the name of a tool", tool)
    tool = tool.strip()
    if reading.lenient and not reading.is_tool(tool):
        tool = bare(tool)
    parameters = reading.parameter_names(tool) if reading.parameter_names else ()
    if reading.lenient and reading.parameter_names is not None:
        intent = _unnested(intent, parameters, reading)
    return _from_flat(intent, tool, parameters, path, reading)


def _from_flat(
    intent: Mapping[str, Json],
    tool: str,
    parameters: Collection[str],
    path: Path,
    reading: Reading,
) -> Call | None:
    # if the tool has a parameter "as", "$as" names the step
    name_key = "$as" if "as" in parameters else "as"
    arguments: Json = {}
    name: str | None = None
    literal = False
    for_each: Json = None
    max_items: int | None = None
    for key, value in intent.items():
        if key == "tool":
            continue
        if key == name_key:
            if not isinstance(value, str) or not value:
                return _refuse(reading, (*path, key), "a name for the step", value)
            name = value
        elif key == "$literal":
            if not isinstance(value, bool):
                return _refuse(reading, (*path, key), "true or false", value)
            literal = value
        elif key == "$for_each":
            if not isinstance(value, list | str | dict):
                expected = "a list, or a reference to one"
                return _refuse(reading, (*path, key), expected, value)
            for_each = cast("Json", value)
        elif key == "$max_items":
            if type(value) is not int or value < 1:
                return _refuse(reading, (*path, key), "a whole number from 1", value)
            max_items = value
        elif key == "$value":
            others = [other for other in intent if other not in (*RESERVED, name_key)]
            if others:
                return _refuse(
                    reading, (*path, others[0]), 'no key beside "$value"', others[0]
                )
            arguments = value
        else:
            escaped = _ESCAPED.fullmatch(key)
            arguments[escaped[1] if escaped else key] = value
    return Call(
        id="",
        plugin=None,
        command=tool,
        arguments=arguments,
        name=name,
        literal=literal,
        for_each=for_each,
        max_items=max_items,
    )


def _flattened(
    intent: dict[str, Json], path: Path, reading: Reading
) -> dict[str, Json] | None:
    """Flatten `{"name", "arguments"}`, bare or under "function"."""
    function = intent.get("function")
    if isinstance(function, dict) and not set(intent) - {"type", "id", "function"}:
        intent = cast("dict[str, Json]", function)
    name_key = _name_key(intent)
    name = intent.get(name_key)
    nested = [key for key in _NESTED_KEYS if key in intent]
    extra_keys = (
        _EXTRA_KEYS | _ITEM_KEYS
        if intent.get("type") == "function_call"
        else _EXTRA_KEYS
    )
    if (
        not isinstance(name, str)
        or len(nested) != 1
        or set(intent) - extra_keys - {name_key, nested[0]}
    ):
        if not _is_flat(intent, reading.parameter_names or no_parameters):
            return intent
        reading.notes[f'"{name_key}" instead of "tool"'] = None
        content = {key: value for key, value in intent.items() if key != name_key}
        return flat_intent(str(name), content, reading)
    content = intent[nested[0]]
    arguments = _object(content)
    if not isinstance(arguments, dict):
        fault = loads(content) if isinstance(content, str) else None
        expected = f"the arguments of {name} as a JSON object"
        if isinstance(fault, Fault):
            expected += f" ({fault.message})"
        return _refuse(reading, (*path, nested[0]), expected, content)
    reading.notes[f'"{name_key}" and "{nested[0]}" instead of a flat intent'] = None
    return flat_intent(name, cast("dict[str, Json]", arguments), reading)


def _object(arguments: Json) -> Json:
    """Parse arguments that are JSON in a string, as servers send them."""
    if not isinstance(arguments, str):
        return arguments
    read = loads(arguments) if arguments.strip() else None
    return read.value if isinstance(read, Value) else None


def flat_intent(
    tool: str, arguments: Mapping[str, Json], reading: Reading
) -> dict[str, Json]:
    """Return the flat intent of a tool with all its arguments."""
    parameters = reading.parameter_names(tool) if reading.parameter_names else ()
    return {"tool": tool, **_escaped(arguments, parameters)}


def _escaped(
    arguments: Mapping[str, Json], parameters: Collection[str]
) -> dict[str, Json]:
    """Return arguments with their keys escaped for that tool's intent."""
    # a parameter "as" is not escaped: see `_from_flat`
    plain = "as" if "as" in parameters else None
    return {
        key if key == plain else escape_key(key): item
        for key, item in arguments.items()
    }


def _unnested(
    intent: dict[str, Json], parameters: Collection[str], reading: Reading
) -> dict[str, Json]:
    """Flatten `{"tool": X, "parameters": {…}}` if it is unambiguous."""
    keys = [key for key in intent if key not in RESERVED]
    if (
        len(keys) != 1
        or keys[0] not in _NESTED_KEYS
        or keys[0] in parameters
        or not parameters
    ):
        return intent
    arguments = _object(intent[keys[0]])
    if not isinstance(arguments, dict):
        return intent
    reading.notes[f'parameters under "{keys[0]}"'] = None
    inner = cast("dict[str, Json]", arguments)
    flat = {key: value for key, value in intent.items() if key != keys[0]}
    return flat | _escaped(inner, parameters)


def _refuse(reading: Reading, path: Path, expected: str, got: Json) -> None:
    where = path_text(path)
    reading.errors.append(
        malformed_reply(f"{where}: expected {expected}, got {quote(got)}.", where)
    )
