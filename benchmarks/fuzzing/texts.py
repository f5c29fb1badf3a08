"""Targets that read what a model wrote: dialects and plans."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from msgspec.structs import replace

from fuzzing import Target, checks
from fuzzing.checks import must, same
from fuzzing.inputs import as_bytes, as_text, shared_lines
from fuzzing.words import CALL_WORDS, ENVELOPE_WORDS, JSON_WORDS
from neuraxis.call_errors import unknown_command
from neuraxis.dialects import Dialect, ReadsEarly, find_dialect
from neuraxis.dialects.native.dialect import safe_name
from neuraxis.messages import (
    Call,
    CallError,
    Chunk,
    Completion,
    Message,
    NativeCall,
    Reply,
    ToolCallDelta,
)
from neuraxis.planning.build import build
from neuraxis.planning.plan import waits_for
from neuraxis.schema.schema import Schema
from neuraxis.specs import CommandSpec, Effects, Json, PluginSpec

PARAMETERS = {
    "search": ("query", "limit", "saw"),
    "note": ("text", "as"),
    "nested": ("parameters",),
    "GOOGLE": ("query",),
}
BREAK = "\n@@\n"
"""Between the text, and the name and arguments of each native call of an input."""


def _known(tool: str) -> Sequence[str]:
    return PARAMETERS.get(tool, ())


def _dialect(name: str, strict: bool) -> Dialect:
    names = _known if name == "intents" else None
    return find_dialect(name, strict=strict, parameter_names=names)


def _completion(name: str, text: str) -> Completion:
    if name != "native":
        return Completion(text=text)
    said, *rest = text.split(BREAK)
    calls = tuple(
        NativeCall(id=f"c{index}", name=rest[index], arguments=rest[index + 1])
        for index in range(0, len(rest) - 1, 2)
    )
    return Completion(
        text=said, tool_calls=calls, finish_reason="tool_calls" if calls else "stop"
    )


def _decode(dialect: Dialect, completion: Completion) -> tuple[Reply, list[str]]:
    made: list[str] = []
    numbers = count()

    def next_id() -> str:
        made.append(f"id{next(numbers)}")
        return made[-1]

    return dialect.decode(completion, next_id=next_id), made


def _bare(calls: Sequence[Call], native: bool) -> list[Any]:
    if native:
        return [(call.command, call.arguments) for call in calls]
    return [replace(call, id="") for call in calls]


def read_reply(name: str, data: bytes) -> None:
    """A dialect reads any text, strictly and leniently."""
    text = as_text(data)
    whole = checks.is_whole(text)
    completion = _completion(name, text)
    for strict in (False, True):
        dialect = _dialect(name, strict)
        reply, made = checks.timed(len(text), lambda d=dialect: _decode(d, completion))
        checks.check_reply(reply, made, whole, name == "native")
        for reason in ("length", "content_filter", "cancelled"):
            cut, _ = _decode(dialect, replace(completion, finish_reason=reason))
            must(not cut.calls, f"calls out of a text cut by {reason}")
            must(cut.errors, f"no error for a text cut by {reason}")
            checks.check_reply(cut, (), whole)
        if reply.errors:
            said = Message(role="assistant", content=text)
            for message in dialect.correction(reply.errors, said):
                must(not whole or checks.is_whole(message.content), "odd correction")
        _written_again(dialect, reply, name == "native", whole)
    dialect.request(text)


def _written_again(dialect: Dialect, reply: Reply, native: bool, whole: bool) -> None:
    """What `write` makes of calls is read as the same calls."""
    if not reply.calls or not whole:
        return
    if native and not all(
        safe_name(call.command) == call.command and isinstance(call.arguments, dict)
        for call in reply.calls
    ):
        return
    if native:
        dialect = _dialect("native", False)
    text = dialect.write(reply.calls)
    again, _ = _decode(dialect, Completion(text=text))
    must(not again.errors, f"written calls are refused: {again.errors[:1]}")
    must(
        same(_bare(reply.calls, native), _bare(again.calls, native)),
        "written calls are read as others",
    )


def read_early(name: str, data: bytes) -> None:
    """What an early reader gives begins what the whole reply gives."""
    text = as_text(data)
    dice = random.Random(zlib.crc32(data))
    completion = _completion(name, text)
    for strict in (False, True):
        dialect = _dialect(name, strict)
        if not isinstance(dialect, ReadsEarly):
            continue
        chunks = list(_chunks(completion, dice))

        def feed(dialect: Any = dialect, chunks: Any = chunks) -> list[Call]:
            reader = dialect.early()
            return [call for chunk in chunks for call in reader.feed(chunk)]

        calls = checks.timed(len(text), feed)
        reply, _ = _decode(dialect, completion)
        # A thought that ends behind the block makes all before it a thought.
        if reply.errors or "</think" in completion.text.lower():
            continue
        begun = reply.calls[: len(calls)]
        must(same(_bare(calls, False), _bare(begun, False)), "early calls are others")


def _chunks(completion: Completion, dice: random.Random) -> Any:
    for part in _cut(completion.text, dice):
        yield Chunk(text=part)
    for index, call in enumerate(completion.tool_calls):
        first = ToolCallDelta(index=index, id=call.id, name=call.name)
        yield Chunk(tool_calls=(first,))
        for part in _cut(call.arguments, dice):
            yield Chunk(tool_calls=(ToolCallDelta(index=index, arguments=part),))


def _cut(text: str, dice: random.Random) -> Any:
    at = 0
    # Long texts mostly in large pieces: small ones cost the fuzzer most of its time.
    small = len(text) < 600 or dice.random() < 0.1
    size = dice.choice((1, 3, 7, 50, 10_000) if small else (80, 10_000))
    while at < len(text):
        width = dice.randint(1, size)
        yield text[at : at + width]
        at += width


# --- plans ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Command:
    spec: CommandSpec
    plugin: PluginSpec
    parameters: Schema
    response: Schema | None


def _command(name: str, parameters: dict[str, Json], kind: str) -> _Command:
    response: dict[str, Json] = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "string"}}},
    }
    spec = CommandSpec(
        name=name, parameters=parameters, response=response, effects=Effects(kind=kind)
    )
    plugin = PluginSpec(name="tools", commands=(spec,))
    return _Command(spec, plugin, Schema(parameters), Schema(response))


_ANY: dict[str, Json] = {"type": "object"}
_SEARCH: dict[str, Json] = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1},
        "saw": {"x-asset-ref": True},
        "more": {"type": "array", "items": {"anyOf": [{"type": "string"}, _ANY]}},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_COMMANDS = {
    "search": _command("search", _SEARCH, "read"),
    "note": _command("note", _ANY, "once"),
    "nested": _command("nested", {"type": "string"}, "none"),
}


def _find(plugin: str | None, command: str) -> _Command | CallError:
    return _COMMANDS.get(command) or unknown_command(
        command, dict.fromkeys(_COMMANDS, ())
    )


def build_plan(data: bytes) -> None:
    """The calls of any reply are checked as a plan: problems or steps."""
    text = as_text(data)
    reply, _ = _decode(_dialect("intents", False), Completion(text=text))
    if not reply.calls:
        return
    plan = checks.timed(
        len(text) * 2,
        lambda: build(reply.calls, _find, known_assets=lambda name: name == "a1"),
    )
    checks.check_errors(plan.problems, checks.is_whole(text))
    for problem in plan.problems:
        checks.check_problems(problem.problems)
    must(plan.problems or len(plan.steps) == len(reply.calls), "a step was lost")
    ids = {step.call.id for step in plan.steps}
    for step in plan.steps:
        must(step.depends <= ids - {step.call.id}, "a step depends on itself")
    if not plan.problems:
        waits_for(plan)


# --- the targets ----------------------------------------------------------------

_INTENTS = (
    '<!-- RESPONSE_START -->\n[{"tool": "search", "query": "q", "limit": 3}]\n'
    "<!-- RESPONSE_END -->",
    '<think>so</think>Sure!\n```json\n[{"tool": "note", "text": "{{ results[0] }}", '
    '"$as": "n"}, {"tool": "search", "query": "x", "as": "s"}]\n```\nDone.',
    '[{"name": "search", "arguments": {"query": "q"}}]',
    "<!-- RESPONSE_START -->[{'tool': 'note', text: “a”, }, // c\n"
    '{"tool": "note", "$for_each": [1, 2], "$max_items": 5, "text": "{{ item }}"}]',
    '<tool_call>{"name": "search", "arguments": "{\\"query\\": 1}"}</tool_call>',
    "Just words, and {a name} or [see below].",
    '[TOOL_CALLS]search[ARGS]{"query": "q"}[TOOL_CALLS]note[ARGS]{"text": "a"}</s>',
    "<tool_call>\n<function=note>\n<parameter=text>\na\n</parameter>\n</function>\n"
    "</tool_call>\n<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>q"
    "</arg_value>\n</tool_call>",
)
_ENVELOPE = (
    '{"sender": {"role": "cerebrum"}, "receiver": {"role": "plugin", "name": "web"}, '
    '"content_type": "command", "content": {"command": "GOOGLE", "param": {"query": '
    '"q"}}, "thoughts": "so"}',
    '[{"receiver": {"role": "plugin", "name": "web"}, "content": {"command": "GOOGLE",'
    ' "param": {"query": "{{ previous_result }}"}}, "as": "one"}, {"receiver": {"role":'
    ' "user"}, "content": "done"}]',
    'Sure:\n```json\n{"receiver": {"role": "user"}, "content": "hello"}\n```',
    "Just words.",
)
_NATIVE = (
    BREAK.join(("", "search", '{"query": "q"}', "note", '{"text": "a"}')),
    BREAK.join(("I will.", "search", '{"query": "q", "limit": 1')),
    BREAK.join(("<think>x</think>", "a.b", '"{\\"a\\": 1}"', "c", "")),
    '<tool_call>\n{"name": "search", "arguments": {"query": "q"}}\n</tool_call>',
)


def seeds_of(own: Sequence[str], foreign: bool = True) -> Callable[[], list[bytes]]:
    def seeds() -> list[bytes]:
        more = shared_lines("malformed/*.jsonl", "input", 60) if foreign else []
        return [*map(as_bytes, own), *more]

    return seeds


_DIALECTS: tuple[tuple[str, Sequence[str], Sequence[str]], ...] = (
    ("intents", CALL_WORDS, _INTENTS),
    ("envelope_v1", ENVELOPE_WORDS, _ENVELOPE),
    ("envelope_v2", ENVELOPE_WORDS, _ENVELOPE),
    ("native", (*CALL_WORDS, BREAK, BREAK + "search" + BREAK + "{}"), _NATIVE),
)
TARGETS = (
    *(
        Target(
            name=name,
            run=lambda data, name=name: read_reply(name, data),
            kind="text",
            words=(*words, *CALL_WORDS, *JSON_WORDS),
            seeds=seeds_of(seeds),
        )
        for name, words, seeds in _DIALECTS
    ),
    *(
        Target(
            name=f"early_{name}",
            run=lambda data, name=name: read_early(name, data),
            kind="text",
            words=(*words, *JSON_WORDS),
            seeds=seeds_of(seeds, foreign=False),
        )
        for name, words, seeds in _DIALECTS
        if name != "envelope_v1"
    ),
    Target(
        name="plan",
        run=build_plan,
        kind="text",
        words=(*CALL_WORDS, *JSON_WORDS),
        seeds=seeds_of(_INTENTS, foreign=False),
    ),
)
