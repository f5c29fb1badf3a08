"""The short way of reading a link of a chain gives what the long way gives."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuraxis import plan as plan_module
from neuraxis import plan_links
from neuraxis.messages import Call
from neuraxis.notation import Schema
from neuraxis.plan import Plan, build
from neuraxis.specs import CommandSpec, Json, PluginSpec


@dataclass(frozen=True, slots=True)
class FakeCommand:
    """What the registry finds."""

    spec: CommandSpec
    plugin: PluginSpec
    parameters: Schema
    response: Schema | None


ITEM: dict[str, Json] = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
    "required": ["id"],
    "additionalProperties": False,
}
PROPERTIES: dict[str, Json] = {
    "text": {"type": "string"},
    "short": {"type": "string", "maxLength": 3},
    "count": {"type": "integer"},
    "large": {"type": "integer", "minimum": 10},
    "share": {"type": "number"},
    "yes": {"type": "boolean"},
    "items": {"type": "array", "items": ITEM},
    "some": {"type": "array", "minItems": 1},
    "item": ITEM,
    "open": {},
    "kind": {"type": "string", "enum": ["a", "text", "PREVIOUS"]},
    "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "shared": {"$ref": "#/$defs/shared"},
}
PARAMETERS: dict[str, Json] = {
    "type": "object",
    "properties": PROPERTIES,
    "additionalProperties": False,
    "$defs": {"shared": {"type": "integer"}},
}
DEMANDING: dict[str, Json] = {**PARAMETERS, "required": ["text"], "maxProperties": 3}
UNUSUAL: dict[str, Json] = {
    **PARAMETERS,
    "if": {"properties": {"count": {"const": 1}}, "required": ["count"]},
    "then": {"required": ["yes"]},
}
RESPONSES: tuple[dict[str, Json] | None, ...] = (
    None,
    {"type": "array", "items": ITEM},
    ITEM,
    {"type": "string"},
)


def command(
    name: str, parameters: Mapping[str, Json], response: Any = None
) -> FakeCommand:
    spec = CommandSpec(name=name, parameters=parameters, response=response)
    return FakeCommand(
        spec=spec,
        plugin=PluginSpec(name="tools", commands=(spec,)),
        parameters=Schema(parameters),
        response=None if response is None else Schema(response),
    )


COMMANDS = {
    f"{name}{index}": command(f"{name}{index}", parameters, response)
    for name, parameters in (
        ("plain", PARAMETERS),
        ("demanding", DEMANDING),
        ("unusual", UNUSUAL),
    )
    for index, response in enumerate(RESPONSES)
}

EXPRESSIONS = st.sampled_from(
    (
        "previous_result",
        "PREVIOUS",
        "(previous_result)",
        "results[0]",
        "results[-1]",
        "results[7]",
        "one",
        "two.id",
        "unknown",
        "previous_result[0].name",
        "previous_result.id",
        "previous_result.nothing",
        "previous_result[0] | upper",
        "previous_result | default(3)",
        "previous_result | no_filter",
        "previous_result.",
        "'{{'",
        "one-two",
        "item",
    )
)


def _template(before: str, inner: str, behind: str) -> str:
    return f"{before}{{{{ {inner} }}}}{behind}"


TEMPLATES = st.builds(
    _template,
    st.sampled_from(("", "", "", "about ", "{", " ")),
    EXPRESSIONS,
    st.sampled_from(("", "", "", "!", "}", "{{ results[0] }}")),
)
PLAIN: st.SearchStrategy[Any] = st.sampled_from(
    (
        "a", "abcd", "5", 5, 5.0, 2.5, 12, True, None, "true", "PREVIOUS",
        "asset://a1", "asset://nobody", "asset:// no", {"asset_id": "a1"},
        {"asset_id": "a1", "field_path": []}, {"id": 1}, {"id": "1"}, {"id": 1.0},
        {"id": 1, "name": "{{ previous_result }}"}, [], [{"id": 1}], ["{{ one }}"],
        "[1]", float("nan"), [2.0], {"id": {"asset_id": "a1"}},
    )
)  # fmt: skip
VALUES = st.one_of(TEMPLATES, TEMPLATES, PLAIN)
ARGUMENTS = st.dictionaries(
    st.sampled_from([*PROPERTIES, "unknown", "asset_id"]), VALUES, max_size=4
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(tuple(COMMANDS)),
        ARGUMENTS,
        st.sampled_from((None, None, "one", "two")),
        st.booleans(),
        st.sampled_from((None, None, None, "{{ results[0] }}", [1, 2])),
    ),
    min_size=2,
    max_size=4,
)


def both_ways(calls: list[Call], **options: Any) -> tuple[Plan, Plan, int]:
    """The plan read with the short way and without it, and how often it was taken."""

    def found(plugin: str | None, name: str) -> FakeCommand:
        return COMMANDS[name]

    taken = 0

    def counted(*given: Any) -> Any:
        nonlocal taken
        link = plan_links.read_link(*given)
        taken += link is not None
        return link

    def never(*_: object) -> None:
        """Always the long way."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_module, "read_link", counted)
        short = build(calls, found, known_assets="a1".__eq__, **options)
        patch.setattr(plan_module, "read_link", never)
        long = build(calls, found, known_assets="a1".__eq__, **options)
    return short, long, taken


@settings(max_examples=1500, deadline=None)
@given(STEPS, st.booleans(), st.booleans(), st.sampled_from((None, {"p": 1})))
def test_both_ways_give_the_same_plan(
    steps: list[Any], lenient: bool, templates: bool, params: Any
) -> None:
    """Steps, problems, notes and all; for whatever a model may write."""
    calls = [
        Call(
            id=f"c{place}",
            plugin=None,
            command=tool,
            arguments=arguments,
            name=name,
            literal=literal,
            for_each=items,
        )
        for place, (tool, arguments, name, literal, items) in enumerate(steps)
    ]
    short, long, _ = both_ways(
        calls, lenient=lenient, templates=templates, params=params
    )
    assert repr(short) == repr(long)  # NaN is not equal to itself
    if "nan" not in repr(calls):
        assert short == long


@pytest.mark.parametrize(
    "arguments",
    [
        {"count": "{{ previous_result }}"},
        {"text": "{{ previous_result[0].name }}", "count": 3},
        {"text": "about {{ results[0] }} and {{ results[0] }}", "items": [{"id": 1}]},
        {"item": "{{ results[-1][0] }}", "share": 0.5, "yes": None},
    ],
)
def test_a_common_link_takes_the_short_way(arguments: dict[str, Json]) -> None:
    """Else the comparison above would compare nothing."""
    calls = [
        Call(id="c0", plugin=None, command="plain1", arguments={"count": 1}),
        Call(id="c1", plugin=None, command="plain0", arguments=arguments),
    ]
    if arguments.get("yes", 1) is None:  # null for what may be left out: coerced
        assert both_ways(calls)[2] == 0
        return
    short, long, taken = both_ways(calls)
    assert taken == 1
    assert short == long
    assert not short.problems
    assert short.steps[1].depends == {"c0"}


def test_what_was_read_short_runs_as_it_says() -> None:
    """A chain of ten, from the reply's text to the last number."""
    from neuraxis import Session
    from neuraxis import command as as_command
    from neuraxis.testing import ScriptedModel

    seen: list[int] = []

    @as_command(effects="none", blocking=False)
    def step(x: int) -> int:
        """The next number."""
        seen.append(x)
        return x + 1

    links = ['{"tool": "step", "x": 0}']
    links += ['{"tool": "step", "x": "{{ previous_result }}"}'] * 9
    block = f"<!-- RESPONSE_START -->\n[{', '.join(links)}]\n<!-- RESPONSE_END -->"
    with Session(model=ScriptedModel([block, "done"]), plugins=[step]) as session:
        answer = asyncio.run(session.drive("go"))
    assert [result.value for result in answer.calls] == list(range(1, 11))
    assert seen == list(range(10))
