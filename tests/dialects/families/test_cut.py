"""The table of families: others' cases, random cuts, and prose that is prose."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmark_file import benchmark
from cpu_time import within
from neuraxis.dialects.families.cut import (
    FAMILIES,
    between_calls,
    cut,
    without_frames,
)
from neuraxis.dialects.intents.decode import read_reply

replies = benchmark("replies")


def test_every_family_says_which_models_write_it() -> None:
    """In one table."""
    said = [family.models for family in FAMILIES]
    assert len(set(said)) == len(said)


@pytest.mark.parametrize("name", ["native", "intents"])
@pytest.mark.parametrize("suite", ["vllm_tool_parsers", "llamacpp_chat"])
def test_other_projects_cases_are_read_or_told(
    shared_data: Path, suite: str, name: str
) -> None:
    """Nine of ten whole calls are read, the rest is told, and none is made up."""
    rows = replies.lines(shared_data / "malformed" / f"{suite}.jsonl")
    dialect = replies.dialect_of(name, replies.names_in(rows))
    said = [
        (replies.verdict(row, replies.read(dialect, row["input"])), row["id"])
        for row in rows
        if replies.is_meant(row)
    ]
    lost = [row for row in said if row[0] in ("silent", "wrong")]
    assert not lost
    assert sum(verdict == "read" for verdict, _ in said) >= 0.9 * len(said)


@pytest.mark.parametrize("name", ["native", "intents"])
def test_D10_no_cut_makes_a_call_that_the_whole_does_not_hold(
    shared_data: Path, name: str
) -> None:
    """Beginnings of texts, with the finish reason of a whole one."""
    texts, tools = replies.raw_texts(shared_data)
    counted = replies.cuts(texts, replies.dialect_of(name, tools), 3000, seed=7)
    assert counted["calls that the whole makes"] > 50
    assert counted["OTHER CALL"] == counted["whole is refused"] == 0


@pytest.mark.parametrize(
    "text",
    [
        "Use look(x) to find it.\nlook(x) is fast.\n[look](https://example.org)",
        "The <b>tool</b> call, <code>x</code> and a <s>struck</s> word </s>.",
        "Headers: `<tool_call>`, `[TOOL_CALLS]` and `<|channel|>` are tokens.",
        "The result is {1, 2} or [1, 2]; see [1] and {name}.",
        "Actions speak louder.\nAction: run now\nThen rest.",
    ],
)
def test_prose_makes_no_call_and_no_mistake(text: str) -> None:
    """Also where it names a tool or shows code."""
    found = cut(text, {"look", "run"}.__contains__)
    assert not any(piece.calls or piece.meant for piece in found)


def test_frames_are_no_words() -> None:
    """Around words they fall off; alone they separate calls."""
    assert without_frames("<tool_call> Hello.<|im_end|></s>") == "Hello."
    assert between_calls("</tool_call>\n<tool_call>")
    assert not between_calls("<tool_call> and")


@pytest.mark.parametrize(
    "part",
    [
        "<tool_call>",
        "<function=look>",
        "<function=look>{",
        "<function=look><parameter=a>",
        '<invoke name="look"><parameter name="a">',
        "<|tool_call>call:look{",
        'call:look{a:<|"|>x<|"|>}',
        "[TOOL_CALLS]look",
        "look(",
        "look(a='",
        "[look(a=1), ",
        "look(a=1)\n",
        "look\n{",
        "to=functions.look",
        "<|channel|>",
        "<think>",
        "</think>",
        ']<]minimax[>[<invoke name="look">]<]minimax[>[<a>',
        "Action: look\n",
        "**Action:** `look`\n",
        "<look>\n<at>",
        "<look><at>a</at>",
        "<tool_call><name>look</name>",
        "```\n",
        "```\ndef f():\n  look(a=1)\n```\n",
        "a [TOOL_CALLS] is so good, ",
        '> <invoke name="look"><parameter name="a">\n',
        'a `<invoke name="look">` b `{"a": b}`',
    ],
)
def test_D6_the_time_grows_with_the_text(part: str) -> None:
    """However often a form begins and is not closed."""

    # several calls of Gemma share one pair of tokens
    opens = "<|tool_call>" if part.startswith("call:") else ""

    def seconds(count: int) -> float:
        started = time.process_time()
        cut(opens + part * count, {"look"}.__contains__)
        return time.process_time() - started

    count = 40_000 // len(part)
    seconds(10)
    few = max(min(seconds(count) for _ in range(3)), 0.005)
    # others on the machine may slow one attempt down
    assert min(seconds(4 * count) for _ in range(3)) < 12 * few


@pytest.mark.parametrize(
    "text",
    [
        '<xai:function_call name="look">\n<parameter name="at">a b</parameter>\n'
        "</xai:function_call>",
        '<tool_call>\n<name>look</name>\n<arguments>{"at": "a b"}</arguments>\n'
        "</tool_call>",
        "<longcat_tool_call>look\n<longcat_arg_key>at</longcat_arg_key>\n"
        "<longcat_arg_value>a b</longcat_arg_value>\n</longcat_tool_call>",
        "I look.\n\n<look>\n<at>\na b\n</at>\n</look>",
        '**Thought:** so.\n\n**Action:** `look`\n\n**Action Input:** `{"at": "a b"}`',
        'Action: look\nAction Input: {"at": "a b"}',
    ],
)
def test_a_form_with_other_tags_is_read(text: str) -> None:
    """Of Grok, Hermes, LongCat, Cline, and of ReAct in Markdown."""
    found = [piece for piece in cut(text, {"look"}.__contains__) if piece.calls]
    assert [piece.calls for piece in found] == [(("look", {"at": "a b"}),)]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("<look>\n<at>a</at>\n", True),
        ("<look>\n<at>a</at>\n</find>", True),
        ("<look>\n<at>a\n</look>", True),
        ("<table>\n<tr>a</tr>\n</table>", False),
        ("See <look> <at>a</at> </look> in the text.", False),
    ],
)
def test_tags_that_are_named_as_a_tool_need_their_ends(text: str, meant: bool) -> None:
    """What is not a tool's name, or stands in a line of words, is text."""
    found = cut(text, {"look"}.__contains__)
    assert not any(piece.calls for piece in found)
    assert any(piece.meant for piece in found) is meant


@pytest.mark.timeout(30)
@pytest.mark.parametrize("behind", ['\nadd{"}', "\n<add>\n<a>", "\nprint(add("])
def test_a_call_behind_much_broken_json_ends_the_reading(behind: str) -> None:
    """A call's form may begin with an empty match, which the search must leave.

    Fuzzing found a reply of 8 kB that was read for ever, in every dialect.
    """
    text = '{"}' * 30 + '{"""}' + '{"}' * 2400 + behind + '{"}' * 50
    assert any(piece.fault for piece in cut(text, {"add"}.__contains__))


@pytest.mark.parametrize(
    "begins",
    ["<｜tool▁call▁begin｜>look", "<tool_call>look", "<tool_call>look<tool_sep>"],
)
def test_blanks_behind_a_calls_name_are_read_once(begins: str) -> None:
    """Fuzzing found a reply of 4 kB that took four times as long at twice its size."""
    text = begins + " " * 1_000_000 + "."
    found = within(0.2, lambda: cut(text, {"look"}.__contains__), attempts=3)
    assert [piece.meant for piece in found] == [True]


@pytest.mark.parametrize("name", ["_" + "9" * 5000, "_1", "_²"])
def test_a_parameter_of_digits_is_a_name(name: str) -> None:
    """Names are exchanged for numbers while Python reads; this is none of those."""
    for call in (f"look({name}=1)", f"<|python_tag|>look({name}=1)"):
        found = cut(call, {"look"}.__contains__)
        calls = [call for piece in found for call in piece.calls]
        assert calls in ([("look", {name: 1})], [])


@pytest.mark.parametrize(
    "line", ["\nlook(", "\n- look(1", "\nlook(at=[) .", "\nlook(a) is"]
)
def test_calls_begun_on_every_line_are_read_in_linear_time(line: str) -> None:
    """Each begins inside the one before it, and was read to its own end."""
    text = line * (100_000 // len(line))
    found = within(1.0, lambda: cut(text, {"look"}.__contains__), attempts=3)
    assert found[-1].meant
    few = cut(line * 40 + "\n", {"look"}.__contains__)
    assert any(piece.meant for piece in few) is (line != "\nlook(a) is")


def test_tags_on_every_line_are_not_looked_back_at() -> None:
    """What stands before a tag matters to calls without one alone."""
    text = "words\n" + "<tool_call>\n" * 330
    assert cut(text, {"look"}.__contains__)
    within(0.03, lambda: cut(text, {"look"}.__contains__), attempts=3)


def test_a_tag_is_looked_up_among_the_tools_once() -> None:
    """An outside tester's tags cost as often as they stood, for each command."""
    asked: list[str] = []

    def is_tool(name: str) -> bool:
        asked.append(name)
        return False

    read_reply("<think>" * 1000, next_id=str, is_tool=is_tool)
    assert len(asked) < 10
    found = cut("<b><a>" * 3 + "\n<look><at>a</at></look>", {"look"}.__contains__)
    assert found[-1].calls == (("look", {"at": "a"}),)
