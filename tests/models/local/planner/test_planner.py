"""Requests in, planned calls out: what the rules settle without a model."""

from __future__ import annotations

from typing import Any

import pytest

from models.local.cases import (
    ALL,
    FILES,
    HOME,
    SEARCH,
    FakeWriter,
    example,
    plugin,
    record,
)
from neuraxis.models.local.planner import catalogue, planner
from neuraxis.models.local.planner.language import load
from neuraxis.specs import CommandSpec, Effects, PluginSpec


async def planned(
    request: str,
    plugins: tuple[PluginSpec, ...] = ALL,
    writer: FakeWriter | None = None,
) -> list[tuple[str, dict[str, Any]]]:
    known = catalogue.build(plugins, {}, load("en"))
    drafted = await planner.plan(request, known, writer)
    return [(step.tool.name, dict(step.arguments)) for step in drafted.steps]


CASES: list[tuple[str, list[tuple[str, dict[str, Any]]]]] = [
    (
        "Write a hello world function in python and execute it",
        [
            (
                "store",
                {"file_path": "hello.py", "contents": "print('Hello, world!')\n"},
            ),
            ("run_script", {"file_path": "hello.py"}),
        ],
    ),
    (
        "Search for cheap flights to Rome and save the urls to rome.txt",
        [
            ("find_pages", {"query": "cheap flights to Rome"}),
            (
                "store",
                {"file_path": "rome.txt", "contents": "{{ previous_result['urls'] }}"},
            ),
        ],
    ),
    (
        "Search for how to read and write files",
        [("find_pages", {"query": "how to read and write files"})],
    ),
    (
        "Save the contents of www.example.com to page.md",
        [
            ("get_page", {"url": "https://www.example.com"}),
            (
                "store",
                {"file_path": "page.md", "contents": "{{ previous_result['output'] }}"},
            ),
        ],
    ),
    (
        "Search for bees, open the second link and save it to bees.md",
        [
            ("find_pages", {"query": "bees"}),
            ("get_page", {"url": "{{ previous_result['urls'][1] }}"}),
            (
                "store",
                {"file_path": "bees.md", "contents": "{{ previous_result['output'] }}"},
            ),
        ],
    ),
    (
        "Create and run a script that prints 5",
        [
            ("store", {"file_path": "script.py", "contents": "print(5)\n"}),
            ("run_script", {"file_path": "script.py"}),
        ],
    ),
    (
        "Write print('hi') to a.py, run it and write the output to out.txt",
        [
            ("store", {"file_path": "a.py", "contents": "print('hi')"}),
            ("run_script", {"file_path": "a.py"}),
            (
                "store",
                {"file_path": "out.txt", "contents": "{{ previous_result['output'] }}"},
            ),
        ],
    ),
    (
        "Before running a.py, write print(1) to a.py",
        [
            ("store", {"file_path": "a.py", "contents": "print(1)"}),
            ("run_script", {"file_path": "a.py"}),
        ],
    ),
    (
        "Fetch www.a.com and www.b.com",
        [
            ("get_page", {"url": "https://www.a.com"}),
            ("get_page", {"url": "https://www.b.com"}),
        ],
    ),
    (
        "Could you please switch off the bedroom lights?",
        [("switch_light", {"room": "bedroom", "state": "off"})],
    ),
    ("start a twenty minute timer", [("set_timer", {"minutes": 20})]),
    (
        "Write a mail to joe@x.org with subject 'Lunch' saying I am late",
        [("send_mail", {"to": "joe@x.org", "body": "I am late", "subject": "Lunch"})],
    ),
    (
        "Who won the 2022 world cup? Search for it",
        [("find_pages", {"query": "Who won the 2022 world cup"})],
    ),
]


@pytest.mark.parametrize(
    ("request_", "expected"), CASES, ids=lambda value: str(value)[:40]
)
async def test_plans(request_: str, expected: list[tuple[str, dict[str, Any]]]) -> None:
    """Typed spans, carried files, references and made-up names, by rules alone."""
    assert expected == await planned(request_)


@pytest.mark.parametrize(
    "talk",
    [
        "Hello!",
        "Thanks a lot",
        "How are you?",
        "Tell me a joke about files",
        "Write me a poem about the sea",
        "What do you think about the web?",
        "You are great",
    ],
)
async def test_talk_calls_nothing(talk: str) -> None:
    """A greeting, thanks, an opinion or a text to be made up is no call."""
    assert [] == await planned(talk)


async def test_a_knowledge_question_is_searched_only_where_there_is_a_search() -> None:
    """The capital of France: a search if a plugin searches, else talk."""
    question = "What is the capital of France?"
    assert [
        ("find_pages", {"query": "What is the capital of France"})
    ] == await planned(question)
    assert [] == await planned(question, (HOME,))


async def test_what_is_missing_is_said() -> None:
    """A clause whose required value is nowhere is not called but asked about."""
    known = catalogue.build((HOME,), {}, load("en"))
    drafted = await planner.plan("Set a timer", known)
    assert () == drafted.steps
    assert (("Set a timer", "minutes"),) == drafted.unplanned


async def test_a_value_that_breaks_the_schema_is_not_planned() -> None:
    """Zero minutes are below the minimum: nothing is called."""
    assert [] == await planned("Set a timer for 0 minutes")


async def test_nothing_is_known_of_a_tool_but_its_spec() -> None:
    """A tool of any name works from its description and one example (unseen plugin)."""
    zoo = plugin(
        "zorb",
        CommandSpec(
            name="frobnicate",
            description="Frobnicates a gadget some times",
            parameters=record(gadget={"type": "string"}, times={"type": "integer"}),
            effects=Effects(kind="once"),
            examples=(
                example(
                    "Frobnicate the blender 3 times",
                    ("frobnicate", {"gadget": "blender", "times": 3}),
                ),
            ),
        ),
    )
    assert [("frobnicate", {"gadget": "toaster", "times": 7})] == await planned(
        "please frobnicate the toaster 7 times", (*ALL, zoo)
    )


async def test_a_program_by_the_model_is_taken_only_if_it_parses() -> None:
    """Contents that are run must be Python; else the literal words are printed."""
    good = FakeWriter("def area(r):\n    return 3.14 * r * r\n\nprint(area(2))")
    bad = FakeWriter("def area(r:")
    request = "Write a function for the area of a circle to c.py and run it"
    taken = await planned(request, (FILES,), good)
    refused = await planned(request, (FILES,), bad)
    assert "return 3.14" in taken[0][1]["contents"]
    assert refused[0][1]["contents"].startswith("print('")
    compile(refused[0][1]["contents"], "c.py", "exec")


async def test_it_means_the_file_of_an_earlier_turn() -> None:
    """Now run it, said after a turn in which a file was written."""
    known = catalogue.build((FILES, SEARCH), {}, load("en"))
    first = await planner.plan("Write print(3) to three.py", known)
    second = await planner.plan("now run it", known, None, first.steps)
    assert [("run_script", {"file_path": "three.py"})] == [
        (step.tool.name, dict(step.arguments)) for step in second.steps
    ]
