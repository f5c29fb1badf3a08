"""The same call, written in any way, is run so often and then answered as before."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from neuraxis import Answer, Budget, Session, command
from neuraxis.models.scripted import ScriptedModel


@dataclass
class Part:
    """A class of the author's own."""

    n: int


def _block(*intents: dict[str, Any]) -> str:
    return f"<!-- RESPONSE_START -->\n{json.dumps(intents)}\n<!-- RESPONSE_END -->"


def _run(plugins: list[Any], *replies: str, repeats: int = 2) -> Answer:
    session = Session(
        model=ScriptedModel([*replies, "done"]),
        plugins=plugins,
        budget=Budget(repeats=repeats),
    )
    return session.run_sync("go")


def test_C17_equal_reads_of_one_reply_all_run() -> None:
    """Three throws of a die are three; one more in a later reply is not made."""
    thrown: list[int] = []

    @command(effects="read")
    async def roll_dice() -> int:
        """Roll a die."""
        thrown.append(len(thrown) + 1)
        number = thrown[-1]
        await asyncio.sleep(0)
        return number

    one = {"tool": "roll_dice"}
    answer = _run([roll_dice], _block(one, one, one), _block(one, one))
    assert [result.value for result in answer.calls] == [1, 2, 3, 3, 3]
    warned = [bool(result.warnings) for result in answer.calls]
    assert warned == [False, False, False, True, True]


def test_a_call_by_reference_is_the_same_as_one_written_out() -> None:
    """What counts is what the command would get."""
    seen: list[int] = []

    @command(effects="none")
    def two() -> int:
        """Two."""
        return 2

    @command(effects="none")
    def twice(n: int) -> int:
        """Twice."""
        seen.append(n)
        return 2 * n

    answer = _run(
        [two, twice],
        _block({"tool": "twice", "n": 2}),
        _block({"tool": "two"}, {"tool": "twice", "n": "{{ results[0] }}"}),
        repeats=1,
    )
    assert seen == [2]
    assert [result.value for result in answer.calls] == [4, 2, 4]


def test_B42_a_repeated_answer_is_the_object_too() -> None:
    """A step may refer to the call that was not run."""
    seen: list[Any] = []

    @command(effects="none")
    def give() -> Part:
        """Give."""
        return Part(7)

    @command(effects="none")
    def take(it: Any) -> None:
        """Take."""
        seen.append(it)

    give_it = {"tool": "give"}
    _run(
        [give, take],
        _block(give_it),
        _block(give_it, {"tool": "take", "it": "{{ results[0] }}"}),
        repeats=1,
    )
    assert seen == [Part(7)]


def test_equal_effects_of_one_reply_all_run() -> None:
    """Each is meant; a further one in a later reply was not done, and says so."""
    pressed: list[int] = []

    @command(effects="once")
    def press() -> int:
        """Press."""
        pressed.append(1)
        return len(pressed)

    one = {"tool": "press"}
    answer = _run([press], _block(*[one] * 4), _block(one))
    assert [result.value for result in answer.calls[:4]] == [1, 2, 3, 4]
    assert len(pressed) == 4
    last = answer.calls[-1]
    assert (last.status, last.value) == ("failed", None)
    assert last.error is not None
    assert last.error.code == "repeated_call"
    assert "It was not run again" in last.error.message


def test_a_stuck_model_repeats_an_effect_only_so_often() -> None:
    """One call in each reply: what exceeds the limit fails."""
    pressed: list[int] = []

    @command(effects="idempotent")
    def press() -> None:
        """Press."""
        pressed.append(1)

    answer = _run([press], *[_block({"tool": "press"})] * 4)
    assert len(pressed) == 2
    told = [result.status for result in answer.calls]
    assert told == ["done", "done", "failed", "failed"]


def test_a_deep_value_from_outside_is_looked_at() -> None:
    """It has no JSON to compare: the call is none that was made before."""

    @command(effects={"kind": "read", "others_write": True})
    def inbox() -> list[Any]:
        """Mails."""
        body: Any = "x"
        for _ in range(3_000):
            body = {"a": body}
        return [{"id": 1, "body": body}, {"id": 2}]

    mails = "asset://a1/content/response"
    answer = _run(
        [inbox, "neuraxis:assets"],
        _block({"tool": "inbox"}),
        _block(
            {"tool": "asset_text", "asset": mails},
            {"tool": "asset_grep", "asset": mails, "pattern": "id"},
            {"tool": "asset_lines", "asset": mails},
            {"tool": "asset_rows", "asset": mails},
            {"tool": "describe_asset", "asset": mails},
        ),
    )
    assert [result.status for result in answer.calls] == ["done"] * 6
