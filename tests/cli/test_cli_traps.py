"""The command line where its surroundings are odd: encodings, systems, files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from cli_process import neuraxis
from neuraxis import Session
from neuraxis.cli.run import ask
from neuraxis.models.scripted import ScriptedModel

ODD = '''\
from neuraxis import command


@command(effects="read")
def odd() -> str:
    """Half of a character, and one that few encodings have."""
    return "\\ud800 ✓"
'''
SCRIPT = """\
- '<!-- RESPONSE_START -->[{"tool": "odd"}]<!-- RESPONSE_END -->'
- "Done ✓"
"""


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    (tmp_path / "odd.py").write_text(ODD, encoding="utf-8")
    (tmp_path / "s.yaml").write_text(SCRIPT, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_no_character_ends_a_run(odd: Path, encoding: str) -> None:
    """What the terminal's encoding lacks is an escape; JSON stays JSON."""
    given = ("-p", "odd.py", "-m", "scripted:s.yaml", "--journal", "memory", "go")
    plain = neuraxis("run", *given, cwd=odd, PYTHONIOENCODING=encoding)
    assert plain.returncode == 0, plain.stderr
    assert "Done" in plain.stdout
    told = neuraxis("run", "--json", *given, cwd=odd, PYTHONIOENCODING=encoding)
    assert told.returncode == 0, told.stderr
    events = [json.loads(line) for line in told.stdout.splitlines()]
    (finished,) = [event for event in events if event["type"] == "call_finished"]
    assert finished["status"] == "done"
    called = neuraxis("call", "-p", "odd.py", "odd", cwd=odd, PYTHONIOENCODING=encoding)
    assert called.returncode == 0, called.stderr
    assert "\\ud800" in called.stdout


def test_a_system_without_signal_handlers_runs_as_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Windows' loop refuses them."""

    def refuse(*_: Any) -> None:
        raise NotImplementedError

    loop = asyncio.SelectorEventLoop
    monkeypatch.setattr(loop, "add_signal_handler", refuse)
    monkeypatch.setattr(loop, "remove_signal_handler", refuse)
    with Session(model=ScriptedModel(["Hello."]), workspace=tmp_path) as session:
        assert ask(session, "hi", quiet=True)[0].text == "Hello."


def test_a_session_is_shown_by_its_whole_id(odd: Path) -> None:
    """Also where the id of another one begins with it."""
    from neuraxis.events import SessionFinished
    from neuraxis.journal import open_journal

    journal = open_journal(odd / "j.db")
    for name in ("abc", "abcd"):
        event = SessionFinished(outcome="answered", text=f"of {name}")
        journal.append(name, event, durable=True)
    journal.close()
    shown = neuraxis("sessions", "show", "abc", "--journal", "j.db", cwd=odd)
    assert "of abc" in shown.stdout, shown.stderr
    assert "of abcd" not in shown.stdout
    both = neuraxis("sessions", "show", "ab", "--journal", "j.db", cwd=odd)
    assert (both.returncode, "several sessions" in both.stderr) == (2, True)


def test_plugins_check_tells_as_json_what_is_not_there(tmp_path: Path) -> None:
    """Every failure has its row."""
    done = neuraxis("plugins", "check", "--json", "nowhere", cwd=tmp_path)
    assert done.returncode == 1
    (row,) = json.loads(done.stdout)
    assert "known plugin" in row["message"]
    assert row["file"] == "nowhere"


def test_call_takes_names_with_dashes_and_refuses_bytes(tmp_path: Path) -> None:
    """A parameter may be called `user-id`; a file that is no text is told."""
    folder = tmp_path / "dashed"
    folder.mkdir()
    (folder / "config.yaml").write_text(
        "name: dashed\ninfo: {description: d}\ncommands:\n  - command_name: go\n"
        "    description: d\n    effects: none\n    parameter:\n      type:\n"
        "        user-id: {type: string, description: d}\n"
        "        to_whom: {type: string, description: d}\n",
        encoding="utf-8",
    )
    (folder / "plugin.py").write_text(
        "def go(user_id, to_whom):\n    return user_id + to_whom\n", encoding="utf-8"
    )
    (tmp_path / "raw").write_bytes(b"\xff\xfe\x00")
    given = ("call", "-p", "dashed", "dashed.go", "--to-whom", "b", "--user-id")
    done = neuraxis(*given, "a", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ab\n"), done.stderr
    wrong = neuraxis(*given, "@raw", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "neuraxis: --user-id" in wrong.stderr


def test_a_misspelt_option_of_call_is_no_parameter_without_a_value(odd: Path) -> None:
    """It is told with the parameters that there are."""
    told = neuraxis("call", "-p", "odd.py", "odd", "--jsn", cwd=odd)
    assert told.returncode == 2
    assert "--jsn: there is no such option, and no such parameter" in told.stderr
    told = neuraxis(
        "call", "-p", "neuraxis:files", "file_reader", "--file_path", cwd=odd
    )
    # named though it is there already
    assert "--file_path: expected a value after it" in told.stderr


def test_doctor_tells_misspelt_settings_that_end_a_run(odd: Path) -> None:
    """In a file or a variable; a run ends where a file holds one, before all else."""
    (odd / "neuraxis.toml").write_text('modl = "local:"\n', encoding="utf-8")
    told = neuraxis("doctor", cwd=odd, NEURAXIS_DIALEKT="intents")
    assert told.returncode == 1
    assert "modl: there is no such setting. Did you mean model?" in told.stdout
    assert "NEURAXIS_DIALEKT: dialekt: there is no such setting" in told.stdout
    ended = neuraxis("run", "-m", "scripted:s.yaml", "go", cwd=odd)
    assert ended.returncode == 2
    assert "neuraxis.toml: modl: there is no such setting" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_refused_setting_names_its_file_or_variable(tmp_path: Path) -> None:
    """A wrong dialect and model were told without where they are written."""
    (tmp_path / "neuraxis.toml").write_text('model = "gpt-4o"\n', encoding="utf-8")
    done = neuraxis("run", "--journal", "memory", "hi", cwd=tmp_path)
    assert "neuraxis.toml: model 'gpt-4o': there is no kind" in done.stderr
    (tmp_path / "neuraxis.toml").write_text('dialect = "nativ"\n', encoding="utf-8")
    done = neuraxis("run", "-m", "local:", "--journal", "memory", "hi", cwd=tmp_path)
    assert "neuraxis.toml: dialect: expected one of" in done.stderr
    done = neuraxis("run", "-m", "gpt-4o", "--journal", "memory", "hi", cwd=tmp_path)
    assert done.stderr.startswith("neuraxis: model 'gpt-4o'")


def test_a_port_without_http_is_refused(tmp_path: Path) -> None:
    """It was ignored."""
    done = neuraxis("mcp", "serve", "--port", "9", cwd=tmp_path)
    assert "--port: expected with --http" in done.stderr


def test_the_way_out_at_the_end_of_a_denial_is_shown_whole(tmp_path: Path) -> None:
    """It was cut in the middle of `--yes-to`."""
    code = (
        "from neuraxis import command\n\n\n"
        '@command(effects={"needs_approval": True})\n'
        'def refund(order: int) -> str:\n    """Refund an order."""\n    return "ok"\n'
    )
    (tmp_path / "ref.py").write_text(code, encoding="utf-8")
    reply = '<!-- RESPONSE_START -->[{"tool":"refund","order":7}]<!-- RESPONSE_END -->'
    (tmp_path / "m.yaml").write_text(f"- '{reply}'\n- Done.\n", encoding="utf-8")
    given = ("-m", "scripted:m.yaml", "-p", "ref.py", "--journal", "memory")
    done = neuraxis("run", *given, "Refund order 7", cwd=tmp_path)
    assert "there is no one to ask for approval" in done.stderr
    assert "--yes-to ref.refund on the command line)." in done.stderr


def test_continue_takes_the_last_conversation_and_no_single_call(
    tmp_path: Path,
) -> None:
    """A `neuraxis call` in between was continued, and the conversation lost."""
    (tmp_path / "m.yaml").write_text("- one\n- two\n", encoding="utf-8")
    run = ("run", "-m", "scripted:m.yaml", "--journal", "j.db")
    neuraxis(*run, "hello", cwd=tmp_path)
    neuraxis("call", "--journal", "j.db", "list_files", cwd=tmp_path)
    done = neuraxis(*run, "-c", "more", cwd=tmp_path)
    shown = neuraxis("sessions", "list", "--journal", "j.db", cwd=tmp_path).stdout
    assert done.returncode == 0, done.stderr
    assert "hello" in shown.splitlines()[1]  # the last used


def test_continue_takes_no_session_of_another_folder(tmp_path: Path) -> None:
    """Its files would be looked for here; it is named, and -s continues it."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        script = tmp_path / name / "m.yaml"
        script.write_text("- one\n- two\n- three\n", encoding="utf-8")
    journal = ("--journal", str(tmp_path / "j.db"))
    run = ("run", "-m", "scripted:m.yaml", *journal)
    neuraxis(*run, "I am in a", cwd=tmp_path / "a")
    done = neuraxis(*run, "-c", "more", cwd=tmp_path / "b")
    assert done.returncode == 2, done.stderr
    assert f"are in {tmp_path / 'a'}" in done.stderr
    neuraxis(*run, "I am in b", cwd=tmp_path / "b")
    done = neuraxis(*run, "-c", "more", cwd=tmp_path / "a")
    assert done.returncode == 0, done.stderr
    shown = neuraxis("sessions", "list", *journal, cwd=tmp_path).stdout
    assert "I am in a" in shown.splitlines()[1]  # the last used
