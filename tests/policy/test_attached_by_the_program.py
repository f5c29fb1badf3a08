"""An object that the program attached as its own is not from outside."""

from pathlib import Path
from typing import Any

import pytest

from neuraxis import Session, command
from neuraxis.testing import ScriptedModel

CLOSE = '[{"tool": "close", "id": "t1"}]'
SEND = '[{"tool": "post", "url": "https://x.test/?q=rates"}]'


@command(effects="once")
def close(id: str) -> str:
    """Closes a ticket."""
    return f"closed {id}"


@command(effects={"kind": "read", "others_write": True}, sends_out=["url"])
def post(url: str) -> str:
    """Opens a page."""
    return "a page"


def session(*replies: str, **given: Any) -> Session:
    return Session(ScriptedModel([*replies, "ok"]), plugins=[close, post], **given)


@pytest.mark.parametrize(("outside", "ended"), [(True, "denied"), (False, "done")])
def test_effects_stay_free_after_an_object_of_the_programs_own(
    outside: bool, ended: str
) -> None:
    """By default somebody else may have written it."""
    with session(CLOSE) as talk:
        talk.attach({"rates": [1.0]}, "rates", outside=outside)
        (result,) = talk.run_sync("Close the ticket t1").calls
        assert ended == (result.error.code if result.error else result.status)


def test_it_is_private_all_the_same() -> None:
    """Once a page was read, it does not leave for where the page says."""
    with session(SEND, SEND.replace("rates", "other")) as talk:
        talk.attach({"rates": [1.0]}, "rates", outside=False)
        first, second = talk.run_sync("What are the rates?").calls
        assert first.status == "done"
        assert second.error is not None
        assert second.error.code == "denied"


def test_a_session_that_is_opened_again_knows_it(tmp_path: Path) -> None:
    """From its journal; another attachment still counts as from outside."""
    given = {"journal": tmp_path / "j.db"}
    with session("Seen.", **given) as talk:
        talk.attach([{"n": n} for n in range(500)], "numbers", outside=False)
        talk.run_sync("Look at it")
        id = talk.id
    replies = ScriptedModel([CLOSE, "ok", CLOSE.replace("t1", "t2"), "ok"])
    with Session.open(id, model=replies, plugins=[close], **given) as again:
        (result,) = again.run_sync("Close the ticket t1").calls
        assert result.status == "done"
        again.attach({"a": 1})
        (result,) = again.run_sync("Close the ticket t2").calls
        assert result.error is not None
        assert result.error.code == "denied"
