"""Opened without what its plan needs, a session is not resumed; later it goes on."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.session.past.test_waiting import (
    a_pay,
    note,
    paid,
    pay,
    people,
    plan,
    session,
)

from neuraxis import ConfigError, Options, command
from neuraxis.journal import open_journal
from neuraxis.messages import NativeCall
from neuraxis.models.scripted import ScriptedReply


def written(folder: Path) -> list[Any]:
    """Every event of the session."""
    journal = open_journal(folder / "j.db")
    entries = [*journal.read("s")]
    journal.close()
    return entries


def refused(folder: Path, *parts: str, **given: Any) -> None:
    """Resuming so is refused, and leaves the journal as it was."""
    before = written(folder)
    with session(folder, "Done.", earlier="s", **given) as later:
        with pytest.raises(ConfigError) as raised:
            later.resume_sync()
        for part in parts:
            assert part in str(raised.value)
    assert written(folder) == before


@pytest.mark.parametrize("plugins", [(), (note, people)])
def test_an_approved_call_waits_for_its_plugin(
    tmp_path: Path, plugins: tuple[Any, ...]
) -> None:
    """The yes is kept until somebody opens the session with the plugin."""
    with session(tmp_path, plan({"tool": "note", "text": "x"}, a_pay())) as first:
        first.run_sync("pay")
        first.approve("a2")
    refused(tmp_path, "pay", "plugins", "-p", plugins=plugins)
    with session(tmp_path, "Done.", earlier="s") as later:
        assert later.resume_sync().outcome == "answered"
    assert paid(tmp_path) == ["note x", "ann 5"]


def test_an_open_question_stays_open(tmp_path: Path) -> None:
    """Nothing is withdrawn, and nobody is asked twice."""
    with session(tmp_path, plan(a_pay())) as first:
        first.run_sync("pay")
    refused(tmp_path, "pay", plugins=())
    with session(tmp_path, earlier="s", plugins=()) as later:
        assert [question.id for question in later.pending()] == ["a1"]


def test_a_renamed_command_is_named(tmp_path: Path) -> None:
    """The plugin is there, and its command is called otherwise now."""

    class Bank:
        """A bank."""

        @command(effects="once")
        def pay(self, amount: float) -> str:
            """Pay."""
            raise AssertionError

    class Later:
        """A bank."""

        @command(effects="once")
        def transfer(self, amount: float) -> str:
            """Pay."""
            raise AssertionError

    Later.__name__ = "Bank"
    reply = plan({"tool": "pay", "amount": 5})
    with session(tmp_path, reply, plugins=[Bank()]) as first:
        assert first.run_sync("pay").outcome == "waiting"
        first.approve("a1")
    refused(tmp_path, "pay", "have no such command any more", plugins=[Later()])


def test_a_dialect_that_cannot_read_the_plan(tmp_path: Path) -> None:
    """Read in another dialect, the reply has no calls, and none would run."""
    given = json.dumps({"to": "ann", "amount": 1})
    calls = (NativeCall(id="n1", name="pay", arguments=given),)
    reply = ScriptedReply(tool_calls=calls, finish_reason="tool_calls")
    with session(tmp_path, reply, dialect="native") as first:
        first.run_sync("pay")
        first.approve("a1")
    refused(tmp_path, "dialect='native'")
    with session(tmp_path, "ok", earlier="s", dialect="native") as later:
        later.resume_sync()
    assert paid(tmp_path) == ["ann 1"]


def test_a_command_that_a_prompt_has_no_room_for(tmp_path: Path) -> None:
    """The plan goes on with it, whatever the choice for this prompt would be."""

    def idle(number: int) -> Any:
        @command(name=f"idle{number}", effects="read")
        def work() -> str:
            """Say hello to the gardener of the palace."""
            return "x"

        return work

    given = {
        "plugins": [pay, *(idle(number) for number in range(60))],
        "dialect": "native",
        "options": Options(catalog_limit=600, always_shown=["pay"]),
    }
    written = json.dumps({"to": "ann", "amount": 5})
    calls = (NativeCall(id="n1", name="pay", arguments=written),)
    reply = ScriptedReply(tool_calls=calls, finish_reason="tool_calls")
    with session(tmp_path, reply, **given) as first:
        assert first.run_sync("hello gardener").outcome == "waiting"
        first.approve("a1")
    given["options"] = Options(catalog_limit=600)
    with session(tmp_path, "ok", earlier="s", **given) as later:
        assert later.resume_sync().outcome == "answered"
    assert paid(tmp_path) == ["ann 5"]


KILLED = """
    import json, os
    from pathlib import Path
    import neuraxis.journal.sqlite as sqlite
    from neuraxis.events import CallFinished, PlanChecked
    from tests.session.past.test_waiting import plan, session

    kept = sqlite.SqliteJournal.append

    def append(self, session, event, *, durable=False):
        if {before} and isinstance(event, PlanChecked):
            self.flush()
            os.kill(os.getpid(), 9)
        kept(self, session, event, durable=durable)
        if isinstance(event, CallFinished):
            self.flush()
            os.kill(os.getpid(), 9)

    sqlite.SqliteJournal.append = append
    calls = [dict(tool="note", text="x"), dict(tool="people")]
    here = session(Path({folder!r}), plan(*calls), approve=None)
    here.run_sync("note it")
"""


def killed(folder: Path, *, before: bool) -> None:
    """A process dies before its plan was checked, or after the first call."""
    code = textwrap.dedent(KILLED).format(before=before, folder=str(folder))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -9, done.stderr


def test_killed_before_its_plan_was_checked(tmp_path: Path) -> None:
    """The reply is run by who has the plugins."""
    killed(tmp_path, before=True)
    refused(tmp_path, "note", plugins=(people,))
    refused(tmp_path, "dialect='intents'", dialect="native")
    with session(tmp_path, "ok", earlier="s") as later:
        later.resume_sync()
    assert paid(tmp_path) == ["note x"]


def test_killed_between_two_calls(tmp_path: Path) -> None:
    """What has ended needs no plugin; what is left does."""
    killed(tmp_path, before=False)
    refused(tmp_path, "people", plugins=(note,))
    with session(tmp_path, "ok", earlier="s", plugins=(people,)) as later:
        assert later.resume_sync().outcome == "answered"
        assert "noted" in later.history[-2].content
    assert paid(tmp_path) == ["note x"]


def test_another_request_needs_no_plugin(tmp_path: Path) -> None:
    """It drops the plan, and the model is told so."""
    with session(tmp_path, plan(a_pay())) as first:
        first.run_sync("pay")
    with session(tmp_path, "I see", earlier="s", plugins=()) as later:
        assert later.run_sync("leave it").outcome == "answered"
        assert "pay was not run" in later.history[-3].content
