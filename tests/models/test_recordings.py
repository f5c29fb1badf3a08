"""Recorded traffic of four APIs is read as recorded, alone and in whole sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmark_file import benchmark

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
