"""Nothing of a person's is lost, guessed at or done twice (findings N and R)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Context, Policy, Session, command
from neuraxis.errors import ConfigError, NoSuchSession, SessionBusy
from neuraxis.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallFinished,
    CallStarted,
    Event,
    MessageSent,
    ModelFinished,
)
from neuraxis.journal import open_journal
from neuraxis.journal.session_lock import Claims
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel

PAID: list[int] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    PAID.clear()


@command(effects="once")
def pay(amount: int) -> str:
    """Pays."""
    PAID.append(amount)
    return f"paid {amount}"


@command(effects="read")
def look() -> str:
    """Looks."""
    return "seen"


def call_of(tool: str, **arguments: Any) -> str:
    return json.dumps([{"tool": tool, **arguments}])


def options(tmp_path: Path, *replies: Any, **more: Any) -> dict[str, Any]:
    return {
        "model": ScriptedModel(list(replies)),
        "plugins": [pay, look],
        "workspace": tmp_path / "w",
        "journal": tmp_path / "j.db",
    } | more


def run_and_kill(tmp_path: Path, code: str) -> None:
    """Run a program that kills itself."""
    whole = "import os\nfrom pathlib import Path\n"
    whole += "from tests.session.test_nothing_lost import *\n"
    whole += f"tmp = Path({str(tmp_path)!r})\n" + textwrap.dedent(code)
    killed = subprocess.run(
        [sys.executable, "-c", whole], cwd=Path(__file__).parents[2],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert killed.returncode == -9, killed.stderr


def events_of(tmp_path: Path, session: str = "s") -> list[Any]:
    journal = open_journal(tmp_path / "j.db")
    try:
        return [entry.event for entry in journal.read(session)]
    finally:
        journal.close()


# --- R1: claims ---


def test_R1_a_closed_session_is_free_though_its_journal_is_shared(
    tmp_path: Path,
) -> None:
    """Another journal, as of another worker, goes on with it."""
    journal = open_journal(tmp_path / "j.db")
    with Session(**options(tmp_path, "hi", journal=journal)) as first:
        first.run_sync("hello")
    with Session.open(first.id, **options(tmp_path, "again")) as later:
        assert later.run_sync("and?").text == "again"
    journal.close()


def test_R1_two_sessions_with_one_id_are_refused_in_one_process(
    tmp_path: Path,
) -> None:
    """With one journal and with two; the second goes on when the first is closed."""
    journal = open_journal(tmp_path / "j.db")
    first = Session(**options(tmp_path, "hi", journal=journal, id="s"))
    first.run_sync("hello")
    for other in (journal, tmp_path / "j.db"):
        with pytest.raises(SessionBusy, match="session s is open already"):
            Session.open("s", **options(tmp_path, journal=other))
    first.close()
    Session.open("s", **options(tmp_path, journal=journal)).close()
    journal.close()


def test_R1_two_processes_do_not_share_a_session(tmp_path: Path) -> None:
    """The second is refused by name, and goes on when the first was killed."""
    code = f"""
    import sys
    from pathlib import Path
    from tests.session.test_nothing_lost import *
    session = Session(**options(Path({str(tmp_path)!r}), "hi", id="s"))
    session.run_sync("hello")
    print("open", flush=True)
    sys.stdin.read()
    """
    other = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdout is not None
    assert other.stdout.readline() == "open\n"
    with pytest.raises(SessionBusy, match="session s is open already"):
        Session.open("s", **options(tmp_path))
    other.kill()
    other.communicate()
    Session.open("s", **options(tmp_path)).close()


def test_R1_a_session_that_is_forgotten_is_free(tmp_path: Path) -> None:
    """Nobody closed it, and nobody has it."""
    journal = open_journal(tmp_path / "j.db")
    first = Session(**options(tmp_path, "hi", journal=journal, id="s"))
    first.run_sync("hello")
    del first
    import gc

    gc.collect()
    Session.open("s", **options(tmp_path, journal=journal)).close()
    journal.close()


def test_R1_begin_and_open_say_what_they_expect(tmp_path: Path) -> None:
    """An id of one's own is begun once, and opened only where it is."""
    with pytest.raises(ConfigError, match="'s' is not in the journal"):
        Session.open("s", **options(tmp_path))
    with Session(**options(tmp_path, "hi", id="s")) as first:
        first.run_sync("hello")
    with pytest.raises(ConfigError, match="'s' is in the journal already"):
        Session(**options(tmp_path, id="s"))
    Session.open("s", **options(tmp_path)).close()


def test_opening_where_there_is_no_session_makes_no_file(tmp_path: Path) -> None:
    """A mistyped path is named, and stays what it was."""
    journal = tmp_path / "there.db"
    with Session(**options(tmp_path, "hi", id="s", journal=journal)) as first:
        first.run_sync("hello")
    before = sorted(tmp_path.rglob("*"))
    typo = tmp_path / "typo" / "path.db"
    for path, id, more in [(typo, "s", "no such file"), (journal, "t", "--journal")]:
        with pytest.raises(NoSuchSession) as raised:
            Session.open(id, **options(tmp_path, journal=path))
        for part in (f"{id!r} is not in the journal {path}", more):
            assert part in str(raised.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_R1_claims_cost_the_same_and_refuse_no_stranger(tmp_path: Path) -> None:
    """100,000 ids, all of them open: the last thousand cost as the first."""
    first = Claims(tmp_path / "locks")
    took: list[float] = []
    for thousand in range(100):
        begun = time.perf_counter()
        for number in range(1000):
            assert first.take(f"{thousand}-{number}")
        took.append(time.perf_counter() - begun)
    first.close()
    assert sorted(took[-10:])[5] < 10 * sorted(took[:10])[5], took
    assert list((tmp_path / "locks").iterdir()) == []


# --- R4, N2: what a kill leaves ---


def test_R4_a_request_outlives_a_kill_in_the_first_model_call(tmp_path: Path) -> None:
    """It is on disk before the model is asked, and `resume` answers it."""
    run_and_kill(
        tmp_path,
        """
        class Deadly:
            name = "deadly"
            async def stream(self, prompt):
                os.kill(os.getpid(), 9)
                yield
            async def close(self):
                pass
        Session(**options(tmp, model=Deadly(), id="s")).run_sync("what is it?")
        """,
    )
    with Session.open("s", **options(tmp_path, "an answer")) as later:
        answer = later.resume_sync()
        assert (answer.text, answer.outcome) == ("an answer", "answered")
        assert "what is it?" in later.history[0].content
        with pytest.raises(ConfigError, match="was cut off"):
            later.resume_sync()


def test_R4_a_reply_that_was_told_of_is_in_the_journal(tmp_path: Path) -> None:
    """It was paid for: `resume` does not ask for it again."""
    run_and_kill(
        tmp_path,
        """
        def watch(event):
            if isinstance(event, ModelFinished):
                os.kill(os.getpid(), 9)
        session = Session(**options(tmp, call_of("look"), id="s"))
        session.run_sync("look", watch)
        """,
    )
    assert any(isinstance(event, ModelFinished) for event in events_of(tmp_path))
    with Session.open("s", **options(tmp_path, "seen it")) as later:
        assert later.resume_sync().text == "seen it"
        said = [message.role for message in later.history]
    assert said == ["user", "assistant", "user", "assistant"]  # it is the second


@pytest.mark.parametrize("kind", [ApprovalAsked, ApprovalAnswered, CallStarted])
def test_N2_what_a_watcher_saw_is_in_the_journal(tmp_path: Path, kind: Any) -> None:
    """A question, its answer, a call that began."""
    run_and_kill(
        tmp_path,
        f"""
        from neuraxis import Policy, Rule
        def watch(event):
            if isinstance(event, {kind.__name__}):
                os.kill(os.getpid(), 9)
        policy = Policy(rules=[Rule(verdict="ask", target="pay.*", reason="money")])
        session = Session(**options(tmp, call_of("pay", amount=1), id="s",
                                    policy=policy, approve=lambda asked: True))
        session.run_sync("pay", watch)
        """,
    )
    assert any(isinstance(event, kind) for event in events_of(tmp_path))


# --- R2: off the event loop ---

ENDED = CallFinished(id="a1", plugin="p", command="c", tool="T", status="done")


async def test_R2_a_slow_disk_does_not_hold_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit takes 0.3 s; the loop never stands still for 0.1 s."""
    from neuraxis.journal import writer

    insert = writer._insert

    def slowly(db: Any, rows: Any) -> None:
        time.sleep(0.3)
        insert(db, rows)

    monkeypatch.setattr(writer, "_insert", slowly)
    longest, ends = 0.0, False

    async def watch() -> None:
        nonlocal longest
        while not ends:
            begun = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - begun)

    watching = asyncio.create_task(watch())
    session = Session(**options(tmp_path, call_of("pay", amount=1), "done"))
    seen: list[Event] = []
    answer = await session.drive("pay", seen.append)
    ends = True
    await watching
    session.close()
    assert answer.text == "done"
    assert longest < 0.1, longest
    stored = [type(event) for event in events_of(tmp_path, session.id)]
    live = [type(event) for event in seen]
    assert [kind for kind in live if kind in stored] == stored


async def test_R2_those_who_wait_together_share_a_flush(tmp_path: Path) -> None:
    """Fifty requests at once need far fewer transactions than fifty times three."""
    journal: Any = open_journal(tmp_path / "j.db")
    commits, put = 0, journal._writer._write_rows

    def counting(rows: Any) -> Any:
        nonlocal commits
        commits += 1
        return put(rows)

    journal._writer._write_rows = counting
    sessions = [
        Session(**options(tmp_path, "done", journal=journal)) for _ in range(50)
    ]
    answers = await asyncio.gather(*[session.run("go") for session in sessions])
    assert [answer.text for answer in answers] == ["done"] * 50
    assert commits < 75
    for session in sessions:
        session.close()
    journal.close()


async def test_R2_a_run_waits_where_something_is_promised(tmp_path: Path) -> None:
    """For its request, each reply with the call that it leads to, and its end."""
    journal: Any = open_journal(tmp_path / "j.db")
    waits, settled = 0, journal.settled

    async def counting(session: str) -> None:
        nonlocal waits
        waits += 1
        await settled(session)

    journal.settled = counting
    calls = [call_of("pay", amount=amount) for amount in (1, 2, 3)]
    with Session(**options(tmp_path, *calls, "done", journal=journal)) as session:
        assert (await session.run("pay")).text == "done"
    assert waits == 5
    journal.close()


def test_R2_the_end_of_a_call_is_written_though_nobody_waits(tmp_path: Path) -> None:
    """A model may think for minutes behind it."""
    journal: Any = open_journal(tmp_path / "j.db")
    journal.append("s", ENDED)
    until = time.monotonic() + 10
    while journal._writer.pending("s") and time.monotonic() < until:
        time.sleep(0.01)
    assert not journal._writer.pending("s")
    journal.close()


# --- N3, R9: once ---

KILL_IN_PAY = """
@command(effects="once")
def pay(amount: int) -> str:
    "Pays."
    os.kill(os.getpid(), 9)
given = options(tmp, call_of("pay", amount=1), id="s") | {"plugins": [pay, look]}
Session(**given).run_sync("pay 1")
"""


def test_N3_an_unknown_call_is_not_repeated_on_a_models_word(tmp_path: Path) -> None:
    """Refused where nobody can be asked, whatever `yes_to` says."""
    run_and_kill(tmp_path, KILL_IN_PAY)
    again = call_of("pay", amount=1)
    with Session.open(
        "s", **options(tmp_path, again, "so be it", policy=Policy(yes_to=["pay.*"]))
    ) as later:
        assert [call.id for call in later.unknown_calls] == ["a1"]
        answer = later.run_sync("go on")
    assert [result.error.code for result in answer.calls if result.error] == ["denied"]
    assert PAID == []


def test_N3_a_person_is_asked_once_about_it(tmp_path: Path) -> None:
    """Their yes settles it, also for a later process."""
    run_and_kill(tmp_path, KILL_IN_PAY)
    asked: list[ApprovalAsked] = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        return True

    again = [call_of("pay", amount=1), call_of("pay", amount=2), "done"]
    with Session.open("s", **options(tmp_path, *again, approve=approve)) as later:
        later.run_sync("go on")
    assert PAID == [1, 2]
    assert len(asked) == 1
    assert "a1" in asked[0].reason
    with Session.open("s", **options(tmp_path)) as last:
        assert last.unknown_calls == ()


def test_N3_a_call_that_was_stopped_has_one_end(tmp_path: Path) -> None:
    """The question about the next one says what it would do, and ends no other."""
    asked: list[ApprovalAsked] = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        return True

    @command(name="pay", effects="once", time_limit=0.05)
    async def pays(amount: int) -> str:
        """Pays."""
        PAID.append(amount)
        await asyncio.sleep(5)
        return "paid"

    again = [call_of("pay", amount=1), call_of("pay", amount=1), "done"]
    given = options(tmp_path, *again, id="s", approve=approve) | {"plugins": [pays]}
    with Session(**given) as session:
        session.run_sync("pay 1")
    ends = [
        event.id for event in events_of(tmp_path) if isinstance(event, CallFinished)
    ]
    assert ends == ["a1", "a2"]
    assert PAID == [1, 1]
    assert asked[0].summary.startswith("pay.pay(amount=1): it is unknown whether")


@pytest.mark.parametrize("happened", [True, False])
def test_N3_a_person_settles_it_beforehand(tmp_path: Path, happened: bool) -> None:
    """Then the command may be called again as ever."""
    run_and_kill(tmp_path, KILL_IN_PAY)
    again = call_of("pay", amount=2)
    with Session.open("s", **options(tmp_path, again, "done")) as later:
        with pytest.raises(ConfigError, match="expected a call whose outcome"):
            later.settle("a9", happened)
        later.settle("a1", happened)
        later.run_sync("go on")
    assert PAID == [2]


@pytest.mark.parametrize(
    ("happened", "says"),
    [
        (True, "the user says that it had its effect"),
        (False, "was started and had no effect"),
    ],
)
def test_N3_what_a_person_settled_is_what_the_model_is_told(
    tmp_path: Path, happened: bool, says: str
) -> None:
    """It was told that the outcome is unknown, for the history was read before."""
    run_and_kill(tmp_path, KILL_IN_PAY)
    given = options(tmp_path, "done")
    with Session.open("s", **given) as later:
        later.settle("a1", happened)
        answer = later.resume_sync()
    assert answer.calls[0].status == ("done" if happened else "failed")
    assert says in given["model"].prompts[0].messages[-1].content
    assert PAID == []


@pytest.mark.parametrize(("said", "paid"), [(True, []), (False, [1]), (None, [])])
def test_N3_a_plugin_answers_for_itself(
    tmp_path: Path, said: bool | None, paid: list[int]
) -> None:
    """`reconcile` tells whether it had its effect; None leaves it unknown."""
    run_and_kill(tmp_path, KILL_IN_PAY)
    ids: list[str] = []

    @command(name="pay", effects="once")
    def pays(amount: int) -> str:
        """Pays."""
        PAID.append(amount)
        return "paid"

    def reconcile(call_id: str) -> bool | None:
        ids.append(call_id)
        return said

    pays.reconcile = reconcile  # type: ignore[attr-defined]
    given = options(tmp_path, call_of("pay", amount=1), "done") | {"plugins": [pays]}
    with Session.open("s", **given) as later:
        later.run_sync("go on")
    assert ids == ["a1"]
    assert paid == PAID


async def test_R9_a_command_knows_its_session_and_its_call(tmp_path: Path) -> None:
    """The key is that of one call: another call has another."""
    seen: list[tuple[str, str]] = []

    @command(effects="once")
    def charge(context: Context) -> str:
        """Charges."""
        seen.append((context.session_id, context.idempotency_key))
        return "ok"

    with Session(**options(tmp_path, id="s") | {"plugins": [charge]}) as session:
        for own in ("a1", "a2"):
            await session.call(
                Call(id=own, plugin=None, command="charge", arguments={})
            )
    (here, first), (there, second) = seen
    assert here == there == "s"
    assert first != second


def test_R4_the_request_is_stored_before_the_model_is_asked(tmp_path: Path) -> None:
    """Whoever reads the file beside it sees it."""
    found: list[Any] = []

    def look_in(prompt: Any) -> str:
        found.extend(events_of(tmp_path))
        return "done"

    class Looks:
        name = "looks"

        async def stream(self, prompt: Any) -> Any:
            from neuraxis.messages import Chunk

            yield Chunk(text=look_in(prompt), finish_reason="stop")

        async def close(self) -> None:
            pass

    with Session(**options(tmp_path, model=Looks(), id="s")) as session:
        session.run_sync("hello")
    assert any(isinstance(event, MessageSent) for event in found)
