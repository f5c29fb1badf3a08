"""Keys of mappings: a wrong one is told before anything runs, by its name."""

from __future__ import annotations

import datetime
import enum
import json
import uuid
from collections import OrderedDict
from typing import Annotated, Any, Literal, NewType

import pytest

from neuraxis import Session, command
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import EVERYTHING
from neuraxis.testing import call, prompt_of


class Color(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


Number = NewType("Number", int)
DAY = datetime.date(2026, 1, 31)
OWN = uuid.UUID(int=5)

SECONDS = "number of seconds"
KEYS: list[tuple[Any, str, Any, str, str]] = [
    (int, "-1", -1, "x", "integer"),
    (Number, "1", 1, "1.5", "integer"),
    (Annotated[int, "a number"], "1", 1, "", "integer"),
    (float, "1.5e3", 1500.0, "x", "number"),
    (bool, "true", True, "yes", 'one of "true", "false"'),
    (Color, "red", Color.RED, "rad", 'one of "red", "blue"'),
    (Literal[1, 2], "1", 1, "3", 'one of "1", "2"'),
    (Literal[Color.RED], "red", Color.RED, "blue", '"red"'),
    (datetime.date, "2026-01-31", DAY, "soon", "date"),
    (datetime.timedelta, "5", datetime.timedelta(seconds=5), "long", SECONDS),
    (uuid.UUID, str(OWN), OWN, "mine", "uuid"),
]


def _takes(hint: Any) -> Any:
    def f(m: Any) -> str:
        return repr(m)

    f.__annotations__["m"] = hint
    return command(effects="read")(f)


@pytest.mark.parametrize(("hint", "given", "made", "wrong", "expected"), KEYS)
def test_a_key_is_checked_and_converted(
    hint: Any, given: str, made: Any, wrong: str, expected: str
) -> None:
    """Its path names it; text in the place of a number is no crash of the command."""
    takes = _takes(dict[hint, str])
    assert call(takes, "f", {"m": {given: "a"}}).value == repr({made: "a"})
    result = call(takes, "f", {"m": {given: "a", wrong: "b"}})
    assert result.error is not None
    assert result.error.code == "invalid_param"
    (problem,) = result.error.problems
    assert problem.path == ("m", wrong)
    assert problem.expected == f"{expected} as the key"
    assert problem.got == json.dumps(wrong)


def test_nothing_runs_if_a_key_is_wrong() -> None:
    """The plan is checked as a whole, also where the mapping is deep inside."""
    ran: list[str] = []

    @command(effects="once")
    def note(text: str) -> str:
        """Note."""
        ran.append(text)
        return text

    @command(effects="read")
    def many(dd: list[dict[int, str]]) -> int:
        """Count."""
        return len(dd)

    plan = [
        {"tool": "note", "text": "first"},
        {"tool": "many", "dd": [{"1": "a"}, {"x": "y"}]},
    ]
    model = ScriptedModel([json.dumps(plan), "ok"])
    with Session(model, plugins=[note, many], policy=EVERYTHING) as session:
        answer = session.run_sync("go")
    assert ran == []
    (problem,) = answer.problems
    assert "many.dd[1].x: expected integer as the key" in problem.message


def test_the_keys_of_an_object_of_an_earlier_step() -> None:
    """Converted ones are taken as they are; text must be of the type."""

    @command(effects="none")
    def make(key: str) -> dict[Any, str]:
        """Make."""
        return {key: "a"} if key else {5: "a"}

    takes = _takes(dict[int, str])

    def status(key: str) -> str:
        plan = [{"tool": "make", "key": key}, {"tool": "f", "m": "{{ results[0] }}"}]
        model = ScriptedModel([json.dumps(plan), "ok"])
        with Session(model, plugins=[make, takes]) as session:
            return session.run_sync("go").calls[-1].status

    assert [status(""), status("5"), status("x")] == ["done", "done", "failed"]


def test_a_key_that_no_schema_describes_is_told_by_its_command() -> None:
    """`OrderedDict` has no schema for its keys; it is a plain failure."""
    result = call(_takes(OrderedDict[int, str]), "f", {"m": {"x": "a"}})
    assert result.error is not None
    assert 'm: expected integer as the key, got "x"' in result.error.message


def test_the_model_is_shown_what_keys_are() -> None:
    """Beside what the values are."""
    assert "Dict[int, string]" in prompt_of(_takes(dict[int, str]))
