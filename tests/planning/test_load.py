"""Saved plans: read whole, every mistake told, saved from a run and run again."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_time import within
from neuraxis import Options, Session, command
from neuraxis.errors import ConfigError
from neuraxis.events import Event, PlanChecked
from neuraxis.messages import Call, Result
from neuraxis.models.scripted import ScriptedModel
from neuraxis.planning.draw import as_svg, as_text, drawn
from neuraxis.planning.load import read_plan
from neuraxis.planning.save import join_replies, plan_text
from neuraxis.policy.rules import EVERYTHING

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    RAN.clear()


@command(effects="read")
def search(query: str, most: int = 3) -> dict[str, list[str]]:
    """Finds pages."""
    RAN.append(("search", query, most))
    return {"urls": [f"{query}/{n}" for n in range(most)]}


@command(effects="once")
def note(text: str, times: int = 1) -> str:
    """Writes a note down."""
    RAN.append(("note", text, times))
    if text == "bad":
        raise RuntimeError("no pen")
    return f"noted {text}"


def session(*replies: Any, **options: Any) -> Session:
    options = {"policy": EVERYTHING, **options}
    model = ScriptedModel([json.dumps(reply) for reply in replies] + ["ok"])
    return Session(model=model, plugins=[search, note], **options)


PLAN = """
version: 1
description: Finds pages and notes them
parameters:
  query: {type: string, description: what to look for}
  most: {type: integer, default: 2}
  word: string
on_error: continue
steps:
  - tool: search
    as: found
    arguments: {query: "{{ params['query'] }}", most: "{{ params.most }}"}
  - tool: note
    for_each: "{{ found.urls }}"
    max_items: 5
    arguments: {text: "{{ params.word }}: {{ item }}"}
"""


def run(text: str, *given_values: tuple[str, str]) -> list[Result]:
    saved = read_plan(text)
    params = saved.values(given_values)
    with session() as here:
        assert here.check(saved.calls, params).problems == ()
        return asyncio.run(here.call_all(saved.calls, params=params))


def test_a_plan_is_run_with_its_parameters() -> None:
    """Whole values keep their type; text around makes text; defaults hold."""
    results = run(PLAN, ("query", "x"), ("word", "see"))
    assert [result.status for result in results] == ["done", "done"]
    assert RAN == [
        ("search", "x", 2),
        ("note", "see: x/0", 1),
        ("note", "see: x/1", 1),
    ]
    assert read_plan(PLAN).on_error == "continue"


def test_the_example_of_the_documentation_is_a_plan() -> None:
    """What docs/plans.md shows is read as it stands."""
    page = Path(__file__).parents[2] / "docs" / "plans.md"
    (text,) = re.findall(
        r"^```yaml\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    saved = read_plan(text)
    assert saved.values([]) == {"city": "Lyon", "years": [2024, 2025]}
    assert [call.name for call in saved.calls] == ["counts", None]


def test_a_plan_in_json_is_the_same() -> None:
    """The same keys; a key twice is refused."""
    text = json.dumps(
        {"version": 1, "steps": [{"tool": "note", "arguments": {"text": "😀"}}]}
    )
    run(text)
    assert RAN == [("note", "😀", 1)]
    with pytest.raises(ConfigError, match="twice"):
        read_plan('{"version": 1, "version": 1, "steps": []}')


def test_arguments_in_a_file_are_what_yaml_says() -> None:
    """No key of theirs has the meaning that it has in a plugin's manifest."""
    text = """
version: 1
steps:
  - tool: a
    arguments: {id: 5, name: no, type: string, default: 1, enum: [1], day: 2024-01-01}
    for_each: [{id: 5, title: 1.5}]
    id: 7
"""
    (call,) = read_plan(text).calls
    assert call.id == "7"
    assert call.for_each == [{"id": 5, "title": 1.5}]
    assert call.arguments == {
        "id": 5, "name": False, "type": "string", "default": 1, "enum": [1],
        "day": "2024-01-01",
    }  # fmt: skip


def test_a_plan_that_begins_with_a_brace_may_be_yaml() -> None:
    """And one that an editor of Windows saved may be JSON."""
    run("{version: 1, steps: [{tool: note, arguments: {text: hi}}]}")
    run(
        '\ufeff{"version": 1, "steps": [{"tool": "note", "arguments": {"text": "hi"}}]}'
    )
    assert RAN == [("note", "hi", 1)] * 2


def test_an_id_of_its_own_is_never_that_of_another_step() -> None:
    """Steps that say none are called something else."""
    text = "version: 1\nsteps: [{tool: note, id: s2, arguments: {text: a}}, {tool: x}]"
    ids = [call.id for call in read_plan(text).calls]
    assert ids[0] == "s2"
    assert len(set(ids)) == 2


def test_C24_parameters_are_data() -> None:
    """A value that looks like a reference or like braces stays what it is."""
    text = "version: 1\nparameters: {a: string}\nsteps:\n"
    step = '  - {tool: note, arguments: {text: "TEXT"}}\n'
    hostile = "{{ results[0] }} {{ params.a }} asset://s1/content PREVIOUS"
    whole, inside = "{{ params.a }}", "<{{ params['a'] }}>"
    both = text + step.replace("TEXT", whole) + step.replace("TEXT", inside)
    run(both, ("a", hostile))
    assert RAN == [("note", hostile, 1), ("note", f"<{hostile}>", 1)]


def test_params_are_a_word_of_ours_in_saved_plans_only() -> None:
    """In a model's reply `{{ params.x }}` is text as it always was."""
    with session([{"tool": "note", "text": "{{ params.x }}"}]) as here:
        here.run_sync("go")
    assert RAN == [("note", "{{ params.x }}", 1)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("is {{ countz }}", "counts?"),
        ("{{ countz }}", "counts?"),
        ("{{ previous_resutl['urls'] }} and", "previous_result?"),
        ("{{ results.urls }}", "results[0]?"),
        ("{{ parms.a | upper }}", "params?"),
        ("{{ item }}", "`literal: true`"),
        ("<p>{{ user.name }}</p>", "`literal: true`"),
    ],
)
def test_an_unknown_name_in_braces_is_a_mistake_of_a_plan_file(
    text: str, told: str
) -> None:
    """It was text, silently; a step that means text can say so."""
    steps: list[Any] = [
        {"tool": "search", "arguments": {"query": "x"}, "as": "counts"},
        {"tool": "note", "arguments": {"text": text}},
    ]
    with session() as here:
        calls = read_plan(json.dumps({"version": 1, "steps": steps})).calls
        (problem,) = here.check(calls, {}).problems
        assert told in problem.message
        steps[1]["literal"] = True
        calls = read_plan(json.dumps({"version": 1, "steps": steps})).calls
        assert here.check(calls, {}).problems == ()


@pytest.mark.parametrize(
    "text", ["{{ 3 }}", "{{ a", "{{ a {{ counts.urls }}", "{{ '{{' }} a }}", "{{}}"]
)
def test_what_is_no_expression_stays_text_in_a_plan_file(text: str) -> None:
    """Only a name between braces could be a slip."""
    steps = [
        {"tool": "search", "arguments": {"query": "x"}, "as": "counts"},
        {"tool": "note", "arguments": {"text": text}},
    ]
    with session() as here:
        calls = read_plan(json.dumps({"version": 1, "steps": steps})).calls
        assert here.check(calls, {}).problems == ()


def test_values_of_parameters_are_checked() -> None:
    """All that is wrong with what was typed, at once."""
    saved = read_plan(PLAN)
    with pytest.raises(ConfigError) as told:
        saved.values([("most", "many"), ("qurey", "x")])
    for word in ("most", "integer", "Did you mean query", "word: expected a value"):
        assert word in str(told.value)
    assert saved.values([("query", "5"), ("word", ""), ("most", "5")]) == {
        "query": "5",
        "most": 5,
        "word": "",
    }


@pytest.mark.parametrize(
    ("kind", "argument", "said"),
    [
        ("array", '{query: "{{ params.p[0].name }}"}', ""),
        ("object", '{query: "{{ params.p.x }} and {{ params.p.y | length }}"}', ""),
        ("string", '{query: "{{ params.p | int }}", most: "{{ params.p | int }}"}', ""),
        ("integer", '{query: "{{ params.p }}", most: "{{ params.p }}"}', ""),
        ("string", '{query: a, most: "{{ params.p }}"}', "a parameter of type string"),
        ("string", '{query: a, most: "{{ params.q }}"}', "keys p"),
    ],
)
def test_a_parameter_without_a_value_is_taken_to_fit(
    kind: str, argument: str, said: str
) -> None:
    """A check knows its type and nothing else, so what may be right is not told."""
    saved = read_plan(
        f"version: 1\nparameters: {{p: {kind}, items: array}}\nsteps:\n"
        f"  - {{tool: search, arguments: {argument}}}\n"
        '  - {tool: note, for_each: "{{ params.items }}", '
        'arguments: {text: "{{ item.x }} {{ params.p }}"}}'
    )
    with session() as here:
        told = here.check(saved.calls, saved.values([], samples=True)).problems
    assert len(told) == bool(said)
    assert said in "".join(problem.message for problem in told)


def test_a_wrong_value_is_told_once_and_how_to_write_it() -> None:
    """Also where both the type and the enum refuse it; a list is written as JSON."""
    parameters = "{n: {type: integer, enum: [1, 2]}, l: array}"
    saved = read_plan(f"version: 1\nparameters: {parameters}\nsteps: [{{tool: a}}]")
    with pytest.raises(ConfigError) as told:
        saved.values([("n", "3"), ("l", "a,b")])
    assert str(told.value).count("n: ") == 1
    assert 'got "a,b" (write it as JSON)' in str(told.value)


def test_a_value_that_is_given_twice_is_told() -> None:
    """The first would silently be lost."""
    saved = read_plan("version: 1\nparameters: {city: string}\nsteps: [{tool: t}]")
    assert saved.values([("city", "Lyon")]) == {"city": "Lyon"}
    with pytest.raises(ConfigError, match="city: given twice"):
        saved.values([("city", "Lyon"), ("city", "Turin")])


def test_a_parameter_that_is_not_there_is_a_problem_of_the_plan() -> None:
    """Told before anything runs, with those that are there."""
    text = PLAN.replace("params.most", "params.mots")
    saved = read_plan(text)
    with session() as here:
        built = here.check(saved.calls, saved.values([], samples=True))
    (problem,) = built.problems
    assert "mots" in problem.message
    assert "most" in problem.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("steps: []", "version"),
        ("version: 2\nsteps:\n  - tool: a", ":1: version"),
        ("version: 1", "steps"),
        ("version: 1\nsteps:\n  - arguments: {}", "steps[0].tool"),
        ("version: 1\nsteps:\n  - {tool: a, foreach: x}", "foreach"),
        (
            "version: 1\nsteps:\n  - tool: a\n    max_items: 0\n    for_each: [1]",
            ":4: steps[0].max_items",
        ),
        ("version: 1\nsteps:\n  - {tool: a}\nplan: x", "plan"),
        ("version: 1\non_error: never\nsteps:\n  - {tool: a}", "fail_fast"),
        ("version: 1\nparameters: [a]\nsteps:\n  - {tool: a}", "mapping"),
        ("version: 1\nparameters: {a: date}\nsteps:\n  - {tool: a}", "integer"),
        (
            "version: 1\nparameters: {a: {type: integer, default: x}}\n"
            "steps:\n  - {tool: a}",
            "parameters.a.default",
        ),
        ("version: 1\nsteps:\n  - tool: [", "not valid YAML"),
        ("version: 1\nsteps:\n  - {tool: a, for_each: }", "a list, or a reference"),
        ("version: 1\nsteps:\n  - {tool: a, max_items: 5}", "for_each beside it"),
        ("version: 1\nsteps:\n  - tool: a\n    id: {{ x }}", "in quotes"),
        (
            "version: 1\nsteps:\n  - tool: a\n    arguments:\n"
            "      text: {{ x.y }} and more",
            "in quotes",
        ),
        ('{"version": 1,', "not valid JSON"),
        ("version: 1\nversion: 1\nsteps:\n  - {tool: a}", "version"),
    ],
)
def test_mistakes_of_a_plan_file_are_told_with_their_place(
    text: str, said: str
) -> None:
    """Where, what was expected, what stands there."""
    with pytest.raises(ConfigError) as told:
        read_plan(text, "p.yaml")
    assert said in str(told.value)


def saved_from(*replies: Any, **options: Any) -> str:
    plans: list[list[str]] = []

    def watch(event: Event) -> None:
        if isinstance(event, PlanChecked) and not event.problems:
            plans.append([str(step["id"]) for step in event.steps])

    with session(*replies, **options) as here:
        answer = here.run_sync("go", watch)
    results = {result.call.id: result for result in answer.calls}
    return plan_text(join_replies([[results[own] for own in ids] for ids in plans]))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("verson: 1\nsteps: [{tool: t}]", "version"),
        ("version: 1\nsteps: [{tool: t, foreach: [1]}]", "for_each"),
        ("version: 1\nsteps: [{tool: t, argument: {a: 1}}]", "arguments"),
        (
            "version: 1\nparameters: {p: {defalt: a}}\nsteps: [{tool: t}]",
            "default",
        ),
    ],
)
def test_a_misspelt_key_is_told_with_the_one_that_is_near(
    text: str, meant: str
) -> None:
    with pytest.raises(ConfigError, match=f"Did you mean {meant}\\?"):
        read_plan(text)


def test_a_run_of_several_replies_is_saved_as_one_plan() -> None:
    """Every reference leads to the step it led to; the plan does the same again."""
    text = saved_from(
        [
            {"tool": "search", "query": "x", "as": "pages"},
            {"tool": "note", "text": "{{ previous_result['urls'][0] }}"},
        ],
        [
            {"tool": "search", "query": "y", "as": "pages"},
            {"tool": "search", "query": "{{ results[0].urls[1] }}", "as": "more"},
            {"tool": "note", "text": "{{ pages.urls[0] }} {{ '{{' }} x }} {{ more }}"},
            {"tool": "note", "text": "{{ params.x }} {{ other }} {{ results[-1] }}"},
            {
                "tool": "note",
                "$for_each": "{{ (results[1]).urls }}",
                "text": "{{ item }} {{ results[0].urls[0] }}",
            },
        ],
    )
    first = list(RAN)
    RAN.clear()
    results = run(text)
    assert {result.status for result in results} == {"done"}
    assert first == RAN


@pytest.mark.parametrize(
    "replies",
    [
        pytest.param(
            [
                [{"tool": "search", "query": "a"}],
                [{"tool": "note", "text": "PREVIOUS"}],
            ],
            id="a word that had nothing before it",
        ),
        pytest.param(
            [
                [{"tool": "search", "query": "a", "as": "page"}],
                [
                    {"tool": "search", "query": "{{ page.urls }} {{ page + 1 }} end"},
                    {"tool": "note", "text": "{{ page }} {{ results[0].urls[0] }}"},
                ],
            ],
            id="a name of another reply",
        ),
        pytest.param(
            [
                [{"tool": "note", "text": "{{ page.urls }}"}],
                [{"tool": "search", "query": "a", "as": "page"}],
            ],
            id="a name of a later reply",
        ),
        pytest.param(
            [
                [
                    {"tool": "search", "query": "a", "as": "params"},
                    {"tool": "search", "query": "{{ params.urls[0] }}", "as": "item"},
                    {"tool": "note", "text": "{{ item.urls[0] }}"},
                ],
                [{"tool": "note", "$for_each": ["x"], "text": "{{ item }}"}],
            ],
            id="names that mean something in a file",
        ),
    ],
)
def test_what_was_text_in_a_run_is_text_in_its_plan(replies: Any) -> None:
    """One file holds what stood in replies of their own; nothing changes by that."""
    text = saved_from(*replies)
    first = list(RAN)
    RAN.clear()
    results = run(text)
    assert [result.status for result in results] == ["done"] * len(first)
    # what only reads runs at once, so its order is not fixed
    assert sorted(first, key=repr) == sorted(RAN, key=repr)


def test_only_what_worked_is_saved() -> None:
    """A failed step leaves, and the places of the others are counted anew."""
    text = saved_from(
        [
            {"tool": "note", "text": "bad"},
            {"tool": "search", "query": "x"},
            {"tool": "note", "text": "{{ results[1]['urls'] }} {{ results[-1] }}"},
        ],
        options=Options(on_error="continue"),
    )
    first = [item for item in RAN if item[1] != "bad"]
    RAN.clear()
    run(text)
    assert first == RAN
    assert len(read_plan(text).calls) == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(JSON, JSON), min_size=1, max_size=3))
def test_what_is_saved_is_read_again(drawn_calls: list[Any]) -> None:
    """Any arguments come back as they were: no YAML trap changes a value."""
    calls = [
        Call(
            id=f"s{n + 1}",
            plugin=None,
            command=f"t{n}",
            arguments={} if arguments is None else arguments,
            for_each=items,
        )
        for n, (arguments, items) in enumerate(drawn_calls)
    ]
    assert list(read_plan(plan_text(calls)).calls) == calls


def built(*intents: tuple[str, Any]) -> Any:
    calls = [
        Call(id=f"a{n}", plugin=None, command=tool, arguments=arguments)
        for n, (tool, arguments) in enumerate(intents)
    ]
    with session() as here:
        plan = here.check(calls)
    assert plan.problems == ()
    return plan


def test_a_drawing_has_a_column_for_each_length_of_path() -> None:
    """What may run at once stands in one column; lines say what waits for what."""
    plan = built(
        ("search", {"query": "a"}),
        ("search", {"query": "{{ results[0].urls[0] }}"}),
        ("search", {"query": "c"}),
        ("note", {"text": "{{ results[1].urls }}"}),
        ("search", {"query": "d"}),
    )
    steps = drawn(plan, {"a0": "done", "a1": "failed", "a3": "skipped"})
    assert [step.column for step in steps] == [0, 1, 0, 2, 3]
    assert (steps[3].uses, steps[3].after) == ((1,), (0, 2))
    text = as_text(steps)
    assert text.splitlines()[0] == "a plan of 5 steps in 4 columns"
    assert "✗ 2. search" in text
    svg = as_svg(steps)
    root = ElementTree.fromstring(svg)
    assert len(root.findall("{*}g")) == 5
    assert "✓ done" in svg
    assert "stroke-dasharray" in svg


def test_a_drawing_keeps_texts_in_their_boxes_and_lines_between_them() -> None:
    """Wide letters count twice; what is still too wide is cut by its window."""
    wide = "日本語の長い検索語をここに書いておきますから見てください"
    steps = drawn(
        built(
            ("search", {"query": wide}),
            ("search", {"query": "{{ results[0].urls[0] }}"}),
            ("note", {"text": "{{ results[0].urls[0] }} {{ results[1].urls }}"}),
        )
    )
    root = ElementTree.fromstring(as_svg(steps))
    (shown, *_) = root.findall("{*}g/{*}svg")
    texts = [text.text or "" for text in shown.findall("{*}text")]
    assert texts[2].endswith("…")
    assert len(texts[2]) < 30
    lines = [path.attrib["d"] for path in root.findall("{*}path")]
    # the line over two columns leaves the row of boxes before the second one begins
    (far,) = [line for line in lines if "H" in line]
    assert int(far.split("H")[0].split()[-1]) > 20 + 58
    rows = as_text(steps).splitlines()
    assert wide[:10] in rows[2]


def test_a_drawing_says_what_a_loop_goes_over() -> None:
    """Its list, or the reference to it, stands before the arguments."""
    text = "version: 1\nsteps: [{tool: note, for_each: [a, b], arguments: {text: x}}]"
    with session() as here:
        (step,) = drawn(here.check(read_plan(text).calls, {}))
    assert step.arguments == '["a", "b"]: {"text": "x"}'


def test_the_text_of_a_plan_cannot_break_its_drawing() -> None:
    """Labels are escaped: no markup, no escape code, nothing that XML refuses."""
    hostile = '</text><script>x</script>&"\x1b[2J\x00\ud800\u202e'
    svg = as_svg(drawn(built(("note", {"text": hostile}))))
    root = ElementTree.fromstring(svg.encode("utf-8"))
    assert root.findall(".//{*}script") == []
    assert "\x1b" not in as_text(drawn(built(("note", {"text": hostile}))))


def test_many_mistakes_in_one_line_are_told_in_linear_time() -> None:
    """The line was searched for bare braces once for each of them."""
    text = "version: 1\nparameters: {a: {type: string, " + "g, " * 16_000 + "}}\n"

    def read() -> None:
        with pytest.raises(ConfigError, match="appears twice"):
            read_plan(text)

    within(2.0, read, attempts=2)
