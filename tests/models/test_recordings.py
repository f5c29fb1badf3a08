"""Recorded traffic of four APIs is read as recorded, alone and in whole sessions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmark_file import benchmark
from neuraxis.models.accumulate import Joiner
from neuraxis.models.anthropic.stream import MessageReader
from neuraxis.models.gemini.stream import ContentReader
from neuraxis.models.http.answers import ServerError
from neuraxis.models.http.model import Reader
from neuraxis.models.http.sse import Event, EventReader
from neuraxis.models.openai.stream import Frames
from neuraxis.models.openai_responses.stream import ResponseReader

recordings = benchmark("recordings")


@pytest.mark.parametrize("api", list(recordings.WIRES))
async def test_every_exchange_is_read_as_recorded(api: str, shared_data: Path) -> None:
    """Text, thinking, calls, ids, finish reason, usage, citations; two turns each."""
    if not (shared_data / "recordings").is_dir():
        pytest.skip("the recordings are not in the shared test data")
    counts, wrong = await recordings.measure(shared_data, api)
    assert not wrong
    assert counts["replayed"] == counts["sessions"] == counts["replayed right"] >= 20


async def test_a_difference_is_noticed() -> None:
    """An answer that says something else than expected is not counted as right."""
    row = recordings.closing("anthropic_messages")
    expected = recordings.expected_of("anthropic_messages", row)
    other = {**row["response"], "stop_reason": "max_tokens", "content": []}
    async with recordings.playing() as player:
        right = await recordings.replay("anthropic_messages", row, player)
        wrong = await recordings.replay(
            "anthropic_messages", {**row, "response": other}, player, expected
        )
    assert right == []
    assert [line.partition(":")[0] for line in wrong] == ["text", "finish"]


READERS: dict[str, Callable[[], Reader]] = {
    "chat_completions": Frames,
    "anthropic_messages": MessageReader,
    "gemini_generate_content": ContentReader,
    "openai_responses": ResponseReader,
}


def read(api: str, body: bytes, portion: int = 4096) -> Joiner | None:
    """What a wire reads of a stream in portions; None: it says that it broke off."""
    reader, events, joined = READERS[api](), EventReader(), Joiner()
    found: list[Event] = []
    for start in range(0, len(body), portion):
        found += events.feed(body[start : start + portion])
    try:
        for event in [*found, *events.finish()]:
            for chunk in reader.event(event):
                joined.add(chunk)
        joined.add(reader.finish())
    except ServerError:
        return None
    return joined


@pytest.mark.parametrize("api", list(READERS))
def test_a_stream_that_is_cut_is_never_a_shorter_reply(
    api: str, shared_data: Path
) -> None:
    """At any of 40 places: an error, or all that was said; portions do not matter."""
    if not (shared_data / "recordings").is_dir():
        pytest.skip("the recordings are not in the shared test data")
    cuts = 0
    for row in recordings.exchanges(shared_data, api):
        body = row["response"]
        if row["status"] != 200 or not isinstance(body, str):
            continue
        raw = body.encode()
        whole = read(api, raw)
        assert whole is not None
        done = whole.completion("m")
        again = read(api, raw, portion=7)
        assert again is not None
        assert again.completion("m").text == done.text
        for place in range(1, 41):
            cut = read(api, raw[: len(raw) * place // 41])
            cuts += 1
            if cut is not None:
                said = cut.completion("m")
                assert (said.text, len(said.tool_calls)) == (
                    done.text,
                    len(done.tool_calls),
                )
    assert cuts >= 80
