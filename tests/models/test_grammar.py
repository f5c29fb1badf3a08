"""Grammars of calls: what they hold, and how each kind of server is given one."""

from __future__ import annotations

import re
from typing import Any

import pytest

from neuraxis.dialects.intents.call_grammar import call_form
from neuraxis.errors import ConfigError
from neuraxis.messages import CallForm, Message, Prompt
from neuraxis.models.grammar import MOST_CALLS, constraint, gbnf, list_schema
from neuraxis.specs import CommandSpec, PluginSpec

PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 40},
        "unit": {"enum": ["C", "F", 'a"b\n']},
        "days": {"type": "integer", "minimum": 1},
        "where": {"$ref": "#/$defs/Place"},
        "table": {"x-type": "polars.DataFrame"},
        "tool": {"type": ["string", "null"]},
        "free": {},
    },
    "required": ["city", "tool"],
    "additionalProperties": False,
    "$defs": {
        "Place": {
            "type": "object",
            "properties": {"in": {"$ref": "#/$defs/Place"}, "n": {"type": "number"}},
            "additionalProperties": {"type": "boolean"},
        }
    },
}
PLUGINS = (
    PluginSpec(
        name="w",
        commands=(
            CommandSpec(name="tell", parameters=PARAMETERS),
            CommandSpec(name="list", parameters={"type": "array", "items": {}}),
        ),
    ),
)
NAMES = {"tell": ("w", "tell"), "w.list": ("w", "list")}


def form(single: bool = False) -> CallForm:
    return call_form(PLUGINS, NAMES, "<S>", "</S>", single=single)


def prompt() -> Prompt:
    return Prompt(messages=(Message(role="user", content="Hi."),), form=form)


def rules(text: str) -> dict[str, str]:
    return dict(line.split(" ::= ", 1) for line in text.splitlines() if line)


def test_the_form_has_each_tool_with_its_own_keys() -> None:
    """`tool` is the tool's name; a parameter of that name is escaped, as in C4."""
    made = form()
    tell = made.calls["tell"]
    assert tell["required"] == ["tool", "city", "$tool"]
    assert list(tell["properties"])[:3] == ["tool", "city", "unit"]
    assert {"as", "$for_each", "$max_items"} <= set(tell["properties"])
    assert made.calls["w.list"]["required"] == ["tool", "$value"]
    assert list(made.definitions) == ["tell.Place"]


def test_the_grammar_is_closed() -> None:
    """Each rule that is named is there, also those that name themselves."""
    found = rules(gbnf(form()))
    bare = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{[\d,]*\}')
    for name, body in found.items():
        for used in re.findall(r"[a-z][a-zA-Z0-9-]*", bare.sub(" ", body)):
            assert used in found, (name, used)
    assert found["root"].startswith('"<S>" ws "["')
    assert f"{{0,{MOST_CALLS - 1}}}" in found["root"]


def test_values_of_the_grammar() -> None:
    """Choices are written as JSON; an object behind a class is a reference only."""
    text = gbnf(form())
    assert '"\\"C\\"" | "\\"F\\"" | "\\"a\\\\\\"b\\\\n\\""' in text
    assert "integer | expression" in text
    assert "address |" in text
    assert "maxLength" not in str(list_schema(form()))


def test_llama_cpp_is_free_until_a_block_begins() -> None:
    """Words come as they like; from the start marker on the grammar holds."""
    held = constraint(prompt(), None, "llama.cpp")
    assert held["grammar_lazy"] is True
    assert held["grammar_triggers"] == [{"type": 1, "value": "<S>"}]
    assert "grammar_lazy" not in constraint(prompt(), "required", "llama.cpp")


def test_a_step_is_named_by_an_identifier() -> None:
    """Anything else would be refused when the plan is made."""
    text = gbnf(form())
    assert r'"\"as\"" ws ":" ws name' in text
    assert r'name ::= "\"" [a-zA-Z_] [a-zA-Z0-9_]{0,40} "\""' in text


@pytest.mark.parametrize(("choice", "parallel"), [("tell", None), ("required", False)])
def test_a_single_call_has_no_other_step(choice: str, parallel: bool | None) -> None:
    """No name, no loop, no expression, and no second call."""
    held: Any = constraint(prompt(), choice, "llama.cpp", parallel=parallel)
    text = held["grammar"].partition("\nws ::=")[0]
    for word in ("for_each", "max_items", r'"\"as\"', "expression", "{0,15}"):
        assert word not in text
    assert "address" in text
    told: Any = constraint(prompt(), choice, "vllm", parallel=parallel)
    schema = told["structured_outputs"]["json"]
    assert schema["maxItems"] == 1
    assert "{{" not in str(schema).replace("\\", "")


def test_vllm_gets_a_structural_tag_or_a_schema() -> None:
    """As docs.vllm.ai describes them: `response_format`, and `structured_outputs`."""
    held: Any = constraint(prompt(), "auto", "vllm")["response_format"]
    assert held["type"] == "structural_tag"
    assert held["triggers"] == ["<S>"]
    (tag,) = held["structures"]
    assert (tag["begin"], tag["end"]) == ("<S>", "</S>")
    assert tag["schema"]["minItems"] == 1
    must: Any = constraint(prompt(), "required", "vllm")
    assert must == {"structured_outputs": {"json": list_schema(form())}}


def test_one_tool_can_be_wanted_and_none() -> None:
    """A name keeps the others out; a wrong one is told with the nearest."""
    only: Any = constraint(prompt(), "tell", "llama.cpp")
    assert "w.list" not in only["grammar"]
    assert constraint(prompt(), "none", "llama.cpp") == {}
    assert constraint(Prompt(messages=()), "required", "llama.cpp") == {}
    with pytest.raises(ConfigError, match="Did you mean tell"):
        constraint(prompt(), "tel", "vllm")
