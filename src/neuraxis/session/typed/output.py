"""Typed answers: check the model's final text and convert it.

A type that is no JSON object is wrapped in one, as its `value`, since servers that
enforce a JSON Schema require an object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from neuraxis import call_errors
from neuraxis.errors import CommandError, ConfigError
from neuraxis.events import Event, OutputChunk
from neuraxis.formatting import describe_given, path_text, quote
from neuraxis.messages import CallError
from neuraxis.parsing.json_scan import Value, loads, pieces
from neuraxis.plugins.functions.convert import converter
from neuraxis.plugins.functions.hint_kinds import NoType
from neuraxis.plugins.functions.hints import Defs, inlined, schema_of
from neuraxis.schema.navigate import as_node
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

_VALUE = "value"
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|[{}\[\],]', re.DOTALL)
_MIN_GROWTH = 16
"""Minimum characters by which a text grows before it is parsed again."""


class Output:
    """Type of a session's answers.

    Args:
        wanted: a class (pydantic model, dataclass, TypedDict, msgspec Struct), a union
            or list of such, or a JSON Schema.

    Raises:
        ConfigError: it is no type, or has no JSON form.
    """

    def __init__(self, output_type: Any) -> None:
        self._convert = None
        self._is_schema = isinstance(output_type, Mapping)
        self.hint: Any = Any if isinstance(output_type, Mapping) else output_type
        """The type of the object that `read` returns."""
        if self._is_schema:
            schema = dict(cast("Mapping[str, Json]", output_type))
        else:
            schema = _schema_of(output_type)
            self._convert = converter(output_type)
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
        """Return an answer's object and its text, or its error."""
        json_value = _json_of(text)
        if json_value is not None:
            value_read = json_value.value
        elif self._is_wrapped and self._checked.valid({_VALUE: text}):
            value_read = text  # the type accepts text
        else:
            found = "several JSON values" if len(_values(text)) > 1 else "no JSON"
            return call_errors.wrong_output(f"found {found} in {quote(text)}")
        if self._is_wrapped and set(as_node(value_read) or ()) != {_VALUE}:
            value_read = {_VALUE: value_read}
        value: Any = self._checked.coerce(value_read)[0]
        problems = self._checked.problems(value)
        if problems and self._is_text(value_read, text):
            value, problems = {_VALUE: text}, ()
        if problems:
            problems_told = [
                call_errors.problem_text(item, "answer") for item in problems
            ]
            return call_errors.wrong_output("; ".join(problems_told), problems)
        inner = value[_VALUE] if self._is_wrapped else value
        try:
            converted = inner if self._convert is None else self._convert(inner)
        except (CommandError, ValueError, TypeError) as error:
            return call_errors.wrong_output(_describe_error(error))
        if isinstance(inner, str) and not self._is_schema:
            return converted, inner  # a Python type of text: the text as it is
        return converted, json.dumps(inner, ensure_ascii=False)

    def _is_text(self, value: Any, text: str) -> bool:
        """Whether the type accepts text, and a reply like `42` is one."""
        inner = (as_node(value) or {_VALUE: value}).get(_VALUE)
        is_object = isinstance(inner, dict) or not self._is_wrapped
        return not is_object and self._checked.valid({_VALUE: text})

    def fits(self, text: str) -> bool:
        """Check whether a text is JSON of this form."""
        value = loads(text.strip())
        fields = as_node(value.value) if isinstance(value, Value) else None
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
        value = _close_json(text[start:])
        if not isinstance(value, dict):
            return None
        fields = cast("dict[str, Json]", value)
        if not fields or not fields.keys() <= self._keys:
            return None
        return fields[_VALUE] if self._is_wrapped else fields


class PartialOutput:
    """Partial answer while the reply is streaming.

    It is parsed again when it has grown by a twentieth, so that long ones stay cheap.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._text = ""
        self._next = 0
        self._last: Json = None

    def report(self, text: str | None, emit: Callable[[Event], None]) -> None:
        """Report the partial answer if a piece of text changed it.

        `text` is None at the end of the reply.
        """
        value = self._changed_value(text)
        if value is not None:
            emit(OutputChunk(value=value))

    def _changed_value(self, text: str | None) -> Json:
        self._text += text or ""
        size = len(self._text)
        if size < self._next and text is not None:
            return None
        self._next = size + max(_MIN_GROWTH, size // 20)
        value = self._output.part_of(self._text)
        if value is None or value == self._last:
            return None
        self._last = value
        return value


def _schema_of(output_type: Any) -> dict[str, Json]:
    defs = Defs()
    try:
        schema = inlined(schema_of(output_type, defs), defs)
    except NoType as error:
        if error.why:
            raise ConfigError(f"output: {error.path}{error.why}") from None
        raise ConfigError(
            "output: expected a class, such as output=Invoice, a union of them, or a "
            f"JSON Schema, got {describe_given(output_type)}"
        ) from None
    if '"x-type"' in json.dumps(schema, default=str):
        raise ConfigError(
            f"output: {describe_given(output_type)} has a part that JSON cannot write; "
            "give a pydantic model, a dataclass, a TypedDict, a msgspec Struct or a "
            "schema"
        )
    return schema


def _json_of(text: str) -> Value | None:
    """Return the one JSON value of an answer, or None."""
    stripped = text.strip()
    fence = stripped.startswith("```") and stripped.endswith("```")
    within = stripped[3:-3].partition("\n")[2] if fence else ""
    for candidate in (stripped, within):
        value = loads(candidate)
        if isinstance(value, Value):
            return value
    values = _values(text)
    return values[0] if len(values) == 1 else None


def _values(text: str) -> list[Value]:
    return [piece.value for piece in pieces(text) if piece.value is not None]


def _describe_error(error: Exception) -> str:
    """Return the reasons why a class rejects values."""
    errors: Any = getattr(error, "errors", None)
    if not callable(errors):  # not an error of pydantic
        return str(error) or type(error).__name__
    pydantic_errors = cast("list[dict[str, Any]]", errors())
    return "; ".join(
        f"{path_text(tuple(item['loc'])) or 'answer'}: {item['msg']}, got "
        f"{quote(item.get('input'))}"
        for item in pydantic_errors
    )


def _close_json(text: str) -> Json:
    """Parse truncated JSON after closing its brackets; None if that fails."""
    open_now: list[str] = []
    complete_to, closers = 0, ""
    for token in _TOKEN.finditer(text):
        character = token[0]
        if character in ("{", "["):
            open_now.append("}" if character == "{" else "]")
        elif character in ("}", "]"):
            if not open_now:
                return None
            open_now.pop()
        elif character != ",":
            continue
        complete_to = token.start() if character == "," else token.end()
        closers = "".join(reversed(open_now))
    tail = "".join(reversed(open_now))
    for candidate in (text + tail, f'{text}"{tail}', text[:complete_to] + closers):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    return None
