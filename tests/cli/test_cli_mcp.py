"""`neuraxis plugins add --mcp` and `neuraxis mcp serve`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cli_process import neuraxis
from neuraxis.cli.plugin_sources import add_to_settings
from neuraxis.errors import ConfigError

SERVER = Path(__file__).parents[1] / "bridges" / "hostile_server.py"


def tame(mode="tame"):
    return f"{sys.executable} {SERVER} {mode}"


def test_an_mcp_server_is_added_locked_and_called(tmp_path):
    """From `add` to a call; a change is refused with what to type."""
    added = neuraxis("plugins", "add", "--mcp", tame(), cwd=tmp_path)
    assert added.returncode == 0, added.stderr
    assert "hostile_server: say, again" in added.stdout
    assert "mcp:" in (tmp_path / "neuraxis.toml").read_text()
    tool = "hostile_server.say"
    said = neuraxis("call", "--journal", "memory", tool, "--text", "hi", cwd=tmp_path)
    assert "said hi" in said.stdout, said.stderr
    listed = neuraxis("plugins", "list", "--json", cwd=tmp_path)
    assert tool in [row["tool"] for row in json.loads(listed.stdout)]
    assert neuraxis("plugins", "lock", cwd=tmp_path).returncode == 0
    file = tmp_path / "neuraxis.lock.json"
    file.write_text(file.read_text().replace("Say something.", "Say anything."))
    refused = neuraxis("call", tool, "--text", "hi", cwd=tmp_path)
    assert refused.returncode == 2
    assert "does not fit its digest" in refused.stderr


def test_a_dead_server_is_not_added(tmp_path):
    """The reason is said, and the settings stay as they were."""
    done = neuraxis("plugins", "add", "--mcp", "no-such-program", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no program 'no-such-program'" in done.stderr
    assert not (tmp_path / "neuraxis.toml").exists()


def test_a_dead_server_is_an_error_said_once(tmp_path):
    """By `check`, which fails, and by a run, which goes on."""
    checked = neuraxis("plugins", "check", "mcp:no-such-program", cwd=tmp_path)
    assert checked.returncode == 1
    assert checked.stderr.count("there is no program") == 1
    assert "mcp:no-such-program: error: " in checked.stderr
    called = neuraxis("call", "-p", "mcp:no-such-program", "list_files", cwd=tmp_path)
    assert called.returncode == 0
    assert called.stderr.count("there is no program") == 1


def test_a_source_or_a_server_is_added_and_not_both(tmp_path):
    """The message says what was expected."""
    done = neuraxis("plugins", "add", cwd=tmp_path)
    assert done.returncode == 2
    assert "expected either a SOURCE" in done.stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'plugins = ["mcp:x"]\n'),
        ('model = "a"', 'model = "a"\nplugins = ["mcp:x"]\n'),
        ("[search]\nresults = 3\n", 'plugins = ["mcp:x"]\n[search]\nresults = 3\n'),
        ('plugins = ["a"] # mine\n', 'plugins = ["mcp:x", "a"] # mine\n'),
        ("plugins = [\n  'a',\n]\n", "plugins = [\"mcp:x\", \n  'a',\n]\n"),
        ("plugins = []\n", 'plugins = ["mcp:x"]\n'),
    ],
)
def test_the_rest_of_the_settings_stays(tmp_path, before, after):
    """Comments and tables of the file are the person's."""
    file = tmp_path / "neuraxis.toml"
    file.write_text(before)
    add_to_settings("mcp:x", tmp_path)
    assert file.read_text() == after
    add_to_settings("mcp:x", tmp_path)
    assert file.read_text() == after


@pytest.mark.parametrize(
    "before", ['plugins = "a"\n', "plugins = [\n", "x = 'plugins'\n[a"]
)
def test_settings_that_are_written_otherwise_stay(tmp_path, before):
    """They are refused, not damaged."""
    file = tmp_path / "neuraxis.toml"
    file.write_text(before)
    with pytest.raises(ConfigError):
        add_to_settings("mcp:x", tmp_path)
    assert file.read_text() == before


def test_serve_over_stdio_speaks_only_the_protocol(tmp_path):
    """Standard output is for messages; the server ends with its input."""
    first = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    begun = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    tools = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    with subprocess.Popen(
        [sys.executable, "-m", "neuraxis", "mcp", "serve", "--journal", "memory"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        answers = []
        for message in (first, begun, tools):
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            if "id" in message:
                answers.append(json.loads(server.stdout.readline()))
        server.stdin.close()
        assert server.wait(20) == 0
    names = [tool["name"] for tool in answers[1]["result"]["tools"]]
    assert "run_plan" in names
    assert "FILEWRITER" in names


def test_serve_listens_on_loopback_only(tmp_path):
    """Another host is refused before anything listens."""
    done = neuraxis("mcp", "serve", "--http", "--host", "0.0.0.0", cwd=tmp_path)
    assert done.returncode == 2
    assert "expected one of 127.0.0.1" in done.stderr
