"""Calls of a server: its words, its progress, their end."""

import asyncio
import json
import time

from bridges.mcp_client.servers import hostile, opened, say
from neuraxis.events import CallProgress


async def test_endless_progress_is_bounded(tmp_path):
    """A flood of progress is shown in part, without escape codes, and then ended."""
    seen = []
    with opened(tmp_path, hostile("endless_progress")) as session:
        result = await say(session, seen.append)
    progress = [event for event in seen if isinstance(event, CallProgress)]
    assert "over 20000 notifications" in result.error.message
    assert 0 < len(progress) < 500
    assert all("\x1b" not in event.message for event in progress)


async def test_escape_codes_in_texts_are_taken_out(tmp_path):
    """ANSI and direction marks go; HTML stays text, for nobody renders it."""
    source = hostile("colours")
    with opened(tmp_path, source) as session:
        (plugin,) = session.registry.plugins
        said = json.dumps(
            [
                plugin.spec.description,
                plugin.spec.title,
                plugin.spec.commands[0].description,
            ]
        )
        assert "\\u001b" not in said
        assert "\\u202e" not in said
        assert "<script>" in said
        result = await say(session)
        assert "escape codes" in result.warnings[0]
    assert "invisible characters" in source.problems[0]


async def test_the_words_of_a_failed_call_are_made_safe(tmp_path):
    """A server's error reaches the model as one line without escape codes."""
    with opened(tmp_path, hostile("fails")) as session:
        result = await say(session)
    assert result.status == "failed"
    assert "It failed red" in result.error.message
    assert "\x1b" not in result.error.message


async def test_a_call_that_takes_too_long_is_cancelled(tmp_path):
    """A slow server holds neither its call nor the end of the session."""
    with opened(tmp_path, hostile("slow")) as session:
        call = asyncio.create_task(say(session))
        await asyncio.sleep(0.3)
        call.cancel()
        started = time.monotonic()
        await asyncio.gather(call, return_exceptions=True)
        assert call.cancelled()
        assert time.monotonic() - started < 2
