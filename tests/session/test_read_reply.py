"""A long reply is decoded beside the event loop, and within the run's time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from neuraxis import Budget, Session
from neuraxis.messages import Reply
from neuraxis.models.scripted import ScriptedModel
from neuraxis.session import ask_model
from neuraxis.settings import Settings

LONG = "word " * 30_000


class _Decoding:
    """Stands in for `decode_reply`: notes its thread, and may be held."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.may_end = threading.Event()
        self.decode = ask_model.decode_reply

    def __call__(self, *args: Any) -> Reply:
        self.threads.append(threading.get_ident())
        self.may_end.wait(30)
        return self.decode(*args)


@pytest.fixture(name="decoding")
def _decoding(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Decoding]:
    decoding = _Decoding()
    monkeypatch.setattr(ask_model, "decode_reply", decoding)
    yield decoding
    decoding.may_end.set()


def _session(*replies: str, seconds: float = 60) -> Session:
    return Session(
        ScriptedModel(list(replies)),
        settings=Settings(),
        budget=Budget(seconds=seconds),
    )


@pytest.mark.parametrize("text", ["word", LONG])
async def test_D6_only_a_long_reply_is_decoded_in_a_thread(
    decoding: _Decoding, text: str
) -> None:
    """A short one costs no change of threads."""
    decoding.may_end.set()
    async with _session(text) as session:
        answer = await session.run("go")
    assert answer.text == text.strip()
    here = decoding.threads == [threading.get_ident()]
    assert here is (text == "word")
    assert [item.role for item in session.history] == ["user", "assistant"]


async def test_D6_the_time_of_a_run_ends_the_decoding(decoding: _Decoding) -> None:
    """The reply stays in the history, and the next request goes on behind it."""
    async with _session(LONG, "done", seconds=0.2) as session:
        answer = await session.run("go")
        assert answer.outcome == "budget"
        assert session.history[-1].content == LONG
        decoding.may_end.set()
        assert (await session.run("again")).text == "done"
        roles = [item.role for item in session.history]
        assert roles == ["user", "assistant", "user", "assistant"]
