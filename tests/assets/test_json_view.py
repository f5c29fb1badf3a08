"""B57, B58: what can be said as JSON, and the JSON that says it."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.assets.json_view import DEPTH, drain, holds_objects, to_json_value
from neuraxis.specs import STREAM_ITEMS

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=15,
)
OBJECTS = st.sampled_from(
    [dt.date(2026, 1, 2), Decimal(1), b"x", object(), math.nan, {1: 2}, int, {1, 2}]
)
ANY = st.recursive(
    JSON | OBJECTS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
NO_JSON = [b"", object(), math.nan, math.inf, {1: 2}, int, 1j]


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Shape(enum.Enum):
    ROUND = (1,)


class Pair(NamedTuple):
    left: int
    right: Any = None


Old = namedtuple("Old", "a b")


@dataclass
class Node:
    name: str
    below: list[Node] = field(default_factory=list["Node"])


class Text(str):
    __slots__ = ()


class Row(list[int]):
    pass


def _said(value: Any) -> Any:
    can_be_said, said = to_json_value(value)
    assert can_be_said
    return said


@given(JSON)
def test_B57_json_is_said_as_it_is(value: Any) -> None:
    """Nothing is lost and nothing added; no object of it is needed."""
    said = _said(value)
    assert said == value
    assert json.dumps(said) == json.dumps(value)
    assert not holds_objects([value])


@given(ANY)
def test_B57_what_is_said_is_json(value: Any) -> None:
    """It can be written strictly, and said once more it is the same."""
    can_be_said, said = to_json_value(value)
    if can_be_said:
        assert json.loads(json.dumps(said, allow_nan=False)) == said
        assert to_json_value(said) == (True, said)
    else:
        assert said is None


@given(ANY, st.sampled_from(NO_JSON))
def test_B58_one_bad_leaf_is_enough(value: Any, leaf: Any) -> None:
    """Wherever it stands."""
    for around in ([value, leaf], {"a": value, "b": [{"c": leaf}]}, Pair(0, leaf)):
        assert to_json_value(around) == (False, None)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC), "2026-01-02T03:04:00+00:00"),
        (dt.time(13, 45), "13:45:00"),
        (dt.timedelta(minutes=1, milliseconds=500), 60.5),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("a/b"), "a/b"),
        (Decimal("1E+3"), "1E+3"),
        (Level.HIGH, 3),
        (Shape.ROUND, "ROUND"),
        (Pair(1), {"left": 1, "right": None}),
        (Old(1, (2,)), {"a": 1, "b": [2]}),
        (Node("a", [Node("b")]), {"name": "a", "below": [{"name": "b", "below": []}]}),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (MappingProxyType({"a": Colour.RED}), {"a": "red"}),
        (Text("x"), "x"),
        (Row([1]), [1]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", 1, None}), ["b", 1, None]),
        (deque([1, Colour.RED], 5), [1, "red"]),
        (range(1, 6, 2), [1, 3, 5]),
        ({"a": {2: Colour.RED}.values()}, {"a": ["red"]}),
    ],
)
def test_B57_the_fixed_rules(value: Any, said: Any) -> None:
    """One form for each class that has one; plain JSON comes out."""
    assert _said(value) == said
    assert type(_said(value)) is type(said)


def test_B57_numbers_of_numpy() -> None:
    """A scalar is its number; an array is none."""
    numpy = pytest.importorskip("numpy")
    given_ = {"a": numpy.float32(1.5), "b": [numpy.int64(2)], "c": numpy.bool_(True)}
    said = _said(given_)
    assert said == {"a": 1.5, "b": [2], "c": True}
    assert [type(said["a"]), type(said["b"][0]), type(said["c"])] == [float, int, bool]
    for no_json in (numpy.float64("nan"), numpy.zeros(1), numpy.complex128(1)):
        assert not to_json_value(no_json)[0]


def test_B57_a_model_is_said_by_the_names_of_a_call() -> None:
    """Its aliases, as its schema has them."""
    pydantic = pytest.importorskip("pydantic")

    class Mail(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        sent_by: str = pydantic.Field(alias="from")
        day: dt.date

    mail = Mail.model_validate({"from": "a", "day": "2026-01-02"})
    assert _said([mail]) == [{"from": "a", "day": "2026-01-02"}]


def test_B57_a_class_is_not_said() -> None:
    """What its objects can do, it cannot."""
    for cls in (Node, Pair, Colour, int, dict):
        assert to_json_value(cls) == (False, None)


@pytest.mark.parametrize("key", [1, None, ("a",), Text("a"), Colour.RED])
def test_B57_keys_are_texts(key: Any) -> None:
    """What JSON would turn into a text is not what the command gave."""
    assert to_json_value([{key: 2}]) == (False, None)


def test_B57_depth_is_bounded() -> None:
    """As deep as told it is said; deeper, or in a circle, it is an asset."""

    def nested(depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = [value]
        return value

    assert to_json_value(nested(DEPTH))[0]
    assert not to_json_value(nested(DEPTH + 2))[0]
    circle = Node("a")
    circle.below.append(circle)
    loop: dict[str, Any] = {}
    loop["loop"] = [loop]
    assert to_json_value(circle) == to_json_value(loop) == (False, None)


def test_B57_what_is_said_is_another_object() -> None:
    """The command may go on changing its own."""
    own = {"a": [1]}
    said = _said(own)
    own["a"].append(2)
    assert said == {"a": [1]}


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        (Node("a"), True),
        ([{"a": [Pair(1)]}], True),
        ({"a": (1, [Row()])}, True),
        ([dt.date(2026, 1, 2), {1, 2}, Decimal(1), Colour.RED, UUID(int=1)], False),
        ({"a": [1.5, None, "x", (True,)]}, False),
    ],
)
def test_B57_objects_are_told_from_values(value: Any, holds: bool) -> None:
    """What JSON says whole needs no asset beside it."""
    assert holds_objects(value) is holds


def test_B57_a_long_range_is_not_written_out() -> None:
    """It is an object like any other."""
    assert to_json_value(range(10**12)) == (False, None)


def test_an_iterator_is_its_items() -> None:
    """So is a view of a dict; anything else is itself: lists, ranges, and files."""
    assert drain({"a": 1}.values()) == [1]
    assert drain(n * n for n in range(3)) == [0, 1, 4]
    assert drain(iter([])) == []
    for other in ([1], "text", {"a": 1}, range(3), None):
        assert drain(other) is other


def test_a_file_is_no_list(tmp_path: Any) -> None:
    """It is not read, and not closed."""
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n", encoding="utf-8")
    with path.open(encoding="utf-8") as file:
        assert drain(file) is file
        assert file.read() == "one\ntwo\n"


def test_an_endless_iterator_is_refused() -> None:
    """One more than may be taken is asked for, no further one."""
    taken = 0

    def endless() -> Any:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    with pytest.raises(ValueError, match=f"more than {STREAM_ITEMS} items"):
        drain(endless())
    assert taken == STREAM_ITEMS + 1
    assert len(drain(iter(range(STREAM_ITEMS)))) == STREAM_ITEMS


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
def test_B57_dates_of_numpy_are_said_as_dates(unit: str) -> None:
    """In nanoseconds, too, which are those of every pandas column."""
    np = pytest.importorskip("numpy")
    day = np.datetime64("2026-01-02", unit)
    assert to_json_value(day)[1].startswith("2026-01-02")
    assert to_json_value(np.timedelta64(90, "s").astype(f"timedelta64[{unit}]"))[1] == (
        0.0 if unit == "D" else 90.0
    )
    assert to_json_value([np.datetime64("NaT", unit), np.timedelta64("NaT", unit)]) == (
        True,
        [None, None],
    )


def test_B57_time_that_numpy_or_pandas_count_is_not_cut() -> None:
    np, pd = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    assert to_json_value(np.timedelta64(1500, "ns")) == (True, 1.5e-06)
    assert to_json_value(np.timedelta64(2, "Y")) == (False, None)
    assert to_json_value({"t": pd.NaT}) == (True, {"t": None})


@pytest.mark.parametrize("number", ["NaN", "Infinity", "sNaN"])
def test_B57_a_decimal_that_is_no_number_is_not_said(number: str) -> None:
    """As a float that is none."""
    assert to_json_value({"n": Decimal(number)}) == (False, None)


@pytest.mark.parametrize("value", [None, 1, "x", 1.5, True])
def test_a_plain_value_holds_no_objects(value: Any) -> None:
    """Such an answer leaves the session on its short way."""
    assert not holds_objects(value)


class Rows(list[Any]):
    """A list of a library."""


DOUBLED: list[Callable[[Any], Any]] = [
    lambda it: [it, it],
    lambda it: (it, it),
    lambda it: {"a": it, "b": it},
    lambda it: Rows([it, it]),
    lambda it: Pair(it, it),
    lambda it: Node(name=it, below=it),
    lambda it: frozenset({(it, 1), (it, 2)}),
]


@pytest.mark.parametrize("doubled", DOUBLED)
def test_what_stands_in_itself_many_times_over(
    doubled: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty small objects are a billion as text: the answer is an asset, at once."""
    monkeypatch.setattr("neuraxis.assets.json_view.ITEMS", 100)
    value: Any = doubled("x")
    assert to_json_value(value)[0]
    for _ in range(12):
        value = doubled(value)
    assert to_json_value(value) == (False, None)


def test_a_set_of_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a list of as many."""
    monkeypatch.setattr("neuraxis.assets.json_view.ITEMS", 100)
    assert to_json_value(set(range(100)))[0]
    assert not to_json_value(set(range(101)))[0]
