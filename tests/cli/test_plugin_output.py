"""What plugins print is on standard error: standard output has answers only."""

import json
from pathlib import Path

import pytest

from cli_process import neuraxis

PRINTS = '''
import subprocess, sys, threading
from neuraxis import command

kept = sys.stdout
print("NOISE of the import")


@command(effects="read")
def look(city: str) -> str:
    """Look."""
    print("NOISE", city)
    sys.__stdout__.write("NOISE of the other name\\n")
    kept.write("NOISE of one that was kept\\n")
    subprocess.run([sys.executable, "-c", "print('NOISE of a process')"])
    thread = threading.Thread(target=print, args=("NOISE of a thread",))
    thread.start()
    thread.join()
    return "warm"
'''
PLAN = "version: 1\nsteps:\n  - {tool: look, arguments: {city: Lyon}}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plugin that prints, a script of replies that calls it, a plan and requests."""
    (tmp_path / "noisy.py").write_text(PRINTS, encoding="utf-8")
    replies = ['[{"tool": "look", "city": "Lyon"}]', "It is warm."]
    (tmp_path / "replies.yaml").write_text(json.dumps(replies), encoding="utf-8")
    (tmp_path / "plan.yaml").write_text(PLAN, encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text('"hi"\n', encoding="utf-8")
    return tmp_path


MODEL = ("-m", "scripted:replies.yaml")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--json", *MODEL, "hi"),
        ("batch", "rows.jsonl", *MODEL),
        ("call", "look", "--city", "Lyon", "--json"),
        ("plan", "run", "plan.yaml", "--json"),
        ("prompt", "--json", *MODEL),
        ("plugins", "list", "--json"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_each_line_is_json(folder: Path, arguments: tuple[str, ...]) -> None:
    """And what was printed is on standard error, whoever printed it."""
    given = ("-p", "noisy.py", "--no-builtin") if arguments[0] != "plugins" else ()
    if not given:
        (folder / "neuraxis.toml").write_text('plugins = ["noisy.py"]\n', "utf-8")
    journal = {"NEURAXIS_JOURNAL": str(folder / "j.db")}
    done = neuraxis(*arguments, *given, cwd=folder, **journal)
    assert done.returncode == 0, done.stderr
    assert "NOISE" not in done.stdout
    if arguments[0] in ("prompt", "plan"):
        assert json.loads(done.stdout)
    else:
        assert [json.loads(line) for line in done.stdout.splitlines()]
    assert "NOISE of the import" in done.stderr
    if arguments[0] in ("run", "batch", "call", "plan"):
        lines = [line for line in done.stderr.splitlines() if "NOISE" in line]
        assert len(lines) == 6, done.stderr


@pytest.mark.parametrize("command", ["run", "chat"])
def test_the_answer_alone_goes_into_a_pipe(folder: Path, command: str) -> None:
    """Without --json, too."""
    request = ("hi",) if command == "run" else ()
    done = neuraxis(
        command, *MODEL, "-p", "noisy.py", "--no-builtin", "--journal", "memory",
        *request, cwd=folder, stdin="hi\n" * (command == "chat"),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "It is warm.\n"), done.stderr


def test_a_served_client_reads_messages_only(folder: Path) -> None:
    """Each line that `mcp serve` writes is one of the protocol."""
    pytest.importorskip("mcp")
    about = {"name": "x", "version": "1"}
    hello = {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about,
    }  # fmt: skip
    wanted = {"name": "look", "arguments": {"city": "Lyon"}}
    messages = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": wanted},
    ]
    sent = "".join(json.dumps({"jsonrpc": "2.0", **item}) + "\n" for item in messages)
    done = neuraxis(
        "mcp", "serve", "-p", "noisy.py", "--no-builtin", "--journal", "memory",
        cwd=folder, stdin=sent,
    )  # fmt: skip
    assert [json.loads(line)["jsonrpc"] for line in done.stdout.splitlines()]
    assert "NOISE of the import" in done.stderr
