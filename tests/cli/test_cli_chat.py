"""`neuraxis chat`: on a terminal with Ctrl-C and Ctrl-D, and from a pipe."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_process import neuraxis

PLUGIN = '''\
from neuraxis import command


@command(effects={"kind": "read", "open_world": True})
def page() -> str:
    """What strangers wrote."""
    return "foreign"


@command(effects={"kind": "once", "destructive": True})
def wipe(what: str) -> str:
    """Wipes something out."""
    return "wiped"
'''
CALLS = '[{"tool": "page", "as": "p"}, {"tool": "wipe", "what": "{{ p }}"}]'


class Terminal:
    """A process that has a terminal; what it shows is waited for."""

    def __init__(self, cwd: Path, *arguments: str) -> None:
        self.fd, side = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "neuraxis", *arguments],
            cwd=cwd, pass_fds=(side,), env={**os.environ, "TERM": "dumb"},
            preexec_fn=lambda: os.login_tty(side),  # so that Ctrl-C is a signal
        )  # fmt: skip
        os.close(side)
        self.seen = ""
        self._from = 0

    def wait(self, text: str) -> None:
        """Read until the text was shown, behind what was waited for before."""
        end = time.monotonic() + 30
        while text not in self.seen[self._from :]:
            assert time.monotonic() < end, f"{text!r} never came: {self.seen}"
            try:
                piece = os.read(self.fd, 65536)
            except OSError:  # the other end is closed
                piece = b""
            assert piece, f"it ended before {text!r}: {self.seen}"
            self.seen += piece.decode()
        self._from = self.seen.index(text, self._from) + len(text)

    def type(self, keys: bytes) -> None:
        """Press keys."""
        time.sleep(0.3)  # what is typed before a question is no answer
        os.write(self.fd, keys)

    def end(self) -> int:
        """The exit code."""
        while True:
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                break
            if not piece:
                break
            self.seen += piece.decode()
        return self.process.wait(20)

    def close(self) -> None:
        """Take away what is left."""
        os.close(self.fd)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(20)


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "m.yaml").write_text(f"- '{CALLS}'\n- Said.\n- Again.\n")
    (tmp_path / "wiping.py").write_text(PLUGIN, encoding="utf-8")
    given = ("-m", "scripted:m.yaml", "-p", "wiping.py", "--journal", "memory")
    terminal = Terminal(tmp_path, "chat", *given)
    yield terminal
    terminal.close()


def test_ctrl_c_at_the_prompt_drops_the_line_and_twice_ends(chat: Terminal) -> None:
    """As in a shell: one key more than was meant does not end a conversation."""
    chat.wait("> ")
    chat.type(b"half a li\x03")
    chat.wait("press Ctrl-C again")
    chat.wait("> ")
    chat.type(b"/session\r")
    chat.wait("> ")
    chat.type(b"\x03")
    chat.wait("press Ctrl-C again")  # a line came between
    chat.type(b"\x03")
    assert chat.end() == 130
    assert "Traceback" not in chat.seen


def test_ctrl_z_at_the_prompt_is_no_character_of_the_line(chat: Terminal) -> None:
    """It was typed into the request. Here nothing stops: no shell would continue it."""
    chat.wait("> ")
    chat.type(b"/ret\x1a")
    chat.type(b"ry\r")
    chat.wait("no request was sent yet")
    chat.wait("> ")
    chat.type(b"/undo\r")
    chat.wait("no run of this conversation changed a file, or each that")
    chat.type(b"\x04")
    assert chat.end() == 0


@pytest.mark.parametrize("taken", ["data", "data/chat_history"])
def test_a_history_that_cannot_be_written_prevents_no_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    """It ended with a system error, also where the journal was in memory."""
    if taken == "data":
        (tmp_path / taken).touch()  # a file where the folder would be
    else:
        (tmp_path / taken).mkdir(parents=True)
    monkeypatch.setenv("NEURAXIS_HOME", str(tmp_path))
    terminal = Terminal(tmp_path, "chat", "--journal", "memory")
    terminal.wait("> ")
    terminal.type(b"/session\r")
    terminal.wait("> ")
    terminal.type(b"\x04")
    assert terminal.end() == 0
    assert "Exception" not in terminal.seen
    terminal.close()


def test_ctrl_d_at_a_question_is_a_no_on_a_line_of_its_own(chat: Terminal) -> None:
    """It is no end of the conversation, and nothing is run."""
    chat.wait("> ")
    chat.type(b"go\r")
    chat.wait("Run it? [y/N/a] ")
    chat.type(b"\x04")
    chat.wait("\n")
    chat.wait("the user said no")
    chat.wait("> ")
    chat.type(b"\x04")
    assert chat.end() == 0
    assert "[y/N/a] \r\n" in chat.seen
    assert "wiped" not in chat.seen


def test_ctrl_c_at_a_question_ends_the_answer_only(chat: Terminal) -> None:
    """What became of the call stands on a line of its own."""
    chat.wait("> ")
    chat.type(b"go\r")
    chat.wait("Run it? [y/N/a] ")
    chat.type(b"\x03")
    chat.wait("stopped; /resume continues it")
    chat.wait("> ")
    chat.type(b"/resume\r")
    chat.wait("Said.")
    chat.wait("> ")
    chat.type(b"/quit\r")
    assert chat.end() == 0
    behind = chat.seen.partition("[y/N/a] ")[2].splitlines()[0]
    assert behind.strip() in ("", "^C")
    assert "wiped" not in chat.seen


def test_another_model_cannot_continue_what_is_in_memory_only(chat: Terminal) -> None:
    """The chat ended, since its session was closed and could not be opened again."""
    chat.wait("> ")
    chat.type(b"/model local:\r")
    chat.wait("no other model can")
    chat.wait("> ")
    chat.type(b"/model\r")
    chat.wait("scripted:m.yaml")
    chat.type(b"/quit\r")
    assert chat.end() == 0


def test_from_a_pipe_the_last_request_gives_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("- Said.\n", encoding="utf-8")
    given = ("chat", "-m", "scripted:m.yaml", "--journal", "memory")
    well = neuraxis(*given, cwd=tmp_path, stdin="hello\n\n/plugins\n/quit\nnever\n")
    assert (well.returncode, well.stdout.startswith("Said.")) == (0, True)
    # the script has no second reply
    badly = neuraxis(*given, cwd=tmp_path, stdin="hello\nmore\n")
    assert (badly.returncode, badly.stdout) == (1, "Said.\n"), badly.stderr


def test_the_commands_of_a_chat(tmp_path: Path) -> None:
    """Attach, look, save, ask again, another model, a new conversation."""
    (tmp_path / "m.yaml").write_text("- one\n- two\n- three\n", encoding="utf-8")
    (tmp_path / "other.yaml").write_text("- four\n", encoding="utf-8")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    typed = (
        "hello\n/retry\n/attach t.csv\n/assets\n/open a1\n/open q\n/save a1 c.csv\n"
        "/save a1 t.csv\n/model scripted:other.yaml\nhello\n/undo\n/pending\n/new\n"
        "/session\n/nothing\n/help\n"
    )
    given = ("chat", "-m", "scripted:m.yaml", "-p", "neuraxis:tables")
    done = neuraxis(*given, cwd=tmp_path, stdin=typed)
    assert done.stdout.startswith("one\ntwo\n")
    assert "four" in done.stdout
    assert "/attach FILE" in done.stdout
    assert (tmp_path / "c.csv").read_text(encoding="utf-8") == "a,b\n1,2\n"
    assert (tmp_path / "t.csv").read_text(encoding="utf-8") == "a,b\n1,2\n"
    assert "there is no object 'q' here" in done.stderr
    assert "t.csv: cannot be written: File exists" in done.stderr
    assert "there is no command /nothing" in done.stderr


def test_the_objects_of_a_chat_are_a_readable_list(tmp_path: Path) -> None:
    """It was JSON with the names of Python's types, and without those of files."""
    (tmp_path / "m.yaml").write_text(
        """- '[{"tool": "read_table", "file_path": "t.csv"}]'\n- Read.\n""",
        encoding="utf-8",
    )
    (tmp_path / "t.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (tmp_path / "n.txt").write_text("a note", encoding="utf-8")
    given = ("chat", "-m", "scripted:m.yaml", "-p", "neuraxis:tables", "-w", ".")
    (tmp_path / "my n.txt").write_text("more", encoding="utf-8")
    attached = ("t.csv", "n.txt", "my n.txt", "my\\ n.txt", "'my n.txt'")
    typed = "".join(f"/attach {name}\n" for name in attached)
    done = neuraxis(*given, cwd=tmp_path, stdin=f"read t.csv\n{typed}/assets\n")
    assert done.stderr.count("attached as ") == 5
    assert done.stdout.splitlines()[-6:-3] == [
        "a1  from read_table: a table of 1 row and 2 columns: a, b (16 bytes)",
        "a2  t.csv: a table of 1 row and 2 columns: a, b (16 bytes)",
        "a3  n.txt: a text of 6 characters (8 bytes)",
    ], done.stderr


def test_a_continued_chat_shows_its_last_turns(tmp_path: Path) -> None:
    """And goes on with its model."""
    replies = '["First.", "Second.", "Third."]'
    (tmp_path / "m.yaml").write_text(replies, encoding="utf-8")
    journal = ("--journal", "j.db")
    typed = "one\ntwo\nthree\n"
    done = neuraxis(
        "chat", "-m", "scripted:m.yaml", *journal, cwd=tmp_path, stdin=typed
    )
    assert done.returncode == 0, done.stderr
    terminal = Terminal(tmp_path, "chat", "-c", *journal)
    try:
        terminal.wait("> three\r\nThird.")
        assert "> two\r\nSecond." in terminal.seen
        assert "> one" not in terminal.seen
        terminal.wait("scripted:m.yaml, /help for help")
        terminal.type(b"/quit\r")
        assert terminal.end() == 0
    finally:
        terminal.close()


def test_a_model_that_does_not_exist_changes_nothing(tmp_path: Path) -> None:
    """The session was closed and opened again: its script began anew."""
    (tmp_path / "m.yaml").write_text("- one\n- two\n", encoding="utf-8")
    typed = "hello\n/model gpt-4o\nhello\n/quit now\nnever\n"
    given = ("chat", "-m", "scripted:m.yaml", "--journal", "memory")
    done = neuraxis(*given, cwd=tmp_path, stdin=typed)
    assert (done.returncode, done.stdout) == (0, "one\ntwo\n")
    assert "Did you mean openai:gpt-4o?" in done.stderr


def test_a_command_of_the_chat_says_what_it_needs(tmp_path: Path) -> None:
    """Without it, it talked of an object '' and of a folder that is no file."""
    (tmp_path / "m.yaml").write_text("- one\n", encoding="utf-8")
    typed = "/attach\n/open\n/save a1\n/approve\n/deny\n/pending\n/assets\n"
    given = ("chat", "-m", "scripted:m.yaml", "--journal", "memory")
    done = neuraxis(*given, cwd=tmp_path, stdin=typed)
    assert done.stderr.splitlines() == [
        "neuraxis: expected /attach FILE",
        "neuraxis: expected /open ID; /assets lists the objects",
        "neuraxis: expected /save ID FILE",
        "neuraxis: expected /approve ID; /pending lists the calls",
        "neuraxis: expected /deny ID WHY; /pending lists the calls",
        "no call waits for approval",
        "there are no objects yet",
    ]
