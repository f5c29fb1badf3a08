"""What servers want back with a turn: read in pieces, sent back, and to nobody else."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from models.http_server import Script, Server, answer, frame, lines, serving, stream
from neuraxis import Answer, Session, command
from neuraxis.errors import ModelRefused
from neuraxis.events import ModelFinished, from_json, to_json
from neuraxis.messages import Completion, Message, Prompt
from neuraxis.models import complete
from neuraxis.models.http.reasoning_blocks import MOST_CARRIED
from neuraxis.models.http.settings import Options
from neuraxis.models.openai.model import OpenAIModel
from neuraxis.models.openai.provider_state import Carried
from neuraxis.specs import Json
from wire_cases import Case, case_id, cases

QUICK = Options(max_retries=0, first_byte_timeout=5, stall_timeout=5)
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "add", "parameters": {}},
}
ASKED = Message(role="user", content="Add.")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


def streamed(deltas: list[dict[str, Any]], reason: str = "tool_calls") -> Script:
    return stream(
        lines(
            *(frame(delta=delta) for delta in deltas),
            frame(finish_reason=reason),
            {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}},
        )
    )


def whole(message: dict[str, Any], reason: str = "tool_calls") -> Script:
    return answer({"choices": [{"message": message, "finish_reason": reason}]})


def turn(said: Completion) -> Prompt:
    """The prompt that follows, with the results."""
    return Prompt(
        messages=(
            ASKED,
            Message(
                role="assistant",
                content=said.text,
                tool_calls=said.tool_calls,
                carried=said.carried,
            ),
            *(
                Message(role="tool", content="2", tool_call_id=call.id)
                for call in said.tool_calls
            ),
        ),
        native_tools=(TOOL,),
    )


async def said_by(server: Server, script: Script, name: str = "m") -> Completion:
    server.answers(script)
    model = OpenAIModel(name, server=server.url, options=QUICK)
    try:
        prompt = Prompt(messages=(ASKED,), native_tools=(TOOL,))
        return await complete(model, prompt)
    finally:
        await model.close()


async def sent_back(
    server: Server, prompt: Prompt, name: str = "m", path: str = ""
) -> dict[str, Any]:
    """The assistant's message as the next request has it."""
    server.answers(streamed([{"content": "Done."}], "stop"))
    model = OpenAIModel(name, server=server.url + path, options=QUICK)
    await complete(model, prompt)
    await model.close()
    found: dict[str, Any] = server.requests[0].body["messages"][1]
    return found


def plain(said: Completion) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": said.text or None,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in said.tool_calls
        ],
    }


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        pytest.param(kind, case, id=f"{case_id(case)}-{kind}")
        for kind in ("frames", "document")
        for case in cases("models", kind)
        if "frames" in case
    ],
)
async def test_what_goes_back(kind: str, case: Case, server: Server) -> None:
    """As it came, whether it came in pieces or whole, and nothing else."""
    reason = case.get("reason", "tool_calls")
    script = (
        streamed(case["frames"], reason)
        if kind == "frames"
        else whole(case["document"], reason)
    )
    said = await said_by(server, script)
    assert said.tool_calls
    expected = plain(said) | case.get("message", {})
    extras = case.get("calls", [{}] * len(said.tool_calls))
    expected["tool_calls"] = [
        call | extra for call, extra in zip(expected["tool_calls"], extras, strict=True)
    ]
    assert await sent_back(server, turn(said)) == expected
    bare = case.get("message", {}).keys() <= {"content"} and "calls" not in case
    assert (said.carried == "") is bare


REASONED: list[dict[str, Any]] = [
    {"reasoning_content": "the sum"},
    {"tool_calls": [{"id": "a", "function": {"name": "add", "arguments": "{}"}}]},
]


async def test_nobody_else_is_told(server: Server) -> None:
    """Another model, another server, a dialect of text, an adapter of another kind."""
    said = await said_by(server, streamed(REASONED))
    prompt = turn(said)
    assert "reasoning_content" in await sent_back(server, prompt)
    assert await sent_back(server, prompt, name="other") == plain(said)
    assert await sent_back(server, prompt, path="/other") == plain(said)
    texts = replace(prompt, native_tools=())
    told = await sent_back(server, texts)
    assert told == {"role": "assistant", "content": ""}
    for foreign in ("x", "[]", "{}", "[" * 100_000, '{"from": 3, "message": []}'):
        earlier = replace(prompt.messages[1], carried=foreign)
        other = replace(prompt, messages=(ASKED, earlier, *prompt.messages[2:]))
        assert await sent_back(server, other) == plain(said)


async def test_only_known_members_are_sent(server: Server) -> None:
    """A journal that was written to cannot put anything else into a request."""
    said = await said_by(server, streamed(REASONED))
    kept = json.loads(said.carried)
    kept["message"]["role"] = "system"
    kept["calls"] = {"0": {"id": "b", "extra_content": {"x": 1}}, "7": {}}
    prompt = turn(replace(said, carried=json.dumps(kept)))
    told = await sent_back(server, prompt)
    assert told["role"] == "assistant"
    assert told["tool_calls"][0]["id"] == "a"
    assert told["tool_calls"][0]["extra_content"] == {"x": 1}
    for odd in ({"message": 3, "calls": 3}, {"message": {}, "calls": {"0": 3}}):
        prompt = turn(replace(said, carried=json.dumps(kept | odd)))
        assert await sent_back(server, prompt) == plain(said)


async def test_a_turn_without_calls(server: Server) -> None:
    """DeepSeek wants its reasoning too; where there are no tools nobody wants it."""
    deltas = [{"reasoning_content": "hm"}, {"content": "Two."}]
    said = await said_by(server, streamed(deltas, "stop"))
    told = {"role": "assistant", "content": "Two."}
    assert await sent_back(server, turn(said)) == told | {"reasoning_content": "hm"}
    server.answers(streamed(deltas, "stop"))
    model = OpenAIModel("m", server=server.url, options=QUICK)
    said = await complete(model, Prompt(messages=(ASKED,)))
    await model.close()
    assert (said.text, said.carried) == ("Two.", "")


@pytest.mark.parametrize(
    "large",
    [
        [{"reasoning_content": "x" * 1000}] * (MOST_CARRIED // 1000 + 1),
        [{"reasoning_details": [{"type": "t", "data": "x" * MOST_CARRIED}]}],
        [{"reasoning_content": '"' * (MOST_CARRIED // 2 + 1)}],
    ],
    ids=["texts", "details", "as JSON"],
)
async def test_too_much_is_told_and_not_cut(
    large: list[dict[str, Any]], server: Server
) -> None:
    """Half of it would be refused as well, and nobody would know why."""
    server.answers(streamed([*large, REASONED[-1]]))
    model = OpenAIModel("m", server=server.url, options=QUICK)
    notes: list[str] = []
    prompt = Prompt(messages=(ASKED,), native_tools=(TOOL,))
    said = await complete(model, prompt, lambda chunk: notes.append(chunk.note))
    await model.close()
    assert said.carried == ""
    assert f"more than {MOST_CARRIED} characters" in notes[-1]
    assert len(said.tool_calls) == 1


@pytest.mark.parametrize("grows", [False, True], ids=["pieces", "all so far"])
async def test_what_pieces_repeat_is_not_counted(grows: bool, server: Server) -> None:
    """Each of a thousand pieces says its format again, or even all so far."""
    text = "".join(chr(0x4E00 + number) for number in range(3000))
    deltas = [
        {
            "reasoning_details": [
                {
                    "type": "reasoning.text",
                    "text": text[:end] if grows else text[end - 1],
                    "format": "x" * 1000,
                    "index": 0,
                }
            ]
        }
        for end in range(1, len(text) + 1)
    ]
    assert len(json.dumps(deltas, ensure_ascii=False)) > MOST_CARRIED
    said = await said_by(server, streamed([*deltas, REASONED[-1]]))
    kept = json.loads(said.carried)["message"]["reasoning_details"]
    assert [(detail["text"], len(detail["format"])) for detail in kept] == [
        (text, 1000)
    ]


async def test_many_details_are_no_burden(server: Server) -> None:
    """A server that begins a new one with each frame."""
    count = 20_000
    deltas = [
        {"reasoning_details": [{"type": "t", "index": number}]}
        for number in range(count)
    ]
    started = time.thread_time()
    said = await said_by(
        server,
        stream(
            lines(
                *(frame(delta=d) for d in deltas),
                frame(delta=REASONED[-1], finish_reason="tool_calls"),
            )
        ),
    )
    assert time.thread_time() - started < 10
    kept = json.loads(said.carried)["message"]["reasoning_details"]
    assert len(kept) == count


def test_the_journal_keeps_it() -> None:
    """And reads what was written before there was such a thing."""
    event = ModelFinished(text="", finish_reason="tool_calls", carried='{"from":"x"}')
    written = json.loads(json.dumps(to_json(event)))
    assert from_json(written) == event
    del written["carried"]
    assert from_json(written) == replace(event, carried="")


# --- whole runs with a server that refuses -------------------------------------


@command(effects="read")
def add(x: int) -> int:
    """Adds one.

    Args:
        x: a number.
    """
    return x + 1


def called(number: int, streams: bool, **member: Any) -> Script:
    """The n-th call, with what has to come back in the message or in the call."""
    call = {
        "index": 0,
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "add", "arguments": json.dumps({"x": number})},
    }
    call |= member.pop("call", {})
    if streams:
        return streamed([member, {"tool_calls": [call]}])
    return whole({"content": None, **member, "tool_calls": [call]})


def strict(
    server: Server, streams: bool, wanted: Callable[[int], dict[str, Any]]
) -> Script:
    """Two calls, then an answer; 400 where a turn lacks what it came with."""

    last = {name: value for name, value in wanted(9).items() if name != "call"}

    def lacks(message: Mapping[str, Any]) -> bool:
        calls: list[dict[str, Any]] = message.get("tool_calls", [{"id": "call_9"}])
        own = calls[0]
        member = wanted(int(own["id"].removeprefix("call_")))
        call: dict[str, Any] = member.pop("call", {})
        if "tool_calls" not in message:
            call = {}
        return any(
            place.get(name) != value
            for place, fields in ((message, member), (own, call))
            for name, value in fields.items()
        )

    async def write(writer: asyncio.StreamWriter) -> None:
        messages = server.requests[-1].body["messages"]
        turns = [message for message in messages if "tool_calls" in message]
        after = messages[-1]["role"] == "tool"
        if any(lacks(said) for said in messages if said["role"] == "assistant"):
            script = answer({"error": {"message": "it is gone", "code": 400}}, 400)
        elif not turns or (after and len(turns) < 2):
            script = called(len(turns), streams, **wanted(len(turns)))
        elif streams:
            script = streamed([last, {"content": "Two."}], "stop")
        else:
            script = whole({**last, "content": "Two."}, "stop")
        await script(writer)

    return write


WANTED: Mapping[str, Callable[[int], dict[str, Any]]] = {
    "DeepSeek": lambda number: {"reasoning_content": f"thought {number}"},
    "vLLM": lambda number: {"reasoning": f"thought {number}"},
    "OpenRouter": lambda number: {
        "reasoning_details": [
            {"type": "reasoning.encrypted", "data": f"x{number}", "index": 0}
        ]
    },
    "Gemini": lambda number: {
        "call": {"extra_content": {"google": {"thought_signature": f"s{number}"}}}
    },
}


@pytest.mark.parametrize("streams", [True, False], ids=["stream", "document"])
@pytest.mark.parametrize("name", WANTED)
async def test_a_run_and_its_resume(
    name: str, streams: bool, server: Server, tmp_path: Path
) -> None:
    """Each turn comes back in the run, and from the journal in the next process."""
    server.answers(strict(server, streams, WANTED[name]))

    def session(own: str | None = None, model: str = "m") -> Session:
        begin = Session if own is None else partial(Session.open, own)
        return begin(
            model=OpenAIModel(model, server=server.url, options=QUICK),
            plugins=[add],
            dialect="native",
            workspace=tmp_path / "workspace",
            journal=tmp_path / "journal.db",
        )

    async def run(opened: Session, text: str) -> Answer:
        try:
            return await opened.drive(text)
        finally:
            opened.close()
            await opened.model.close()

    first = session()
    said = await run(first, "Add one, twice.")
    assert (said.outcome, said.text, len(said.calls)) == ("answered", "Two.", 2)
    assert len(server.requests) == 3
    assert (await run(session(first.id), "Again?")).text == "Two."
    # Another model gets nothing of it, and this server says so.
    failed = await run(session(first.id, "other"), "And you?")
    assert (failed.outcome, "it is gone" in failed.error) == ("failed", True)


async def test_a_server_that_refuses_what_it_gave(server: Server) -> None:
    """Behind a gateway: it is left out, that is told, and so it stays."""
    said = await said_by(server, streamed(REASONED))
    refusal = {
        "detail": [
            {
                "type": "extra_forbidden",
                "loc": ["body", "messages", 1, "assistant", "reasoning_content"],
                "msg": "Extra inputs are not permitted",
                "input": "the sum",
            }
        ]
    }
    server.answers(
        streamed([{"content": "Hi."}], "stop"),
        answer(refusal, 422),
        streamed([{"content": "Done."}], "stop"),
    )
    model = OpenAIModel("m", server=server.url, options=QUICK)
    notes: list[str] = []
    await complete(model, Prompt(messages=(ASKED,)))
    for _ in range(2):
        await complete(model, turn(said), lambda chunk: notes.append(chunk.note))
    await model.close()
    assert [
        "reasoning_content" in request.body["messages"][-2]
        for request in server.requests[1:]
    ] == [True, False, False]
    told = [note for note in notes if note]
    assert len(told) == 1
    assert "reasoning_content: Extra inputs" in told[0]


async def test_a_refusal_that_stays(server: Server) -> None:
    """Left out once and refused again: the server's words, and no circle."""
    said = await said_by(server, streamed(REASONED))
    server.answers(answer({"error": "reasoning_content is unsupported"}, 400))
    model = OpenAIModel("m", server=server.url, options=QUICK)
    with pytest.raises(ModelRefused, match="is unsupported"):
        await complete(model, turn(said))
    await model.close()
    assert len(server.requests) == 3  # as it is, without that, without stream_options


async def test_pieces_that_only_seemed_to_repeat(server: Server) -> None:
    """What was held as one text would be many: it is told, and not made."""
    long = "x" * 100_000
    texts = [long[: 50_000 + number * 500] for number in range(100)]
    deltas = [
        {"reasoning_details": [{"type": "reasoning.text", "text": text, "index": 0}]}
        for text in [*texts, "y"]
    ]
    assert len(json.dumps(deltas)) > 2 * MOST_CARRIED
    said = await said_by(server, streamed([*deltas, REASONED[-1]]))
    assert said.carried == ""
    said = await said_by(server, streamed([*deltas[:-1], REASONED[-1]]))
    assert len(said.carried) < 2 * len(long)


def _details(*frames: Json) -> Json:
    carried = Carried()
    for given in frames:
        carried.message({"reasoning_details": given})
    text, _ = carried.finish("server#m", [])
    return json.loads(text)["message"]["reasoning_details"] if text else None


def test_details_whose_pieces_alternate() -> None:
    """The index says which of them goes on."""
    pieces = [(0, "a"), (1, "x"), (0, "b"), (1, "y")]
    kept = _details(*[[{"type": "t", "index": n, "text": it}] for n, it in pieces])
    assert kept == [
        {"type": "t", "index": 0, "text": "ab"},
        {"type": "t", "index": 1, "text": "xy"},
    ]


def test_a_detail_that_is_known_by_and_by() -> None:
    """What a later piece lacks, or says as nothing, stays; what it adds is added."""
    first, last = {"index": 0, "text": "a"}, {"index": 0, "text": "b"}
    between = {"index": 0, "text": None, "id": "r1"}
    assert _details([first], [between], [last]) == [
        {"index": 0, "text": "ab", "id": "r1"}
    ]
    assert _details([between], [{**last, "id": "r2"}]) == [
        between,
        {**last, "id": "r2"},
    ]


def test_details_without_an_index() -> None:
    """Only the last one goes on: their order is part of what they say."""
    one, other, more = {"text": "One"}, {"data": "gAAA"}, {"text": " more"}
    assert _details([one], [more]) == [{"text": "One more"}]
    assert _details([one], [{"type": "e", **other}], [more]) == [
        one,
        {"type": "e", **other},
        more,
    ]


@pytest.mark.parametrize("given", [5, "x", True, {}, {"text": "a"}, [], ["x", 5, None]])
def test_details_that_are_none(given: Json) -> None:
    """A server may put anything there."""
    assert _details(given) is None
    assert _details([{"text": "a"}], given) == [{"text": "a"}]
