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
    has_intents,
    holds_call,
    is_message,
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

_NAMES_CALL = re.compile(r"[\"'“‘]?\b(?:receiver|command)[\"'”’]?\s*:")
_TOOL = re.compile(r"[\"'](?:tool|name)[\"']\s*+:\s*+[\"']([\w.-]{1,200})[\"']")
_MESSAGE_KEYS = ("as", "$literal", "$for_each", "$max_items")
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
        thoughts = tuple(self.thoughts)
        notes = tuple(self.notes)
        if self.errors:
            return Reply(errors=tuple(self.errors), thoughts=thoughts, notes=notes)
        return Reply(
            calls=tuple(replace(call, id=next_id()) for call in self.calls),
            texts=tuple(self.texts),
            thoughts=thoughts,
            notes=notes,
            left=tuple(self.left),
        )


def read_strictly(
    text: str, *, generation: Generation, next_id: Callable[[], str]
) -> Reply:
    """Decode a reply of one message, a list, or plain text (B7)."""
    reading = _Reading(generation=generation, lenient=False)
    read = loads(text)
    if isinstance(read, Value) and _has_messages(read):
        _messages(read.value, reading)
    elif isinstance(read, Fault) and _NAMES_CALL.search(text):
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
        is_tool: whether there is a command of that name, to detect calls in other
            forms.
    """
    reading = _Reading(generation=generation, lenient=True)
    sent = sent_calls(text, cut(text, is_tool, is_call=_is_call), _is_call)
    pieces = sent.pieces
    reading.thoughts += thoughts(text, pieces)

    def is_ours(piece: Piece) -> bool:
        return piece.start in sent.made

    block, fault = _find_block(text, sent, reading, is_tool)
    if fault is None and not block:
        fault = open_thought(text, pieces) or _other_format_error(text, sent, is_tool)
    if fault is not None:
        error = call_error(fault) if isinstance(fault, Fault) else fault
        reading.errors.append(error)
        return reading.reply(next_id)
    around = words_around(text, pieces, block, is_ours, reading.notes)
    messages: list[Json] = []
    for piece in block:
        assert piece.value is not None
        reading.notes.update(dict.fromkeys(piece.value.notes))
        value: Json = piece.value.value
        inner = passed_calls(value, _is_message_like)
        if inner is not None:
            reading.notes["messages inside another object"] = None
            value = inner
        messages += cast("list[Json]", value) if isinstance(value, list) else [value]
    if block:
        _messages(messages if len(messages) > 1 else messages[0], reading)
    reading.texts[:0] = around
    return reading.reply(next_id)


def _is_call(piece: Piece) -> bool:
    return piece.value is not None and _has_messages(piece.value)


def _find_block(
    text: str, sent: Sent, reading: _Reading, is_tool: IsTool
) -> tuple[list[Piece], Fault | CallError | None]:
    for piece in sent.pieces:
        if piece.fault is not None:
            tools = _TOOL.findall(text, piece.start, piece.end)
            is_meant = piece.meant or is_framed(text, piece.start)
            names_call = _NAMES_CALL.search(text, piece.start, piece.end)
            if is_meant or names_call or any(map(is_tool, tools)):
                return [], piece.fault
    if sent.unclear is not None:
        return [], sent.unclear
    groups = adjacent(
        text, [piece for piece in sent.pieces if piece.start in sent.made]
    )
    if len(groups) > 1:
        reading.notes[ONLY_FIRST] = None
        reading.left += [_command(piece) for group in groups[1:] for piece in group]
    return (groups[0] if groups else []), None


def _command(piece: Piece) -> str:
    """Return the command of a message; `?` if it names none."""
    value = None if piece.value is None else piece.value.value
    message = cast("dict[str, Json]", value) if isinstance(value, dict) else {}
    content = message.get("content")
    fields = cast("dict[str, Json]", content) if isinstance(content, dict) else {}
    return str(fields.get("command", "?"))


def _other_format_error(text: str, sent: Sent, is_tool: IsTool) -> CallError | None:
    """Return an error for calls in another format."""
    if (start := yaml_call(text, sent.pieces, is_tool)) is not None:
        return call_error(
            broken(text, start, "expected the message in JSON, got YAML").fault
        )
    position = next(
        (
            piece.start
            for piece in sent.pieces
            if piece.start not in sent.shown
            and (
                piece.calls
                or piece.meant
                or (
                    piece.value
                    and (
                        has_intents(piece.value, is_tool)
                        or holds_call(piece.value.value, is_message)
                    )
                )
            )
        ),
        None,
    )
    if position is None:
        nameless = nameless_call(text, sent)
        return None if nameless is None else call_error(nameless)
    return malformed_reply(
        'expected a message with "receiver" and "content", got a call in another '
        f"form: {quote(text[position : position + 40])}."
    )


def _has_messages(value: Value) -> bool:
    return holds_call(value.value, _is_message_like)


def _is_message_like(item: Json) -> bool:
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
            # the model invented everything from here on
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
    value: Json = message.get("receiver")
    if not isinstance(value, dict):
        _refuse(reading, (*path, "receiver"), 'an object with "role" and "name"', value)
        return
    receiver = cast("dict[str, Json]", value)
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
    message = _with_message_keys(message, content, reading)
    step: Json = message.get("as")
    if step is not None and (not isinstance(step, str) or not step):
        _refuse(reading, (*path, "as"), "a name for the step", step)
        return
    literal: Json = message.get("$literal", False)
    if not isinstance(literal, bool):
        _refuse(reading, (*path, "$literal"), "true or false", literal)
        return
    max_items: Json = message.get("$max_items")
    if "$max_items" in message and (type(max_items) is not int or max_items < 1):
        _refuse(reading, (*path, "$max_items"), "a whole number from 1", max_items)
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
            max_items=max_items,
        )
    )


def _with_message_keys(
    message: dict[str, Json], content: dict[str, Json], reading: _Reading
) -> dict[str, Json]:
    """Move keys such as `as` from the content to the message."""
    if not reading.lenient:
        return message
    moved = {
        key: content[key]
        for key in _MESSAGE_KEYS
        if key in content and key not in message
    }
    if not moved:
        return message
    reading.notes.update(dict.fromkeys(f'"{key}" in the content' for key in moved))
    return message | moved


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
    content_type = message.get("content_type")
    if content_type == "command":
        return True
    if "content_type" not in message:
        if reading.generation == "v1":
            return True
        if reading.lenient and "command" in content:
            reading.notes["no content_type"] = None
            return True
    _refuse(reading, (*path, "content_type"), '"command"', content_type)
    return False


def _param(content: dict[str, Json], reading: _Reading) -> Json:
    if "param" in content:
        return content["param"]
    keys = [key for key in _OTHER_PARAM if isinstance(content.get(key), dict)]
    if reading.lenient and len(keys) == 1:
        reading.notes[f'"{keys[0]}" instead of "param"'] = None
        return content[keys[0]]
    return {}


def _refuse(reading: _Reading, path: Path, expected: str, got: Json) -> None:
    where = path_text(path)
    reading.errors.append(
        malformed_reply(
            f"{where or 'the message'}: expected {expected}, got {quote(got)}.", where
        )
    )
