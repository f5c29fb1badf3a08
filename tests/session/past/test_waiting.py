"""A yes that can wait: asked in one process, answered in another, done once."""

import asyncio
import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, cast

import pytest

from neuraxis import (
    Call,
    ConfigError,
    Context,
    Effects,
    NoOpenQuestion,
    Options,
    Policy,
    Rule,
    Session,
    agent,
    command,
    list_sessions,
    open_questions,
)
from neuraxis.bridges.mcp_server.approvals import question_text
from neuraxis.cli.run import question_lines
from neuraxis.events import ApprovalAsked
from neuraxis.journal import open_journal
from neuraxis.messages import NativeCall
from neuraxis.models.scripted import ScriptedModel, ScriptedReply
from neuraxis.sandbox.process.run import probe
from neuraxis.settings import Settings

POLICY = Policy(rules=[Rule(verdict="ask", target="*.pay", reason="it is money")])


@command(effects="once")
def pay(to: str, amount: float, context: Context) -> str:
    """Pay somebody."""
    with (context.workspace / "paid").open("a") as file:
        file.write(f"{to} {amount:g}\n")
    return f"paid {amount:g} to {to}"


@command(effects="once")
def note(text: str, context: Context) -> str:
    """Write a note."""
    with (context.workspace / "paid").open("a") as file:
        file.write(f"note {text}\n")
    return "noted"


@command(effects="read")
def people() -> list[str]:
    """Who is there."""
    return ["ann", "bob", "eve"]


@command(effects=Effects(kind="read", open_world=True))
def page() -> str:
    """A page of others."""
    return "bob"


def plan(*calls: dict[str, Any]) -> str:
    """A reply that makes these calls."""
    return json.dumps(list(calls))


def a_pay(to: str = "ann", amount: float = 5, **more: Any) -> dict[str, Any]:
    """A call of `pay`."""
    return {"tool": "pay", "to": to, "amount": amount, **more}


def session(
    folder: Path, *replies: Any, earlier: str | None = None, **given: Any
) -> Session:
    """A session whose questions wait."""
    given = {
        "model": ScriptedModel(list(replies)),
        "plugins": [pay, note, people, page],
        "workspace": folder / "w",
        "journal": folder / "j.db",
        "policy": POLICY,
        "settings": Settings(),
        **given,
    }
    if earlier is not None:
        return Session.open(earlier, **given)
    return Session(**({"id": "s", "approve": "later"} | given))


def paid(folder: Path) -> list[str]:
    """What was done, in order."""
    file = folder / "w" / "paid"
    return file.read_text().splitlines() if file.exists() else []


def asked(folder: Path) -> list[str]:
    """The ids of all questions that were asked."""
    journal = open_journal(folder / "j.db")
    events = [entry.event for entry in journal.read("s")]
    journal.close()
    return [event.id for event in events if isinstance(event, ApprovalAsked)]


def test_a_yes_of_another_process_with_edited_arguments(tmp_path: Path) -> None:
    """What was done is not repeated; the call runs once, as the person changed it."""
    calls = plan({"tool": "note", "text": "x"}, a_pay(), a_pay("bob", 7))
    with session(tmp_path, calls) as first:
        answer = first.run_sync("pay them")
        assert answer.outcome == "waiting"
        assert [result.status for result in answer.calls] == ["done"]
        one, two = first.pending()
        assert one.summary == 'pay.pay(to="ann", amount=5)'
        assert (one.id, one.reason, two.id) == ("a2", "it is money", "a3")
    with session(tmp_path, earlier="s") as clerk:
        clerk.approve("a2", amount=4.5)
        clerk.deny("a3", "he has it already")
        assert clerk.pending() == ()
    with session(tmp_path, "All is done.", earlier="s") as later:
        answer = later.resume_sync()
        assert (answer.outcome, answer.text) == ("answered", "All is done.")
        assert paid(tmp_path) == ["note x", "ann 4.5"]
        told = later.history[-2].content
        assert "paid 4.5 to ann" in told
        assert "The user said yes after changing amount" in told
        assert "he has it already" in told


def test_edited_arguments_are_checked_again(tmp_path: Path) -> None:
    """By the command's own schema, without its plugin; a rule still decides."""
    rules = [*POLICY.rules, Rule(verdict="deny", arguments={"to": "eve"})]
    policy = Policy(rules=rules)
    with session(tmp_path, plan(a_pay()), policy=policy) as first:
        first.run_sync("pay")
    with session(tmp_path, earlier="s", plugins=[]) as clerk:
        with pytest.raises(ConfigError, match=r"a1 of .*pay\.amount: expected number"):
            clerk.approve("a1", amount="much")
        with pytest.raises(ConfigError, match="too"):
            clerk.approve("a1", too="bob")
        with pytest.raises(ConfigError, match="how: expected one of once, always"):
            clerk.approve("a1", cast("Any", "never"))
        clerk.approve("a1", to="eve")
        with pytest.raises(ConfigError, match="a1 of session s was approved already"):
            clerk.approve("a1")
        with pytest.raises(ConfigError, match="no question 'a9'; no question is open"):
            clerk.deny("a9")
    with session(tmp_path, "no", earlier="s", policy=policy) as later:
        answer = later.resume_sync()
        assert answer.calls[0].error is not None
        assert answer.calls[0].error.code == "denied"
    assert paid(tmp_path) == []


def test_questions_are_listed_while_the_session_is_open(tmp_path: Path) -> None:
    """Of all sessions of a journal, as JSON for a web page; no file is made."""
    with session(tmp_path, plan(a_pay())) as first:
        first.run_sync("pay")
        with session(tmp_path, plan(a_pay("bob")), id="t") as second:
            second.run_sync("pay")
            found = open_questions(tmp_path / "j.db")
            assert {question.session for question in found} == {"s", "t"}
            assert open_questions(first.journal) == found
            second.deny("a1")
        (question,) = open_questions(tmp_path / "j.db")
        assert first.pending() == (question,)
    told = json.loads(json.dumps(question.to_json()))
    assert (told["plugin"], told["command"]) == ("pay", "pay")
    assert told["arguments"] == {"to": "ann", "amount": 5}
    assert told["summary"] == question.summary
    with pytest.raises(ConfigError, match=r"typo\.db: there is no such journal"):
        open_questions(tmp_path / "typo.db")
    assert not (tmp_path / "typo.db").exists()


@pytest.mark.parametrize("in_memory", [False, True])
def test_each_session_is_listed_with_how_its_last_request_ended(
    tmp_path: Path, in_memory: bool
) -> None:
    """It may be running, too."""
    journal = open_journal("memory" if in_memory else tmp_path / "j.db")
    given: dict[str, Any] = {"journal": journal, "approve": None}
    seen: list[str] = []

    def states() -> dict[str, str]:
        return {info.session: info.state for info in list_sessions(journal)}

    with session(tmp_path, "hello", id="said", **given) as done:
        done.run_sync("hello", lambda event: seen.append(states()["said"]))
    with session(tmp_path, id="new", **given) as new:
        new.attach("a text")
    assert states() == {"said": "answered", "new": ""}
    assert "unfinished" in seen
    journal.close()


def test_what_was_approved_and_not_resumed_is_listed(tmp_path: Path) -> None:
    """Its process may have died in between."""

    def state() -> str:
        (info,) = list_sessions(tmp_path / "j.db")
        return info.state

    with session(tmp_path, plan(a_pay(), a_pay("bob"))) as first:
        first.run_sync("pay")
    assert state() == "waiting"
    with session(tmp_path, earlier="s") as second:
        second.approve("a1")
        assert state() == "waiting"
        second.deny("a2")
    assert state() == "ready"
    with session(tmp_path, "ok", earlier="s") as third:
        third.resume_sync()
    assert state() == "answered"
    with pytest.raises(ConfigError, match=r"list_sessions: .*typo\.db: there is no"):
        list_sessions(tmp_path / "typo.db")


async def test_a_question_stays_open_when_its_run_is_cancelled(tmp_path: Path) -> None:
    """Its session is listed as one that waits."""
    begun = asyncio.Event()

    @command(effects="once")
    async def stay() -> None:
        """Take long."""
        begun.set()
        await asyncio.sleep(60)

    given: dict[str, Any] = {
        "plugins": [pay, stay],
        "policy": Policy(rules=[Rule(verdict="ask", target="*")]),
    }
    with session(tmp_path, plan({"tool": "stay"}, a_pay()), **given) as first:
        await first.run("pay")
        first.approve("a1")
        task = asyncio.create_task(first.drive("resume", is_resumed=True))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        (question,) = first.pending()
    (info,) = list_sessions(tmp_path / "j.db")
    assert (info.state, open_questions(tmp_path / "j.db")) == ("waiting", (question,))


def test_sessions_that_ended_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal may hold many, and none of their questions is open."""
    journal = open_journal(tmp_path / "j.db")
    with session(tmp_path, "hello", id="said", journal=journal) as done:
        done.run_sync("hello")
    with session(tmp_path, id="called", journal=journal) as program:
        asyncio.run(program.call(Call(id="", plugin=None, command="note")))
    with session(tmp_path, plan(a_pay()), journal=journal) as first:
        first.run_sync("pay")
    read, seen = journal.read, list[str]()
    monkeypatch.setattr(journal, "read", lambda own: seen.append(own) or read(own))
    states = [info.state for info in list_sessions(journal)]
    assert states == ["waiting", "", "answered"]
    assert set(seen) == {"s"}
    assert [question.session for question in open_questions(journal)] == ["s"]
    assert "said" not in seen
    journal.close()


def test_the_yes_covers_a_call_whose_other_was_refused(tmp_path: Path) -> None:
    """A no to one call does not take back the yes to another; the rest is skipped."""
    calls = plan(a_pay(), a_pay("bob"), {"tool": "note", "text": "both paid"})
    with session(tmp_path, calls, "ok") as one:
        one.run_sync("pay")
        one.deny("a1")
        one.approve("a2")
        answer = one.resume_sync()
    assert [result.status for result in answer.calls] == ["failed", "done", "skipped"]
    assert paid(tmp_path) == ["bob 5"]


def test_without_a_journal_on_disk_it_is_refused(tmp_path: Path) -> None:
    """The answer would find nothing."""
    with pytest.raises(ConfigError, match="there is none on disk; write journal=PATH"):
        session(tmp_path, plan(a_pay()), journal=None)


def test_without_an_answer_it_waits_on(tmp_path: Path) -> None:
    """Resuming asks nobody twice, and nothing runs."""
    with session(tmp_path, plan(a_pay(), a_pay("bob")), "ok") as one:
        one.run_sync("pay")
        assert one.resume_sync().outcome == "waiting"
        one.approve("a1")
        assert one.resume_sync().outcome == "waiting"
        assert paid(tmp_path) == ["ann 5"]
        one.approve("a2")
        assert one.resume_sync().outcome == "answered"
    assert paid(tmp_path) == ["ann 5", "bob 5"]
    assert asked(tmp_path) == ["a1", "a2"]


def test_a_reopened_session_waits_on_without_an_answer(tmp_path: Path) -> None:
    """It knows its plan after each `resume`; what was done is not repeated."""
    calls = plan({"tool": "note", "text": "x"}, a_pay(), a_pay("bob"))
    with session(tmp_path, calls) as first:
        first.run_sync("pay them")
    with session(tmp_path, "All is done.", earlier="s") as later:
        assert later.resume_sync().outcome == "waiting"
        later.approve("a2")
        assert later.resume_sync().outcome == "waiting"
        later.deny("a3", "he has it already")
        answer = later.resume_sync()
        assert (answer.outcome, answer.text) == ("answered", "All is done.")
    assert paid(tmp_path) == ["note x", "ann 5"]
    assert asked(tmp_path) == ["a2", "a3"]


def test_a_request_after_a_resume_withdraws_the_question(tmp_path: Path) -> None:
    """The model is told what was done and what was not, as without the `resume`."""
    with session(tmp_path, plan({"tool": "note", "text": "x"}, a_pay())) as first:
        first.run_sync("pay")
    with session(tmp_path, "I see", earlier="s") as later:
        assert later.resume_sync().outcome == "waiting"
        later.run_sync("leave it")
        told = later.history[-3].content
        assert "noted" in told
        assert "pay was not run" in told


def test_a_question_lapses(tmp_path: Path) -> None:
    """It cannot be answered any more; the model is told."""
    options = Options(approval_seconds=0)
    with session(tmp_path, plan(a_pay()), "ok", options=options) as one:
        one.run_sync("pay")
        assert one.pending() == ()
        with pytest.raises(ConfigError, match="expired"):
            one.approve("a1")
        answer = one.resume_sync()
    assert "expired" in str(answer.calls[0].error)
    assert paid(tmp_path) == []


def test_a_yes_lapses_with_its_question(tmp_path: Path) -> None:
    """Said in time and used too late, it is no yes."""
    import time

    options = Options(approval_seconds=0.3)
    with session(tmp_path, plan(a_pay()), "ok", options=options) as one:
        one.run_sync("pay")
        one.approve("a1")
        time.sleep(0.35)
        answer = one.resume_sync()
    assert "expired" in str(answer.calls[0].error)
    assert paid(tmp_path) == []


def test_a_loop_is_one_question_and_goes_on_at_its_item(tmp_path: Path) -> None:
    """Items that were done are not done again."""
    rule = Rule(verdict="ask", target="*.pay", arguments={"to": "bob"}, reason="bob")
    loop = a_pay("{{ item }}", 1, **{"$for_each": "{{ previous_result }}"})
    calls = plan({"tool": "people"}, loop)
    policy = Policy(rules=[rule])
    with session(tmp_path, calls, "ok", policy=policy) as one:
        assert one.run_sync("pay").outcome == "waiting"
        assert paid(tmp_path) == ["ann 1"]
        (question,) = one.pending()
        assert question.call.for_each == ["ann", "bob", "eve"]
        assert '$for_each=["ann", "bob", "eve"]' in question.summary
    with session(tmp_path, "ok", earlier="s", policy=policy) as later:
        assert later.unknown_calls == ()
        later.approve(question.id)
        answer = later.resume_sync()
    assert [result.status for result in answer.calls] == ["done", "done"]
    assert answer.calls[1].value == [f"paid 1 to {to}" for to in people()]
    assert paid(tmp_path) == ["ann 1", "bob 1", "eve 1"]


def test_another_request_withdraws_the_question(tmp_path: Path) -> None:
    """The model is told that nothing was done; a late yes finds no question."""
    with session(tmp_path, plan(a_pay())) as first:
        first.run_sync("pay")
    with session(tmp_path, "I see", earlier="s") as later:
        later.run_sync("leave it")
        assert "pay was not run" in later.history[-3].content
        with pytest.raises(NoOpenQuestion, match="a1 of session s is closed: its run"):
            later.approve("a1")
        with pytest.raises(NoOpenQuestion, match="s has no question 'a7'; no question"):
            later.approve("a7")
        with pytest.raises(ConfigError, match="no request"):
            later.resume_sync()
    assert paid(tmp_path) == []


def test_a_changed_command_is_asked_about_again(tmp_path: Path) -> None:
    """The yes was for what the command said then."""
    with session(tmp_path, plan(a_pay())) as first:
        first.run_sync("pay")
        first.approve("a1")

    @command(name="pay", effects="once")
    def other(to: str, amount: float) -> str:
        """Pay somebody twice."""
        raise AssertionError

    with session(tmp_path, earlier="s", plugins=[other]) as later:
        assert later.resume_sync().outcome == "waiting"
        assert [question.id for question in later.pending()] == ["a1"]


def test_the_question_is_the_same_after_a_restart(tmp_path: Path) -> None:
    """What the plan read is not yet what the model read: the reason stays."""
    calls = plan({"tool": "page"}, a_pay("{{ previous_result }}"))
    with session(tmp_path, calls, policy=Policy()) as first:
        assert first.run_sync("pay").outcome == "waiting"
        (before,) = first.pending()
        assert before.call.arguments == {"to": "bob", "amount": 5}
        first.approve(before.id)
    with session(tmp_path, "ok", earlier="s", policy=Policy()) as later:
        assert later.resume_sync().outcome == "answered"
    assert paid(tmp_path) == ["bob 5"]


def test_native_calls_are_all_answered(tmp_path: Path) -> None:
    """A server refuses a conversation in which a tool call has no answer."""
    calls = tuple(
        NativeCall(id=f"n{number}", name="pay", arguments=json.dumps(given))
        for number, given in enumerate(
            [{"to": "ann", "amount": 1}, {"to": "bob", "amount": 2}]
        )
    )
    reply = ScriptedReply(tool_calls=calls, finish_reason="tool_calls")
    with session(tmp_path, reply, dialect="native") as first:
        first.run_sync("pay")
    with session(tmp_path, "ok", earlier="s", dialect="native") as later:
        later.approve("a1")
        later.approve("a2", amount=3)
        later.resume_sync()
        ids = [message.tool_call_id for message in later.history]
        assert ids == [None, None, "n0", "n1", None]
    assert paid(tmp_path) == ["ann 1", "bob 3"]


def test_an_agent_inside_cannot_wait(tmp_path: Path) -> None:
    """Its run is a command's; nobody is there, so it is refused."""
    inner = agent(
        "clerk", "Pays.", model=ScriptedModel([plan(a_pay()), "no"]), plugins=[pay]
    )
    reply = plan({"tool": "clerk", "request": "pay"})
    with session(tmp_path, reply, "ok", plugins=[inner]) as one:
        assert one.run_sync("pay").outcome == "answered"
        assert one.pending() == ()
    assert paid(tmp_path) == []


def test_calls_of_the_program_do_not_wait(tmp_path: Path) -> None:
    """The program waits for their results."""
    import asyncio

    from neuraxis import Call

    with session(tmp_path) as one:
        arguments: Any = {"to": "ann", "amount": 1}
        call = Call(id="b1", plugin=None, command="pay", arguments=arguments)
        result = asyncio.run(one.call(call))
        assert "there is no one to ask for approval" in str(result.error)


KILLED = """
    import os, sys
    from pathlib import Path
    import tests.session.past.test_waiting as here
    from neuraxis import Context, command
    from neuraxis.events import ApprovalAsked, CallFinished, CallStarted

    folder, when = Path(sys.argv[1]), sys.argv[2]

    def watch(event):
        if type(event).__name__ == when:
            os.kill(os.getpid(), 9)

    if sys.argv[3:]:
        with here.session(folder, "ok", earlier="s") as later:
            later.resume_sync(watch)
    else:
        here.session(folder, here.plan(here.a_pay())).run_sync("pay", watch)
"""


def kill(folder: Path, when: str, *more: str) -> None:
    """Run a session in a process that is killed when this event is announced."""
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(folder), when, *more],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def test_killed_while_the_yes_is_awaited(tmp_path: Path) -> None:
    """The question is on disk before anybody is told of it."""
    kill(tmp_path, "ApprovalAsked")
    with session(tmp_path, "ok", earlier="s") as later:
        (question,) = later.pending()
        later.approve(question.id, amount=3)
        assert later.resume_sync().outcome == "answered"
        with pytest.raises(ConfigError, match="no request"):
            later.resume_sync()
    assert paid(tmp_path) == ["ann 3"]


def test_killed_as_the_approved_call_begins(tmp_path: Path) -> None:
    """Nobody knows how it ended: it is not run on the old yes."""
    kill(tmp_path, "SessionFinished")
    with session(tmp_path, earlier="s") as clerk:
        clerk.approve("a1")
    kill(tmp_path, "CallStarted", "resumed")
    with session(tmp_path, "ok", earlier="s") as later:
        answer = later.resume_sync()
        assert answer.calls[0].error is not None
        assert answer.calls[0].error.code == "outcome_unknown"
        assert [call.id for call in later.unknown_calls] == ["a1"]
    assert paid(tmp_path) == []


def test_random_kills_do_nothing_twice() -> None:
    """A few of the benchmark's kills: asked, approved with another argument, done."""
    ended = subprocess.run(
        [sys.executable, "benchmarks/waiting_kills.py", "--times", "8"],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    bad = ("twice", "wrong", "lost", "endless")
    assert not any(word in ended.stdout for word in bad), ended.stdout
    assert "done" in ended.stdout


@pytest.mark.parametrize("changed", [False, True])
def test_L_a_yes_to_run_is_for_the_script_as_it_was_asked_about(
    tmp_path: Path, changed: bool
) -> None:
    """Where somebody changed it meanwhile, a person is asked again."""
    if not any(kind.works for kind in probe()):
        pytest.skip("no sandbox works on this machine")
    script = tmp_path / "w" / "s.py"
    script.parent.mkdir()
    script.write_text("print('one')")
    given: dict[str, Any] = {
        "plugins": ["neuraxis:python_file"],
        "policy": Policy(rules=[Rule(verdict="ask", target="python_file.*")]),
    }
    run = plan({"tool": "EXECUTE_PYTHON_FILE", "file_path": "s.py"})
    with session(tmp_path, run, **given) as first:
        assert first.run_sync("run it").outcome == "waiting"
        first.approve(first.pending()[0].id)
    if changed:
        script.write_text("print('another')")
    with session(tmp_path, "ok", earlier="s", approve="later", **given) as second:
        answer = second.resume_sync()
        assert bool(second.pending()) is changed
    assert answer.outcome == ("waiting" if changed else "answered")
    assert [result.status for result in answer.calls] == ([] if changed else ["done"])


class Shop:
    """What the program passes to a run."""

    name = "ours"


@command(effects="once")
def refund(to: str, context: Context[Shop]) -> str:
    """Pay back."""
    with (context.workspace / "paid").open("a") as file:
        file.write(f"{context.deps.name} {to}\n")
    return "paid"


def test_deps_are_asked_for_before_a_yes_is_used_up(tmp_path: Path) -> None:
    """The journal does not have them, and the call would fail."""
    call = plan({"tool": "refund", "to": "ann"})
    rules = Policy(rules=[Rule(verdict="ask", target="refund.*")])
    given: dict[str, Any] = {"plugins": [refund], "policy": rules}
    with session(tmp_path, call, **given) as first:
        first.run_sync("pay", deps=Shop())
        first.approve("a1")
    with session(tmp_path, "ok", earlier="s", **given) as second:
        with pytest.raises(ConfigError, match=r"Shop.*refund.*resume\(deps=\.\.\.\)"):
            second.resume_sync()
        assert second.resume_sync(deps=Shop()).outcome == "answered"
    assert paid(tmp_path) == ["ours ann"]


def test_a_second_answer_is_told_how_the_first_was(tmp_path: Path) -> None:
    """Also after the run went on, in an error that a web service can tell."""
    with session(tmp_path, plan(a_pay(), a_pay("bob"))) as first:
        first.run_sync("pay")
        first.approve("a1")
        with pytest.raises(NoOpenQuestion, match="a1 of session s was approved alr"):
            first.approve("a1")
        with pytest.raises(NoOpenQuestion, match="'a9'; still open: a2"):
            first.deny("a9")
        first.deny("a2")
    with session(tmp_path, "done", earlier="s") as later:
        later.resume_sync()
        with pytest.raises(NoOpenQuestion, match="was denied already; no question is"):
            later.approve("a2")


def test_a_question_that_waits_says_what_would_be_lost(tmp_path: Path) -> None:
    """As the terminal does, for a page and for an MCP client."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w/n.txt").write_text("one\ntwo\x1b\n", encoding="utf-8")
    delete = {"tool": "delete_file", "file_path": "n.txt"}
    with session(tmp_path, plan(delete), plugins=["neuraxis:files"]) as one:
        one.run_sync("tidy")
        (question,) = one.pending()
        events = [item.event for item in one.journal.read("s")]
    lost = ["lines lost from n.txt (all 2):", "- one", "- two\x1b"]
    assert json.loads(json.dumps(question.to_json()))["lost"] == lost
    assert "    - one" in question_lines([question])
    (event,) = (each for each in events if isinstance(each, ApprovalAsked))
    told = question_text(event)
    assert "\n  lines lost from n.txt (all 2):\n  - one\n  - two" in told
    assert "\x1b" not in told


def test_what_was_changed_stays_so_when_it_is_asked_about_again(
    tmp_path: Path,
) -> None:
    """The changed call deletes another file, which takes a yes of its own."""
    folder = tmp_path / "w"
    folder.mkdir()
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text("x")
    given: dict[str, Any] = {"plugins": ["neuraxis:files"], "policy": Policy()}
    with session(
        tmp_path, plan({"tool": "delete_file", "file_path": "a.csv"}), **given
    ) as first:
        assert first.run_sync("tidy up").outcome == "waiting"
        first.approve("a1", file_path="b.csv")
    with session(tmp_path, earlier="s", approve="later", **given) as second:
        assert second.resume_sync().outcome == "waiting"
        (again,) = second.pending()
        assert again.call.arguments == {"file_path": "b.csv"}
    with session(tmp_path, earlier="s", approve="later", **given) as third:
        assert third.resume_sync().outcome == "waiting"  # not answered yet
        assert [each.call.arguments for each in third.pending()] == [
            {"file_path": "b.csv"}
        ]
        third.approve("a1")
    with session(tmp_path, "done", earlier="s", approve="later", **given) as last:
        assert last.resume_sync().outcome == "answered"
        assert "after changing file_path" in last.history[-2].content
    assert [path.name for path in folder.iterdir()] == ["a.csv"]
