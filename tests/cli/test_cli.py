"""The command line as its user meets it: a process, its output, its exit code."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli_process import neuraxis

HELLO = """\
- |
  <!-- RESPONSE_START -->
  [
    {"tool": "FILEWRITER", "file_path": "hello.py",
     "contents": "print('hello world!')"},
    {"tool": "EXECUTE_PYTHON_FILE", "file_path": "hello.py"}
  ]
  <!-- RESPONSE_END -->
- "It printed: hello world!"
"""


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    (tmp_path / "hello.yaml").write_text(HELLO, encoding="utf-8")
    return tmp_path


REQUEST = "Write a hello world function in python and execute it"


def test_run_writes_runs_and_answers(hello: Path) -> None:
    """Progress on stderr, the answer alone on stdout, the file where it says."""
    done = neuraxis("run", "-m", "scripted:hello.yaml", REQUEST, cwd=hello)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "It printed: hello world!\n"
    assert "1. FILEWRITER" in done.stderr
    assert "hello world!" in done.stderr
    written = hello / "neuraxis-workspace" / "hello.py"
    assert written.read_text(encoding="utf-8") == "print('hello world!')"
    assert str(written) in done.stderr


def test_json_events_are_one_object_a_line(hello: Path) -> None:
    """Everything on stdout is JSON; the last line is the answer."""
    done = neuraxis("run", "--json", "-m", "scripted:hello.yaml", REQUEST, cwd=hello)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["type"] == "session_started"
    assert lines[-1]["type"] == "answer"
    assert lines[-1]["files"] == ["hello.py"]
    assert done.stderr == ""


def test_the_request_may_come_from_a_pipe(hello: Path) -> None:
    """Standard input is the request where none is given."""
    done = neuraxis("run", "-q", "-m", "scripted:hello.yaml", cwd=hello, stdin=REQUEST)
    assert (done.returncode, done.stdout) == (0, "It printed: hello world!\n")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run", "-m", "nope:x", "hi"], 2, "there is no kind of model"),
        (["run", "-m", "scripted:gone.yaml", "hi"], 2, "gone.yaml"),
        (["run", "-m", "openai:gpt-x", "hi"], 4, "OPENAI_API_KEY"),
        (["run", "-m", "http://127.0.0.1:9/v1#x", "hi"], 1, "127.0.0.1:9"),
        (["run", "-m", "scripted:hello.yaml", "-p", "no/such", "hi"], 2, "no/such"),
        (["run", "-m", "scripted:hello.yaml", "--dialect", "morse", "x"], 2, "morse"),
        (["run", "-m", "scripted:hello.yaml", "  "], 2, "empty"),
        (
            ["run", "--journal", "/proc/x/y.db", "-m", "scripted:hello.yaml", "x"],
            5,
            "/proc",
        ),
        (["call", "FILEWRITER", "--file-path", "x"], 2, "contents"),
        (["call", "FILEWRITTER"], 2, "FILEWRITER"),
        (["frobnicate"], 2, "frobnicate"),
        (["sessions", "show", "abc"], 2, "abc"),
        (["plugins", "show", "nope"], 2, "nope"),
    ],
)
def test_a_beginners_mistake_is_one_sentence(
    hello: Path, arguments: list[str], code: int, said: str
) -> None:
    """No traceback, the documented exit code, and what was wrong."""
    done = neuraxis(*arguments, cwd=hello, NEURAXIS_OPENAI__MAX_RETRIES="0")
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert said in done.stderr


def test_a_full_disk_is_one_sentence(hello: Path) -> None:
    """/dev/full stands for a full disk: the write fails, the code is 5."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "neuraxis", "run", "-q", "-m",
             "scripted:hello.yaml", REQUEST],
            cwd=hello, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
            check=False,
        )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.returncode == 5
    assert "No space left" in done.stderr


def test_sessions_are_listed_shown_and_continued(hello: Path) -> None:
    """The journal holds the run; --continue goes on with it."""
    neuraxis("run", "-m", "scripted:hello.yaml", REQUEST, cwd=hello)
    (hello / "more.yaml").write_text(
        '- text: "It was hello.py."\n  expect: ["It printed: hello world!"]\n',
        encoding="utf-8",
    )
    done = neuraxis("run", "-c", "-m", "scripted:more.yaml", "Which file?", cwd=hello)
    assert done.stdout == "It was hello.py.\n", done.stderr
    listed = json.loads(neuraxis("sessions", "list", "--json", cwd=hello).stdout)
    assert [row["title"] for row in listed] == [REQUEST]
    shown = neuraxis("sessions", "show", listed[0]["session"][:8], cwd=hello)
    assert "call_started" in shown.stdout
    assert "Which file?" in shown.stdout


def test_call_runs_one_command_without_a_model(tmp_path: Path) -> None:
    """By tool name or plugin.command, with --NAME VALUE."""
    done = neuraxis(
        "call", "FILEWRITER", "--file-path", "a/b.txt", "--contents", "5", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"success": True}
    written = tmp_path / "neuraxis-workspace/a/b.txt"
    assert written.read_text(encoding="utf-8") == "5"
    read = neuraxis("call", "file_reader", "--param", "file_path=a/b.txt", cwd=tmp_path)
    assert "5" in read.stdout


def test_a_new_plugin_is_right_and_runs(tmp_path: Path) -> None:
    """`plugins new`, `check`, `show` and `call` on what it made."""
    assert neuraxis("plugins", "new", "greeter", cwd=tmp_path).returncode == 0
    checked = neuraxis("plugins", "check", "greeter", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    called = neuraxis("call", "-p", "greeter", "greet", "--person", "Ada", cwd=tmp_path)
    assert json.loads(called.stdout) == {"greeting": "Hello, Ada!"}, called.stderr
    shown = neuraxis("plugins", "show", "greeter", cwd=tmp_path)
    assert "command_name: greet" in shown.stdout
    again = neuraxis("plugins", "new", "greeter", cwd=tmp_path)
    assert (again.returncode, "already" in again.stderr) == (2, True)


def test_every_mistake_of_a_manifest_is_told_with_its_line(tmp_path: Path) -> None:
    """Three mistakes, three lines, exit code 1; the other plugin is checked too."""
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "config.yaml").write_text(
        "name: bad\ncommands:\n  - command_name: go\n    description: Goes.\n"
        "    parameter:\n      type:\n        x: {type: strnig}\n"
        "        y: {type: int, enum: [a]}\n"
        "        y: {type: int}\n",
        encoding="utf-8",
    )
    neuraxis("plugins", "new", "good", cwd=tmp_path)
    done = neuraxis("plugins", "check", "bad", "good", cwd=tmp_path)
    assert done.returncode == 1
    assert "config.yaml:7: error" in done.stderr
    assert "config.yaml:9: error" in done.stderr
    assert "good is valid" in done.stdout


def test_prompt_prints_what_the_model_would_be_sent(tmp_path: Path) -> None:
    """The tools of the built-in plugins, the request in its place."""
    done = neuraxis("prompt", "Fetch example.org", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("GOOGLE", "FILEWRITER", "FETCH_URL", "EXECUTE_PYTHON_FILE"):
        assert name in done.stdout
    assert "Fetch example.org" in done.stdout


def test_doctor_models_completion(tmp_path: Path) -> None:
    """Each says what it is for, and leaves with 0."""
    assert "runtime" in neuraxis("doctor", cwd=tmp_path).stdout
    settings = json.loads(
        neuraxis("doctor", "--json", cwd=tmp_path, NEURAXIS_MODEL="local:").stdout
    )["settings"]
    assert settings["model"]["source"] == "environment variable NEURAXIS_MODEL"
    assert "openai:" in neuraxis("models", "ls", cwd=tmp_path).stdout
    assert "_NEURAXIS_COMPLETE" in neuraxis("completion", "bash", cwd=tmp_path).stdout


def test_ctrl_c_ends_the_script_and_leaves_a_journal(tmp_path: Path) -> None:
    """SIGINT in the middle of a script: code 130, no child left, sessions readable."""
    (tmp_path / "slow.yaml").write_text(
        json.dumps(
            [
                json.dumps(
                    [
                        {
                            "tool": "FILEWRITER",
                            "file_path": "slow.py",
                            "contents": "import time\ntime.sleep(50)\n",
                        },
                        {"tool": "EXECUTE_PYTHON_FILE", "file_path": "slow.py"},
                    ]
                )
            ]
        ),
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "neuraxis", "run", "--json", "-m", "scripted:slow.yaml",
         "go"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["type"] == "call_started" and "EXECUTE" in event["tool"]:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    left = subprocess.run(
        ["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert left.stdout.strip() == ""
    shown = neuraxis("sessions", "list", "--json", cwd=tmp_path)
    assert len(json.loads(shown.stdout)) == 1


def test_published_plugin_files_are_right_and_rendered(
    shared_data: Path, tmp_path: Path
) -> None:
    """`plugins check` on the folder of files of both generations; `prompt` of each."""
    folder = shared_data / "concopilot" / "configs"
    done = neuraxis("plugins", "check", str(folder), cwd=tmp_path)
    files = sorted(folder.glob("*.yaml"))
    assert (done.returncode, done.stdout.count("is valid")) == (0, len(files))
    for file in (files[1], files[9]):
        shown = neuraxis("prompt", "--no-builtin", "-p", str(file), cwd=tmp_path)
        assert (shown.returncode, len(shown.stdout) > 500) == (0, True), shown.stderr
