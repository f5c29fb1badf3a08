"""Servers as plugins: names, lock file, those that are dead."""

import gc
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from bridges.mcp_client.servers import hostile, opened, say
from neuraxis import Policy
from neuraxis.bridges import mcp
from neuraxis.errors import ManifestError
from neuraxis.plugins.lock_file import entry, write_lock


async def test_a_closed_session_starts_no_server_again(tmp_path):
    """What was closed stays closed: no process is left behind."""
    with opened(tmp_path, hostile("tame")) as session:
        session.registry.close(lambda work: None)
        result = await say(session)
        assert "closed with its session" in result.error.message


async def test_a_server_is_held_to_the_lock_file(tmp_path):
    """N10: what a server says otherwise than when it was accepted ends the session."""
    lock = tmp_path / "lock.json"
    source = hostile("tame")
    try:
        (plugin,) = source.open_plugins(tmp_path)
    finally:
        source.close_plugins()
    write_lock(lock, {"hostile": entry(plugin.spec)})
    with opened(tmp_path, hostile("tame"), policy=Policy(lock=lock)) as session:
        assert (await say(session)).status == "done"
    with pytest.raises(ManifestError, match=r"not as it was accepted.*description"):
        opened(tmp_path, hostile("colours"), policy=Policy(lock=lock))


async def test_names_of_built_in_commands_are_not_taken(tmp_path):
    """A server's `list_files` has its plugin's name; the built-in one keeps its own."""
    source = hostile("collides")
    with opened(tmp_path, "neuraxis:files", source) as session:
        names = session.registry.tool_names
        assert names["list_files"] == ("files", "list_files")
        assert names["FILEWRITER"] == ("files", "write_file")
        assert names["hostile.list_files"] == ("hostile", "list_files")
        assert session.registry.find(None, "list_files").plugin.name == "files"
    assert source.problems == ["hostile.list_files: its name is taken; it is left out"]


async def test_a_dead_server_hides_no_other(tmp_path, caplog):
    """It is reported, on the log as well, and the others work."""
    dead = mcp("no-such-program-at-all", name="dead")
    with opened(tmp_path, dead, hostile("tame")) as session:
        assert (await say(session)).status == "done"
        assert [p.spec.name for p in session.registry.listed] == ["hostile"]
    assert "there is no program 'no-such-program-at-all'" in dead.problems[0]
    assert "no-such-program-at-all" in caplog.text


def servers_of_this_process():
    """The process ids of the servers that this process started."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process may end meanwhile
            is_child = f"PPid:\t{os.getpid()}\n" in (folder / "status").read_text()
            if is_child and b"hostile_server" in (folder / "cmdline").read_bytes():
                found.add(folder.name)
    return found


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc")
def test_the_servers_of_a_forgotten_session_end(tmp_path):
    """Nobody closed it: its servers end with it, not with the program."""
    earlier = servers_of_this_process()
    session = opened(tmp_path, hostile("tame"))
    assert len(servers_of_this_process() - earlier) == 1
    del session
    gc.collect()
    until = time.monotonic() + 20
    while servers_of_this_process() - earlier and time.monotonic() < until:
        time.sleep(0.05)
    assert not servers_of_this_process() - earlier
