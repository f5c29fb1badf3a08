"""Long conversations: the prompt fits, little changes in it, and nothing is lost."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Call, Effects, Options, Session, command
from neuraxis.errors import ModelUnavailable
from neuraxis.events import AssetStored, HistoryShortened
from neuraxis.journal import open_journal
from neuraxis.messages import Message, Prompt
from neuraxis.models.scripted import ScriptedModel
from neuraxis.session.shorten.history import tokens
from neuraxis.settings import Settings

BUDGET = 32_000
SECRET = "the parcel of turn 1 has number 48151623"


@command(effects="read")
def look(number: int) -> str:
    """Look something up."""
    return f"finding {number}: " + "x" * 1_500


class Talk:
    """A conversation, and every prompt that the model was sent."""

    def __init__(self, folder: Path, **given: Any) -> None:
        self.prompts: list[tuple[Message, ...]] = []
        self.sums_up = True
        self.given = {
            "plugins": [look, "neuraxis:assets"],
            "journal": folder / "j.db",
            "workspace": folder / "w",
            "settings": Settings(),
            "options": Options(prompt_tokens=BUDGET),
            **given,
        }

    def reply(self, prompt: Prompt) -> str:
        """Look once for each request, then answer; sum up when asked to."""
        last = prompt.messages[-1].content
        self.prompts.append(prompt.messages)
        if "Sum up this conversation" in last:
            if not self.sums_up:
                raise ModelUnavailable("no summary today")
            return "SUMMARY of what was said."
        if "RESULTS_START" in last:
            return "It is found. " + "y" * 300
        return json.dumps([{"tool": "look", "number": len(self.prompts)}])

    def begin(self) -> Session:
        """A new session."""
        return Session(ScriptedModel(self.reply), id="s", **self.given)

    def changes(self) -> int:
        """How often a prompt was not the one before it with more behind."""
        asked = [p for p in self.prompts if "Sum up" not in p[-1].content]
        return sum(
            [m.content for m in new[: len(old) - 1]]
            != [m.content for m in old[: len(old) - 1]]
            for old, new in pairwise(asked)
        )


def shortened(folder: Path) -> list[HistoryShortened]:
    """The steps that the journal tells of."""
    journal = open_journal(folder / "j.db")
    events = [entry.event for entry in journal.read("s")]
    journal.close()
    return [event for event in events if isinstance(event, HistoryShortened)]


async def read_back(session: Session, pattern: str) -> str:
    """What a search in the conversation's text finds."""
    asset = session.assets.ids[-1]
    arguments: Any = {"asset": {"asset_id": asset}, "pattern": pattern}
    found = await session.call(
        Call(
            id=session.ids.new(),
            plugin=None,
            command="asset_grep",
            arguments=arguments,
        )
    )
    assert found.status == "done", found.error
    return json.dumps(found.value)


@pytest.mark.timeout(180)
async def test_300_turns_fit_and_turn_1_can_be_read_back(tmp_path: Path) -> None:
    """By reference, also after a restart; the prompt's beginning seldom changes."""
    talk = Talk(tmp_path)
    with talk.begin() as session:
        for turn in range(1, 301):
            said = SECRET if turn == 1 else f"request {turn} " + "z" * 200
            assert (await session.run(said)).outcome == "answered"
        assert len(talk.prompts) >= 600
        assert max(tokens(prompt) for prompt in talk.prompts) <= BUDGET
        assert talk.changes() <= 40
        assert "48151623" in await read_back(session, "parcel of turn")
        history = [message.content for message in session.history]
    steps = shortened(tmp_path)
    assert {step.how for step in steps} == {"references", "summary"}
    assert all(step.after < step.before for step in steps)
    with Session.open("s", model=ScriptedModel(talk.reply), **talk.given) as later:
        assert [message.content for message in later.history] == history
        assert "48151623" in await read_back(later, "parcel of turn")
        assert (await later.run("and now?")).outcome == "answered"
        assert later.assets.root("a1")["content"]["response"].startswith("finding 1:")


async def test_results_give_way_first(tmp_path: Path) -> None:
    """No model is asked while references are enough; the result is read by its id."""
    talk = Talk(tmp_path, options=Options(prompt_tokens=10_000))
    with talk.begin() as session:
        turn, steps = 0, list[HistoryShortened]()
        while not steps:
            turn += 1
            await session.run(f"request {turn}")
            steps = shortened(tmp_path)
        assert [step.how for step in steps] == ["references"]
        assert not any("Sum up" in prompt[-1].content for prompt in talk.prompts)
        assert "xxx" not in session.history[2].content
        assert "asset_id" in session.history[2].content
        assert session.assets.root("a1")["content"]["response"].startswith("finding")


async def test_without_the_model_the_requests_are_named(tmp_path: Path) -> None:
    """A summary that fails does not end the run."""
    talk = Talk(tmp_path, options=Options(prompt_tokens=3_000))
    talk.sums_up = False
    with talk.begin() as session:
        for turn in range(20):
            answer = await session.run(f"request number {turn}")
            assert answer.outcome == "answered"
        assert any("The requests so far" in m.content for m in session.history)


async def test_a_summary_carries_the_origins_of_what_it_sums_up(tmp_path: Path) -> None:
    """What strangers wrote stays theirs, also after a restart."""

    @command(effects=Effects(kind="read", open_world=True))
    def look(number: int) -> str:
        """Read a page."""
        return f"page {number}: " + "x" * 1_500

    options = Options(prompt_tokens=3_000)
    plugins = [look, "neuraxis:assets"]
    talk = Talk(tmp_path, plugins=plugins, options=options)
    with talk.begin() as session:
        for turn in range(15):
            await session.run(f"request {turn}")
    (*_, last) = [step for step in shortened(tmp_path) if step.how == "summary"]
    assert "look.look" in json.dumps(last.origins)
    with Session.open("s", model=ScriptedModel([]), **talk.given) as later:
        label = later.origins.results[last.asset]
        assert any(origin.open_world for origin in label)


async def test_without_a_budget_nothing_is_shortened(tmp_path: Path) -> None:
    """Whoever sets none has a model with room."""
    talk = Talk(tmp_path, options=Options())
    with talk.begin() as session:
        for turn in range(10):
            await session.run(f"request {turn}")
    assert shortened(tmp_path) == []


@pytest.mark.parametrize("kind", [AssetStored, HistoryShortened])
async def test_a_watch_that_raises_leaves_what_the_journal_has(
    tmp_path: Path, kind: type
) -> None:
    """Nothing is summed up twice: a reopened session has the same conversation."""
    talk = Talk(tmp_path, options=Options(prompt_tokens=4000))

    def watch(event: object) -> None:
        if isinstance(event, kind):
            raise ValueError("the page is closed")

    async def say(session: Session, turns: int) -> None:
        for number in range(turns):
            await session.drive(f"Request {number}. " + "z" * 900, watch)

    session = talk.begin()
    with pytest.raises(ValueError, match="the page is closed"):
        await say(session, 40)
    await session.resume()
    for number in range(8):
        await session.run(f"Later {number}. " + "z" * 900)
    said = [item.content for item in session.history]
    full = session.assets.root(session.assets.ids[-1])
    await session.aclose()
    later = Session.open("s", model=ScriptedModel([]), **talk.given)
    assert [item.content for item in later.history] == said
    assert later.assets.root(later.assets.ids[-1]) == full
    await later.aclose()


async def test_a_conversation_of_the_program_is_shortened_by_its_requests(
    tmp_path: Path,
) -> None:
    """Reopened without it, the session still has its own last messages."""
    talk = Talk(tmp_path, options=Options(prompt_tokens=6000))
    session = talk.begin()
    for number in range(20):
        content = f"Earlier {number}. " + "z" * 900
        session.history.append(Message(role="user", content=content))
        session.history.append(Message(role="assistant", content="I see."))
    await session.run("What now?")
    said = [item.content for item in session.history]
    assert "Earlier 19." in "".join(said)
    assert "Earlier 0." not in "".join(said[1:])
    await session.aclose()
    later = Session.open("s", model=ScriptedModel([]), **talk.given)
    assert [item.content for item in later.history] == said[-len(later.history) :]
    assert any("What now?" in item.content for item in later.history)
    await later.aclose()
