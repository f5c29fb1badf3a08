"""What is piped in beside a request, and who is asked then."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from neuraxis.assets import attachments
from neuraxis.cli.standard_input import read_lines, read_text
from neuraxis.errors import ConfigError
from neuraxis.events import to_json
from neuraxis.journal import open_journal
from neuraxis.specs import Json

_PLUGIN = '''
from neuraxis import command

@command(effects="once")
def wipe(text: str) -> str:
    """Wipes something."""
    return "wiped " + text
'''
_RUN = (
    sys.executable, "-m", "neuraxis", "run", "--no-builtin", "-m", "scripted:m.yaml",
    "--journal", "j.db",
)  # fmt: skip


def _environ(folder: Path) -> dict[str, str]:
    return {**os.environ, "NEURAXIS_HOME": str(folder / "home")}


def _script(folder: Path, *replies: str) -> None:
    (folder / "m.yaml").write_text(json.dumps(replies), encoding="utf-8")


def _run(
    folder: Path, words: Sequence[str], data: bytes | None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*_RUN, *words],
        cwd=folder,
        env=_environ(folder),
        input=data,
        stdin=subprocess.DEVNULL if data is None else None,
        capture_output=True,
        timeout=30,
        check=False,
    )


def _stored(folder: Path) -> list[dict[str, Json]]:
    """What the journal says of assets."""
    journal = open_journal(folder / "j.db")
    try:
        (info,) = journal.sessions()
        events = [to_json(entry.event) for entry in journal.read(info.session)]
    finally:
        journal.close()
    return [event for event in events if event["type"] == "asset_stored"]


@pytest.mark.parametrize("data", [b"one\ntwo\n", b"\xff\x00\xfe\x01\x9d"])
def test_R5_what_is_piped_in_is_attached(tmp_path: Path, data: bytes) -> None:
    """A text as a text, anything else as its bytes."""
    _script(tmp_path, "Read.")
    done = _run(tmp_path, ["--json", "summarise"], data)
    assert done.returncode == 0, done.stderr
    (stored,) = _stored(tmp_path)
    assert "standard input" in json.dumps(stored)


@pytest.mark.parametrize("data", [b"", None])
def test_R5_nothing_is_attached_where_nothing_comes(
    tmp_path: Path, data: bytes | None
) -> None:
    """An empty pipe and /dev/null are no attachment."""
    _script(tmp_path, "Read.")
    done = _run(tmp_path, ["--json", "summarise"], data)
    assert done.returncode == 0, done.stderr
    assert _stored(tmp_path) == []


def test_R5_an_idle_standard_input_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe that a service leaves open; the person is told how to wait for it."""
    _script(tmp_path, "Answered.")
    with subprocess.Popen(
        [*_RUN, "go"],
        cwd=tmp_path, env=_environ(tmp_path), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.wait(20) == 0
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"Answered." in process.stdout.read()
        assert b"--attach - waits for it" in process.stderr.read()


def test_R5_a_slow_pipe_is_waited_for_on_request(tmp_path: Path) -> None:
    """`--attach -` says that something will come."""
    _script(tmp_path, "Read.")
    with subprocess.Popen(
        [*_RUN, "--json", "--attach", "-", "go"],
        cwd=tmp_path, env=_environ(tmp_path), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        time.sleep(2.5)
        told, errors = process.communicate(b"late but there", timeout=20)
    assert process.returncode == 0, errors
    assert b"Read." in told
    assert len(_stored(tmp_path)) == 1


def test_R5_waiting_for_what_is_the_request_is_refused(tmp_path: Path) -> None:
    """One stream cannot be both."""
    _script(tmp_path, "Read.")
    done = _run(tmp_path, ["--attach", "-", "-"], b"go")
    assert done.returncode == 2
    assert b"standard input is already the request" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="/dev/tty is of POSIX")
@pytest.mark.parametrize(("typed", "status"), [(b"y\n", "done"), (b"n\n", "failed")])
def test_R5_beside_a_pipe_questions_are_asked_on_the_terminal(
    tmp_path: Path, typed: bytes, status: str
) -> None:
    """What is piped in is no answer, also where it begins with a yes."""
    import fcntl
    import pty
    import termios

    (tmp_path / "mine.py").write_text(_PLUGIN, encoding="utf-8")
    _script(tmp_path, json.dumps([{"tool": "wipe", "text": "x"}]), "Done.")
    master, slave = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        [*_RUN, "--json", "-p", "mine.py", "go"],
        cwd=tmp_path,
        env={**_environ(tmp_path), "NEURAXIS_POLICY__DEFAULT": "ask"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=slave,
        start_new_session=True, preexec_fn=take_terminal,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"y\ny\ny\n")
        process.stdin.close()
        seen = b""
        while b"[y/N]" not in seen:
            seen += os.read(master, 4096)
        os.write(master, typed)
        events = [json.loads(line) for line in process.stdout.read().splitlines()]
        process.wait(20)
    os.close(master)
    os.close(slave)
    (ended,) = [event for event in events if event["type"] == "call_finished"]
    assert ended["status"] == status


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
@pytest.mark.parametrize("command", ["run hi", "chat"])
def test_a_closed_stream_is_an_empty_one(
    tmp_path: Path, closed: str, command: str
) -> None:
    """As under a service: it was an internal error."""
    (tmp_path / "m.yaml").write_text("- Said.\n", encoding="utf-8")
    text = f'"$0" -m neuraxis {command} -m scripted:m.yaml --journal memory {closed}'
    done = subprocess.run(
        ["sh", "-c", text, sys.executable],
        cwd=tmp_path, input="hi\n", capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (done.returncode, "error" in done.stderr) == (0, False)
    assert done.stdout.count("Said.") == (
        closed != ">&-" and (command, closed) != ("chat", "<&-")
    )


def _type(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stream)


@pytest.mark.parametrize(
    "data", [b"caf\xc3\xa9\r\n", b"caf\xe9\n", "caf\u00e9\n".encode("utf-16")]
)
def test_piped_text_is_read_as_a_file_is(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was an internal error, or half a character, or a question mark."""
    _type(monkeypatch, data)
    assert read_text() == "caf\u00e9\n"


def test_piped_lines_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line of a chat."""
    _type(monkeypatch, b"caf\xe9\r\nth\xc3\xa9\nlast")
    assert list(read_lines()) == ["caf\u00e9\n", "th\u00e9\n", "last"]


def test_piped_bytes_that_are_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor an endless pipe, such as `yes | neuraxis run`."""
    monkeypatch.setattr(attachments, "MOST_BYTES", 100)
    for data, said in (
        (b"\0\xff", "got bytes that are no text"),
        (b"y" * 101, "large"),
    ):
        for read in (read_text, lambda: list(read_lines())):
            _type(monkeypatch, data)
            with pytest.raises(ConfigError, match=said):
                read()


def test_a_request_in_another_encoding(tmp_path: Path) -> None:
    """A pipe of Windows-1252 was an internal error where the locale is UTF-8."""
    _script(tmp_path, "Said.")
    for words in (["run", "-"], ["chat"]):
        done = subprocess.run(
            [*_RUN[:3], *words, *_RUN[4:]],
            cwd=tmp_path, input=b"caf\xe9\n", capture_output=True, timeout=30,
            env={**_environ(tmp_path), "PYTHONIOENCODING": "utf-8:strict"}, check=False,
        )  # fmt: skip
        assert done.stdout == b"Said.\n", done.stderr
