"""Decode a reply of the envelope dialects into calls, texts and thoughts.

Protocols v1 and v2 write a call as a message to a plugin (rules A17-A22, B8-B13); a
message to the user is text (B7). If a reply has one mistake, none of it runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.call_errors import malformed_reply, receiver_id_not_allowed
from neuraxis.dialects.envelope.prompt import Generation
from neuraxis.dialects.families.cut import cut, is_framed
from neuraxis.dialects.intents.calls import (
    IsTool,
    holds,
    is_message,
    like_intents,
    no_tools,
    passed_calls,
)
from neuraxis.dialects.lenient_reading import (
    ONLY_FIRST,
    adjacent,
    open_thought,
    thoughts,
    words_around,
)
from neuraxis.dialects.shown import (
    Sent,
    nameless_call,
    sent_calls,
    yaml_call,
)
from neuraxis.formatting import path_text, quote
from neuraxis.messages import Call, CallError, Path, Reply
from neuraxis.parsing.json_errors import Fault, broken, call_error
from neuraxis.parsing.json_scan import Piece, Value, loads
from neuraxis.specs import Json

_SAYS_CALL = re.compile(r"[\"'“‘]?\b(?:receiver|command)[\"'”’]?\s*:")
_TOOL = re.compile(r"[\"'](?:tool|name)[\"']\s*+:\s*+[\"']([\w.-]{1,200})[\"']")
_OURS = ("as", "$literal", "$for_each", "$max_items")
_OTHER_PARAM = ("params", "parameters", "arguments")
_OTHER_ROLES = ("plugin", "tool", "function", "assistant")


class _Reading(Struct, kw_only=True):
    """Mutable state of decoding one reply."""

    generation: Generation
    lenient: bool
    notes: dict[str, None] = {}
    errors: list[CallError] = []
    calls: list[Call] = []
    texts: list[str] = []
    thoughts: list[str] = []
    left: list[str] = []
    """Commands of messages that were not read."""

    def reply(self, next_id: Callable[[], str]) -> Reply:
        """Return the decoded reply, or only its errors."""
        thought = tuple(self.thoughts)
        notes = tuple(self.notes)
        if self.errors:
            return Reply(errors=tuple(self.errors), thoughts=thought, notes=notes)
        return Reply(
            calls=tuple(replace(call, id=next_id()) for call in self.calls),
            texts=tuple(self.texts),
            thoughts=thought,
            notes=notes,
            left=tuple(self.left),
        )


def read_strictly(
    text: str, *, generation: Generation, next_id: Callable[[], str]
) -> Reply:
    """Decode a reply of one message, a list, or plain text (B7)."""
    reading = _Reading(generation=generation, lenient=False)
    read = loads(text)
    if isinstance(read, Value) and _like_messages(read):
        _messages(read.value, reading)
    elif isinstance(read, Fault) and _SAYS_CALL.search(text):
        reading.errors.append(call_error(read))
    elif text.strip():
        reading.texts.append(text.strip())
    return reading.reply(next_id)


def read_reply(
    text: str,
    *,
    generation: Generation,
    next_id: Callable[[], str],
    is_tool: IsTool = no_tools,
) -> Reply:
    """Decode leniently: prose, fences and small mistakes are accepted.

    Args:
        text: the whole reply.
        generation: which of the two protocols.
        next_id: makes the ids of the calls.
        is_tool: whether there is a command of that name, to tell calls in other forms.
    """
    reading = _Reading(generation=generation, lenient=True)
    sent = sent_calls(text, cut(text, is_tool), _is_call)
    found = sent.found
    reading.thoughts += thoughts(text, found)

    def is_ours(piece: Piece) -> bool:
        return piece.start in sent.made

    block, fault = _find_block(text, sent, reading, is_tool)
    if fault is None and not block:
        fault = open_thought(text, found) or _other_form(text, sent, is_tool)
    if fault is not None:
        error = call_error(fault) if isinstance(fault, Fault) else fault
        reading.errors.append(error)
        return reading.reply(next_id)
    around = words_around(text, found, block, is_ours, reading.notes)
    messages: list[Json] = []
    for piece in block:
        assert piece.value is not None
        reading.notes.update(dict.fromkeys(piece.value.notes))
        value: Json = piece.value.value
        inside = passed_calls(value, _like_message)
        if inside is not None:
            reading.notes["messages inside another object"] = None
            value = inside
        messages += cast("list[Json]", value) if isinstance(value, list) else [value]
    if block:
        _messages(messages if len(messages) > 1 else messages[0], reading)
    reading.texts[:0] = around
    return reading.reply(next_id)


def _is_call(piece: Piece) -> bool:
    return piece.value is not None and _like_messages(piece.value)


def _find_block(
    text: str, sent: Sent, reading: _Reading, is_tool: IsTool
) -> tuple[list[Piece], Fault | CallError | None]:
    for piece in sent.found:
        if piece.fault is not None:
            tools = _TOOL.findall(text, piece.start, piece.end)
            meant = piece.meant or is_framed(text, piece.start)
            says = _SAYS_CALL.search(text, piece.start, piece.end)
            if meant or says or any(map(is_tool, tools)):
                return [], piece.fault
    if sent.unclear is not None:
        return [], sent.unclear
    groups = adjacent(text, [piece for piece in sent.found if piece.start in sent.made])
    if len(groups) > 1:
        reading.notes[ONLY_FIRST] = None
        reading.left += [_command(piece) for group in groups[1:] for piece in group]
    return (groups[0] if groups else []), None


def _command(piece: Piece) -> str:
    """Return the command of a message; `?` if it names none."""
    value = None if piece.value is None else piece.value.value
    message = cast("dict[str, Json]", value) if isinstance(value, dict) else {}
    content = message.get("content")
    inside = cast("dict[str, Json]", content) if isinstance(content, dict) else {}
    return str(inside.get("command", "?"))


def _other_form(text: str, sent: Sent, is_tool: IsTool) -> CallError | None:
    """Return an error for calls in another format, not meant as text."""
    if (start := yaml_call(text, sent.found, is_tool)) is not None:
        return call_error(
            broken(text, start, "expected the message in JSON, got YAML").fault
        )
    begun = next(
        (
            piece.start
            for piece in sent.found
            if piece.start not in sent.shown
            and (
                piece.calls
                or piece.meant
                or (
                    piece.value
                    and (
                        like_intents(piece.value, is_tool)
                        or holds(piece.value.value, is_message)
                    )
                )
            )
        ),
        None,
    )
    if begun is None:
        lost = nameless_call(text, sent)
        return None if lost is None else call_error(lost)
    return malformed_reply(
        'expected a message with "receiver" and "content", got a call in another '
        f"form: {quote(text[begun : begun + 40])}."
    )


def _like_messages(value: Value) -> bool:
    return holds(value.value, _like_message)


def _like_message(item: Json) -> bool:
    if not isinstance(item, dict):
        return False
    message = cast("dict[str, Json]", item)
    content: Json = message.get("content")
    return "receiver" in message or (isinstance(content, dict) and "command" in content)


def _messages(value: Json, reading: _Reading) -> None:
    if not isinstance(value, list):
        _message(value, (), reading)
        return
    for index, item in enumerate(cast("list[Json]", value)):
        if reading.lenient and index and _is_answer(item):
            # the model made up everything from here on
            reading.notes["an answer that the model wrote itself"] = None
            break
        _message(item, (index,), reading)


def _is_answer(item: Json) -> bool:
    if not isinstance(item, dict):
        return False
    receiver: Json = cast("dict[str, Json]", item).get("receiver")
    if not isinstance(receiver, dict):
        return False
    return cast("dict[str, Json]", receiver).get("role") == "cerebrum"


def _message(item: Json, path: Path, reading: _Reading) -> None:
    if not isinstance(item, dict):
        _refuse(reading, path, 'an object with "receiver" and "content"', item)
        return
    message = cast("dict[str, Json]", item)
    thought = message.get("thoughts", message.get("thought"))
    if thought is not None:
        reading.thoughts.append(
            thought
            if isinstance(thought, str)
            else json.dumps(thought, ensure_ascii=False)
        )
    given: Json = message.get("receiver")
    if not isinstance(given, dict):
        _refuse(reading, (*path, "receiver"), 'an object with "role" and "name"', given)
        return
    receiver = cast("dict[str, Json]", given)
    role = receiver.get("role")
    if role == "user":
        _to_user(message, path, reading)
    elif role == "plugin":
        _to_plugin(message, receiver, path, reading)
    else:
        close = isinstance(role, str) and role.strip().lower() in _OTHER_ROLES
        hint = '"plugin" for a command' if close else '"plugin" or "user"'
        _refuse(reading, (*path, "receiver", "role"), f"exactly {hint}", role)


def _to_user(message: dict[str, Json], path: Path, reading: _Reading) -> None:
    content: Json = message.get("content")
    if isinstance(content, str):
        reading.texts.append(content)
    elif content is None or not reading.lenient:
        _refuse(reading, (*path, "content"), "a text for the user", content)
    else:
        reading.notes["a message to the user that is no text"] = None
        reading.texts.append(json.dumps(content, ensure_ascii=False))


def _to_plugin(
    message: dict[str, Json], receiver: dict[str, Json], path: Path, reading: _Reading
) -> None:
    if "id" in receiver:
        if not reading.lenient:
            reading.errors.append(receiver_id_not_allowed())
            return
        reading.notes["an id in the receiver, ignored"] = None
    name: Json = receiver.get("name")
    if not isinstance(name, str) or not name.strip():
        _refuse(reading, (*path, "receiver", "name"), "the name of a plugin", name)
        return
    content = _content(message, path, reading)
    if content is None or not _type_fits(message, content, path, reading):
        return
    command = content.get("command")
    if not isinstance(command, str) or not command.strip():
        where = (*path, "content", "command")
        _refuse(reading, where, "the name of a command", command)
        return
    arguments = _param(content, reading)
    if reading.generation == "v1" and not isinstance(arguments, dict):
        _refuse(reading, (*path, "content", "param"), "an object", arguments)
        return
    message = _with_own_keys(message, content, reading)
    step: Json = message.get("as")
    if step is not None and (not isinstance(step, str) or not step):
        _refuse(reading, (*path, "as"), "a name for the step", step)
        return
    literal: Json = message.get("$literal", False)
    if not isinstance(literal, bool):
        _refuse(reading, (*path, "$literal"), "true or false", literal)
        return
    most: Json = message.get("$max_items")
    if "$max_items" in message and (type(most) is not int or most < 1):
        _refuse(reading, (*path, "$max_items"), "a whole number from 1", most)
        return
    loop: Json = message.get("$for_each")
    if "$for_each" in message and not isinstance(loop, list | str | dict):
        _refuse(reading, (*path, "$for_each"), "a list, or a reference to one", loop)
        return
    reading.calls.append(
        Call(
            id="",
            plugin=name.strip(),
            command=command.strip(),
            arguments=arguments,
            name=step,
            literal=literal,
            for_each=cast("Json", loop),
            max_items=most,
        )
    )


def _with_own_keys(
    message: dict[str, Json], content: dict[str, Json], reading: _Reading
) -> dict[str, Json]:
    """Return the message with its own keys moved out of the content."""
    if not reading.lenient:
        return message
    inside = {
        key: content[key] for key in _OURS if key in content and key not in message
    }
    if not inside:
        return message
    reading.notes.update(dict.fromkeys(f'"{key}" in the content' for key in inside))
    return message | inside


def _content(
    message: dict[str, Json], path: Path, reading: _Reading
) -> dict[str, Json] | None:
    content: Json = message.get("content")
    if isinstance(content, str) and reading.lenient:
        read = loads(content)
        if isinstance(read, Value):
            reading.notes["content written as a text"] = None
            content = read.value
    if isinstance(content, dict):
        return cast("dict[str, Json]", content)
    where = (*path, "content")
    _refuse(reading, where, 'an object with "command" and "param"', content)
    return None


def _type_fits(
    message: dict[str, Json], content: dict[str, Json], path: Path, reading: _Reading
) -> bool:
    """Check rule B8: v2 requires the type, lenient v2 may omit it."""
    given = message.get("content_type")
    if given == "command":
        return True
    if "content_type" not in message:
        if reading.generation == "v1":
            return True
        if reading.lenient and "command" in content:
            reading.notes["no content_type"] = None
            return True
    _refuse(reading, (*path, "content_type"), '"command"', given)
    return False


def _param(content: dict[str, Json], reading: _Reading) -> Json:
    if "param" in content:
        return content["param"]
    others = [key for key in _OTHER_PARAM if isinstance(content.get(key), dict)]
    if reading.lenient and len(others) == 1:
        reading.notes[f'"{others[0]}" instead of "param"'] = None
        return content[others[0]]
    return {}


def _refuse(reading: _Reading, path: Path, expected: str, got: Json) -> None:
    where = path_text(path)
    reading.errors.append(
        malformed_reply(
            f"{where or 'the message'}: expected {expected}, got {quote(got)}.", where
        )
    )
