"""Typed answers: the model's last word is checked and becomes an object.

A form that is no object is asked for as the `value` of one, since servers that hold a
model to a JSON Schema want an object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.dialects import Dialect
from neuraxis.errors import CommandError, ConfigError
from neuraxis.events import Event, ModelChunk, OutputChunk
from neuraxis.formatting import describe_given, path_text, quote
from neuraxis.messages import CallError, Chunk, Completion, Reply
from neuraxis.parsing.json_scan import Value, loads, pieces
from neuraxis.plugins.functions.convert import converter
from neuraxis.plugins.functions.hint_kinds import NoType
from neuraxis.plugins.functions.hints import Defs, inlined, schema_of
from neuraxis.schema.navigate import as_node
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

MENDS = 2
"""Times that a model may write a wrong answer anew."""
_VALUE = "value"
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|[{}\[\],]', re.DOTALL)
_LEAST = 16
"""Characters by which a text has grown before it is read again."""


class Output:
    """Form of a session's answers.

    Args:
        wanted: a class (pydantic model, dataclass, TypedDict, msgspec Struct), a union
            or list of such, or a JSON Schema.

    Raises:
        ConfigError: it is no type, or JSON cannot write it.
    """

    def __init__(self, wanted: Any) -> None:
        self._convert = None
        self.hint: Any = Any if isinstance(wanted, Mapping) else wanted
        """The type of what `read` gives."""
        if isinstance(wanted, Mapping):
            schema = dict(cast("Mapping[str, Json]", wanted))
        else:
            schema = _schema_of(wanted)
            self._convert = converter(wanted)
        self._is_wrapped = schema.get("type") != "object"
        if self._is_wrapped:
            defs = schema.pop("$defs", None)
            schema = {
                "type": "object",
                "properties": {_VALUE: schema},
                "required": [_VALUE],
                "additionalProperties": False,
                **({} if defs is None else {"$defs": defs}),
            }
        self.schema: dict[str, Json] = schema
        self._checked = Schema(schema)
        if (defect := self._checked.defect) is not None:
            raise ConfigError(f"output: the JSON Schema is wrong: {defect}")
        self._keys = {*cast("Mapping[str, Json]", schema.get("properties") or {})}

    def read(self, text: str) -> tuple[Any, str] | CallError:
        """Return an answer's object and its JSON, or its error."""
        written = _json_of(text)
        if written is not None:
            found = written.value
        elif self._is_wrapped and self._checked.valid({_VALUE: text}):
            found = text  # one of its types is a text
        else:
            return call_errors.wrong_output(f"found no JSON in {quote(text)}")
        if self._is_wrapped and set(as_node(found) or ()) != {_VALUE}:
            found = {_VALUE: found}
        value: Any = self._checked.coerce(found)[0]
        problems = self._checked.problems(value)
        if problems:
            messages = [call_errors.problem_text(item, "answer") for item in problems]
            return call_errors.wrong_output("; ".join(messages), problems)
        inner = value[_VALUE] if self._is_wrapped else value
        try:
            made = inner if self._convert is None else self._convert(inner)
        except (CommandError, ValueError, TypeError) as error:
            return call_errors.wrong_output(_why(error))
        return made, json.dumps(inner, ensure_ascii=False)

    def fits(self, text: str) -> bool:
        """Check whether a text is JSON of this form."""
        found = loads(text.strip())
        fields = as_node(found.value) if isinstance(found, Value) else None
        return (
            fields is not None
            and fields.keys() <= self._keys
            and self._checked.valid_json(fields)
        )

    def part_of(self, text: str) -> Json:
        """Return the fields that a cut text holds, or None."""
        start = text.find("{")
        before = text[:start].strip().removeprefix("```json").removeprefix("```")
        if start < 0 or before.strip():
            return None
        found = _closed(text[start:])
        if not isinstance(found, dict):
            return None
        fields = cast("dict[str, Json]", found)
        if not fields or not fields.keys() <= self._keys:
            return None
        return fields[_VALUE] if self._is_wrapped else fields


def decoded(
    output: Output | None,
    dialect: Dialect,
    completion: Completion,
    next_id: Callable[[], str],
) -> Reply:
    """Decode a reply; what has exactly the answer's form is no call."""
    if completion.finish_reason in ("answer", "declined"):
        return Reply(texts=(completion.text,))
    if output is None and completion.finish_reason == "length":
        words = cut_words(dialect, completion)
        if words:
            return Reply(texts=words)
    reply = dialect.decode(completion, next_id=next_id)
    if output is None or completion.tool_calls or not output.fits(completion.text):
        return reply
    return Reply(texts=(completion.text,), thoughts=reply.thoughts)


def cut_words(dialect: Dialect, completion: Completion) -> tuple[str, ...]:
    """Return the words of a cut reply that holds no call."""
    if completion.tool_calls:
        return ()
    whole = replace(completion, finish_reason="stop")
    read = dialect.decode(whole, next_id=str)
    return () if read.calls or read.errors else read.texts


class PartialOutput:
    """What a reply holds of the answer while it is streaming.

    It is read again once it has grown by a twentieth, so that long ones stay cheap.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._text, self._next = "", 0
        self._last: Json = None

    def tell(self, text: str, emit: Callable[[Event], None]) -> None:
        """Report what the answer holds, where a piece of text changed it."""
        value = self._see(text)
        if value is not None:
            emit(OutputChunk(value=value))

    def _see(self, text: str) -> Json:
        self._text += text
        size = len(self._text)
        if size < self._next:
            return None
        self._next = size + max(_LEAST, size // 20)
        found = self._output.part_of(self._text)
        if found is None or found == self._last:
            return None
        self._last = found
        return found


def reported(
    output: Output | None, emit: Callable[[Event], None]
) -> Callable[[Chunk], None]:
    """Return what reports a reply's pieces, and what its answer holds."""
    partial = None if output is None else PartialOutput(output)

    def report(chunk: Chunk) -> None:
        emit(ModelChunk(text=chunk.text, reasoning=chunk.reasoning))
        if partial is not None and chunk.text:
            partial.tell(chunk.text, emit)

    return report


def _schema_of(wanted: Any) -> dict[str, Json]:
    defs = Defs()
    try:
        schema = inlined(schema_of(wanted, defs), defs)
    except NoType as error:
        if error.why:
            raise ConfigError(f"output: {error.path}{error.why}") from None
        raise ConfigError(
            "output: expected a class, such as output=Invoice, a union of them, or a "
            f"JSON Schema, got {describe_given(wanted)}"
        ) from None
    if '"x-type"' in json.dumps(schema, default=str):
        raise ConfigError(
            f"output: {describe_given(wanted)} has a part that JSON cannot write; give "
            "a pydantic model, a dataclass, a TypedDict, a msgspec Struct or a schema"
        )
    return schema


def _json_of(text: str) -> Value | None:
    """Return the one JSON value of an answer, or None."""
    whole = text.strip()
    fence = whole.startswith("```") and whole.endswith("```")
    within = whole[3:-3].partition("\n")[2] if fence else ""
    for tried in (whole, within):
        found = loads(tried)
        if isinstance(found, Value):
            return found
    listed = [piece.value for piece in pieces(text) if piece.value is not None]
    return listed[0] if len(listed) == 1 else None


def _why(error: Exception) -> str:
    """Return what a class says of values that it does not take."""
    listed: Any = getattr(error, "errors", None)
    if not callable(listed):  # it is not pydantic's
        return str(error) or type(error).__name__
    found = cast("list[dict[str, Any]]", listed())
    return "; ".join(
        f"{path_text(tuple(item['loc'])) or 'answer'}: {item['msg']}, got "
        f"{quote(item.get('input'))}"
        for item in found
    )


def _closed(text: str) -> Json:
    """Return what a cut JSON text holds."""
    open_now: list[str] = []
    whole, closers = 0, ""
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in ("{", "["):
            open_now.append("}" if mark == "{" else "]")
        elif mark in ("}", "]"):
            if not open_now:
                return None
            open_now.pop()
        elif mark != ",":
            continue
        whole = token.start() if mark == "," else token.end()
        closers = "".join(reversed(open_now))
    tail = "".join(reversed(open_now))
    for tried in (text + tail, f'{text}"{tail}', text[:whole] + closers):
        try:
            return json.loads(tried)
        except (ValueError, RecursionError):
            continue
    return None
