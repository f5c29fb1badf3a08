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

_OURS = "literal|value|for_each|max_items"
_ESCAPED = re.compile(rf"\$(\$*(?:tool|as|\$(?:{_OURS})))")
_TO_ESCAPE = re.compile(rf"\$*(?:tool|as)|\$+(?:{_OURS})")
_HELD = re.compile(
    r"(?:(?:tool|function)_?)?(?:calls?|uses?)|tools|functions|actions?|commands?"
    r"|messages?|intents?|plan|steps?|requests?|response|reply|output",
    re.IGNORECASE,
)
"""Keys under which models put their calls, in every dialect."""
_NAMES = (
    *("name", "tool_name", "function", "function_name", "func", "function_call"),
    *("recipient_name", "action"),
)
_USUAL = ("parameters", "arguments", "params", "args", "input")
_SPACE = re.compile(r"\s+")
_BESIDE = frozenset({"id", "tool_call_id", "type"})
_ITEM = frozenset({"call_id", "status"})
"""Keys of an item of the Responses API that say nothing of the call."""
_NESTED = (*_USUAL, "action_input", "tool_input", "tool_args", "tool_arguments")

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
    """Return that no tool is known."""
    return False


def no_parameters(tool: str) -> Collection[str]:
    """Return that no tool's parameters are known."""
    return ()


def like_intents(
    value: Value, is_tool: IsTool = no_tools, names: ParameterNames = no_parameters
) -> bool:
    """Return whether a value without markers was meant as intents."""
    whole = value.value
    if (inside := passed_intents(whole, is_tool)) is not None:
        whole = inside
    items = cast("list[Json]", whole) if isinstance(whole, list) else [whole]
    return any(
        _like_intent(item, is_tool, names) or _is_flat(item, names) for item in items
    )


def passed_intents(value: Json, is_tool: IsTool) -> list[Json] | None:
    """Return the intents inside other objects; None if they have none."""
    return passed_calls(value, lambda item: _like_intent(item, is_tool))


def passed_calls(value: Json, like_call: Callable[[Json], bool]) -> list[Json] | None:
    """Return the calls inside other objects; None if they have none."""
    if isinstance(value, list):
        items = cast("list[Json]", value)
        found = [passed_calls(item, like_call) for item in items]
        if not any(found):
            return None
        pairs = zip(items, found, strict=True)
        return [call for item, inner in pairs for call in inner or [item]]
    if not isinstance(value, dict):
        return None
    message = cast("dict[str, Json]", value)
    held = [key for key, item in message.items() if isinstance(item, dict | list)]
    if (
        len(held) != 1
        or not _HELD.fullmatch(held[0])
        or any(isinstance(message.get(key), str) for key in ("tool", *_NAMES))
    ):
        return None
    inside: Json = message[held[0]]
    calls = cast("list[Json]", inside) if isinstance(inside, list) else [inside]
    sure = held[0] == "tool_calls" or any(map(like_call, calls))
    return calls if sure else None


def holds(value: Json, like_call: Callable[[Json], bool]) -> bool:
    """Return whether a value is, or holds, a call."""
    inside = passed_calls(value, like_call)
    whole = value if inside is None else inside
    items = cast("list[Json]", whole) if isinstance(whole, list) else [whole]
    return any(map(like_call, items))


def is_message(item: Json) -> bool:
    """Return whether an object is a message of the protocols."""
    if not isinstance(item, dict):
        return False
    message = cast("dict[str, Json]", item)
    whole = isinstance(message.get("receiver"), dict) and "content" in message
    return whole or (isinstance(message.get("command"), str) and "param" in message)


def _like_intent(
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
        return is_tool(_SPACE.sub("_", name.strip().lower()))  # else of a person
    usual = "name" in intent or "tool_name" in intent
    nested = _NESTED if is_tool(name) else _USUAL if usual else ()
    given = [intent[key] for key in nested if isinstance(intent.get(key), dict | str)]
    return bool(given) and not _is_definition(intent, given[0], names(name))


def _is_definition(
    intent: Mapping[str, Json], given: Json, known: Collection[str]
) -> bool:
    """Return whether a tool is defined here, not called."""
    if not isinstance(given, dict) or "properties" not in given:
        return False
    schema = cast("dict[str, Json]", given)
    is_schema = "description" in intent or schema.get("type") in ("object", "dict")
    return is_schema and not set(schema) <= set(known)


def _is_flat(item: Json, names: ParameterNames) -> bool:
    """Return whether a name stands beside nothing but its tool's parameters."""
    if not isinstance(item, dict):
        return False
    intent = cast("dict[str, Json]", item)
    key = _name_key(intent)
    name = intent.get(key)
    return (
        isinstance(name, str)
        and len(intent) > 1
        and set(intent) - {key} <= set(names(name))
    )


def by_tool(item: Json, is_tool: IsTool) -> list[tuple[str, dict[str, Json]]]:
    """Return the calls of `{"name of a tool": {arguments}}`."""
    if not isinstance(item, dict) or not item:
        return []
    named = cast("dict[str, Json]", item)
    if not all(
        isinstance(value, dict) and is_tool(key) for key, value in named.items()
    ):
        return []
    return cast("list[tuple[str, dict[str, Json]]]", list(named.items()))


def _name_key(intent: Mapping[str, Json]) -> str:
    """Return the key of the tool's name in other conventions."""
    return next((key for key in _NAMES if isinstance(intent.get(key), str)), "name")


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
    known = reading.parameter_names(tool) if reading.parameter_names else ()
    if reading.lenient and reading.parameter_names is not None:
        intent = _unnested(intent, known, reading)
    return _from_flat(intent, tool, known, path, reading)


def _from_flat(
    intent: Mapping[str, Json],
    tool: str,
    known: Collection[str],
    path: Path,
    reading: Reading,
) -> Call | None:
    # a tool with a parameter "as" has its step named by "$as"
    name_key = "$as" if "as" in known else "as"
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
    said = _name_key(intent)
    name = intent.get(said)
    nested = [key for key in _NESTED if key in intent]
    beside = _BESIDE | _ITEM if intent.get("type") == "function_call" else _BESIDE
    if (
        not isinstance(name, str)
        or len(nested) != 1
        or set(intent) - beside - {said, nested[0]}
    ):
        if not _is_flat(intent, reading.parameter_names or no_parameters):
            return intent
        reading.notes[f'"{said}" instead of "tool"'] = None
        given = {key: value for key, value in intent.items() if key != said}
        return flat_intent(str(name), given, reading)
    given = intent[nested[0]]
    arguments = _object(given)
    if not isinstance(arguments, dict):
        fault = loads(given) if isinstance(given, str) else None
        expected = f"the arguments of {name} as a JSON object"
        if isinstance(fault, Fault):
            expected += f" ({fault.message})"
        return _refuse(reading, (*path, nested[0]), expected, given)
    reading.notes[f'"{said}" and "{nested[0]}" instead of a flat intent'] = None
    return flat_intent(name, cast("dict[str, Json]", arguments), reading)


def _object(arguments: Json) -> Json:
    """Return arguments that are written as text, as servers do, as JSON."""
    if not isinstance(arguments, str):
        return arguments
    read = loads(arguments) if arguments.strip() else None
    return read.value if isinstance(read, Value) else None


def flat_intent(
    tool: str, arguments: Mapping[str, Json], reading: Reading
) -> dict[str, Json]:
    """Return the flat intent of a tool with all its arguments."""
    known = reading.parameter_names(tool) if reading.parameter_names else ()
    return {"tool": tool, **_escaped(arguments, known)}


def _escaped(arguments: Mapping[str, Json], known: Collection[str]) -> dict[str, Json]:
    """Return arguments with their keys escaped for that tool's intent."""
    # a tool with a parameter "as" has it under this key: see `_from_flat`
    plain = "as" if "as" in known else None
    return {
        key if key == plain else escape_key(key): item
        for key, item in arguments.items()
    }


def _unnested(
    intent: dict[str, Json], known: Collection[str], reading: Reading
) -> dict[str, Json]:
    """Flatten `{"tool": X, "parameters": {…}}` if nothing else can be meant."""
    rest = [key for key in intent if key not in RESERVED]
    if len(rest) != 1 or rest[0] not in _NESTED or rest[0] in known or not known:
        return intent
    arguments = _object(intent[rest[0]])
    if not isinstance(arguments, dict):
        return intent
    reading.notes[f'parameters under "{rest[0]}"'] = None
    inner = cast("dict[str, Json]", arguments)
    flat = {key: value for key, value in intent.items() if key != rest[0]}
    return flat | _escaped(inner, known)


def _refuse(reading: Reading, path: Path, expected: str, got: Json) -> None:
    where = path_text(path)
    reading.errors.append(
        malformed_reply(f"{where}: expected {expected}, got {quote(got)}.", where)
    )
