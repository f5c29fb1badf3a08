"""Calls read out of a reply that is still being written: never more than it says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from neuraxis.dialects import Dialect, EarlyReader, ReadsEarly
from neuraxis.dialects.envelope.dialect import Envelope
from neuraxis.dialects.intents.calls import END, START
from neuraxis.dialects.intents.dialect import Intents
from neuraxis.dialects.native.dialect import Native
from neuraxis.messages import Call, Chunk, Completion, ToolCallDelta
from neuraxis.specs import CommandSpec, PluginSpec
from wire_cases import Case, case_id, cases, completion, counter


def _intents(case: Case | None = None, *, strict: bool = False) -> Intents:
    known = {} if case is None else case.get("parameters")
    return Intents(
        strict=strict,
        parameter_names=None if known is None else lambda tool: known.get(tool, ()),
    )


def _native(*, strict: bool = False) -> Native:
    dialect = Native(strict=strict)
    parameters = {"type": "object", "properties": {"query": {"type": "string"}}}
    plugin = PluginSpec(
        name="web",
        commands=(
            CommandSpec(name="search", parameters=parameters),
            CommandSpec(name="nap", parameters={"type": "number"}),
        ),
    )
    dialect.native_tools([plugin], {"SEARCH": ("web", "search")})
    return dialect


def _reader(dialect: Dialect) -> EarlyReader:
    assert isinstance(dialect, ReadsEarly)
    return dialect.early()


def _stream(whole: Completion, size: int) -> list[Chunk]:
    """A completion as a server would send it, `size` characters at a time."""
    text = whole.text
    chunks = [
        Chunk(text=text[start : start + size]) for start in range(0, len(text), size)
    ]
    for index, call in enumerate(whole.tool_calls):
        first = ToolCallDelta(index=index, id=call.id, name=call.name)
        chunks.append(Chunk(tool_calls=(first,)))
        for start in range(0, len(call.arguments), size):
            piece = call.arguments[start : start + size]
            delta = ToolCallDelta(index=index, arguments=piece)
            chunks.append(Chunk(tool_calls=(delta,)))
    return chunks


def _read(dialect: Dialect, chunks: Sequence[Chunk]) -> list[Call]:
    reader = _reader(dialect)
    return [call for chunk in chunks for call in reader.feed(chunk)]


def _check(dialect: Dialect, whole: Completion, size: int) -> list[Call]:
    """Feed it piece by piece: what was given by then is the beginning of the whole."""
    reply = dialect.decode(whole, next_id=counter())
    expected = [replace(call, id="") for call in reply.calls]
    reader = _reader(dialect)
    given: list[Call] = []
    for chunk in _stream(whole, size):
        given += reader.feed(chunk)
        if not reply.errors:
            assert expected[: len(given)] == given
    return given


GOLDEN = [
    (dialect, case)
    for dialect in ("intents", "envelope_v1", "envelope_v2", "native")
    for case in cases(dialect, "reply")
]


def _dialect(name: str, case: Case | None = None, *, strict: bool = False) -> Dialect:
    if name == "intents":
        return _intents(case, strict=strict)
    if name == "native":
        return _native(strict=strict)
    return Envelope(
        name="envelope_v1" if name == "envelope_v1" else "envelope_v2", strict=strict
    )


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
@pytest.mark.parametrize(
    ("name", "case"),
    GOLDEN,
    ids=[f"{name}-{case_id(case)}" for name, case in GOLDEN],
)
def test_no_prefix_of_a_golden_case_means_something_else(
    name: str, case: Case, strict: bool
) -> None:
    """Decision 7: at every prefix, the calls given are the beginning of the whole's.

    Where the whole has a mistake, some may be given before it; where it has neither
    calls nor mistakes, none is.
    """
    for size in (1, 7):
        _check(_dialect(name, case, strict=strict), completion(case), size)


@pytest.mark.parametrize(
    ("name", "case"),
    GOLDEN,
    ids=[f"{name}-{case_id(case)}" for name, case in GOLDEN],
)
def test_every_prefix_of_a_golden_case_is_a_text_of_its_own(
    name: str, case: Case
) -> None:
    """A reply that ends anywhere, as if the model had stopped there."""
    whole = completion(case)
    dialect = _dialect(name, case)
    for end in range(0, len(whole.text), 3):
        cut = replace(whole, text=whole.text[:end], finish_reason="stop")
        reply = dialect.decode(cut, next_id=counter())
        if reply.errors:
            continue
        expected = [replace(call, id="") for call in reply.calls]
        given = _read(dialect, _stream(cut, 5))
        assert expected[: len(given)] == given


def test_the_golden_cases_are_worth_the_property() -> None:
    """Some of them are read early; a property of nothing would always hold."""
    for name, most in (("intents", 5), ("envelope_v2", 5), ("native", 5)):
        read = [
            _check(_dialect(name, case), completion(case), 3)
            for case in cases(name, "reply")
        ]
        assert sum(map(len, read)) >= most


def _two(name: str) -> tuple[Dialect, Completion]:
    calls = [
        Call(
            id="", plugin="web", command="search", arguments={"query": 'a "}]{ \\ 😀'}
        ),
        Call(id="", plugin="web", command="search", arguments={"query": "b"}),
    ]
    dialect = _dialect(name)
    if isinstance(dialect, Native):
        return dialect, Completion(tool_calls=dialect.native_calls(calls))
    return dialect, Completion(text=dialect.write(calls))


@pytest.mark.parametrize("name", ["intents", "envelope_v1", "envelope_v2", "native"])
def test_a_call_is_given_with_its_last_brace(name: str) -> None:
    """Not a character later: the second is still to be written by then."""
    dialect, whole = _two(name)
    reader = _reader(dialect)
    heard, at = "", []
    for chunk in _stream(whole, 1):
        heard += chunk.text + "".join(delta.arguments for delta in chunk.tool_calls)
        if reader.feed(chunk):
            assert heard.endswith("}")
            at.append(len(heard))
    assert len(at) == 2
    assert '"b"' not in heard[: at[0]]


@pytest.mark.parametrize(
    "text",
    [
        'I would write <!-- RESPONSE_START -->[{"tool": "SEARCH", "query": "x"}]',
        '[{"tool": "SEARCH", "query": "x"}]',
        f'{START}{{"tool": "SEARCH", "query": "x"}}{END}',
        f'{START}[{{"tool": "SEARCH", "query": "x",}}]{END}',
        f"{START}[{{'tool': 'SEARCH', 'query': 'x'}}]{END}",
        f'{START}[{{"tool": "SEARCH", "query": "x", "query": "y"}}]{END}',
        f'{START}["x", {{"tool": "SEARCH", "query": "x"}}]{END}',
        f'{START}[{{"tool": "SEARCH", "query": NaN}}]{END}',
        f'<think>{START}[{{"tool": "SEARCH", "query": "x"}}]{END}',
    ],
)
def test_what_is_not_plain_is_left_to_the_whole(text: str) -> None:
    """Prose before, no marker, no list, mended JSON: nothing is read early."""
    assert _read(_intents(), [Chunk(text=char) for char in text]) == []


def test_a_closed_thought_may_stand_before() -> None:
    """Local models write it into the text."""
    text = f'<think>so [1] {{}}</think>\n\n{START}\n[{{"tool": "SEARCH", "query": "x"}}'
    given = _read(_intents(), [Chunk(text=char) for char in text])
    assert [call.arguments for call in given] == [{"query": "x"}]


def test_native_pieces_out_of_turn_end_the_reader() -> None:
    """A lower index, one left open, or more text behind the object."""

    def deltas(*items: tuple[int, str]) -> list[Chunk]:
        return [
            Chunk(tool_calls=(ToolCallDelta(index=i, name="SEARCH", arguments=text),))
            for i, text in items
        ]

    assert _read(_native(), deltas((1, '{"query": "x"}'), (0, '{"query": "y"}'))) == []
    assert _read(_native(), deltas((0, '{"query"'), (1, '{"query": "y"}'))) == []
    assert _read(_native(), deltas((0, '{"query": "x"} y'))) == []
    given = _read(_native(), deltas((0, '{"query": "x"}'), (0, "y"), (1, "{}")))
    assert len(given) == 1


def test_the_same_native_call_twice_under_one_id_is_given_once() -> None:
    """As in the whole reply; under ids of their own both are meant."""

    def given(*ids: str) -> int:
        chunks = [
            Chunk(
                tool_calls=(
                    ToolCallDelta(
                        index=index, id=own, name="SEARCH", arguments='{"query": "x"}'
                    ),
                )
            )
            for index, own in enumerate(ids)
        ]
        return len(_read(_native(), chunks))

    assert given("c", "c") == 1
    assert given("c", "d") == 2
    assert given("", "") == 2


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
_junk = st.sampled_from(
    [
        "",
        " ",
        ",",
        "]",
        "}",
        "</think>",
        "<think>",
        "x",
        "\n",
        "```",
        START,
        END,
        '"',
        "{",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["intents", "envelope_v1", "envelope_v2"]),
    st.lists(st.dictionaries(st.text(max_size=6), _json, max_size=3), max_size=3),
    st.lists(_junk, min_size=4, max_size=4),
    st.integers(1, 9),
)
def test_made_up_replies_mean_the_same_early(
    name: str, items: list[dict[str, Any]], junk: list[str], size: int
) -> None:
    """Random arguments, with junk strewn in between the parts of the reply."""
    if name == "intents":
        parts = [json.dumps({"tool": "t", **item}) for item in items]
        text = f"{junk[0]}{START}{junk[1]}[{(',' + junk[2]).join(parts)}]{junk[3]}"
    else:
        parts = [
            json.dumps(
                {
                    "receiver": {"role": "plugin", "name": "p"},
                    "content_type": "command",
                    "content": {"command": "c", "param": item},
                }
            )
            for item in items
        ]
        text = f"{junk[0]}[{(',' + junk[2]).join(parts)}]{junk[3]}"
    ends = text.count("</think>")
    if junk[3] == "</think>" or (junk[0] == "<think>" and ends > 1):
        return  # told in the module's text: nobody can see that before
    _check(_dialect(name), Completion(text=text), size)
