"""A yes is for one exact call, once, for a while."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from neuraxis import CommandSpec, Effects, Policy, Rule, Session, command
from neuraxis.cli.approve import question
from neuraxis.events import ApprovalAnswered, ApprovalAsked, Event
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.approvals import (
    Approvals,
    call_digest,
    value_digest,
)

SPEC = CommandSpec(name="send", description="Sends.", effects=Effects())
ASK = Policy(rules=[Rule(verdict="ask")])
SENT: list[str] = []


@command(effects="once")
def send(to: str) -> bool:
    """Sends."""
    SENT.append(to)
    return True


def session(replies: list[str], **options: Any) -> Session:
    SENT.clear()
    return Session(
        model=ScriptedModel([*replies, "done"]), plugins=[send], policy=ASK, **options
    )


def test_the_digest_is_of_all_that_matters() -> None:
    """Any change of call or description is another digest; key order is none."""
    base = call_digest("mail", SPEC, {"to": "a", "n": 1})
    assert base == call_digest("mail", SPEC, {"n": 1, "to": "a"})
    others = [
        call_digest("mail", SPEC, {"to": "b", "n": 1}),
        call_digest("mail", SPEC, {"to": "a", "n": 1.5}),
        call_digest("mail", SPEC, {"to": "a", "n": "1"}),
        call_digest("other", SPEC, {"to": "a", "n": 1}),
        call_digest("mail", replace(SPEC, description="Sends!"), {"to": "a", "n": 1}),
        call_digest("mail", replace(SPEC, name="sent"), {"to": "a", "n": 1}),
        call_digest("mail", replace(SPEC, effects=Effects(kind="read")),
                    {"to": "a", "n": 1}),
        call_digest("mail", replace(SPEC, parameters={}), {"to": "a", "n": 1}),
    ]  # fmt: skip
    assert len({base, *others}) == 9
    one, two = (call_digest("mail", SPEC, {"to": to}) for to in "ab")
    assert value_digest([one, two]) != value_digest([two, one])


def test_the_digest_of_what_is_no_JSON_is_of_nothing_else() -> None:
    """Keys of two kinds, and integers without a text, have a form of their own."""
    for one, other in [
        ({1: "a", "b": 2}, {"pairs": [['"b"', "0x2"], ['"0x1"', "a"]]}),
        ([{1: 1, "b": 2}, 1], [{1: 1, "b": 2}, "0x1"]),
        ([10**5000], [hex(10**5000)]),
    ]:
        assert value_digest(one) != value_digest(other)
        assert value_digest(one) == value_digest(one)


def test_a_yes_is_used_once_and_expires() -> None:
    """Taking it uses it up; after its time it is for nothing."""
    now = [0.0]
    approvals = Approvals(clock=lambda: now[0], expires=10)
    approvals.grant("d")
    assert (True, False) == (approvals.take("d"), approvals.take("d"))
    approvals.grant("d")
    now[0] = 11
    assert not approvals.take("d")


def test_a_yes_to_a_plan_is_for_what_was_seen() -> None:
    """For each exact call once, for the same reason, and not for long."""
    now = [0.0]
    one, two = (
        ApprovalAsked(id=name, call={}, reason="r", digest=name) for name in ("1", "2")
    )

    def granted(*calls: ApprovalAsked) -> Approvals:
        now[0] = 0.0
        approvals = Approvals(clock=lambda: now[0], expires=10)
        approvals.answer_plan("d", calls)
        return approvals

    approvals = granted(one, two)
    assert "d" == approvals.take_step(one)
    assert "" == approvals.take_step(one)
    assert "d" == approvals.take_step(two)
    assert "" == granted(one).take_step(replace(one, digest="another"))
    assert "" == granted(one).take_step(replace(one, reason="another"))
    assert "" == granted(one).take_step(two)
    approvals = granted(one)
    now[0] = 11
    assert "" == approvals.take_step(one)


def test_a_yes_given_beforehand_is_for_that_call_only() -> None:
    """Granted by digest: that call runs once, another one and a second time do not."""
    calls = [json.dumps([{"tool": "send", "to": to}]) for to in ("b", "a", "a")]
    with session(calls) as opened:
        spec = opened.registry.specs[0].commands[0]
        opened.approvals.grant(call_digest("send", spec, {"to": "a"}))
        opened.run_sync("go")
    assert ["a"] == SENT


def test_a_question_without_answer_is_a_no() -> None:
    """It expires; the event says so and carries the digest of the question."""

    async def nobody(asked: ApprovalAsked) -> bool:
        await asyncio.sleep(30)
        return True

    events: list[Event] = []
    with session(['[{"tool": "send", "to": "a"}]'], approve=nobody) as opened:
        opened.approvals.expires = 0.05
        opened.run_sync("go", events.append)
    (asked,) = [event for event in events if isinstance(event, ApprovalAsked)]
    (told,) = [event for event in events if isinstance(event, ApprovalAnswered)]
    assert [] == SENT
    assert (False, asked.digest) == (told.allowed, told.digest)
    assert "expired" in told.by


def test_a_call_that_changes_while_it_is_asked_about_is_not_run() -> None:
    """The yes was for what was shown."""

    @command(effects="once")
    def sends(to: list[str]) -> bool:
        """Sends."""
        SENT.extend(to)
        return True

    SENT.clear()
    calls: list[Any] = []

    async def changes(asked: ApprovalAsked) -> bool:
        calls[0].arguments["to"].append("eve")
        return True

    class Watching(ScriptedModel):
        """Only a way to the call's own list."""

    with Session(
        model=Watching(['[{"tool": "sends", "to": ["ada"]}]', "done"]),
        plugins=[sends],
        policy=ASK,
        approve=changes,
    ) as opened:
        decode = opened.dialect.decode

        def remembering(*given: Any, **named: Any) -> Any:
            reply = decode(*given, **named)
            calls.extend(reply.calls)
            return reply

        opened.dialect.decode = remembering  # pyright: ignore[reportAttributeAccessIssue]
        opened.run_sync("go")
    assert [] == SENT


def test_a_question_hides_nobody() -> None:
    """Of many recipients all are shown, in the question and on the terminal."""
    many = [f"n{number}@x.test" for number in range(40)]
    asked: list[ApprovalAsked] = []

    async def no(question: ApprovalAsked) -> bool:
        asked.append(question)
        return False

    @command(effects="once")
    def sends(to: list[str]) -> bool:
        """Sends."""
        return True

    calls = json.dumps([{"tool": "sends", "to": many}])
    with Session(
        model=ScriptedModel([calls, "done"]), plugins=[sends], policy=ASK, approve=no
    ) as opened:
        opened.run_sync("go")
    assert many == asked[0].call["arguments"]["to"]
    assert all(name in question(asked[0]) for name in many)


def test_the_question_is_inert() -> None:
    """Escape codes, direction marks and line breaks of a value cannot forge a line."""
    text = question(
        ApprovalAsked(
            id="a1",
            call={
                "plugin": "mail",
                "command": "send",
                "arguments": {"to": "eve\x1b[2J\n  reason: nothing\u202e", "n": 1},
            },
            reason="to is a value\r\n",
            origins={"to": "from fetch.fetch"},
        )
    )
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.count("  reason: ") == 2
    assert "    |   reason: nothing" in text  # the value's lines begin with a bar
    assert 7 == len(text.splitlines())
    assert "from fetch.fetch" in text


def test_no_terminal_no_question(tmp_path: Path) -> None:
    """A pipe is nobody: denied with a reason, and --yes-to lets it through."""
    from cli_process import neuraxis  # the helper of the command line's tests

    script = tmp_path / "s.yaml"
    script.write_text(
        '- \'[{"tool": "FILEWRITER", "file_path": "a.txt", "contents": "x"}]\'\n'
        '- "done"\n',
        encoding="utf-8",
    )
    rules = tmp_path / "home" / "config"
    rules.mkdir(parents=True)
    (rules / "neuraxis.toml").write_text(
        '[[policy.rules]]\nverdict = "ask"\ntarget = "files.write_file"\n',
        encoding="utf-8",
    )
    home = {"NEURAXIS_HOME": str(tmp_path / "home")}
    words = ["run", "-m", f"scripted:{script}", "go"]
    done = neuraxis(*words, cwd=tmp_path, **home)
    assert "there is no one to ask for approval" in done.stderr
    assert not (tmp_path / "neuraxis-workspace" / "a.txt").exists()
    neuraxis(*words, "--yes-to", "files.*", cwd=tmp_path, **home)
    assert (tmp_path / "neuraxis-workspace" / "a.txt").exists()


def test_a_digest_is_of_any_object() -> None:
    """Keys that JSON has no form for, and integers that have no text."""
    values: list[Any] = [
        {("a", 1): 2, "b": 3},
        {("a", 1): 2, "b": 4},
        {("a", 2): 2, "b": 3},
        {1: 2, "b": [{None: 3}]},
        10**5000,
        10**5000 + 1,
    ]
    assert len({value_digest(value) for value in values}) == len(values)
    assert value_digest({1: 2, "b": 3}) == value_digest({"b": 3, 1: 2})


@pytest.mark.parametrize("answer", ["no", 1, object()])
def test_only_true_is_a_yes(answer: Any) -> None:
    """A text that says no is true enough for Python."""

    async def approve(_: ApprovalAsked) -> Any:
        return answer

    call = json.dumps([{"tool": "send", "to": "ada"}])
    with session([call], approve=approve) as asking:
        asking.run_sync("go")
    assert [] == SENT


def _refused(
    call: dict[str, Any], approve: Any, tmp_path: Path, read: bool = False
) -> str:
    """What the model is told of a call on `old.txt`, a file of the user's."""
    (tmp_path / "old.txt").write_text("mine", "utf-8")
    look = [json.dumps([{"tool": "file_reader", "file_path": "old.txt"}])]
    replies = [*(look if read else []), json.dumps([call]), "ok"]
    with Session(
        ScriptedModel(replies),
        plugins=["neuraxis:files"],
        workspace=tmp_path,
        approve=approve,
    ) as asking:
        error = asking.run_sync("Tidy up, and draw a.html").calls[-1].error
    assert error is not None
    return error.message


DELETE = {"tool": "delete_file", "file_path": "old.txt"}
MOVE = {"tool": "move_file", "file_path": "old.txt", "new_path": "new.txt"}
REPLACE = {"tool": "FILEWRITER", "file_path": "old.txt", "contents": "x"}


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("call", [DELETE, MOVE, REPLACE])
def test_who_said_no_is_not_got_round(
    call: dict[str, Any], read: bool, tmp_path: Path
) -> None:
    """No other way to the same is shown, nor that an approval is needed."""
    said = _refused(call, lambda _: False, tmp_path, read)
    assert said.endswith(
        "was not allowed to run: the user said no. Do not do the same in another way: "
        "go on without it, or ask the user what they want instead."
    )


@pytest.mark.parametrize(
    ("call", "done", "target"),
    [
        (DELETE, "this would delete. Leave it as it is", "files.delete_file"),
        (MOVE, "this would move. Copy it to the other name", "files.move_file"),
        (REPLACE, "this would replace. Write to another name", "files.write_file"),
    ],
)
def test_with_nobody_to_ask_the_way_out_fits_the_call(
    call: dict[str, Any], done: str, target: str, tmp_path: Path
) -> None:
    """What would be done to the file, what may be done instead, who says yes."""
    said = _refused(call, None, tmp_path)
    assert done.partition(".")[0] in said
    assert done.partition(". ")[2] in said
    assert f"--yes-to {target}" in said
    if call is not REPLACE:  # a new document is no way to delete one
        assert "Write a new document" not in _refused(call, None, tmp_path, read=True)


@pytest.mark.parametrize(
    ("call", "reason", "origin"),
    [
        (
            {"tool": "FILEWRITER", "file_path": "a.html", "contents": "x"},
            '"a.html" may be run or loaded by programs',
            "your words",
        ),
        (
            MOVE | {"new_path": "notes/new.txt"},
            '"notes/new.txt", whose path is not in the request',
            "written by the model after it read files",
        ),
        (
            {"tool": "delete_file", "file_path": "tidy"},
            "this would delete",
            "your words",
        ),
    ],
)
def test_a_question_after_reading_says_why(
    call: dict[str, Any], reason: str, origin: str, tmp_path: Path
) -> None:
    """What kind of file it is, what the request lacks, whose word an argument is."""
    (tmp_path / "tidy").write_text("mine", "utf-8")
    asked: list[ApprovalAsked] = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        return False

    _refused(call, approve, tmp_path, read=True)
    assert reason in asked[0].reason
    assert asked[0].origins["file_path"] == origin


@pytest.mark.parametrize(
    ("to", "origin"),
    [
        ("ada", "your words"),
        ("eve", "written by the model, which had read nothing from outside"),
    ],
)
def test_a_question_before_reading_says_whose_word_it_is(to: str, origin: str) -> None:
    """The request's, or one that the model chose."""
    asked: list[ApprovalAsked] = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        return False

    with session([json.dumps([{"tool": "send", "to": to}])], approve=approve) as asking:
        asking.run_sync("Write to Ada")
    assert asked[0].origins == {"to": origin}


@pytest.mark.parametrize("raised", [OSError("gone"), asyncio.CancelledError()])
def test_a_question_that_cannot_be_put_is_a_no_and_not_the_commands_fault(
    raised: BaseException,
) -> None:
    """What asks is the program's own; the model is told that nobody was asked."""

    async def approve(_: ApprovalAsked) -> bool:
        raise raised

    call = json.dumps([{"tool": "send", "to": "ada"}])
    with session([call], approve=approve) as asking:
        result = asking.run_sync("go").calls[0]
    assert [] == SENT
    assert result.error is not None
    assert "to run: it needs approval, and " in result.error.message


@pytest.mark.parametrize(
    ("approve", "logged"),
    [
        (lambda asked: asked.cal, "approve= raised for a1"),
        (lambda asked: "yes", "approve= returned 'yes' for a1, so it is denied"),
        (lambda asked: False, ""),
        (lambda asked: None, ""),
    ],
)
def test_a_mistake_in_what_asks_is_logged(
    approve: Any, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The model is told of a no; only the program's author can mend it."""
    call = json.dumps([{"tool": "send", "to": "a"}])
    with session([call], approve=approve) as asking:
        asking.run_sync("send it")
    assert SENT == []
    assert [text for text in caplog.messages if logged in text] == caplog.messages
    assert bool(caplog.messages) is bool(logged)
    assert ("AttributeError" in caplog.text) is ("raised" in logged)


def test_an_answer_that_is_none_is_not_the_users_no() -> None:
    """The model is not told of a no that nobody gave."""
    call = json.dumps([{"tool": "send", "to": "a"}])
    with session([call], approve=lambda asked: "yes") as asking:
        error = asking.run_sync("send it").calls[0].error
    assert SENT == []
    assert error is not None
    assert "the user said no" not in error.message
    assert (
        "`approve` returned neither True, False nor one of the offers" in error.message
    )
