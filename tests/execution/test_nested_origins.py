"""Where values come from is known through a session inside of a command (D12).

What is handed to it, what it writes and remembers, and what is left after a crash.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agents_kit import (
    ASK_SEND,
    RAN,
    an_agent,
    begin_or_open,
    call_of,
    page,
    plan_of,
    post,
    read,
    save,
    send,
    session_of,
)
from neuraxis import (
    Context,
    Effects,
    Options,
    Policy,
    Session,
    command,
)
from neuraxis.events import Event, Inside, SessionFinished, innermost
from neuraxis.execution.nested import ParentRun
from neuraxis.journal.sqlite import SqliteJournal
from neuraxis.models.scripted import ScriptedModel


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    RAN.clear()


def test_D12_what_is_attached_is_what_the_command_was_handed() -> None:
    """A page that is handed on as an object is no object of the person's."""

    @command(name="ask", effects=Effects(kind="once", open_world=False))
    async def ask(data: str, context: Context) -> str:
        """Ask."""
        model = ScriptedModel(
            [call_of("post", to="asset://a1/content", note="Hello Bob"), "ok"]
        )
        inside = Session(model=model, plugins=[post], options=Options(parent=context))
        inside.attach(data)
        return (await inside.run("Send it")).text

    plan = plan_of({"tool": "page"}, {"tool": "ask", "data": "{{ PREVIOUS }}"})
    with session_of([page, ask], plan, policy=Policy(yes_to=["ask.*"])) as session:
        session.run_sync("Post him: Hello Bob")
    assert RAN == ["page"]
    with session_of([ask], call_of("ask", data="bob")) as session:
        session.run_sync("Post him: Hello Bob")
    assert RAN == ["page", "post bob"]  # the control


def test_D12_what_is_written_of_an_answer_is_as_foreign_as_it(tmp_path: Path) -> None:
    """By the command itself, with what its agent said."""

    @command(name="ask")
    async def ask(request: str, context: Context) -> str:
        """Ask."""
        model = ScriptedModel([call_of("page"), "send it to eve"])
        inside = Session(model=model, plugins=[page], options=Options(parent=context))
        text = (await inside.run(request)).text
        (context.workspace / "report.txt").write_text(text, encoding="utf-8")
        context.wrote("report.txt")
        return "done"

    with session_of([ask], call_of("ask", request="x"), workspace=tmp_path) as session:
        session.run_sync("Go")
    assert "report.txt" in session.origins.files


def test_D12_a_picture_that_an_agent_shows_is_a_file_of_the_run(tmp_path: Path) -> None:
    """It was saved for its answer, by no command; foreign if the agent is."""

    @command(name="ask")
    async def ask(request: str, context: Context) -> str:
        """Ask, and show."""
        model = ScriptedModel([call_of("page"), "ok"])
        await Session(model=model, plugins=[page], options=Options(parent=context)).run(
            request
        )
        assert isinstance(context.outer, ParentRun)
        (tmp_path / "x.png").touch()
        shown = SessionFinished(outcome="answered", files=("x.png",))
        context.outer.receive("s", context.workspace, shown)
        return "ok"

    with session_of([ask], call_of("ask", request="x"), workspace=tmp_path) as session:
        assert session.run_sync("Go").files == ("x.png",)
        assert "x.png" in session.origins.files


@pytest.mark.parametrize("folder", [".", "sub", "sub/../sub"])
def test_D12_files_of_a_folder_in_the_folder(folder: str, tmp_path: Path) -> None:
    """An agent that works below knows what is foreign there, and tells of its own."""
    (tmp_path / "sub").mkdir()
    there = tmp_path / folder
    replies = [call_of("page"), call_of("save", path="a.txt", text="eve"), "ok"]
    ask = an_agent(replies, [page, save], workspace=there)
    reads = an_agent(
        [call_of("read", path="a.txt"), "x"], [read], "again", workspace=there
    )
    plan = plan_of({"tool": "read", "path": f"{folder}/a.txt"},
                {"tool": "send", "to": "{{ PREVIOUS }}"})  # fmt: skip
    with session_of([ask, reads, read, send], call_of("ask", request="x"), plan,
                  workspace=tmp_path,
                  policy=Policy(yes_to=["save.*"])) as session:  # fmt: skip
        answer = session.run_sync("Go")
        name = "a.txt" if folder == "." else "sub/a.txt"
        assert answer.files == (name,)
        assert list(session.origins.files) == [name]
        assert [result.status for result in answer.calls] == ["done", "done", "failed"]
    model = ScriptedModel([call_of("again", request="x"), "ok"])
    files = dict(session.origins.files)
    with session_of([reads], model=model, workspace=tmp_path) as fresh:
        for path, label in files.items():
            fresh.origins.wrote(path, label)
        fresh.run_sync("Go")
        assert any(origin.open_world for origin in fresh.origins.results["a1"])


def test_D12_what_an_agent_remembers_is_in_its_answer(tmp_path: Path) -> None:
    """It read a page in an earlier call, and goes on with that conversation."""
    made: list[str] = []

    @command(name="ask")
    async def ask(request: str, context: Context) -> str:
        """Ask."""
        replies = ["eve"] if made else [call_of("page"), "read it"]
        with begin_or_open(made[0] if made else None,
                     model=ScriptedModel(replies), plugins=[page],
                     options=Options(parent=context),
                     journal=tmp_path / "in.db"
                     ) as inside:  # fmt: skip
            made.append(inside.id)
            return (await inside.run(request)).text

    journal = tmp_path / "out.db"
    with session_of([ask], call_of("ask", request="a"), journal=journal) as session:
        session.run_sync("Go")
    plan = plan_of({"tool": "ask", "request": "b"},
                {"tool": "send", "to": "{{ PREVIOUS }}"})  # fmt: skip
    with session_of([ask, send], plan, journal=journal) as other:
        answer = other.run_sync("Go")
        assert [result.status for result in answer.calls] == ["done", "failed"]
    with session_of([ask, send], call_of("send", to="{{ a1 }}"), journal=journal,
                  earlier=other.id) as again:  # fmt: skip
        assert again.run_sync("Go on").calls[0].status == "failed"
    assert RAN == ["page"]


def test_D12_what_was_attached_in_an_earlier_call_is_what_it_was(
    tmp_path: Path,
) -> None:
    """A page that was handed on once is no object of the person's in the next call."""
    made: list[str] = []
    codes: list[str] = []

    @command(name="ask", effects=Effects(kind="once", open_world=False))
    async def ask(data: str, context: Context) -> str:
        """Ask."""
        sends = call_of("post", to="asset://a1/content", note="Hello Bob")
        model = ScriptedModel([sends, "ok"] if made else ["ok"])
        with begin_or_open(made[0] if made else None,
                     model=model, plugins=[post],
                     options=Options(parent=context, asset_folder=tmp_path / "objects"),
                     journal=tmp_path / "in.db") as inside:  # fmt: skip
            if not made:
                inside.attach(data)
            made.append(inside.id)
            answer = await inside.run("Send it")
            codes.extend(one.error.code for one in answer.calls if one.error)
            return answer.text

    plan = plan_of({"tool": "page"}, {"tool": "ask", "data": "{{ PREVIOUS }}"})
    with session_of([page, ask], plan, policy=Policy(yes_to=["ask.*"])) as session:
        session.run_sync("Post him: Hello Bob")
    with session_of([ask], call_of("ask", data="Post him: Hello Bob")) as session:
        session.run_sync("Post him: Hello Bob")
    assert (len(made), codes) == (2, ["denied"])
    assert RAN == ["page"]


def test_D12_an_earlier_foreign_request_is_no_word_of_a_person(tmp_path: Path) -> None:
    """Also where the agent goes on in a call whose request is the person's."""
    made: list[str] = []

    @command(name="ask")
    async def ask(request: str, context: Context) -> str:
        """Ask."""
        replies = [call_of("send", to="eve"), "ok"] if made else ["ok"]
        with begin_or_open(made[0] if made else None,
                     model=ScriptedModel(replies), plugins=[send],
                     options=Options(parent=context),
                     journal=tmp_path / "in.db"
                     ) as inside:  # fmt: skip
            made.append(inside.id)
            return (await inside.run(request)).text

    plan = plan_of({"tool": "page"}, {"tool": "ask", "request": "{{ PREVIOUS }}"})
    with session_of([page, ask], plan, policy=Policy(yes_to=["ask.*"])) as session:
        session.run_sync("Go")
    with session_of([ask], call_of("ask", request="Go on")) as session:
        session.run_sync("Go on")
    assert len(made) == 2
    assert RAN == ["page"]


def test_D12_a_question_inside_makes_nothing_foreign(tmp_path: Path) -> None:
    """What is told to a person of where values came from is no origin (a resume)."""
    journal = tmp_path / "j.db"
    ask = an_agent([call_of("send", to="bob"), "ok"], [send])
    with session_of([ask], call_of("ask", request="x"), journal=journal,
                  policy=ASK_SEND, approve=lambda _: True) as session:  # fmt: skip
        session.run_sync("Go")
    with session_of([ask], journal=journal, earlier=session.id) as again:
        assert again.origins.read == session.origins.read == frozenset()
    assert RAN == ["send bob"]


def test_D12_what_a_stranger_wrote_before_a_crash_is_known(tmp_path: Path) -> None:
    """The agent's command had ended or not; the call around it had not."""
    journal = SqliteJournal(tmp_path / "j.db")
    ask = an_agent(
        [call_of("page"), call_of("save", path="a.txt", text="eve"),
         call_of("save", path="b.txt", text="eve"), "ok"], [page, save],
    )  # fmt: skip
    seen: list[Event] = []
    with session_of([ask], call_of("ask", request="x"), workspace=tmp_path,
                  policy=Policy(yes_to=["save.*"])) as session:  # fmt: skip
        session.run_sync("Go", seen.append)
    ended = next(
        at for at, one in enumerate(seen)
        if isinstance(one, Inside) and innermost(one.event).get("wrote") == ["b.txt"]
    )  # fmt: skip
    for event in seen[:ended]:
        journal.append(session.id, event)
    with session_of([ask], journal=journal, earlier=session.id) as again:
        assert {"a.txt", "b.txt"} <= set(again.origins.files)
    journal.close()


def test_D12_what_is_private_is_known_inside() -> None:
    """The model around may have written it into its request."""
    known: list[bool] = []

    @command(name="ask")
    async def ask(request: str, context: Context) -> str:
        """Ask."""
        inside = Session(model=ScriptedModel(["ok"]), options=Options(parent=context))
        known.append(bool(inside.origins.private))
        return (await inside.run(request)).text

    @command(effects=Effects(kind="read", open_world=False))
    def mail() -> str:
        """The user's mail."""
        return "x"

    calls = [call_of("ask", request="a"), call_of("mail"), call_of("ask", request="b")]
    with session_of([ask, mail], *calls) as session:
        session.run_sync("Go")
    assert known == [False, True]
