"""The native dialect: golden cases, definitions, names, answers, round trips."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuraxis.call_errors import malformed_reply
from neuraxis.dialects.native.dialect import Native, safe_name
from neuraxis.dialects.native.tool_schema import for_server
from neuraxis.messages import Call, Completion, Message, NativeCall, Result
from neuraxis.schema.builders import REFERENCE
from neuraxis.specs import CommandSpec, Json, PluginSpec
from wire_cases import Case, case_id, cases, completion, counter, expected, written

REPLIES = cases("native", "reply")
WEB = PluginSpec(
    name="web",
    prompt="Prefer few searches.",
    commands=(
        CommandSpec(
            name="search",
            description="Finds\n pages.",
            parameters={
                "type": "object",
                "properties": {"query": {"type": "string"}},
                "required": ["query"],
                "additionalProperties": False,
            },
        ),
        CommandSpec(name="nap", parameters={"type": "number"}),
        CommandSpec(name="größe"),
    ),
)
TOOLS = {"SEARCH": ("web", "search"), "größe": ("web", "größe")}


def native(*, strict: bool = False) -> Native:
    dialect = Native(strict=strict)
    dialect.native_tools([WEB], TOOLS)
    return dialect


@pytest.mark.parametrize("case", REPLIES, ids=case_id)
def test_reply_is_read(case: Case) -> None:
    """A golden completion gives the golden calls, texts and error codes."""
    reply = native().decode(completion(case), next_id=counter())
    assert expected(case) == written(reply)
    if "notes" in case:
        assert sorted(case["notes"]) == sorted(reply.notes)


@pytest.mark.parametrize("case", REPLIES, ids=case_id)
def test_reply_is_read_strictly(case: Case) -> None:
    """Strict reading takes exactly JSON and leaves the text alone."""
    all_text = {"texts": [case["reply"].strip()]}
    outcome = case if case.get("both") else case.get("strict", all_text)
    reply = native(strict=True).decode(completion(case), next_id=counter())
    assert expected(outcome) == written(reply)


@pytest.mark.parametrize(
    "case", [case for case in REPLIES if case.get("prefixes")], ids=case_id
)
def test_D10_no_beginning_of_a_call_in_the_text_is_another_call(case: Case) -> None:
    """Also where the server does not say that it cut: whole calls, or none."""
    whole = native().decode(completion(case), next_id=counter()).calls
    for end in range(len(case["reply"])):
        for reason in ("stop", "length"):
            cut = Completion(text=case["reply"][:end], finish_reason=reason)
            calls = native().decode(cut, next_id=counter()).calls
            assert calls == (whole[: len(calls)] if reason == "stop" else ())


@pytest.mark.parametrize("case", REPLIES, ids=case_id)
def test_D10_no_prefix_of_arguments_is_run(case: Case) -> None:
    """Cut arguments are refused, also where the server does not say so."""
    for call in case.get("tool_calls", []):
        for end in range(1, len(call["arguments"].rstrip())):
            cut = NativeCall(id="c", name="SEARCH", arguments=call["arguments"][:end])
            for reason in ("length", "tool_calls"):
                reply = native().decode(
                    Completion(tool_calls=(cut,), finish_reason=reason),
                    next_id=counter(),
                )
                if reply.calls:  # a whole object that more text followed
                    json.loads(cut.arguments)
                    assert reason == "tool_calls"


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        (
            r'{"name": "SEARCH", "arguments": "{\"query\": \"x\""}',
            "[0].arguments",
            "the arguments of SEARCH as a JSON object (the text ends before its",
        ),
        (
            '{"name": "SEARCH", "arguments": "x"}',
            "[0].arguments",
            "the arguments of SEARCH as a JSON object (line 1, column 1",
        ),
        ("[TOOL_CALLS]", "", "Write it again to its end or, if it was too long,"),
        (
            '{"name": "SEARCH", "arguments": {"query": "x}}',
            "",
            'at "\\"x}}", without a closing quote. Write it again to its end or',
        ),
    ],
)
def test_a_fault_of_a_call_in_the_text_is_named(
    text: str, where: str, said: str
) -> None:
    """Its arguments that are no JSON, and an end that is missing."""
    reply = native().decode(Completion(text=text), next_id=counter())
    (error,) = reply.errors
    assert error.where == where
    assert said in error.message


# --- definitions --------------------------------------------------------------


def test_definitions_are_what_servers_take() -> None:
    """Name, description and an object schema for each command."""
    search, nap, size = native().native_tools([WEB], TOOLS)
    assert search == {
        "type": "function",
        "function": {
            "name": "SEARCH",
            "description": "Finds pages.",
            "parameters": {
                "type": "object",
                "properties": {"query": {"type": "string"}},
                "required": ["query"],
                "additionalProperties": False,
            },
        },
    }
    assert nap["function"]["parameters"]["properties"] == {"value": {"type": "number"}}
    for tool in (search, nap, size):
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["function"]["name"])


def test_K3_a_plain_value_goes_through_an_object_and_back() -> None:
    """Servers want an object; the command gets its value."""
    dialect = native()
    call = Call(id="a1", plugin=None, command="web.nap", arguments=5)
    (passed,) = dialect.native_calls([call])
    assert passed.arguments == '{"value":5}'
    reply = dialect.decode(Completion(tool_calls=(passed,)), next_id=lambda: "a1")
    assert reply.calls == (call,)


def test_B42_a_reference_is_allowed_where_the_manifest_allows_it() -> None:
    """A server that forces the schema must not shut references out."""
    command = CommandSpec(
        name="crop",
        parameters={
            "type": "object",
            "properties": {
                "image": {
                    "x-type": "PIL.Image.Image",
                    "not": {},
                    "x-asset-ref": True,
                    "description": "what to crop",
                },
                "boxes": {
                    "type": "array",
                    "description": "where",
                    "items": {"type": "integer", "x-asset-ref": True},
                    "x-asset-ref": True,
                },
                "n": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/t"}]},
            },
            "$defs": {"t": {"type": "string", "x-more": 1}},
        },
    )
    plugin = PluginSpec(name="p", commands=(command,))
    (tool,) = Native().native_tools([plugin], {"crop": ("p", "crop")})
    schema = tool["function"]["parameters"]
    assert "x-" not in json.dumps(schema)
    assert schema["properties"]["image"] == {**REFERENCE, "description": "what to crop"}
    assert schema["properties"]["boxes"] == {
        "description": "where",
        "anyOf": [
            {
                "type": "array",
                "items": {"anyOf": [{"type": "integer"}, REFERENCE]},
            },
            REFERENCE,
        ],
    }


@given(names=st.lists(st.text(min_size=1, max_size=80), unique=True, max_size=20))
def test_names_are_safe_and_different(names: list[str]) -> None:
    """Any tool name has one safe name, and no two the same."""
    safe = [safe_name(name) for name in names]
    assert len(set(safe)) == len(names)
    for name in safe:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)


def test_resumed_sessions_know_their_tools_again() -> None:
    """Names are the same in each process."""
    assert safe_name("web.nap") == safe_name("web.nap") == "web_nap_a01da107"


# --- messages -----------------------------------------------------------------


def test_answers_carry_the_servers_ids() -> None:
    """Each result is a tool message under the id of its call."""
    dialect = native()
    given_calls = tuple(
        NativeCall(id=f"call_{n}", name="SEARCH", arguments='{"query": "x"}')
        for n in (1, 2)
    )
    reply = dialect.decode(Completion(tool_calls=given_calls), next_id=counter())
    messages = dialect.answer(
        [Result(call=call, status="done", value={"n": 1}) for call in reply.calls]
    )
    assert [(m.role, m.tool_call_id) for m in messages] == [
        ("tool", "call_1"),
        ("tool", "call_2"),
    ]
    assert json.loads(messages[1].content) == {
        "step": 2,
        "tool": "SEARCH",
        "id": "a2",
        "status": "done",
        "response": {"n": 1},
    }


def test_answers_to_calls_without_ids_are_one_user_message() -> None:
    """Calls written as text, and those of a resumed session."""
    call = Call(id="a1", plugin=None, command="SEARCH")
    (message,) = native().answer([Result(call=call, status="done", value=1)])
    assert message.role == "user"
    assert json.loads(message.content)["results"][0]["response"] == 1


def test_a_correction_answers_each_tool_call() -> None:
    """Servers refuse a conversation with a tool call that nobody answered."""
    calls = (NativeCall(id="c1", name="S", arguments="{"),)
    error = malformed_reply("x.")
    (message,) = native().correction(
        [error], Message(role="assistant", content="", tool_calls=calls)
    )
    assert (message.role, message.tool_call_id) == ("tool", "c1")
    assert json.loads(message.content)["errors"][0]["code"] == "malformed_reply"
    (message,) = native().correction([error], Message(role="assistant", content="x"))
    assert message.role == "user"


def test_the_prompt_holds_what_authors_say(tmp_path: Path) -> None:
    """Tools go beside the text; a user's own text may stand around ours."""
    assert "About web:\nPrefer few searches." in Native().prompt([WEB], TOOLS)
    file = tmp_path / "t.md"
    file.write_text("Before {plugins} after", encoding="utf-8")
    prompt = Native(template=file).prompt([], {})
    assert prompt.startswith("Before You help a user")


# --- round trips --------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
arguments = st.dictionaries(st.text(max_size=6), values, max_size=4)


@pytest.mark.parametrize("strict", [False, True])
@settings(max_examples=60, deadline=None)
@given(given=st.lists(arguments, min_size=1, max_size=3))
def test_what_is_passed_is_read_again(strict: bool, given: list[object]) -> None:
    """Native calls and calls in the text give the same calls."""
    calls = tuple(
        Call(id=f"a{n}", plugin=None, command="SEARCH", arguments=item)
        for n, item in enumerate(given, 1)
    )
    dialect = native(strict=strict)
    passed = Completion(tool_calls=dialect.native_calls(calls))
    assert calls == dialect.decode(passed, next_id=counter()).calls
    if not strict:
        text = Completion(text=dialect.write(calls))
        assert calls == dialect.decode(text, next_id=counter()).calls


# --- schemas for servers ------------------------------------------------------


def test_B41_a_union_of_classes_is_one_reference() -> None:
    """However many classes there are, a server is shown the reference once."""
    classes = [{"x-type": f"pkg.Class{index}", "not": {}} for index in range(5)]
    assert for_server({"anyOf": classes, "description": "what is drawn"}) == {
        **REFERENCE,
        "description": "what is drawn",
    }
    mixed = for_server({"anyOf": [*classes, {"type": "string"}], "x-asset-ref": True})
    assert mixed == {"anyOf": [REFERENCE, {"type": "string"}]}


def test_a_union_with_references_is_never_exclusive() -> None:
    """`oneOf` with the reference in two arms would allow none."""
    arms = [
        {"type": "string", "x-asset-ref": True},
        {"type": "integer", "x-asset-ref": True},
    ]
    shown = for_server({"oneOf": arms})
    assert shown == {"anyOf": [{"type": "string"}, REFERENCE, {"type": "integer"}]}
    plain = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    assert for_server(plain) == plain


def test_a_union_of_one_keeps_what_stands_beside_it() -> None:
    """Only words about the value move; what is enforced stays where it is."""
    beside = {"type": "object", "required": ["a"], "anyOf": [{"required": ["b"]}]}
    assert for_server(beside) == beside


@settings(max_examples=200, deadline=None)
@given(
    arguments=st.dictionaries(
        st.text("ab$", max_size=2),
        st.integers()
        | st.booleans()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.sampled_from(["{{ x }}", "PREVIOUS", "asset://a", "é", "\\", "a"])
        | st.lists(st.integers() | st.just({"asset_id": "a1"}), max_size=2),
        max_size=3,
    ),
    name=st.sampled_from(["SEARCH", "größe", "nap", "unknown"]),
)
def test_the_short_way_reads_what_the_long_way_reads(
    arguments: dict[str, Json], name: str
) -> None:
    """A flawless tool call is the same call, however it is read."""
    given = NativeCall(id="x", name=safe_name(name), arguments=json.dumps(arguments))
    both = [
        native().decode(
            Completion(tool_calls=(given,), finish_reason=reason), next_id=counter()
        )
        for reason in ("tool_calls", "stop")
    ]
    assert both[0] == both[1]


def test_one_tool_call_with_a_key_twice_refuses_all() -> None:
    """The one that is right is not run beside one that cannot be read."""
    plain = NativeCall(id="x", name="SEARCH", arguments='{"query": "a"}')
    odd = NativeCall(id="y", name="SEARCH", arguments='{"query": "a", "query": "b"}')
    whole = Completion(tool_calls=(plain,), finish_reason="tool_calls")
    assert len(native().decode(whole, next_id=counter()).calls) == 1
    twice = Completion(tool_calls=(plain, odd), finish_reason="tool_calls")
    assert native().decode(twice, next_id=counter()).calls == ()
