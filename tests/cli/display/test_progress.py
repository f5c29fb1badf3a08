"""What a person sees on a terminal while a run goes on."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from neuraxis.call_errors import denied, refused, to_json, unknown_command
from neuraxis.cli.display.progress import Live, said
from neuraxis.cli.display.text import inert, seconds, short
from neuraxis.events import (
    ApprovalAnswered,
    ApprovalAsked,
    AssetStored,
    CallFinished,
    CallStarted,
    Inside,
    ModelChunk,
    ModelStarted,
    PlanChecked,
    SessionFinished,
)


def _on_a_terminal(arguments: list[str], cwd: Path) -> str:
    """The screen's bytes of a process that has a terminal."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "neuraxis", *arguments],
        cwd=cwd, stdin=side, stdout=side, stderr=side, close_fds=True,
    )  # fmt: skip
    os.close(side)
    seen = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:  # the other end is closed: Linux' way of saying the end
            break
        if not piece:
            break
        seen += piece
    os.close(main)
    assert process.wait(20) == 0
    return seen.decode()


def test_prose_is_shown_as_it_comes_and_once(tmp_path: Path) -> None:
    """The answer is not said a second time at the end."""
    (tmp_path / "m.yaml").write_text(
        '- chunks: ["Once upon ", "a time."]\n  delay: 0.05\n', encoding="utf-8"
    )
    screen = _on_a_terminal(["run", "-m", "scripted:m.yaml", "tell"], tmp_path)
    assert screen.count("Once upon a time.") == 1


def test_the_cursor_stays_visible_beside_the_spinner(tmp_path: Path) -> None:
    """After Ctrl-Z or a kill the shell had none."""
    (tmp_path / "m.yaml").write_text("- text: Said.\n  delay: 0.3\n", encoding="utf-8")
    screen = _on_a_terminal(["run", "-m", "scripted:m.yaml", "tell"], tmp_path)
    assert "\x1b[?25l\x1b[?25h" in screen


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ("Done.", {"fruit": 0, "number": 1}),  # only the last one
        ("See <|asset://a2/content/response|>", {"fruit": 0, "number": 1}),
        ("See <|asset://a1/content/response|>", {"fruit": 1, "number": 0}),
    ],
)
def test_a_table_is_shown_once_and_none_on_the_way_to_it(
    tmp_path: Path, reply: str, shown: dict[str, int]
) -> None:
    """Each stored table stood behind the answer, also one that was in it."""
    calls: list[Any] = []
    for name in shown:
        (tmp_path / f"{name}.csv").write_text(f"{name},b\n1,2\n", encoding="utf-8")
        calls.append([{"tool": "read_table", "file_path": f"{name}.csv"}])
    replies = [*map(json.dumps, calls), reply]
    (tmp_path / "m.yaml").write_text(json.dumps(replies), encoding="utf-8")
    arguments = ["run", "-m", "scripted:m.yaml", "-p", "neuraxis:tables", "-w", "."]
    screen = inert(_on_a_terminal([*arguments, "go"], tmp_path)).splitlines()
    headings = [line for line in screen if {"b"} < {*line.replace("┃", " ").split()}]
    found = {name: sum(name in line for line in headings) for name in shown}
    assert found == shown, screen


def test_B62_a_reference_is_never_seen_while_prose_comes(tmp_path: Path) -> None:
    """However the pieces cut it; what it stands for comes at the end, once."""
    (tmp_path / "note.txt").write_text("4 < 5 of us", encoding="utf-8")
    (tmp_path / "m.yaml").write_text(
        '- chunks: ["The note, 1 ", "<", " 2: <", "|asset:", "//a1/content|", "> End."]'
        "\n  delay: 0.02\n",
        encoding="utf-8",
    )
    arguments = ["run", "-m", "scripted:m.yaml", "--attach", "note.txt", "tell"]
    screen = _on_a_terminal(arguments, tmp_path)
    assert screen.count("The note, 1 < 2: 4 < 5 of us End.") == 1
    assert "asset:" not in screen


def test_prose_before_calls_stays_and_the_block_is_not_seen(tmp_path: Path) -> None:
    """What is said stands on lines of its own, which no spinner erases."""
    (tmp_path / "m.yaml").write_text(
        '- chunks: ["I will ", "look.\\n\\n<!-- RESP", "ONSE_START -->\\n[{", '
        '"\\"tool\\": \\"list_files\\"}]\\n<!-- RESPONSE_END -->\\n"]\n  delay: 0.02\n'
        '- chunks: ["There is", " nothing.\\n"]\n',
        encoding="utf-8",
    )
    screen = _on_a_terminal(["run", "-m", "scripted:m.yaml", "look"], tmp_path)
    assert "I will look.\r\n" in screen
    assert "✓ 1. list_files" in screen
    assert "RESPONSE" not in screen
    assert "tool" not in screen
    assert screen.count("There is nothing.") == 1  # its line end is no other answer


def test_names_of_arguments_are_inert(capsys: pytest.CaptureFixture[str]) -> None:
    """A model writes them, or an imported server; they stay on the step's line."""
    name = "q\x1b]52;c;ZXZpbA==\x07\u202e\n    to = ada (written by the user)"
    live = Live()
    started = {"id": "a1", "plugin": "p", "command": "c"}
    live(CallStarted(**started, tool="get\x1b[2J", arguments={name: "x"}))
    live(CallFinished(**started, tool="get\x1b[2J", status="done", seconds=1))
    live.close()
    told = capsys.readouterr().err
    assert told.startswith('  ✓ 1. get q⏎    to = ada (written by the user)="x"')
    assert inert(told) == told


def test_an_error_has_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """A stream that breaks off leaves the line that was being said."""
    live = Live(aloud=True)
    live(ModelStarted(turn=1, model="m"))
    live(ModelChunk(text="Once upon", reasoning=""))
    live(SessionFinished(outcome="failed", text="", error="broke off", seconds=1))
    live.close()
    assert capsys.readouterr().out == "Once upon\n"


def test_a_reply_that_comes_anew_is_shown_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The blocks that were shown before it broke off are not shown again."""
    live = Live(aloud=True)
    live(ModelStarted(turn=1, model="m"))
    live(ModelChunk(text="Once upon.\n\nA time"))
    live(ModelStarted(turn=1, model="m", again=True))
    live(ModelChunk(text="Once upon.\n\nA"))
    live(ModelChunk(text=" time it was."))
    live(SessionFinished(outcome="failed", text="", error="broke off", seconds=1))
    live.close()
    assert capsys.readouterr().out == "Once upon.\n\nA time it was.\n"


def test_a_spinner_runs_and_is_gone(tmp_path: Path) -> None:
    """A plan's steps stay on the screen as lines; the block's text does not."""
    (tmp_path / "m.yaml").write_text(
        '- \'[{"tool": "list_files"}]\'\n- There is nothing.\n', encoding="utf-8"
    )
    screen = _on_a_terminal(["run", "-m", "scripted:m.yaml", "look"], tmp_path)
    assert "✓ 1. list_files" in screen
    assert "is thinking" in screen or "the model is writing" in screen
    assert screen.rstrip().endswith("There is nothing.")


def test_the_spinner_says_why_a_model_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A note is no part of the reply, and the next words replace it."""
    spun: list[str] = []
    live = Live()
    monkeypatch.setattr(live, "_spin", spun.append)
    live(ModelStarted(turn=1, model="gpt"))
    live(ModelChunk(text="", note="asks again after 30.0 s: HTTP 429"))
    live(ModelChunk(text="[{"))
    assert spun[:2] == ["gpt is thinking", "asks again after 30.0 s: HTTP 429"]
    assert spun[2].startswith("the model is writing (2 characters)")


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b]0;title\x07",
        "\x1b[2J\x1b[31m",
        "\x1b]52;c;ZXZpbA==\x07",
        "\x1b]8;;http://evil.example\x1b\\",
        "\x9b31m",
        "\u202egnp.exe",
        "\x00\x08\x7f",
        "\x1bP1$q\x1b\\",
    ],
)
def test_foreign_text_is_inert(hostile: str) -> None:
    """No escape code, control character or direction mark is left."""
    shown = inert(f"a{hostile}b\n\tc")
    assert not any(ord(char) < 32 and char not in "\n\t" for char in shown)
    assert not any(0x7F <= ord(char) <= 0x9F for char in shown)
    assert "\u202e" not in shown
    assert shown.startswith("a")
    assert shown.endswith("b\n\tc")


def test_steps_are_told_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal: one plain line for each finished step, with its reason."""
    live = Live()
    live(PlanChecked(steps=({"id": "a1"}, {"id": "a2"})))
    live(
        CallStarted(
            id="a1", plugin="p", command="c", tool="T", arguments={"x": "\x1b[2J"}
        )
    )
    live(
        CallFinished(
            id="a1", plugin="p", command="c", tool="T", status="done", value="ok"
        )
    )
    live(
        CallFinished(
            id="a2", plugin="p", command="c", tool="U", status="skipped",
            error={"code": "skipped", "message": "no"},
        )
    )  # fmt: skip
    live.close()
    told = capsys.readouterr().err
    assert "plan: 2 steps, valid" in told
    assert '✓ 1. T x="\\u001b[2J"' in told
    assert "– 2. U" in told
    assert "\x1b" not in told


def test_small_texts() -> None:
    """Times, short values, and what is read of an answer."""
    assert [seconds(x) for x in (0.0123, 1.44, 125)] == ["12 ms", "1.4 s", "2 min 5 s"]
    assert short("x" * 100, 10) == '"xxxxxxxx…'
    assert said({"success": True, "output": "hi"}) == "hi"
    assert said({"success": True}) == ""
    assert said([1, 2]) == "[1, 2]"


def test_the_names_of_all_tools_are_for_the_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A person is shown the mistake and what was meant."""
    error = unknown_command("send_mial", {"send_mail": (), "fetch": ()})
    Live()(PlanChecked(steps=(), problems=(to_json(error),)))
    shown = " ".join(capsys.readouterr().err.split())
    assert shown.endswith("there is no tool of that name. Did you mean send_mail?")


def test_an_earlier_call_has_no_number_of_this_plan(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What became of it is told when the plugin says so, beside this plan's steps."""
    live = Live()
    live.number(["a2"])
    for own in ("a1", "a2"):
        live(
            CallFinished(id=own, plugin="p", command="c", tool="pay", status="skipped")
        )
    assert capsys.readouterr().err.split("\n") == ["  – a1: pay", "  – 1. pay", ""]


def test_nothing_is_said_while_a_question_stands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What another agent does meanwhile comes when the last one is answered."""
    live = Live()

    def inside(session: str, **event: Any) -> None:
        told = {"v": 1, "id": "a2", "tool": "send"} | event
        live(Inside(id="a1", session=session, event=told))

    def seen() -> list[str]:
        return capsys.readouterr().err.split()

    live(ApprovalAsked(id="a1", call={}, reason="sure?"))
    for session in ("s", "t"):
        inside(session, type="approval_asked")
    inside("s", type="call_finished", status="done")
    live(ApprovalAnswered(id="a1", allowed=True))
    inside("s", type="approval_answered", allowed=True)
    assert seen() == []
    inside("t", type="session_finished", outcome="cancelled")
    assert seen() == ["✓", "send"]
    inside("t", type="approval_asked")
    inside("t", type="call_finished", status="failed")
    live(SessionFinished(outcome="answered"))
    assert seen() == ["✗", "send"]


def test_a_read_that_ran_early_and_is_given_up_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Else it would have begun, and be skipped for no reason."""
    live = Live()
    end = CallFinished(
        id="a2", plugin="p", command="look", tool="look", status="skipped", seconds=1
    )
    live(end)
    live(
        CallStarted(
            id="a2",
            plugin="p",
            command="look",
            tool="look",
            arguments={},
            effects="read",
        )
    )
    live(end)
    live.close()
    told = [line for line in capsys.readouterr().err.splitlines() if "look" in line]
    assert told == [
        "  – 1. look",
        "  – 1. look  discarded, since an earlier step failed",
    ]


def test_a_denial_shows_no_instructions_for_the_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The person who said no reads the plain fact."""
    error = denied("send", refused("the user said no: not now"))
    assert "go on without it" in error.message
    Live()(
        CallFinished(
            id="a1",
            plugin="mail",
            command="send",
            tool="send",
            status="failed",
            error=to_json(error),
        )
    )
    shown = capsys.readouterr().err.splitlines()
    assert shown[1].strip() == "send was not allowed to run: the user said no: not now"


def test_a_stored_result_stands_below_its_own_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is stored before the step ends, and another one may end in between."""
    live = Live()
    for name in ("s1", "s2"):
        named: Any = {"id": name, "plugin": "p", "command": "c", "tool": f"tool_{name}"}
        live(CallStarted(**named, arguments={}))
    for name in ("s2", "s1"):
        live(AssetStored(id=name, kind="table"))
    for name in ("s1", "s2"):
        named = {"id": name, "plugin": "p", "command": "c", "tool": f"tool_{name}"}
        live(CallFinished(**named, status="done", asset=name))
    live.close()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[2] for line in lines[::2]] == ["tool_s1", "tool_s2"]
    assert [line.strip() for line in lines[1::2]] == [
        "kept as asset s1 (table)", "kept as asset s2 (table)",
    ]  # fmt: skip
