"""The words of an answer while it streams, in every dialect."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from neuraxis import Prose, Session, command
from neuraxis.dialects import DIALECTS
from neuraxis.errors import ModelBroken
from neuraxis.events import Event, ModelStarted
from neuraxis.messages import Chunk, Prompt
from neuraxis.testing import ScriptedModel

FRAMED = (
    '<!-- RESPONSE_START -->\n[{"tool": "look", "number": 3}]\n<!-- RESPONSE_END -->'
)


@command(effects="read")
def look(number: int) -> int:
    """Look something up."""
    return number


def _heard(replies: list[str], size: int, dialect: str = "intents") -> list[str]:
    pieces: list[str] = []
    prose = Prose()
    model = ScriptedModel(replies, chunk_size=size)
    with Session(model, plugins=[look], dialect=dialect) as session:
        session.run_sync("Look", watch=lambda event: pieces.append(prose(event)))
    return [piece for piece in pieces if piece]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_words_come_in_pieces_in_every_dialect(dialect: str) -> None:
    """More than one piece, and together they are the answer."""
    pieces = _heard(["There are 3, and 3 < 4 `so` far. [A](b)\n"], 4, dialect)
    assert "".join(pieces) == "There are 3, and 3 < 4 `so` far. [A](b)"
    assert len(pieces) > 5


@pytest.mark.parametrize("size", [1, 3, 5, 1000])
@pytest.mark.parametrize(
    "calls",
    [
        'Let me look.\n[{"tool": "look", "number": 3}]',
        f"Let me look.\n\n{FRAMED}",
        f"<think>Is it [{{? </think>\na: Let me look.\n{FRAMED}",
        'Let me look.\n```json\n[{"tool": "look", "number": 3}]\n```',
        'Let me look. [{"tool": "look", "number": 3}]',
        'Let me look. {"tool": "look", "number": 3}',
        'Let me look.\n`[{"tool": "look", "number": 3}]`',
        f"Let me look. ```\n{FRAMED}\n```",
        'Let me look.\n- [{"tool": "look", "number": 3}]',
        'Let me look. [{\n  "tool": "look", "number": 3}]',
    ],
)
def test_a_call_is_never_among_the_words(calls: str, size: int) -> None:
    """However the pieces cut it; the words of two replies stand apart."""
    heard = "".join(_heard([calls, "It is three."], size))
    assert heard == "Let me look.\n\nIt is three."


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    "calls",
    [
        "Let me look.\nlook(number=3)",
        "Let me look.\n1. `look(number=3)`",
        "Let me look: [look(number=3)]",
        "Let me look:\n```python\n[look(number=3)]\n```",
        'Let me look.\nlook\n{"number": 3}',
        'Let me look.\n>>>look\n{"number": 3}',
        'Let me look. [TOOL_CALLS]look{"number": 3}',
        'Let me look.\n**Action:** look\nAction Input: {"number": 3}',
        "Let me look. <tool_call><function=look><parameter=number>3</parameter>"
        "</function></tool_call>",
        'Let me look. <minimax:tool_call><invoke name="look">'
        '<parameter name="number">3</parameter></invoke></minimax:tool_call>',
    ],
)
def test_no_form_of_a_call_is_among_the_words(calls: str, size: int) -> None:
    """Nor those that models write as text where calls have a place of their own."""
    heard = "".join(_heard([calls, "It is three."], size, "native"))
    assert heard.replace(":", ".") == "Let me look.\n\nIt is three."


def test_code_is_said_while_it_comes() -> None:
    """A program in its fence goes on where an object stands in it."""
    said = (
        "Write:\n\n```python\nx = 1\ny = {'a': [{'b': x}]}\nlook(number=y)\n```\nEnd."
    )
    pieces = _heard([said], 4)
    assert "".join(pieces) == said
    assert max(map(len, pieces)) < 20


def test_what_looks_like_a_call_comes_with_the_end() -> None:
    """An answer that shows JSON loses nothing."""
    said = 'Look:\n\n```json\n[{"a": 1}]\n```\n\nThat is it.'
    assert "".join(_heard([said], 4)) == said
    assert _heard(['{"a": 1}'], 4) == ['{"a": 1}']


def test_one_reader_may_serve_several_runs() -> None:
    """The words of the second begin where they do with a new one."""
    prose = Prose()
    heard: list[str] = []
    with Session(ScriptedModel(["One.", "Two."])) as session:
        for request in ("a", "b"):
            session.run_sync(request, watch=lambda event: heard.append(prose(event)))
            heard.append("|")
    assert "".join(heard) == "One.|Two.|"


class _Breaking:
    """A model whose server breaks off in the middle of each reply but the last."""

    name = "breaking"

    def __init__(self, *replies: str) -> None:
        self._replies = list(replies)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """Return the next reply in pieces."""
        reply = self._replies.pop(0)
        for place in range(0, len(reply), 3):
            yield Chunk(text=reply[place : place + 3])
        if self._replies:
            broken = ModelBroken("the connection broke off")
            broken.again = True
            raise broken
        yield Chunk(finish_reason="stop")

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("replies", "heard"),
    [
        (
            ("It was sent on", "It was", "It was sent on Monday."),
            "It was sent on Monday.",
        ),
        (("It was sent", "It is here."), "It was sent\n\nIt is here."),
        (("It was", "a: It was [3]."), "It was [3]."),
        (("It was", "<think>It?</think>It was so."), "It was so."),
    ],
)
def test_words_that_come_anew_are_said_once(
    replies: tuple[str, ...], heard: str
) -> None:
    """A client that shows pieces itself is told that those so far are void."""
    prose, said, events = Prose(), list[str](), list[Event]()

    def watch(event: Event) -> None:
        events.append(event)
        said.append(prose(event))

    with Session(_Breaking(*replies)) as session:
        answer = session.run_sync("Where?", watch=watch)
    assert "".join(said) == heard
    assert heard.endswith(answer.text)
    started = [event for event in events if isinstance(event, ModelStarted)]
    assert [(each.turn, each.again) for each in started] == [(1, False)] + [
        (1, True) for _ in replies[1:]
    ]
