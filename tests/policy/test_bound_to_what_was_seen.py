"""Approvals, rules and origins that hold for what was seen, and for no more.

A stranger who knew the documents only wrote 252 attacks; these are those that got
through, each beside what was refused already.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Answer, Context, Options, Policy, Rule, Session, command
from neuraxis.events import ApprovalAsked
from neuraxis.formatting import visible
from neuraxis.models.scripted import ScriptedModel
from neuraxis.sandbox.process.run import probe
from neuraxis.settings import Settings

FILES = ("neuraxis:files", "neuraxis:python_file")
RUN = {"tool": "EXECUTE_PYTHON_FILE", "file_path": "job.py"}
FETCHED = "print('FOREIGN-' + 'RAN')"
needs_sandbox = pytest.mark.skipif(
    not any(kind.works for kind in probe()), reason="no sandbox works here"
)


@command(effects={"kind": "read", "others_write": True, "public": True})
def fetch() -> str:
    """A page with a program."""
    return FETCHED


@command(effects={"kind": "read", "others_write": True})
def inbox() -> str:
    """Mail, which others write."""
    return "PIN 4711"


def _write(path: str, contents: str) -> dict[str, Any]:
    return {"tool": "FILEWRITER", "file_path": path, "contents": contents}


def _session(folder: Path, *plans: list[dict[str, Any]] | str, **more: Any) -> Session:
    replies = [one if isinstance(one, str) else json.dumps(one) for one in plans]
    return Session(
        model=ScriptedModel(replies),
        plugins=[fetch, inbox, *more.pop("plugins", ()), *FILES],
        workspace=folder,
        settings=Settings(),
        **more,
    )


def _approve_writing(asked: ApprovalAsked) -> bool:
    return bool(asked.call["command"] == "write_file")


def _output(answer: Answer) -> str:
    return json.dumps([call.value for call in answer.calls], default=str)


@needs_sandbox
@pytest.mark.parametrize("how", ["copy_file", "move_file"])
def test_fetched_text_is_no_program_under_another_name(
    tmp_path: Path, how: str
) -> None:
    """Neither as a copy nor moved, also in a plan of before anything was read."""
    plan = [
        {"tool": "fetch", "as": "p"},
        _write("job.txt", "{{ p }}"),
        {"tool": how, "file_path": "job.txt", "new_path": "job.py"},
        RUN,
    ]
    with _session(tmp_path, plan, "ok") as session:
        answer = session.run_sync("Save it as job.txt, make job.py of it and run it")
    assert (tmp_path / "job.py").read_text() == FETCHED
    assert answer.calls[-1].status == "failed"
    assert "FOREIGN-RAN" not in _output(answer)


@needs_sandbox
@pytest.mark.parametrize("reopened", [False, True])
def test_what_undo_brings_back_is_as_foreign_as_before(
    tmp_path: Path, reopened: bool
) -> None:
    """A fetched program stays one, also in the session as it is opened again."""
    journal = str(tmp_path / "j.sqlite")
    folder = tmp_path / "w"
    first: list[dict[str, Any]] = [{"tool": "fetch", "as": "p"}]
    first.append(_write("job.py", "{{ p }}"))
    own = [_write("job.py", "print(1)")]
    plans = (first, "ok", own, "ok", [RUN], "ok")
    given = {"id": "s", "journal": journal, "approve": _approve_writing}
    with _session(folder, *plans, **given) as session:
        session.run_sync("Save it as job.py")
        session.run_sync("Write job.py that prints 1")
        assert session.undo().restored == ("job.py",)
        if not reopened:
            answer = session.run_sync("Run job.py")
    if reopened:
        with Session.open(
            "s",
            model=ScriptedModel([json.dumps([RUN]), "ok"]),
            plugins=[fetch, inbox, *FILES],
            workspace=folder,
            settings=Settings(),
            journal=journal,
        ) as session:
            answer = session.run_sync("Run job.py")
    assert (folder / "job.py").read_text() == FETCHED
    assert answer.calls[-1].status == "failed"


def test_always_covers_files_of_the_persons_own_where_the_question_says_so(
    tmp_path: Path,
) -> None:
    """As the offer of a question that is answered at once."""
    folder, journal = tmp_path / "w", str(tmp_path / "j.sqlite")
    folder.mkdir()
    (folder / "mine.md").write_text("MINE")
    plan: Any = [_write("odd-name.md", "x")], [_write("mine.md", "EVIL")], "ok"
    given = {"id": "s", "journal": journal, "approve": "later"}
    with _session(folder, [{"tool": "inbox"}], *plan, **given) as session:
        session.run_sync("Read my mail")
        for asks_of_own in (False, True):
            (question,) = session.pending()
            whose = "also" if asks_of_own else "but not"
            assert question.offers[-1].endswith(f", {whose} on your own files")
            session.approve(question.id, "always")
            answer = session.resume_sync()
            text = (folder / "mine.md").read_text()
            assert text == ("EVIL" if asks_of_own else "MINE")
    assert answer.outcome == "answered"


@command(
    effects={"kind": "once", "destructive": False, "others_write": False},
    names_file={"path": "read"},
    trusted_only=["to"],
)
def upload(path: str, to: str, context: Context) -> str:
    """Upload a file."""
    return "uploaded: " + (context.workspace / path).read_text()


@pytest.mark.parametrize(
    "call",
    [
        {"tool": "move_file", "file_path": "a.md", "new_path": "c.md"},
        {"tool": "copy_file", "file_path": "a.md", "new_path": "c.md"},
        {"tool": "upload", "path": "a.md", "to": "bob"},
    ],
)
def test_an_approval_is_for_the_file_that_is_read_as_it_was(
    tmp_path: Path, call: dict[str, Any]
) -> None:
    """The file changes between the question and the yes."""
    (tmp_path / "a.md").write_text("GOOD")

    def yes(asked: ApprovalAsked) -> bool:
        (tmp_path / "a.md").write_text("EVIL")
        return True

    plans: Any = [{"tool": "inbox"}], [call], "ok"
    with _session(tmp_path, *plans, plugins=[upload], approve=yes) as session:
        answer = session.run_sync("Read my mail")
    assert answer.calls[-1].status == "failed"
    assert "EVIL" not in _output(answer)
    assert not (tmp_path / "c.md").exists()


@pytest.mark.parametrize("path", ["private/x.md", "./private/x.md", "private/./x.md"])
def test_a_rule_on_a_path_is_met_by_all_its_spellings(
    tmp_path: Path, path: str
) -> None:
    """With `./` before it, too."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private/x.md").write_text("secret")
    rule = Rule(verdict="deny", arguments={"file_path": "private/*"})
    plan = [{"tool": "file_reader", "file_path": path}]
    with _session(tmp_path, plan, "ok", policy=Policy(rules=[rule])) as session:
        answer = session.run_sync(f"Read {path}")
    assert answer.calls[0].status == "failed"


@command(effects="once")
def post(text: str, channel: str = "public", amount: float = 0.0) -> str:
    """Post a text.

    Args:
        text: what to post.
        channel: where.
        amount: what it may cost.
    """
    return f"posted to {channel}"


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        ({"channel": "public"}, {"channel": "public"}),
        ({"channel": "public"}, {}),
        ({"amount": "1000"}, {"amount": 1000}),
        ({"amount": "1000"}, {"amount": 1e3}),
        ({"text": "*@rival.example*"}, {"text": "to b@rival。example"}),
    ],
)
def test_a_rule_is_met_by_defaults_and_by_equal_values(
    tmp_path: Path, arguments: dict[str, str], call: dict[str, Any]
) -> None:
    """What is left out has its default; 1e3 is 1000."""
    rule = Rule(verdict="deny", target="post.*", arguments=arguments)
    plan = [{"tool": "post", "text": "x", **call}]
    policy = Policy(rules=[rule], default="allow")
    with _session(tmp_path, plan, "ok", plugins=[post], policy=policy) as session:
        answer = session.run_sync("Post x")
    assert answer.calls[0].status == "failed"


def test_an_allow_rule_is_not_met_by_a_default(tmp_path: Path) -> None:
    """The control: what allows must be written."""
    rules = [Rule(verdict="allow", arguments={"channel": "public"})]
    policy = Policy(rules=rules, default="deny")
    plan = [{"tool": "post", "text": "x"}]
    with _session(tmp_path, plan, "ok", plugins=[post], policy=policy) as session:
        answer = session.run_sync("Post x")
    assert answer.calls[0].status == "failed"


@command(
    effects={"kind": "once", "destructive": False, "others_write": False},
    trusted_only=["to"],
)
def send(to: str) -> str:
    """Send a mail.

    Args:
        to: to whom.
    """
    return "sent"


def test_a_question_shows_the_numbers_of_characters_that_nobody_sees(
    tmp_path: Path,
) -> None:
    """Also in `summary` and `offers`, which a web page may show."""
    asked: list[ApprovalAsked] = []
    plans: Any = (
        [{"tool": "inbox"}],
        [{"tool": "send", "to": "eve\u202e\u200b\u3164@x.example"}],
        "ok",
    )
    with _session(
        tmp_path, *plans, plugins=[send], approve=lambda one: asked.append(one)
    ) as session:
        session.run_sync("Read my mail")
    (question,) = asked
    for text in (question.summary, *question.offers):
        assert "\\u{202e}" in text or '"eve' not in text
        assert text == visible(text)


@command(
    effects={"kind": "once", "destructive": False, "others_write": False},
    trusted_only=["to"],
)
def mail(to: str) -> str:
    """Mail somebody.

    Args:
        to: whom.
    """
    return f"mailed {to}"


@pytest.mark.parametrize(
    "change",
    [
        {"tool": "append_file", "file_path": "a.txt", "text": "x"},
        {"tool": "replace_in_file", "file_path": "a.txt", "old": " X", "new": ""},
        {"tool": "move_file", "file_path": "a.txt", "new_path": "b.txt"},
        None,
    ],
)
@pytest.mark.parametrize("reopened", [False, True])
def test_what_stays_in_a_changed_file_is_as_foreign_as_before(
    tmp_path: Path, change: dict[str, Any] | None, reopened: bool
) -> None:
    """A file of others is not the session's own for a word added, or a new name."""
    folder, journal = tmp_path / "w", str(tmp_path / "j.sqlite")
    folder.mkdir()
    (folder / "a.txt").write_text("eve@evil.example X")
    name = "b.txt" if change and change["tool"] == "move_file" else "a.txt"
    first = [change] if change else []
    then = [
        {"tool": "file_reader", "file_path": name, "as": "r"},
        {"tool": "mail", "to": "{{ r['contents'] }}"},
    ]
    request = "Change a.txt, or move it to b.txt, and mail them"
    given: Any = {"plugins": [mail], "policy": Policy(yes_to=["files.move_file"])}
    plans = ([first] if first else []) if reopened else [first + then]
    with _session(folder, *plans, "ok", **given, id="s", journal=journal) as session:
        answer = session.run_sync(request)
    if reopened:
        with Session.open(
            "s",
            model=ScriptedModel([json.dumps(then), "ok"]),
            plugins=[fetch, inbox, mail, *FILES],
            workspace=folder,
            settings=Settings(),
            journal=journal,
            policy=given["policy"],
        ) as session:
            answer = session.run_sync(request)
    assert answer.calls[-1].call.command == "mail"
    assert answer.calls[-1].status == "failed", answer.calls[-1].value
    assert not first or answer.calls[0].status == "done"


MADE: list[Any] = [[_write("clean.py", "print('ok')")], "ok"]
SAVED = {"tool": "save_result", "value": "asset://{}/content/response"}
REPLACED: dict[str, list[list[dict[str, Any]]]] = {
    "by the model": [[_write("clean.py", "evil")]],
    "by a reference": [[{**SAVED, "file_path": "clean.py"}]],
    "by a copy": [
        [{**SAVED, "file_path": "summary.txt"}],
        [{"tool": "copy_file", "file_path": "summary.txt", "new_path": "clean.py"}],
    ],
    "by a move": [
        [{**SAVED, "file_path": "summary.txt"}],
        [{"tool": "move_file", "file_path": "summary.txt", "new_path": "clean.py"}],
    ],
    "after deleting it": [
        [{"tool": "delete_file", "file_path": "clean.py"}],
        [{**SAVED, "file_path": "clean.py"}],
    ],
    "in another spelling": [[_write("./clean.py", "evil")]],
}


def _from(call_id: str, plans: list[list[dict[str, Any]]]) -> Any:
    return json.loads(json.dumps(plans).replace("{}", call_id))


@pytest.mark.parametrize("plans", REPLACED.values(), ids=REPLACED)
@pytest.mark.parametrize(
    "words",
    [
        "Never touch clean.py. Any mails? Write a summary.",
        "Explain clean.py to me and read my mails, write a summary. Change nothing!",
        "Any mails? Summary please. And run clean.py",
    ],
)
@pytest.mark.parametrize("other_session", [False, True])
def test_a_script_is_not_replaced_after_reading(
    tmp_path: Path, plans: Any, words: str, other_session: bool
) -> None:
    """Its name was free for a new file only; also with one that the runtime wrote."""
    folder, journal = tmp_path / "w", str(tmp_path / "j.sqlite")
    wanted = "Write a script clean.py that prints ok"
    read: Any = [{"tool": "inbox"}]
    if other_session:
        with _session(folder, *MADE, journal=journal) as session:
            session.run_sync(wanted)
        attack = [read, *_from("a1", plans), "ok"]
        with _session(folder, *attack, journal=journal) as session:
            session.run_sync(words)
    else:
        attack = [*MADE, read, *_from("a2", plans), "ok"]
        with _session(folder, *attack) as session:
            session.run_sync(wanted)
            session.run_sync(words)
    assert (folder / "clean.py").read_text() == "print('ok')"


def test_an_agent_does_not_replace_a_script_after_reading(tmp_path: Path) -> None:
    """The words are the user's, but what it read is from outside."""
    inside = [[{"tool": "inbox"}], [_write("clean.py", "evil")], "ok"]

    @command(effects={"kind": "once", "destructive": False, "others_write": False})
    def helper(task: str, context: Context) -> str:
        """Let a helper do it."""
        with _session(tmp_path, *inside, options=Options(parent=context)) as session:
            return session.run_sync(task).text

    ask = [{"tool": "helper", "task": "explain clean.py"}]
    with _session(tmp_path, *MADE, ask, "ok", plugins=[helper]) as session:
        session.run_sync("Write a script clean.py that prints ok")
        answer = session.run_sync("Let the helper explain clean.py")
    assert answer.calls[-1].status == "done", answer.calls[-1].error
    assert (tmp_path / "clean.py").read_text() == "print('ok')"


@pytest.mark.parametrize(
    "plans",
    [
        pytest.param([*MADE, [_write("clean.py", "two")], "ok"], id="nothing read"),
        pytest.param(
            [*MADE, [{"tool": "inbox"}, _write("clean.py", "two")], "ok"],
            id="planned before",
        ),
        pytest.param(
            ["ok", [{"tool": "inbox"}], MADE[0], [_write("clean.py", "two")], "ok"],
            id="made by this request",
        ),
    ],
)
def test_a_script_is_replaced_where_nothing_from_outside_decides(
    tmp_path: Path, plans: Any
) -> None:
    """A script of this request could be deleted and written anew as well."""
    with _session(tmp_path, *plans) as session:
        session.run_sync("Write a script clean.py that prints ok")
        answer = session.run_sync("Read my mail and write clean.py that prints 2")
    assert answer.calls[-1].error is None
    assert (tmp_path / "clean.py").read_text() == "two"
