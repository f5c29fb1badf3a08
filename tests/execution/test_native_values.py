"""What a command gives, of any class, is said, referred to, and arrives as hinted."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import enum
import functools
import math
import pathlib
import typing
import uuid
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from neuraxis import Session
from neuraxis.messages import Call, Result
from neuraxis.models.scripted import ScriptedModel


class Colour(enum.Enum):
    """Said by its value."""

    RED = "red"


class Corner(enum.Enum):
    """Said by its name: JSON has no tuples."""

    LEFT = (0, 1)


class Level(enum.IntEnum):
    """Its values are numbers, and keys are texts."""

    LOW = 1


@dataclass
class Part:
    """A number and when."""

    n: int
    when: datetime.date = datetime.date(2026, 1, 2)


@dataclass
class Whole:
    """Parts, and what it counts itself."""

    parts: list[Part]
    count: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.count = len(self.parts)


class Point(NamedTuple):
    """Two fields with names."""

    x: int
    y: int = 0


@dataclass
class Picture:
    """It holds what JSON has no word for."""

    thing: OpaqueThing
    name: str = ""


class OpaqueThing:
    """No JSON makes one."""


DATE = datetime.date(2026, 1, 2)
VALUES: list[tuple[Any, Any]] = [
    (bytes, b"\0\xff"),
    (pathlib.Path, pathlib.Path("/a/b")),
    (decimal.Decimal, decimal.Decimal("1.10")),
    (uuid.UUID, uuid.UUID(int=5)),
    (datetime.date, DATE),
    (datetime.datetime, datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC)),
    (datetime.time, datetime.time(1, 2)),
    (datetime.timedelta, datetime.timedelta(seconds=1.5)),
    (set[datetime.date], {DATE}),
    (frozenset[str], frozenset("a")),
    (tuple[int, str], (1, "a")),
    (tuple[()], ()),
    (Colour, Colour.RED),
    (Corner, Corner.LEFT),
    (typing.Literal[Colour.RED], Colour.RED),
    (Part | None, Part(1)),
    (Whole, Whole([Part(1), Part(2)])),
    (dict[str, Part], {"a": Part(1)}),
    (list[Point], [Point(1, 2)]),
    (Picture, Picture(OpaqueThing())),
    (OrderedDict[str, int], OrderedDict(a=1)),
    (Counter[str], Counter("aab")),
    (dict[int, datetime.date], {1: DATE}),
    (dict[Colour, int], {Colour.RED: 1}),
    (list[float], [1.5, math.inf]),
    (int | float, 2.0),
    (OpaqueThing, OpaqueThing()),
]


def _run(plugins: list[Callable[..., Any]], *calls: dict[str, Any]) -> list[Result]:
    made = [
        Call(
            id=f"c{number}",
            plugin=None,
            command=given.pop("tool"),
            for_each=given.pop("for_each", None),
            arguments=given,
        )
        for number, given in enumerate(calls)
    ]
    with Session(model=ScriptedModel([]), plugins=[plugins]) as session:
        return asyncio.run(session.call_all(made))


@pytest.mark.parametrize(("hint", "value"), VALUES, ids=lambda part: repr(part)[:30])
@pytest.mark.parametrize("inside", [False, True], ids=["whole", "a field"])
def test_C20_a_value_comes_back_as_the_class_it_was(
    hint: Any, value: Any, inside: bool
) -> None:
    """Given whole or in a field, and referred to by one that asks for the class."""
    seen: list[Any] = []

    def give() -> Any:
        return {"field": value} if inside else value

    def take(it: Any) -> None:
        seen.append(it)

    give.__annotations__["return"] = dict[str, hint] if inside else hint
    take.__annotations__["it"] = hint
    place = "{{ results[0].field }}" if inside else "{{ results[0] }}"
    given, taken = _run([give, take], {"tool": "give"}, {"tool": "take", "it": place})
    assert given.status == "done", given
    assert not given.warnings
    assert taken.status == "done", taken
    assert seen == [value]
    assert type(seen[0]) is type(value)


@pytest.mark.parametrize(
    ("value", "place", "wanted"),
    [
        (Whole([Part(7)]), ".parts[0].n", 7),
        (Whole([Part(7)]), ".count", 1),
        (Point(7), ".x", 7),
        ({7}, "[0]", 7),
        ({"p": Part(7)}, ".p.n", 7),
    ],
)
def test_B53_what_was_said_can_be_referred_to(
    value: Any, place: str, wanted: int
) -> None:
    """A field that the model was told of an object is there, whatever the class."""

    def give() -> Any:
        return value

    def take(it: int) -> int:
        return it

    call = {"tool": "take", "it": "{{ results[0]" + place + " }}"}
    assert _run([give, take], {"tool": "give"}, call)[1].value == wanted


def test_C20_a_date_in_a_text_has_no_quotes() -> None:
    """Nor has one that lies in an asset."""

    def give(asset: bool) -> Any:
        return {"when": DATE, "thing": OpaqueThing() if asset else None}

    def take(it: str) -> str:
        return it

    for asset in (False, True):
        results = _run(
            [give, take],
            {"tool": "give", "asset": asset},
            {"tool": "take", "it": "on {{ results[0].when }}"},
            {"tool": "take", "it": "{{ results[0].when }}"},
        )
        told = [result.value for result in results[1:]]
        assert told == ["on 2026-01-02", "2026-01-02"]


def test_a_list_arrives_where_a_tuple_was_given() -> None:
    """And a set arrives as one, and as a list."""

    def give() -> tuple[int, int]:
        return (2, 1)

    def listed(it: list[int]) -> Any:
        it.append(3)
        return it

    def as_set(it: set[int]) -> list[int]:
        return sorted(it | {4})

    place = "{{ results[0] }}"
    results = _run(
        [give, listed, as_set],
        {"tool": "give"},
        {"tool": "listed", "it": place},
        {"tool": "as_set", "it": place},
    )
    assert [result.value for result in results[1:]] == [[2, 1, 3], [1, 2, 4]]


def test_for_each_item_the_answer_is_what_it_was() -> None:
    """Though the command gives its own list each time."""
    own: list[int] = []

    def note() -> list[int]:
        own.append(len(own))
        return own

    (result,) = _run([note], {"tool": "note", "for_each": ["a", "b"]})
    assert result.value == [[0], [0, 1]]


def test_what_is_attached_is_the_sessions_own() -> None:
    """The person goes on with the list that was attached."""
    own = [1, 2]
    with Session(model=ScriptedModel([]), plugins=[]) as session:
        name = session.attach(own)
        own.append(3)
        assert session.assets.root(name) == {"content": [1, 2]}


def _logged(function: Any) -> Any:
    @functools.wraps(function)
    def logged(*values: Any, **named: Any) -> Any:
        return function(*values, **named)

    return logged


def test_functions_of_every_kind() -> None:
    """Async generators, decorated async functions, partials, positional-only gaps."""

    async def count(n: int) -> AsyncIterator[int]:
        for number in range(n):
            yield number

    @_logged
    async def later(when: datetime.date) -> str:
        await asyncio.sleep(0)
        return repr(when)

    def add(a: int, b: int) -> int:
        return a + b

    def gap(a: int = 1, b: float = 2.0, /) -> list[float]:
        return [a, b]

    bound = functools.update_wrapper(functools.partial(add, 1), add)
    results = _run(
        [count, later, bound, gap],
        {"tool": "count", "n": 3},
        {"tool": "later", "when": "2026-01-02"},
        {"tool": "add", "b": 2},
        {"tool": "gap", "b": 5},
    )
    told = [result.value for result in results]
    assert told == [[0, 1, 2], "datetime.date(2026, 1, 2)", 3, [1, 5.0]], results


WRITTEN: list[tuple[Any, Any, Any]] = [
    (dict[Level, int], {"1": 2}, {Level.LOW: 2}),
    (OrderedDict[str, float], {"a": 1}, OrderedDict(a=1.0)),
    (Counter[str], {"a": 1}, Counter("a")),
    (float | int, 2, 2),
    (int | float, 2.0, 2.0),
]


@pytest.mark.parametrize(("hint", "given", "wanted"), WRITTEN)
def test_what_a_model_writes_arrives_as_hinted(
    hint: Any, given: Any, wanted: Any
) -> None:
    """Keys that are members, mappings with methods, and both kinds of numbers."""
    seen: list[Any] = []

    def take(it: Any) -> None:
        seen.append(it)

    take.__annotations__["it"] = hint
    _run([take], {"tool": "take", "it": given})
    assert seen == [wanted]
    assert type(seen[0]) is type(wanted)


@pytest.mark.parametrize(
    ("hint", "given"), [(float, 10**400), (datetime.timedelta, 1e300)]
)
def test_a_number_that_is_too_large_is_told(hint: Any, given: Any) -> None:
    """In words for the model, not as Python's exception."""

    def take(it: Any) -> None:
        """Takes it."""

    take.__annotations__["it"] = hint
    (result,) = _run([take], {"tool": "take", "it": given})
    assert result.error is not None
    assert "take failed: it: expected a number" in result.error.message


def test_pydantic_fields_are_said_by_the_names_a_call_gives_them() -> None:
    """An alias is what the schema shows."""
    pydantic = pytest.importorskip("pydantic")
    model: Any = pydantic.create_model(
        "Person", first=(int, pydantic.Field(alias="firstName"))
    )

    def give() -> Any:
        return model(firstName=3)

    def take(it: Any) -> int:
        return it.first

    give.__annotations__["return"] = take.__annotations__["it"] = model
    given, taken = _run(
        [give, take], {"tool": "give"}, {"tool": "take", "it": "{{ results[0] }}"}
    )
    assert given.value == {"firstName": 3}
    assert (given.warnings, taken.value) == ((), 3)


def test_what_holds_itself_or_is_a_class_travels() -> None:
    """Neither can be said."""
    ring: list[Any] = [1]
    ring.append(ring)
    model = pytest.importorskip("pydantic").BaseModel

    for value in (ring, Part, model):

        def give(value: Any = value) -> Any:
            return value

        def take(it: Any) -> str:
            return type(it).__name__

        place = "{{ results[0] }}"
        given, taken = _run(
            [give, take], {"tool": "give"}, {"tool": "take", "it": place}
        )
        assert given.stored, given
        assert taken.value == type(value).__name__, taken


def test_B41_a_class_that_is_said_is_passed_as_the_object() -> None:
    """Where a command asks for it by the name of its class."""
    seen: list[Any] = []
    value = Part(1)

    def give() -> Any:
        return value

    def take(it: Any) -> None:
        seen.append(it)

    with Session(model=ScriptedModel([]), plugins=[[give, take]]) as session:
        command: Any = session.registry.find(None, "take")
        name = f"{Part.__module__}.Part"
        opaque: dict[str, Any] = {"x-type": name, "not": {}, "x-asset-ref": True}
        command.parameters = type(command.parameters)(
            {"type": "object", "properties": {"it": opaque}}
        )
        calls = [
            Call(id="a", plugin=None, command="give", arguments={}),
            Call(
                id="b",
                plugin=None,
                command="take",
                arguments={"it": "{{ results[0] }}"},
            ),
        ]
        results = asyncio.run(session.call_all(calls))
    assert results[0].value == {"n": 1, "when": "2026-01-02"}
    assert seen == [value], results


@pytest.mark.parametrize(
    ("given", "reference", "expected"),
    [
        (Part(3), "{{ results[0] }}", Part(3)),
        ({"day": datetime.date(2026, 1, 2)}, "{{ results[0].day }}", None),
        ({"day": {1, 2}}, "{{ results[0] }}", {"day": {1, 2}}),
        ([(1, 2)], "{{ results[0] }}", [(1, 2)]),
        ({"n": 1}, "{{ results[0] }}", {"n": 1}),
    ],
)
def test_B42_a_parameter_without_a_hint_gets_the_object(
    given: Any, reference: str, expected: Any
) -> None:
    """As it was given, not as it was said; a part of it too."""
    seen: list[Any] = []

    def gives() -> Any:
        return given

    def takes(value: Any) -> None:
        seen.append(value)

    call = {"tool": "takes", "value": reference}
    results = _run([gives, takes], {"tool": "gives"}, call)
    assert [result.status for result in results] == ["done", "done"], results
    expected = given["day"] if expected is None else expected
    assert seen == [expected]
    assert type(seen[0]) is type(expected)


@pytest.mark.parametrize("hint", [list, list[Any], Any])
def test_B42_a_list_of_anything_gets_the_objects(hint: Any) -> None:
    """A `list` says nothing of what is in it."""
    seen: list[Any] = []

    def gives() -> Any:
        return [Part(1), Part(2)]

    def takes(value: Any) -> None:
        seen.append(value)

    takes.__annotations__["value"] = hint
    call = {"tool": "takes", "value": "{{ results[0] }}"}
    results = _run([gives, takes], {"tool": "gives"}, call)
    assert [result.status for result in results] == ["done", "done"], results
    assert seen == [[Part(1), Part(2)]]
