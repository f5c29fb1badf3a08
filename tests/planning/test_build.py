"""Plans: everything that is wrong is told at once; the order follows the references."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis import call_errors
from neuraxis.messages import Call, CallError
from neuraxis.planning.build import build, omits_parameter
from neuraxis.planning.plan import Plan, waits_for
from neuraxis.references.asset_ref import AssetRef
from neuraxis.references.evaluate import evaluate
from neuraxis.references.path import fill
from neuraxis.schema.schema import Schema
from neuraxis.specs import CommandSpec, Effects, Json, PluginSpec

TEXT: dict[str, Json] = {"type": "string"}
IMAGE: dict[str, Json] = {"x-type": "PIL.Image.Image", "not": {}, "x-asset-ref": True}


@dataclass(frozen=True, slots=True)
class FakeCommand:
    """What the registry finds."""

    spec: CommandSpec
    plugin: PluginSpec
    parameters: Schema
    response: Schema | None


def obj(optional: tuple[str, ...] = (), **properties: Json) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": [key for key in properties if key not in optional],
        "additionalProperties": False,
    }


def command(
    name: str, parameters: Mapping[str, Json], response: Any = None, kind: str = "once"
) -> FakeCommand:
    effects = Effects(kind=kind)  # type: ignore[arg-type]
    spec = CommandSpec(
        name=name, parameters=parameters, response=response, effects=effects
    )
    return FakeCommand(
        spec=spec,
        plugin=PluginSpec(name="tools", commands=(spec,)),
        parameters=Schema(parameters),
        response=None if response is None else Schema(response),
    )


PAGE = obj(
    ("next",),
    title=TEXT,
    items={"type": "array", "items": obj(url=TEXT, rank={"type": "integer"})},
    next={"anyOf": [TEXT, {"type": "null"}]},
    extra={"type": "object", "additionalProperties": {"type": "integer"}},
    anything={},
)
TOOLS = {
    tool.spec.name: tool
    for tool in (
        command(
            "GOOGLE",
            obj(query=TEXT),
            obj(urls={"type": "array", "items": TEXT}),
            "read",
        ),
        command("FETCH_URL", obj(url=TEXT), obj(output=TEXT), "read"),
        command("page", obj(url=TEXT), PAGE, "read"),
        command("FILEWRITER", obj(file_path=TEXT, contents=TEXT), obj(success={})),
        command(
            "crop",
            obj(
                ("boxes",),
                image=IMAGE,
                n={"type": "integer"},
                boxes={"type": "array", "items": TEXT, "x-asset-ref": True},
            ),
            {"type": "object"},
            "none",
        ),
        command("turn", obj(to={"enum": ["NEXT", "PREVIOUS"]})),
        command("delete", obj(asset_id=TEXT)),
        command("any", {"type": "object"}, None, "read"),
        command("whole", {**obj(a=TEXT), "x-asset-ref": True}),
        command("text", TEXT),
        command("nothing", obj(), None, "none"),
    )
}


def find(_: str | None, name: str) -> FakeCommand | CallError:
    return TOOLS.get(name) or call_errors.unknown_command(
        name, dict.fromkeys(TOOLS, ())
    )


def calls(*given_calls: Any) -> list[Call]:
    """`(tool, arguments)` or `(tool, arguments, name)` each; ids are c0, c1, …"""
    return [
        Call(
            id=f"c{index}",
            plugin=None,
            command=item[0],
            arguments=item[1],
            name=item[2] if len(item) > 2 else None,
        )
        for index, item in enumerate(given_calls)
    ]


def plan(*given_calls: Any, **settings: Any) -> Plan:
    return build(
        calls(*given_calls), find, known_assets=lambda i: i in ("a1", "a2"), **settings
    )


def told(built: Plan) -> list[str]:
    return [error.message for error in built.problems]


GOOGLE = ("GOOGLE", {"query": "q"})


# --- plans that are right ------------------------------------------------------


def test_one_call_is_one_step() -> None:
    """A valid call goes through as it is: the same arguments, nothing else."""
    built = plan(GOOGLE)
    assert built.problems == ()
    (step,) = built.steps
    assert step.arguments is step.call.arguments
    assert (step.bindings, step.asset_refs, step.depends) == ((), (), frozenset())


def test_no_calls_no_steps() -> None:
    """An empty reply is an empty plan."""
    assert plan() == Plan()


def test_C18_the_documents_chain() -> None:
    """The example of the intent document: a list of URLs as text to a file."""
    built = plan(
        GOOGLE,
        (
            "FILEWRITER",
            {"file_path": "t.txt", "contents": "{{ previous_result['urls'] }}"},
        ),
    )
    assert built.problems == ()
    (binding,) = built.steps[1].bindings
    assert binding.path == ("contents",)
    assert built.steps[1].depends == {"c0"}
    assert TOOLS["FILEWRITER"].parameters.wants_text(binding.path)
    text = evaluate(binding.template, lambda _: {"urls": ["u1", "u2"]}, True)
    assert text == '["u1", "u2"]'


def test_names_results_and_nested_places() -> None:
    """All roots make dependencies, wherever in the arguments they stand."""
    built = plan(
        (*GOOGLE, "search-1"),
        (*GOOGLE, "other"),
        ("any", {"a": [{"b": "{{ search-1.urls[0] }}"}], "c": "x{{ results[1] }}"}),
        ("any", {"{{ other }}": "keys are not read"}),
    )
    assert told(built) == []
    assert built.steps[2].depends == {"c0", "c1"}
    assert [b.path for b in built.steps[2].bindings] == [("c",), ("a", 0, "b")]
    assert built.steps[3].depends == frozenset()


def test_D4_coercions_are_noted_and_strict_refuses_them() -> None:
    """Lossless changes in lenient only; the call itself stays as written."""
    crop = ("crop", {"image": "asset://a1/content/response/image", "n": "5"})
    built = plan(crop)
    assert built.steps[0].arguments["n"] == 5
    assert built.steps[0].call.arguments["n"] == "5"
    assert "5" in built.notes[0]
    assert [p.path for p in plan(crop, lenient=False).problems[0].problems] == [("n",)]
    whole = plan(("crop", {"image": "asset://a1", "n": 5.0}))
    assert type(whole.steps[0].arguments["n"]) is int


def test_coercion_and_references_together() -> None:
    """A reference to a list is not taken for its only element; JSON text is read."""
    built = plan(
        GOOGLE,
        (
            "crop",
            {"image": "asset://a1", "n": "5", "boxes": "{{ previous_result.urls }}"},
        ),
        ("crop", {"image": "asset://a1", "n": 5, "boxes": '["asset://a1", "b"]'}),
    )
    assert told(built) == []
    assert built.steps[1].bindings[0].path == ("boxes",)
    assert [path for path, _ in built.steps[2].asset_refs] == [
        ("image",),
        ("boxes", 0),
    ]


def test_text_around_a_reference_where_no_text_is_taken() -> None:
    """The text of a list is read, blanks are nothing, all else is told at once."""
    for chain in ("{{ results[0].urls }}\n", '["{{ results[0].urls[0] }}", "b"]'):
        built = plan(GOOGLE, ("crop", {"image": "asset://a1", "n": 5, "boxes": chain}))
        assert told(built) == []
        (binding,) = built.steps[1].bindings
        assert binding.template.whole
    for field, text in (
        ("n", "{{ results[0].urls[0] }}{{ results[0].urls[1] }}"),
        ("n", "about {{ results[0].urls[0] }}"),
        ("boxes", "[{{ results[0].urls[0] }}, 3]"),
    ):
        arguments: Json = {"image": "asset://a1", "n": 5, field: text}
        (message,) = told(plan(GOOGLE, ("crop", arguments)))
        assert f"crop.{field}" in message
        assert "one reference without text around it" in message


def test_C18_the_bare_word() -> None:
    """PREVIOUS alone is the result before, noted; never where it is a choice."""
    built = plan(GOOGLE, ("any", {"x": "PREVIOUS"}), ("turn", {"to": "PREVIOUS"}))
    assert [len(step.bindings) for step in built.steps] == [0, 1, 0]
    assert "PREVIOUS" in built.notes[0]
    assert plan(GOOGLE, ("any", {"x": "PREVIOUS"}), lenient=False).notes == ()
    assert plan(("any", {"x": "PREVIOUS"})).steps[0].bindings == ()


def test_C21_literal_calls_and_no_templates() -> None:
    """Where braces are not read, they stay, whatever stands between them."""
    text = {"file_path": "a", "contents": "{{ previous_result.bad() }} {{ '{{' }}"}
    literal = Call(
        id="c0", plugin=None, command="FILEWRITER", arguments=text, literal=True
    )
    built = build([literal], find, known_assets=lambda _: False)
    assert built.steps[0].arguments == text
    assert plan(("FILEWRITER", text), templates=False).steps[0].arguments == text


def test_C21_the_escape_is_written_out() -> None:
    """`{{ '{{' }}` is done at once; the first step may have it; it binds nothing."""
    contents = "{{ '{{' }} previous_result }} {{ other }}"
    built = plan(("FILEWRITER", {"file_path": "a", "contents": contents}))
    (step,) = built.steps
    assert step.arguments["contents"] == "{{ previous_result }} {{ other }}"
    assert step.bindings == ()
    assert step.call.arguments["contents"] == contents


def test_a_foreign_root_alone_is_noted() -> None:
    """`{{ GOOGLE.urls }}` stays text, as it must; the trace says so."""
    write = {"file_path": "a", "contents": "{{ GOOGLE.urls }}"}
    built = plan(GOOGLE, ("FILEWRITER", write))
    assert built.steps[1].bindings == ()
    assert "passed on as text" in built.notes[0]
    assert plan(("FILEWRITER", write)).notes == ()


@pytest.mark.parametrize(
    "contents",
    [
        "{{ GOOGLE.urls }}",
        "{{ step1['urls'] }}",
        "See {{ prevous_result['urls'] }}.",
        "See {{ result['urls'] }}.",
        "See {{ results['0']['urls'] }}.",
        "See {{ previous_result['urls'] }} and {{ pervious_result['urls'] }}.",
    ],
)
def test_C21_braces_that_look_like_a_reference_are_warned_of(contents: str) -> None:
    """They stay byte for byte, and the model is told with the step's result."""
    write = ("FILEWRITER", {"file_path": "a", "contents": contents})
    built = plan(GOOGLE, write)
    assert built.steps[1].arguments["contents"] == contents
    (warning,) = built.steps[1].warnings
    assert "step 2: FILEWRITER.contents" in warning
    assert "passed on as text" in warning
    assert built.notes == (warning,)
    strict = plan(GOOGLE, write, lenient=False)
    assert (strict.steps[1].warnings, strict.notes) == ((), (warning,))


@pytest.mark.parametrize(
    "contents", ["<b>{{ user.name }}</b>", "{{ a }}{{ b }}", "{{}}"]
)
def test_C21_no_warning_of_other_templates(contents: str) -> None:
    """A template of another program is written without a word."""
    built = plan(GOOGLE, ("FILEWRITER", {"file_path": "a", "contents": contents}))
    assert (built.steps[1].warnings, built.notes) == ((), ())


def test_K3_an_optional_value_may_be_left_out() -> None:
    """A bare parameter that is optional and missing: right, and nothing is checked."""
    tools = {
        name: command(name, schema)
        for name, schema in {
            "optional": {**TEXT, "x-optional": True},
            "anything": {"x-optional": True},
            "needed": TEXT,
        }.items()
    }

    def built(name: str, arguments: Any) -> Plan:
        given_calls = calls((name, arguments))
        return build(given_calls, lambda _, n: tools[n], known_assets=lambda _: False)

    assert built("optional", {}).problems == ()
    assert omits_parameter(tools["optional"].parameters, {})
    assert not omits_parameter(tools["optional"].parameters, "x")
    assert not omits_parameter(tools["anything"].parameters, {})  # {} is a value there
    assert len(built("optional", 5).problems) == 1
    assert len(built("needed", {}).problems) == 1


def test_D4_strict_refuses_a_float_for_an_integer() -> None:
    """3.0 is an integer in JSON Schema; the strict profile takes what is written."""
    crop = ("crop", {"image": "asset://a1", "n": 3.0})
    (error,) = plan(crop, lenient=False).problems
    assert error.problems[0].path == ("n",)
    assert plan(crop).problems == ()
    tools = {"take": command("take", obj(n={"type": "integer"}))}

    def alone(lenient: bool) -> Plan:
        return build(
            calls(("take", {"n": 3.0})),
            lambda _, name: tools[name],
            known_assets=lambda _: False,
            lenient=lenient,
        )

    assert len(alone(False).problems) == 1
    assert type(alone(True).steps[0].arguments["n"]) is int


# --- plans that are wrong ------------------------------------------------------


def test_all_problems_at_once() -> None:
    """Names, arguments, references of every call: nothing waits for the next try."""
    built = plan(
        ("GOGLE", {"query": "q"}, "a"),
        ("GOOGLE", {}, "a"),
        ("FILEWRITER", {"file_path": 5, "contents": "{{ results[0]['k'] }}"}, "none"),
        ("FILEWRITER", {"file_path": "{{ z", "contents": "{{ later.x }}"}),
        ("GOOGLE", {"query": "{{ results[9] }} {{ PREVIOUS( }}"}, "later"),
    )
    codes = [error.code for error in built.problems]
    assert codes.count("unknown_command") == 1
    assert codes.count("invalid_param") == 4  # two names, two arguments
    assert codes.count("reference_not_found") == 3
    assert len(built.at_fault) == len(built.problems)
    assert set(built.at_fault) == {"c0", "c1", "c2", "c3", "c4"}
    assert all(
        "step " in error.where or "step" in error.message for error in built.problems
    )


def test_B5_unknown_names_come_from_the_registry() -> None:
    """One call: the registry's words; several: with the step's number."""
    assert told(plan(("GOGLE", {})))[0].startswith('"GOGLE": there is no tool')
    assert told(plan(GOOGLE, ("GOGLE", {})))[0].startswith("step 2: ")


@pytest.mark.parametrize(
    ("second", "keyword"),
    [
        ("{{ results[1].x }}", "cyclic"),
        ("{{ me.x }}", "cyclic"),
        ("{{ third.x }}", "forward"),
        ("{{ results[2].x }}", "forward"),
        ("{{ results[3].x }}", "dangling"),
        ("{{ results[-2].x }}", "dangling"),
        ("{{ third( }}", "syntax"),
    ],
)
def test_C23_wrong_references(second: str, keyword: str) -> None:
    """Own, later and missing steps: a plan error, before anything runs."""
    built = plan(
        GOOGLE, ("any", {"x": second}, "me"), ("any", {"x": "{{ me }}"}, "third")
    )
    (error,) = built.problems
    assert error.code == "reference_not_found"
    assert error.problems[0].keyword == keyword
    assert error.where == "step 2: any.x"


def test_C23_a_reference_in_the_first_step() -> None:
    """There is nothing before it (defect 12 wrote it out literally)."""
    built = plan(("FILEWRITER", {"file_path": "a", "contents": "{{ PREVIOUS.x }}"}))
    assert "first step" in told(built)[0]


@pytest.mark.parametrize(
    "inside",
    [
        ".title",
        ".items[0].url",
        ".items[-1]['rank']",
        ".items[1:][0].url",
        ".items[:3]",
        ".items | map('url') | join(', ')",
        ".items | first",
        "['items'] | length",
        ".title[0:3]",
        ".next",
        ".extra.whatever",
        ".anything.at.all[3]",
        ".nope | default('x')",
        "",
    ],
)
def test_C23_declared_fields(inside: str) -> None:
    """What the response declares, or leaves open, may be referred to."""
    use = ("any", {"x": f"{{{{ previous_result{inside} }}}}"})
    assert told(plan(("page", {"url": "u"}), use)) == []


@pytest.mark.parametrize(
    ("inside", "candidate"),
    [
        (".titel", "title"),
        (".items.url", ""),
        (".items[0].link", "url"),
        ("['items'][0]['urll']", "url"),
        (".items[1:].url", ""),
        (".items | first", None),
        (".title.x", ""),
        (".title[0]", ""),
        (".next.x", ""),
        (".extra.a.b", ""),
        ("[0]", "title"),
        ("[1:2]", "title"),
        (".content.response.title", "title"),
    ],
)
def test_C23_undeclared_fields(inside: str, candidate: str | None) -> None:
    """What no answer can have is told, with the declared fields."""
    use = ("any", {"x": f"{{{{ previous_result{inside} }}}}"})
    built = plan(("page", {"url": "u"}), use)
    if candidate is None:
        assert told(built) == []
        return
    (error,) = built.problems
    assert error.problems[0].keyword == "unknown_field"
    assert "page" in error.message
    if candidate:
        assert candidate in error.candidates


@pytest.mark.parametrize(
    ("tool", "inside", "said"),
    [
        ("GOOGLE", ".urls.length", "| length counts it"),
        ("GOOGLE", ".response.urls", "leave out .response"),
        ("page", "['result'].title", "leave out .result"),
        ("FETCH_URL", ".output.x", ""),
    ],
)
def test_what_was_most_likely_meant_is_told(tool: str, inside: str, said: str) -> None:
    """A field that is declared is never called superfluous."""
    arguments = {"query": "q"} if tool == "GOOGLE" else {"url": "u"}
    text = f"{{{{ previous_result{inside} }}}}"
    (message,) = told(plan((tool, arguments), ("FETCH_URL", {"url": text})))
    assert said in message
    assert ("leave out" in message) == said.startswith("leave out")


def test_C23_recursive_response() -> None:
    """`$ref` is followed; a schema without an end does no harm."""
    tree = {
        "$defs": {
            "node": obj(
                v=TEXT, kids={"type": "array", "items": {"$ref": "#/$defs/node"}}
            )
        },
        "$ref": "#/$defs/node",
    }
    loop = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    lost = {"anyOf": [obj(v=TEXT), {"$ref": "#/$defs/gone"}]}
    tools = {
        "tree": command("tree", obj(), tree),
        "loop": command("loop", obj(), loop),
        "lost": command("lost", obj(), lost),
        "image": command("image", obj(), obj(v=IMAGE)),
    }

    def problems(tool: str, inside: str) -> int:
        built = build(
            calls((tool, {}), ("any", {"x": f"{{{{ PREVIOUS{inside} }}}}"})),
            lambda _, name: tools.get(name) or TOOLS[name],
            known_assets=lambda _: False,
        )
        return len(built.problems)

    assert problems("tree", ".kids[0].kids[1].v") == 0
    assert problems("tree", ".kids[0].kids[1].w") == 1
    assert problems("loop", ".x.y") == 0
    assert problems("lost", ".w") == 0
    assert problems("image", ".v.w") == 0
    assert problems("image", ".w") == 1


def test_step_names() -> None:
    """A name is a word of its own: not twice, not one of ours."""
    words = ("previous_result", "PREVIOUS", "results", "a b", "1a", "", "none")
    # no expression could name these: what refers to them would stay text
    for name in (*words, "a-", "-a", "a--b", "e\u0301"):
        (error,) = plan((*GOOGLE, name)).problems
        assert error.problems[0].path == ("as",)
    assert len(plan((*GOOGLE, "a"), (*GOOGLE, "a")).problems) == 1
    assert plan((*GOOGLE, "a_1"), (*GOOGLE, "b-2")).problems == ()


def test_duplicate_call_ids_are_refused() -> None:
    """Two results under one id could not be told apart."""
    twice = [Call(id="x", plugin=None, command="nothing") for _ in range(2)]
    built = build(twice, find, known_assets=lambda _: False)
    assert [error.code for error in built.problems] == ["invalid_param"]


def test_D6_too_many_steps() -> None:
    """A plan that is too long is one problem, whatever else is wrong with it."""
    built = plan(*[("NOPE", {})] * 1_001)
    assert len(built.problems) == 1
    assert built.steps == ()
    assert len(plan(GOOGLE, GOOGLE, most_steps=1).problems) == 1


# --- asset references ----------------------------------------------------------


def test_B42_accepted_where_declared() -> None:
    """Object and URL; a list as a whole (B42) and its elements (B46)."""
    built = plan(
        (
            "crop",
            {
                "image": {"asset_id": "a1", "field_path": ["content", "response"]},
                "n": 5,
                "boxes": ["x", "asset://a2/0"],
            },
        ),
        ("crop", {"image": "asset://a1", "n": 5, "boxes": "asset://a2"}),
    )
    assert told(built) == []
    assert dict(built.steps[0].asset_refs) == {
        ("image",): AssetRef(asset_id="a1", field_path=("content", "response")),
        ("boxes", 1): AssetRef(asset_id="a2", field_path=(0,)),
    }


def test_B45_the_whole_param() -> None:
    """Where the parameter says so, one reference stands for all arguments."""
    for written in ({"asset_id": "a1"}, "asset://a1"):
        (step,) = plan(("whole", written)).steps
        assert [path for path, _ in step.asset_refs] == [()]
    (error,) = plan(("any", {"asset_id": "a1"})).problems
    assert error.code == "asset_ref_not_acceptable"


@pytest.mark.parametrize(
    "written", ["asset://a1/x", {"asset_id": "a1"}, {"asset_id": "z", "field_path": []}]
)
def test_B44_refused_elsewhere(written: Any) -> None:
    """A reference where the value itself is wanted has its own code, and only that."""
    (error,) = plan(("FILEWRITER", {"file_path": "a", "contents": written})).problems
    assert error.code == "asset_ref_not_acceptable"
    assert error.where == "FILEWRITER.contents"


@pytest.mark.parametrize("written", ["asset://a1/x", {"asset_id": "a1"}])
def test_B44_a_parameter_that_is_none(written: Any) -> None:
    """A wrong name is told as that, with the right ones: no value would help there."""
    (error,) = plan(("crop", {"picture": written, "n": 5})).problems
    assert error.code == "invalid_param"
    assert "crop.picture: expected only these keys: image, n" in error.message


@pytest.mark.parametrize(
    "written", ["asset://unknown", "see asset://a1", "asset://a1 x", "<|asset://a1|>"]
)
def test_B44_other_text_is_data(written: str) -> None:
    """A text that is not wholly the URL of a live asset goes through."""
    (step,) = plan(("FILEWRITER", {"file_path": "a", "contents": written})).steps
    assert step.asset_refs == ()


def test_B44_a_parameter_may_be_called_asset_id() -> None:
    """What the manifest declares as data is data."""
    (step,) = plan(("delete", {"asset_id": "a1"})).steps
    assert step.asset_refs == ()


def test_B49_unknown_asset() -> None:
    """Told before anything runs, with the ids there are."""
    crop = ("crop", {"image": "asset://A1", "n": 5})
    (error,) = plan(crop, asset_ids=["a1", "a2"]).problems
    assert (error.code, error.candidates) == ("asset_not_found", ("a1",))
    assert plan(crop).problems[0].code == "asset_not_found"


def test_a_broken_reference_is_explained() -> None:
    """Where a reference may stand, a near miss says what one looks like."""
    (error,) = plan(("crop", {"image": "asset://a1/my key", "n": 5})).problems
    assert "%20" in error.message


def test_an_asset_of_this_plan() -> None:
    """A step's id is its asset's id: a dependency if earlier, else an error."""
    crop = ("crop", {"image": "asset://c0/content/response/image", "n": 1})
    built = plan(GOOGLE, crop)
    assert built.steps[1].depends == {"c0"}
    assert "own result" in told(plan(crop))[0]
    later = ("crop", {"image": "asset://c1", "n": 1})
    assert "step 2 comes later" in told(plan(later, GOOGLE))[0]


# --- order ---------------------------------------------------------------------


def order(*given_calls: Any) -> dict[str, set[str]]:
    built = plan(*given_calls)
    assert told(built) == []
    return {key: set(value) for key, value in waits_for(built).items()}


WRITE = ("FILEWRITER", {"file_path": "a", "contents": "b"})


def test_decision_6_readers_overlap_writers_do_not() -> None:
    """An effect waits for all before it and holds all after it."""
    assert order(GOOGLE, GOOGLE, WRITE, GOOGLE, GOOGLE, WRITE, WRITE) == {
        "c0": set(),
        "c1": set(),
        "c2": {"c0", "c1"},
        "c3": {"c2"},
        "c4": {"c2"},
        "c5": {"c2", "c3", "c4"},
        "c6": {"c5"},
    }


def test_decision_6_data_is_always_waited_for() -> None:
    """A reader of a reader's result comes after it."""
    use = ("any", {"x": "{{ results[0].urls }}"})
    assert order(GOOGLE, GOOGLE, use) == {"c0": set(), "c1": set(), "c2": {"c0"}}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["any", "GOOGLE", "FILEWRITER", "nothing"]),
        st.lists(st.integers(-3, 8), max_size=3),
    ),
    min_size=1,
    max_size=8,
)


@given(STEPS)
def test_a_plan_never_runs_a_step_before_what_it_refers_to(
    drawn: list[tuple[str, list[int]]],
) -> None:
    """Either the plan is refused, or every reference is waited for, in order."""
    given_calls: list[Any] = []
    for tool, targets in drawn:
        text = " ".join(f"{{{{ results[{target}] }}}}" for target in targets)
        arguments = {
            "any": {"x": [text]},
            "GOOGLE": {"query": text},
            "FILEWRITER": {"file_path": "a", "contents": text},
            "nothing": {},
        }[tool]
        given_calls.append((tool, arguments))
    built = plan(*given_calls)
    bad = any(
        not 0 <= (target if target >= 0 else here + target) < here
        for here, (tool, targets) in enumerate(drawn)
        for target in targets
        if tool != "nothing"
    )
    assert bool(built.problems) == bad
    if bad:
        return
    waits = waits_for(built)
    reached: dict[str, set[str]] = {}
    for step in built.steps:  # in order: what a step waits for stands before it
        own = step.call.id
        reached[own] = set().union(*(reached[other] | {other} for other in waits[own]))
        assert step.depends <= reached[own]
    ids = [step.call.id for step in built.steps]
    for here, step in enumerate(built.steps):
        if not step.command.spec.effects.readonly:
            assert reached[ids[here]] == set(ids[:here])
            assert all(ids[here] in reached[later] for later in ids[here + 1 :])


# --- size and speed ------------------------------------------------------------


def test_a_thousand_steps_are_checked_within_a_second() -> None:
    """Work grows with the length of the plan, not with its square."""
    many = [(*GOOGLE, "s0")]
    for index in range(1, 1_000):
        text = (
            f"{{{{ s{index - 1}.urls[0] }}}} {{{{ results[0]['urls'] | join(',') }}}}"
        )
        many.append(("GOOGLE", {"query": text}, f"s{index}"))
    started = time.thread_time()
    built = plan(*many)
    waits = waits_for(built)
    assert time.thread_time() - started < 1
    assert told(built) == []
    assert len(built.steps) == len(waits) == 1_000


def test_the_common_call_is_cheap() -> None:
    """One valid call costs few microseconds beside its validation."""
    one = calls(WRITE)
    known = {"a"}.__contains__
    best = min(_seconds(one, known) for _ in range(20))
    assert best < 60e-6  # 3.5 µs on an idle machine; a loaded one is no failure


def _seconds(one: list[Call], known: Any) -> float:
    started = time.thread_time()
    for _ in range(200):
        build(one, find, known_assets=known)
    return (time.thread_time() - started) / 200


# --- foreign chains ------------------------------------------------------------


def test_nestful_chains(shared_data: Path) -> None:
    """IBM's NESTFUL chains, as named steps: each tool receives what it must."""
    anything = {"type": "object"}
    checked = 0
    lines = (shared_data / "chains" / "nestful.jsonl").read_text("utf-8").splitlines()
    for row in map(json.loads, lines):
        if row["problem"] is not None:
            continue
        steps = [
            (step["tool"], _ours(step["arguments"]), step["label"])
            for step in row["steps"]
        ]
        built = build(
            calls(*steps),
            lambda _, name: command(name, anything, None, "read"),
            known_assets=lambda _: False,
            lenient=False,
        )
        assert told(built) == [], row["id"]
        for step, expected in zip(built.steps, row["expected_arguments"], strict=True):
            values = {
                binding.path: evaluate(
                    binding.template,
                    lambda ref, row=row: row["stub_outputs"][int(ref.asset_id[1:])],
                    False,
                )
                for binding in step.bindings
            }
            assert fill(step.arguments, values) == expected, row["id"]
        checked += 1
    assert checked > 50


def _ours(arguments: Json) -> Json:
    """NESTFUL's `$var1.key[0].other$` in our grammar."""
    if isinstance(arguments, dict):
        return {key: _ours(value) for key, value in arguments.items()}
    if isinstance(arguments, list):
        return [_ours(value) for value in arguments]
    if not isinstance(arguments, str):
        return arguments
    return re.sub(r"\$(var\w*(?:[.\[][^$]*)?)\$", r"{{ \1 }}", arguments)


def test_a_chain_of_ten_runs_as_it_says() -> None:
    """A chain of ten, from the reply's text to the last number."""
    from neuraxis import Session
    from neuraxis import command as as_command
    from neuraxis.models.scripted import ScriptedModel

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
