"""Many requests: at most so many at once, in the order they end, and gone on with."""

import asyncio
import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from neuraxis import ConfigError, Options, Policy, Rule, Session, command, run_many
from neuraxis.errors import NoAnswer
from neuraxis.journal import Journal, open_journal
from neuraxis.messages import Prompt
from neuraxis.models.scripted import ScriptedModel
from neuraxis.session.batch import Done
from neuraxis.settings import Settings


async def all_of(*given: Any, **named: Any) -> list[Done[Any]]:
    """Everything that a batch yields."""
    return [item async for item in run_many(*given, **named)]


async def test_results_come_as_they_end_with_progress() -> None:
    """The slow first row holds up nobody."""
    slow = asyncio.Event()

    @command(effects="read")
    async def wait() -> str:
        """Wait."""
        await slow.wait()
        return "ok"

    def make(row: str) -> Session:
        replies = ['[{"tool": "wait"}]', "slow"] if row == "a" else [row.upper()]
        return Session(ScriptedModel(replies), plugins=[wait], settings=Settings())

    seen: list[tuple[str, int, int | None]] = []
    async for item in run_many(make, ["a", "b", "c"]):
        seen.append((item.answer.text, item.count, item.total))
        if len(seen) == 2:
            slow.set()
    assert {text for text, _, _ in seen[:2]} == {"B", "C"}
    assert [count for _, count, _ in seen] == [1, 2, 3]
    assert seen[2] == ("slow", 3, 3)


async def test_no_more_than_so_many_run_at_once() -> None:
    """Rows are taken as there is room: a list of a million is not."""
    now = most = taken = 0

    @command(effects="read")
    async def work() -> str:
        """Work."""
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1
        return "ok"

    def rows() -> Any:
        nonlocal taken
        for number in range(30):
            taken += 1
            yield number

    def make(row: int) -> Session:
        replies = ['[{"tool": "work"}]', str(row)]
        return Session(ScriptedModel(replies), plugins=[work], settings=Settings())

    ended = 0
    async for item in run_many(make, rows(), request=str, at_once=4):
        ended += 1
        assert taken <= ended + 4
        assert item.total is None
    assert (ended, most) == (30, 4)


class Batch:
    """A batch on one journal, whose effects are counted."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self.journal, self.folder = journal, folder
        self.done: list[int] = []
        self.asked: list[str] = []

    def make(self, row: int) -> Session:
        @command(effects="once")
        async def book(number: int) -> str:
            """Book."""
            await asyncio.sleep(0.01)
            self.done.append(number)
            return f"booked {number}"

        def reply(prompt: Prompt) -> str:
            text = prompt.messages[-1].content
            self.asked.append(text)
            if "RESULTS_START" in text:
                return f"row {row}"
            return json.dumps([{"tool": "book", "number": row}])

        return Session(
            ScriptedModel(reply),
            plugins=[book],
            id=f"row-{row}",
            journal=self.journal,
            workspace=self.folder,
            options=Options(reopen=True),
            settings=Settings(),
        )


async def test_a_batch_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    """Yesterday's answers are taken from the journal; nothing is booked twice."""
    journal = open_journal(tmp_path / "j.db")
    first = Batch(tmp_path, journal)
    async with contextlib.aclosing(
        run_many(first.make, range(12), request=str, at_once=3)  # type: ignore[type-var]
    ) as items:
        async for item in items:
            if item.count == 5:
                break
    second = Batch(tmp_path, journal)
    results = await all_of(second.make, range(12), request=str, at_once=3)
    assert sorted(item.answer.text for item in results) == sorted(
        f"row {row}" for row in range(12)
    )
    assert sum(item.earlier for item in results) >= 5
    booked = first.done + second.done
    assert len(booked) == len(set(booked))
    third = Batch(tmp_path, journal)
    results = await all_of(third.make, range(12), request=str)
    assert all(item.earlier for item in results)
    assert third.asked == []
    journal.close()


async def test_a_typed_answer_is_typed_also_when_it_is_read_again(
    tmp_path: Path,
) -> None:
    """`answer.output` of yesterday's rows is what it was."""

    @dataclass
    class Row:
        number: int

    def make(row: int) -> Session[Any]:
        return Session(
            ScriptedModel([f'{{"number": {row}}}']),
            output=Row,
            id=f"row-{row}",
            journal=tmp_path / "j.db",
            options=Options(reopen=True),
            settings=Settings(),
        )

    for earlier in (False, True):
        results = await all_of(make, range(3), request=str, at_once=1)
        assert [item.earlier for item in results] == [earlier] * 3
        assert [item.answer.output for item in results] == [Row(0), Row(1), Row(2)]


async def test_what_waits_for_a_yes_goes_on_in_the_next_round(tmp_path: Path) -> None:
    """One row waits, the others end; answered, it goes on."""
    paid: list[int] = []

    @command(effects="once")
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    def make(row: int, replies: Sequence[str] = ()) -> Session:
        call = json.dumps([{"tool": "pay", "amount": row}])
        return Session(
            ScriptedModel(["done"] if replies else [call, "done"]),
            plugins=[pay],
            id=f"row-{row}",
            journal=tmp_path / "j.db",
            policy=Policy(
                rules=[Rule(verdict="ask", target="*.pay", arguments={"amount": "9"})]
            ),
            approve="later",
            options=Options(reopen=True),
            workspace=tmp_path,
            settings=Settings(),
        )

    first = await all_of(make, [1, 9], request=str)
    assert {item.row: item.answer.outcome for item in first} == {
        1: "answered",
        9: "waiting",
    }
    with make(9) as session:
        session.approve("a1")
    again = await all_of(lambda row: make(row, ["done"]), [1, 9], request=str)
    assert {item.answer.outcome for item in again} == {"answered"}
    assert paid == [1, 9]


async def test_a_wrong_limit_is_refused_at_once() -> None:
    """Before any row is taken."""
    with pytest.raises(ConfigError, match="at_once"):
        await all_of(lambda row: Session(), ["a"], at_once=0)


def _make(row: Any) -> Any:
    """Make the session of a row; some rows have a mistake."""
    if row == "make":
        raise OSError("cannot open the file of this row")
    if row == "none":
        return None
    model = ScriptedModel(["ok"])
    dialect = "morse" if row == "dialect" else "intents"
    return Session(model, dialect=dialect, settings=Settings())


def _request(row: Any) -> Any:
    return {"request": 7}[row] if row in ("request", "key") else row


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("make", "row 'make': OSError: cannot open the file of this row"),
        ("none", "row 'none': make: expected a function that returns a Session, got"),
        ("dialect", "row 'dialect': dialect"),
        ("key", "row 'key': KeyError: 'key'"),
        ("request", "row 'request': request: expected a string, which .* got 7"),
        (None, "row number 3: request: expected a string, which .* got None"),
    ],
)
async def test_what_a_row_raises_is_the_failure_of_that_row_alone(
    row: Any, words: str
) -> None:
    """The rows beside it and behind it are answered."""
    rows = ["a", "b", row, "c", "d"]
    results = await all_of(_make, rows, request=_request, at_once=3)
    assert {item.row for item in results} == set(rows)
    failed = [item for item in results if item.answer.outcome != "answered"]
    assert [item.row for item in failed] == [row]
    assert re.search(words, failed[0].answer.error)
    assert failed[0].exception is not None
    with pytest.raises(NoAnswer, match=words):
        failed[0].answer.check()


async def test_a_row_is_shown_without_what_python_makes_of_its_object() -> None:
    """An error names it by its number; the fields that say nothing are left out."""
    row = object()
    (item,) = await all_of(_make, [row], request=lambda row: 7)
    assert item.answer.error.startswith("run_many: row number 1: request: expected")
    (item,) = await all_of(_make, ["a"])
    assert "row='a'" in repr(item)
    assert "Answer(text='ok', outcome='answered'" in repr(item)
    assert "=()" not in repr(item)
    assert "None" not in repr(item)


async def test_the_answer_stays_if_only_closing_its_session_fails() -> None:
    """A plugin that cannot be closed takes no answer away."""

    class Shop:
        """A shop."""

        @command(effects="read")
        def stock(self) -> int:
            """Count."""
            return 1

        def close(self) -> None:
            raise OSError("the shop stays open")

    def make(row: str) -> Session:
        return Session(ScriptedModel(["ok"]), plugins=[Shop], settings=Settings())

    (item,) = await all_of(make, ["a"])
    assert (item.answer.outcome, item.answer.text) == ("answered", "ok")
    assert "the shop stays open" in item.answer.error


async def test_rows_that_break_off_lose_none_that_runs() -> None:
    """The error of `rows` itself is raised when those it gave have ended."""

    def rows() -> Any:
        yield from "ab"
        raise OSError("the file of the rows is gone")

    work = run_many(_make, rows(), at_once=5)
    seen = [(await anext(work)).row, (await anext(work)).row]
    with pytest.raises(OSError, match="is gone"):
        await anext(work)
    assert sorted(seen) == ["a", "b"]


async def test_rows_may_be_of_a_class_that_compares_in_its_own_way() -> None:
    """Such as the rows of a table, whose `==` gives no bool."""

    class Row:
        def __eq__(self, other: object) -> Any:
            raise ValueError("the truth value is ambiguous")

        __hash__ = None  # type: ignore[assignment]

    (item,) = await all_of(lambda row: _make("a"), [Row()], request=lambda row: "x")
    assert item.answer.text == "ok"


async def test_a_row_gets_no_answer_of_another_request(tmp_path: Path) -> None:
    """Its session had answered one, by a mistaken id or with another text."""
    journal = open_journal(tmp_path / "j.db")

    def make(row: str) -> Session:
        return Session(
            ScriptedModel([f"Answer to {row}."]),
            id="ann",
            journal=journal,
            options=Options(reopen=True),
            settings=Settings(),
        )

    (first,) = await all_of(make, ["Where is order 7?"])
    again, other = await all_of(
        make, ["Where is order 7?", "Cancel order 9"], at_once=1
    )
    journal.close()
    assert first.answer.text == again.answer.text == "Answer to Where is order 7?."
    assert again.earlier
    assert not other.earlier
    assert other.answer.outcome == "failed"
    assert "answers another request: 'Where is order 7?'" in other.answer.error


def test_a_session_instead_of_a_function_is_refused_once() -> None:
    """Each of 10,000 rows failed with "'Session' object is not callable"."""

    async def go(session: Session) -> None:
        async for _ in run_many(cast("Any", session), ["a", "b"]):
            raise AssertionError

    with (
        Session(ScriptedModel([])) as session,
        pytest.raises(ConfigError, match="make: expected a function that returns the"),
    ):
        asyncio.run(go(session))
