"""What a server refuses is left out of a body, or put in, and nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest

from neuraxis.models.openai.fallback import keeps_constant, without

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {
                "additionalProperties": {"enum": [{"additionalProperties": 1}]},
                "x": {"type": "array", "items": {"additionalProperties": True}},
            },
            "additionalProperties": False,
        },
    },
}


def test_what_is_put_in() -> None:
    """Empty reasoning, the signature that stands for none, short ids, empty text."""
    own = "call_" + "x" * 60
    call: dict[str, Any] = {"id": own, "function": {"name": "add"}}
    body: dict[str, Any] = {
        "messages": [
            {"role": "user", "content": "Add."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": own, "content": "2"},
            {"role": "assistant", "content": "Two."},
        ]
    }

    def turns(part: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = without(body, part)["messages"]
        return found[1:]

    filled = [
        "reasoning_content" in told for told in turns("turns without reasoning_content")
    ]
    assert filled == [True, False, True]
    assert turns("turns without reasoning_content")[0]["reasoning_content"] == ""
    call = turns("calls without thought_signature")[0]["tool_calls"][0]
    assert call["extra_content"] == {
        "google": {"thought_signature": "skip_thought_signature_validator"}
    }
    asked, told, last = turns("ids of tool calls")
    assert last == {"role": "assistant", "content": "Two."}
    own = asked["tool_calls"][0]["id"]
    assert (own, len(own), own.isalnum()) == (told["tool_call_id"], 9, True)
    assert turns("null content")[0]["content"] == ""
    assert "content" not in turns("empty messages")[0]
    none = without(without(body, "empty messages"), "null content")["messages"]
    assert none[1]["content"] == ""


@pytest.mark.parametrize(
    ("own", "fits"),
    [
        ("abcDEF123", True),
        ("abc-EF123", False),
        ("abcDEF12é", False),
        ("a1" * 9, False),
    ],
)
def test_an_id_that_each_server_takes(own: str, fits: bool) -> None:
    """Nine letters and digits stay; of another id it is always the same nine."""
    body = {"messages": [{"role": "tool", "tool_call_id": own}]}
    first, again = (
        without(body, "ids of tool calls")["messages"][0]["tool_call_id"]
        for _ in range(2)
    )
    assert (first == own, first == again, len(first)) == (fits, True, 9)


def test_a_message_that_says_nothing() -> None:
    """It says so, unless its calls are what it says."""
    call = {"id": "a", "function": {"name": "add"}}
    body = {
        "messages": [
            {"role": "assistant", "content": " "},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "assistant", "content": "Two."},
            {"role": "user", "content": [{"type": "text", "text": ""}]},
        ]
    }
    told = without(body, "empty messages")["messages"]
    assert [message.get("content", "no key") for message in told] == [
        "(I said nothing.)",
        "no key",
        "no key",
        "Two.",
        [{"type": "text", "text": ""}],
    ]


def test_a_keyword_is_no_parameter() -> None:
    """Taken out of each schema, and of nothing that has the same name."""
    body = {"tools": (TOOL,)}
    changed = without(body, "additionalProperties in the tools' schemas")["tools"]
    assert changed[0]["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "additionalProperties": {"enum": [{"additionalProperties": 1}]},
            "x": {"type": "array", "items": {}},
        },
    }
    assert "additionalProperties" in TOOL["function"]["parameters"]
    assert without(body, "minimum in the tools' schemas") == body
    assert without({}, "minimum in the tools' schemas") == {}


def test_roles_in_order() -> None:
    """A turn between results and a user, and what is said twice is said at once."""
    system = {"role": "system", "content": "Be brief."}
    asked = {"role": "user", "content": "Hm."}
    more = {"role": "user", "content": "Go on."}
    told = {"role": "tool", "tool_call_id": "a", "content": "2"}
    body = {"messages": [system, asked, more, told, more, asked]}
    assert without(body, "the order of roles")["messages"] == [
        system,
        {"role": "user", "content": "Hm.\n\nGo on."},
        told,
        {"role": "assistant", "content": "I see the results."},
        {"role": "user", "content": "Go on.\n\nHm."},
    ]
    assert without({"messages": [system, asked]}, "the system role")["messages"] == [
        {"role": "user", "content": "Be brief.\n\nHm."}
    ]
    assert body["messages"][1] == asked


def test_whether_the_constant_part_is_kept() -> None:
    """Which is not written again while it is: changed tools or roles would be lost."""
    assert keeps_constant(("stop", "ids of tool calls", "null content"))
    for part in ("minimum in the tools' schemas", "the system role"):
        assert not keeps_constant(("stop", part))


def test_the_name_that_a_limit_has_elsewhere() -> None:
    """It still holds, as newer models of OpenAI call it."""
    assert without({"max_tokens": 9}, "max_tokens") == {"max_completion_tokens": 9}
    assert without({"stop": ["x"]}, "stop") == {}
    assert without({"seed": 1}, "max_tokens") == {"seed": 1}


def test_what_was_carried_is_left_out() -> None:
    """Of turns and of their calls; what these say stays."""
    call = {"id": "a", "function": {"name": "add"}}
    turn = {"role": "assistant", "content": "Two."}
    body = {
        "messages": [
            {**turn, "reasoning_content": "hm", "reasoning_details": []},
            {**turn, "tool_calls": [{**call, "extra_content": {"google": {}}}]},
        ]
    }
    assert without(body, "reasoning of earlier turns")["messages"] == [
        turn,
        {**turn, "tool_calls": [call]},
    ]
