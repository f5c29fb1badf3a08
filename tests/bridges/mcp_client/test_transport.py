"""Limits on what a server sends."""

import asyncio
import time

import pytest

from bridges.mcp_client.servers import hostile, opened, say

_TEXT = '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"%s"}]}}'


async def test_lines_that_are_no_messages_are_passed_over(tmp_path):
    """A server that prints a greeting to standard output is still understood."""
    with opened(tmp_path, hostile("prints")) as session:
        assert (await say(session)).value == "said hello"


async def test_a_result_of_100_megabytes_ends_the_call_and_not_the_session(tmp_path):
    """The connection is closed, the model is told why, and memory stays bounded."""
    with opened(tmp_path, hostile("huge")) as session:
        result = await say(session)
        assert result.status == "failed"
        assert "it sent a message over 64 MiB" in result.error.message
        assert "not known whether" in result.error.message


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (r"a \ud83d", "a \ufffd"),
        (r"\ude00\ud83d\ude00\uD83D", "\ufffd\U0001f600\ufffd"),
        (r"\\ud83d \ud83d\n", "\\ud83d \ufffd\n"),
        (r"\\\ud83d\ud83d\ude00", "\\\ufffd\U0001f600"),
    ],
)
async def test_a_lone_surrogate_in_an_answer_is_replaced(tmp_path, text, read):
    """JavaScript writes one for a text that is cut within an emoji."""
    with opened(tmp_path, hostile("broken")) as session:
        result = await say(session, text=_TEXT % text)
    assert (result.status, result.value) == ("done", read)


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":{"n":DIGITS}}}',
        '{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":{"n":DEEP}}}',
        '{"result":{"id":999,"structuredContent":{"n":DEEP}},"jsonrpc":"2.0","id":ID}',
        '{ "result": {"a": DEEP}, "id": "ID", "jsonrpc": "2.0" }',
        '{"id":ID,"jsonrpc":"2.0","error":{"code":DIGITS}}',
        '{"jsonrpc":"2.0","id":ID,"result":{"content":[',
        '{"jsonrpc":"2.0","id":ID,"result":"said hello"}',
        '{"jsonrpc":"2.0","id":ID}',
    ],
)
async def test_an_answer_that_cannot_be_read_fails_its_call_at_once(tmp_path, line):
    """It was dropped, and the call waited until a time limit."""
    with opened(tmp_path, hostile("broken")) as session:
        started = time.monotonic()
        result = await say(session, text=line)
        assert time.monotonic() - started < 20
        assert "the server's answer cannot be read: " in result.error.message
        after = await say(session, text=_TEXT % "later")
    assert after.value == "later"


async def test_an_answer_without_a_readable_id_fails_what_waits(tmp_path):
    """Lines that are no answers are passed over, as before."""
    log = (
        '{"method":"log","params":DIGITS}\n{"jsonrpc":"2.0","method":"x","id":ID,DEEP}'
    )
    async with asyncio.timeout(20):
        with opened(tmp_path, hostile("broken")) as session:
            result = await say(session, text='{"jsonrpc":"2.0","result":{"a":DEEP}}')
            assert "an answer that cannot be read" in result.error.message
            after = await say(session, text=f"{log}\n{_TEXT % 'later'}")
    assert after.value == "later"


async def test_an_answer_of_very_many_parts_is_cut_and_told(tmp_path):
    """500,000 parts took 1.2 GB and held up the event loop for three seconds."""
    answer = '{"jsonrpc":"2.0","id":ID,"result":{"content":[PARTS]}}'
    with opened(tmp_path, hostile("broken")) as session:
        result = await say(session, text=answer)
    assert len(result.value) == 10_000
    assert "1 were left out" in result.warnings[0]
    with opened(tmp_path, hostile("updates")) as session:
        read = await say(session, command="read_resource", uri="doc://many")
    assert len(read.value) == 10_000
    assert "2 were left out" in read.warnings[0]
