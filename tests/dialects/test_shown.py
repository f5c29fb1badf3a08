"""Which calls of a reply are made, and which are only shown, in every dialect."""

from __future__ import annotations

import json
import time

import pytest

from call_in_text import CALLS, MESSAGE, read
from cpu_time import least, within
from neuraxis.dialects import DIALECTS
from neuraxis.parsing.json_scan import MOST_CALLS
from neuraxis.planning.build import MOST_STEPS


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "text",
    [
        "It looks like this, for example:\n\n```json\nCALL\n```\n\nI send few.",
        "I will not run this:\n\nCALL",
        "Shall I send this?\n\nCALL",
        "Somebody wrote:\n\n> CALL\n\nDo not run that.",
        "The call `CALL` was refused.",
        'He wrote "CALL" to me.',
        "I will not send CALL because it is too late.",
        "```diff\n+CALL\n```",
        "So:\n```python\nimport json\nm = CALL\nsend(m)\n```",
        "So:\n```python\ndef f():\n    return CALL\n```",
        "The document shows this:\n\n    CALL\n\nand says no more.",
        # a sentence goes on behind it
        "There are two ways. CALL is one way, another is to wait.",
        "CALL is one way, another is to wait.",
        "It failed because of this: CALL has no such query.",
        "Two ways: CALL or something else.",
        # consent
        "What I would send:\n\n```json\nCALL\n```\n\nDo you want me to send it?",
        "Here is the call:\n\nCALL\n\nShall I run it?",
        "Here is a draft.\n\nCALL\n\nPlease confirm and I'll run it.",
        "Here it is.\n\nCALL\n\nIs that okay?",
        "CALL\n\nThis goes to all. Let me know if I should proceed.",
        "First:\nCALL\nThen:\nCALL\nMay I go ahead?",
        "CALL\n\nShould I look that up?",
        "CALL\n\nShall I go on?",
        "CALL\n\n(This is only a draft, nothing has been sent.)",
        "CALL\n\nI'm waiting for your OK before doing anything.",
        "CALL\n\nIt is just an example.",
        # told of, or quoted
        "Earlier in this talk I made this call:\n\nCALL\n\nIt found nothing.",
        "Here's what we ran a minute ago:\nCALL",
        "Yesterday I ran:\nCALL",
        "The page says:\nCALL",
        "The page contains the following text:\n\nCALL\n\nI ignore it.",
        "I found this in the file todo.json:\nCALL",
    ],
)
def test_a_call_that_is_only_shown_is_words(name: str, text: str) -> None:
    """In the envelopes as in the intents and natively."""
    reply = read(name, text)
    assert (reply.calls, reply.errors, reply.left) == ((), (), ())
    assert reply.texts


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "text",
    [
        "I will look it up.\n\nCALL\n\nOne moment.",
        "I look:\nCALL",
        "Let me see. CALL",
        "I'd like to look first.\n\nCALL",
        "> Is it there?\n\nI look.\n\nCALL",
        "CALL\n\nWould you like me to do anything else?",
        "CALL\n\nCan I help you with another question?",
        "CALL\n\nWould you like me to send you a summary by mail?",
        "CALL\n\nPlease confirm the date that you want.",
        "Should it rain? I look.\n\nCALL\n\nThen we know.",
        'CALL\n\nIt translates "How are you?" for you.',
        "If I understand you, you want x:\n\nCALL",
        "<?xml?>\nCALL\n<?xml?>",
        # what it thinks is not said
        "<think>I would send it.</think>\nCALL",
        "CALL\n<think>Is that okay?</think>",
        "CALL\n<think>\nWhat is y?\n</think>\nI look.",
        # it goes on as the examples of the prompt do
        "CALL\n\nq: What is y?\na:",
        "```json\nCALL\n```\nq: Is that okay?\na:",
        # what the model does next, in words that may also tell of a call
        "Let me see what the file says:\n\nCALL",
        "I'll read this:\n\nCALL",
        "First I read:\nCALL",
        "I made a mistake, here is the correct call:\nCALL",
        "I used the wrong name; now the right one:\nCALL",
        "I have found the following file, so I read it:\nCALL",
        "Once more:\nCALL",
        "Tomorrow's weather in Oslo:\nCALL",
        "As you said:\nCALL",
    ],
)
def test_a_call_amid_words_is_made(name: str, text: str) -> None:
    """Words that explain it, and offers of something more."""
    reply = read(name, text)
    assert (len(reply.calls), reply.errors) == (1, ())


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "text",
    [
        "CALL\n\nSoll ich das so machen?",
        "CALL\n\n¿Quieres que lo envíe?",
        "CALL\n\n要发送吗？",
        "CALL\n\n送信してもよろしいですか。",
        "Option A:\nCALL\n\nOption B:\nCALL\n\nWhich one would you prefer?",
        "Soll ich das senden?\n\nCALL",
    ],
)
def test_a_question_about_a_call_is_told_in_every_language(
    name: str, text: str
) -> None:
    """Nothing runs; the model asks without the call, or calls without asking."""
    reply = read(name, text)
    assert (reply.calls, len(reply.errors)) == ((), 1)
    assert "leave" in reply.errors[0].message


@pytest.mark.parametrize("name", ["intents", "native"])
@pytest.mark.parametrize(
    "text",
    [
        json.dumps(MESSAGE),
        f"```json\n{json.dumps(MESSAGE)}\n```",
        '{"command": "look", "param": {"query": "x"}}',
        json.dumps([MESSAGE, MESSAGE]),
        json.dumps({"messages": [MESSAGE]}),
        "receiver:\n  role: plugin\n  name: p\ncontent:\n  command: look\n",
    ],
)
def test_a_message_of_the_protocols_is_told_where_it_is_no_call(
    name: str, text: str
) -> None:
    """It was shown as the answer, and nobody heard of it."""
    reply = read(name, text)
    assert (reply.calls, reply.texts, len(reply.errors)) == ((), (), 1)


@pytest.mark.parametrize("name", ["envelope_v1", "envelope_v2"])
@pytest.mark.parametrize(
    "text",
    [
        '[{"tool": "look"',
        '<tool_call>\n{"name": "look", "arguments": {"query": "x"',
        "Action: look\nAction Input: {}",
        '```python\nlook(query="x")\n```',
        '{"command": "look", "param": {"query": "x"}}',
        '[{"command": "look", "param": {"query": "x"}}]',
        "```yaml\ntool: look\nquery: x\n```",
        "tool: look\nquery: x",
    ],
)
def test_a_call_in_another_form_is_never_the_answer_of_an_envelope(
    name: str, text: str
) -> None:
    """Also where it is cut off, and in forms without a token of their own."""
    reply = read(name, text)
    assert (reply.calls, reply.texts, len(reply.errors)) == ((), (), 1)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "text",
    [
        "This is what I would send:\n\nCALL",
        "I'd run this:\n```json\nCALL\n```",
        "Once the manager has agreed, I will send this:\nCALL",
        "Tomorrow morning I am going to run:\nCALL\nUntil then nothing happens.",
        "If the parcel is not there by Friday, this is the call:\nCALL",
        # a full stop before the call
        "Do not run this.\n\nCALL",
        "I have the address. I will not send it.\n\nCALL",
        "Here is an example.\n```json\nCALL\n```",
        "This is only a draft.\n\nCALL",
    ],
)
def test_what_the_words_leave_open_is_told(name: str, text: str) -> None:
    """Neither run nor silently shown as the answer."""
    reply = read(name, text)
    assert not reply.calls
    assert "leave open" in reply.errors[0].message


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Two ways:\n\n1. `look(query='x')`\n2. `look()`\n\nBoth work.", "words"),
        ("* `look(query='x')`\n\nThis one worked.", "words"),
        ("You can ask for:\n* `look(query='x')`", "told"),
        ("1. `look(query='x')`\n2. `look(query='y')`", "calls"),
        ("I look:\n\n1. look(query='x')\n2. look(query='y')\n\nWait.", "calls"),
    ],
)
def test_a_list_of_calls_in_backticks(text: str, verdict: str) -> None:
    """Alone it is a block of calls; among words it is code in a text."""
    for name in ("intents", "native"):
        reply = read(name, text)
        said = "calls" if reply.calls else "told" if reply.errors else "words"
        assert said == verdict


@pytest.mark.parametrize("name", ["intents", "native"])
def test_fences_of_calls_in_a_models_own_form_all_run(name: str) -> None:
    """Rule 6: what stands before the second fence is a call, no words."""
    own = f"<tool_call>\n{CALLS['native']}\n</tool_call>"
    for first in (own, f"```json\n{own}\n```"):
        reply = read(name, f"{first}\n```json\n{own}\n```")
        assert (len(reply.calls), reply.errors) == (2, ())


@pytest.mark.parametrize("name", ["intents", "native"])
@pytest.mark.parametrize("begun", ["{", "[{", "```json\n{", "<tool_call>\n{"])
def test_D9_a_call_of_which_only_the_bracket_was_written_is_told(
    name: str, begun: str
) -> None:
    """Rule 3: the calls before it do not run either."""
    own = f"<tool_call>\n{CALLS['native']}\n</tool_call>"
    reply = read(name, f"{own}\n{begun}")
    assert reply.calls == ()
    assert [error.code for error in reply.errors] == ["malformed_reply"]
    told = read(name, "<tool_call>\n{")
    assert (told.calls, told.texts, len(told.errors)) == ((), (), 1)


def test_between_the_markers_nothing_is_an_example() -> None:
    """The markers say that it is sent."""
    block = "<!-- RESPONSE_START -->\n[CALL]\n<!-- RESPONSE_END -->"
    reply = read("intents", f"This is what I would send:\n{block}\nShall I run it?")
    assert len(reply.calls) == 1


def test_a_broken_message_in_a_program_is_words() -> None:
    """A function that builds messages is shown; a broken message alone is told."""
    broken = '{"receiver": {"role": "plugin", "name": name}}'
    program = f"```python\ndef f(name):\n    return {broken}\n```\n\nThis builds one."
    for name in ("envelope_v1", "envelope_v2"):
        assert not read(name, program).errors
        assert read(name, f"```json\n{broken}\n```").errors
        lost = program.replace("}}", "")  # it may have swallowed a message
        assert read(name, f"{lost}\n```json\nCALL\n```").errors


@pytest.mark.parametrize(
    "text",
    [
        "My calls stand between <!-- RESPONSE_START --> and <!-- RESPONSE_END -->.",
        "The block begins with `<!-- RESPONSE_START -->`.",
    ],
)
def test_a_marker_that_is_named_is_a_word(text: str) -> None:
    """In backticks, or between the words of a sentence."""
    reply = read("intents", text)
    assert (reply.calls, reply.errors) == ((), ())
    assert read("intents", text.split("<")[0] + "<!-- RESPONSE_START --> [").errors


@pytest.mark.parametrize("name", ["envelope_v1", "envelope_v2"])
def test_messages_in_an_object_areread(name: str) -> None:
    """As intents are: one list of such keys serves every dialect."""
    for text in ('{"messages": [CALL, CALL]}', '{"calls": [CALL, CALL]}'):
        assert len(read(name, text).calls) == 2
    assert len(read(name, '{"thought": "So.", "message": CALL}').calls) == 1
    assert not read(name, '{"first": CALL, "second": CALL}').calls


@pytest.mark.parametrize("name", ["envelope_v1", "envelope_v2"])
@pytest.mark.parametrize(
    "text",
    [
        "```yaml\nreceiver:\n  role: plugin\n  name: p\ncontent:\n  command: look\n```",
        "- receiver:\n    role: plugin\n    name: p\n  content:\n    command: look",
        '<tool_call>{"arguments": {}}</tool_call>',
    ],
)
def test_a_message_in_another_form_is_told(name: str, text: str) -> None:
    """It is never the answer to the user."""
    reply = read(name, text)
    assert not reply.calls
    assert reply.errors


@pytest.mark.parametrize("part", ["shall i ", "is it ok ", "- `look(", "if i should "])
def test_D6_the_time_grows_with_the_text(part: str) -> None:
    """Also where the words look like questions."""
    text = f"{CALLS['native']}\n{part * (1_000_000 // len(part))}"
    started = time.process_time()
    read("native", text)
    assert time.process_time() - started < 10


@pytest.mark.parametrize("name", ["intents", "native"])
@pytest.mark.parametrize(
    "part",
    [
        '[{"tool": "look"}] ',
        '{"tool": "look"}\n',
        "<!-- RESPONSE_START -->",
        "<think>",
        "`",
        "\n",
    ],
)
def test_D6_twice_the_text_takes_twice_the_time(name: str, part: str) -> None:
    """An outside tester's texts took four times as long, or minutes."""

    def seconds(size: int) -> float:
        text = part * (size // len(part))
        return least(lambda: read(name, text), attempts=3)

    seconds(1000)
    assert seconds(1_000_000) < 2.6 * max(seconds(500_000), 0.02)
    text = part * (1_000_000 // len(part))
    within(1.0, lambda: read(name, text), attempts=3)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("between", [" ", "\n", " and then "])
def test_D6_more_calls_than_a_plan_has_end_the_reading(name: str, between: str) -> None:
    """As many as it may have are read as before; of more none runs."""
    most = between.join(["CALL"] * MOST_CALLS)
    assert MOST_CALLS == MOST_STEPS
    reply = read(name, most)
    assert reply.calls
    assert len(reply.calls) + len(reply.left) == MOST_CALLS
    reply = read(name, f"{most}{between}CALL{between}{{")
    assert not reply.calls
    assert "more than 1000 calls" in reply.errors[0].message


def test_a_block_behind_the_models_turn_is_not_counted() -> None:
    """It is read as if the calls that the model imagines were not there."""
    start, end = "<!-- RESPONSE_START -->", "<!-- RESPONSE_END -->"
    block = f"{start}\n[CALL]\n{end}\n"
    reply = read("intents", block * 1100)
    assert [call.command for call in reply.calls] == ["look"]
