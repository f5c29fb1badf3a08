"""Connections to servers that change, flood, die or hang."""

import asyncio
import contextlib
import logging
import os
import sys

import pytest
from msgspec.structs import replace

from bridges.mcp_client.servers import hostile, opened, say
from neuraxis.bridges import mcp
from neuraxis.bridges.mcp_client.connection import Asking, Connection


async def test_a_server_that_behaves_answers(tmp_path):
    """The hostile tests can fail: the same server, tame, does as it is asked."""
    with opened(tmp_path, hostile("tame")) as session:
        result = await say(session)
    assert (result.status, result.value) == ("done", "said hello")


async def test_a_description_that_changes_after_it_was_shown_is_refused(
    tmp_path, caplog
):
    """N10: a changed command is refused, a new one is not offered; both are logged."""
    with opened(tmp_path, hostile("changes")) as session:
        assert (await say(session)).status == "done"
        for _ in range(100):
            await asyncio.sleep(0.05)
            if "is refused" in caplog.text and "extra" in caplog.text:
                break
        changed = await say(session)
        assert changed.status == "failed"
        assert "description changed since it was accepted" in changed.error.message
        assert "evil.example" not in changed.error.message
        assert (await say(session, command="again")).status == "done"
        assert (await say(session, command="extra")).error.code == "unknown_command"
    assert "hostile.say: its description changed" in caplog.text
    assert "hostile.extra: new; it is not offered" in caplog.text


async def test_a_call_waits_for_a_list_that_was_said_to_change(tmp_path):
    """So that a changed command is not called once more; the others are."""
    with opened(tmp_path, hostile("changes_first")) as session:
        assert (await say(session)).status == "done"
        changed = await say(session)
        assert "description changed since it was accepted" in changed.error.message
        assert (await say(session, command="again")).status == "done"


async def test_no_call_runs_while_a_changed_list_cannot_be_read(tmp_path):
    """It waits as long as for a connection, then it says so."""
    source = hostile("changes_mutely")
    source.servers = tuple(replace(each, seconds=3) for each in source.servers)
    with opened(tmp_path, source) as session:
        assert (await say(session)).status == "done"
        unread = await say(session)
    assert "new list could not be read" in unread.error.message


async def test_a_resource_that_changes_after_it_was_read_is_told(tmp_path):
    """Once, beside the next answer, and of no address that was not read."""
    with opened(tmp_path, hostile("updates")) as session:
        read = await say(session, command="read_resource", uri="doc://a")
        assert read.value["text"] == "words"
        told = [*read.warnings]
        for _ in range(100):
            if told:
                break
            await asyncio.sleep(0.02)
            told += (await say(session)).warnings
        after = (await say(session)).warnings
    assert told == ["the resource doc://a changed since it was read; read it again"]
    assert list(after) == []


async def test_a_server_that_dies_is_started_again(tmp_path):
    """The call that was cut off is not repeated; the next one finds a new server."""
    with opened(tmp_path, hostile("dies")) as session:
        first = await say(session)
        assert "broke off" in first.error.message
        assert "not known whether" in first.error.message
        second = await say(session)
        assert "broke off" in second.error.message  # it was there again


def test_a_log_line_of_a_server_is_made_safe(tmp_path, caplog):
    """What is logged of a server has no escape codes."""
    with caplog.at_level(logging.WARNING):
        source = mcp(
            {
                "command": sys.executable,
                "args": ["-c", "import sys; print('\\x1b[31mno', file=sys.stderr)"],
            },
            name="rude",
        )
        source.open_plugins(tmp_path)
        source.log_problems()
        source.close_plugins()
    assert "it said: no" in caplog.text
    assert "\x1b" not in caplog.text


async def test_a_connection_that_is_cancelled_leaves_no_server(tmp_path):
    """A run that is stopped while a server starts ends the server, too."""
    pids = tmp_path / "pids"
    code = (
        "import os, sys, time\n"
        f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "sys.stdin.read() and time.sleep(0)\n"
    )
    source = mcp({"command": sys.executable, "args": ["-c", code]}, name="mute")
    connection = Connection(source.servers[0], tmp_path, Asking())
    for count in (1, 2):
        opening = asyncio.create_task(connection.client())
        for _ in range(500):
            if pids.exists() and len(pids.read_text().split()) == count:
                break
            await asyncio.sleep(0.02)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
    for pid in map(int, pids.read_text().split()):
        for _ in range(200):
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, 0)
                await asyncio.sleep(0.05)
                continue
            break
        else:
            pytest.fail("a server still runs")
    await connection.close()
