"""JSON of a call in, a value of the hinted type out; `test_function` has each hint."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import json
import pathlib
import uuid
import zoneinfo
from typing import Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuraxis.assets.json_view import to_json_value
from neuraxis.errors import CommandError
from neuraxis.plugins.functions.caller import caller_of
from neuraxis.plugins.functions.convert import converter, is_plain
from neuraxis.plugins.functions.hints import Defs, inlined, schema_of
from neuraxis.plugins.functions.unknown_keys import unknown_keys
from neuraxis.schema.schema import Schema


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Shape(enum.Enum):
    ROUND = (1,)
    FLAT = (2,)


class Pair(NamedTuple):
    left: int
    right: str = "r"


@dataclasses.dataclass
class Leaf:
    day: dt.date
    cost: decimal.Decimal
    size: float = 0.0


@dataclasses.dataclass
class Tree:
    name: str
    leaf: Leaf | None = None
    below: list[Tree] = dataclasses.field(default_factory=list["Tree"])


@dataclasses.dataclass
class Counted:
    name: str
    letters: int = dataclasses.field(init=False, default=0)

    def __post_init__(self) -> None:
        self.letters = len(self.name)


Row = TypedDict("Row", {"n": int, "day": NotRequired[dt.date]})  # noqa: UP013
"""As a class, its hints would stand in quotes: see the import above."""


LEAVES = st.builds(
    Leaf,
    day=st.dates(),
    cost=st.decimals(allow_nan=False, allow_infinity=False),
    size=st.floats(allow_nan=False, allow_infinity=False),
)
TREES = st.recursive(
    st.builds(Tree, name=st.text(max_size=3), leaf=st.none() | LEAVES),
    lambda inner: st.builds(
        Tree, name=st.text(max_size=3), below=st.lists(inner, max_size=3)
    ),
    max_leaves=5,
)
ROWS = st.builds(
    lambda n, day: Row(n=n, day=day) if day else Row(n=n),
    st.integers(),
    st.none() | st.dates(),
)
ZONES = st.none() | st.integers(-23, 23).map(
    lambda h: dt.timezone(dt.timedelta(hours=h))
)
VALUES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (dt.datetime, st.datetimes(timezones=ZONES)),
    (dt.date, st.dates()),
    (dt.time, st.times()),
    (dt.timedelta, st.timedeltas(dt.timedelta(-30_000), dt.timedelta(30_000))),
    (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (uuid.UUID, st.uuids()),
    (pathlib.Path, st.text("ab/. é", min_size=1, max_size=6).map(pathlib.Path)),
    (ipaddress.IPv4Address, st.ip_addresses(v=4)),
    (ipaddress.IPv6Address, st.ip_addresses(v=6)),
    (ipaddress.IPv4Network, st.ip_addresses(v=4).map(ipaddress.IPv4Network)),
    (ipaddress.IPv6Network, st.ip_addresses(v=6).map(ipaddress.IPv6Network)),
    (ipaddress.IPv4Interface, st.ip_addresses(v=4).map(ipaddress.IPv4Interface)),
    (ipaddress.IPv6Interface, st.ip_addresses(v=6).map(ipaddress.IPv6Interface)),
    (zoneinfo.ZoneInfo, st.sampled_from(("UTC", "Asia/Tokyo")).map(zoneinfo.ZoneInfo)),
    (Colour, st.sampled_from(Colour)),
    (Shape, st.sampled_from(Shape)),
    (Literal[Colour.RED], st.just(Colour.RED)),
    (set[int], st.sets(st.integers(), max_size=4)),
    (frozenset[dt.date], st.frozensets(st.dates(), max_size=3)),
    (tuple[int, dt.date], st.tuples(st.integers(), st.dates())),
    (tuple[dt.date, ...], st.lists(st.dates(), max_size=3).map(tuple)),
    (list[uuid.UUID], st.lists(st.uuids(), max_size=3)),
    (dict[str, dt.date], st.dictionaries(st.text(max_size=3), st.dates(), max_size=3)),
    (Pair, st.builds(Pair, left=st.integers(), right=st.text(max_size=3))),
    (Leaf, LEAVES),
    (Tree, TREES),
    (Counted, st.builds(Counted, name=st.text(max_size=3))),
    (Row, ROWS),
    (list[Row], st.lists(ROWS, max_size=3)),
    (dt.date | None, st.none() | st.dates()),
    (dt.date | int, st.dates() | st.integers()),
    (uuid.UUID | dt.date | None, st.none() | st.uuids() | st.dates()),
]


def _made(hint: Any, value: Any) -> Any:
    change = converter(hint)
    return value if change is None else change(value)


@pytest.mark.parametrize(
    ("hint", "values"), VALUES, ids=[str(hint) for hint, _ in VALUES]
)
@settings(max_examples=25)
@given(data=st.data())
def test_what_a_command_answers_another_can_be_given(
    hint: Any, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    """Said as JSON it fits the schema of its type, and is the same value again."""
    value = data.draw(values)
    can_be_said, said = to_json_value(value)
    assert can_be_said
    defs = Defs()
    schema = Schema(inlined(schema_of(hint, defs), defs))
    assert schema.problems(json.loads(json.dumps(said))) == ()
    made = _made(hint, said)
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    ("hint", "values"), VALUES, ids=[str(hint) for hint, _ in VALUES]
)
@settings(max_examples=25)
@given(data=st.data())
def test_a_value_of_the_type_is_passed_as_it_is(
    hint: Any, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    """It came by reference."""
    value = data.draw(values)
    made = _made(hint, value)
    assert made == value
    assert type(made) is type(value)
    if dataclasses.is_dataclass(value) or isinstance(value, enum.Enum):
        assert made is value


@pytest.mark.parametrize("hint", [str, bool, None, Any, object, list, dict])
def test_what_json_gives_needs_nothing(hint: Any) -> None:
    """Also in a list, a mapping or a union."""
    assert is_plain(hint)
    assert converter(hint) is None
    for around in (list[hint], dict[str, hint]):
        assert converter(around) is None


def test_numbers_are_of_the_hinted_kind() -> None:
    """JSON has one kind; what is no whole number is not made one."""
    assert type(_made(float, 1)) is float
    assert type(_made(int, 1.0)) is int
    assert _made(int, 1.5) == 1.5
    assert _made(int, True) is True
    assert [type(it) for it in _made(list[float], [1, 2.5])] == [float, float]
    assert type(_made(int | float, 1)) is int
    assert type(_made(int | float, 1.0)) is float


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (float, 10**400, "a number below 1.8e308"),
        (bytes, "é", "base64"),
        (dt.date, "2026-02-30", "a date like 2026-01-31"),
        (dt.time, "25:00", "a time like 13:45"),
        (dt.datetime, "now", "a date and time"),
        (dt.timedelta, 1e300, "a number of seconds"),
        (decimal.Decimal, "1,5", "a decimal number"),
        (uuid.UUID, "x", "a UUID"),
        (ipaddress.IPv4Address, "1.2.3", "an IPv4 address such as 192.0.2.1, got "),
        (ipaddress.IPv6Network, "x", "an IPv6 network such as 2001:db8::/32"),
        (zoneinfo.ZoneInfo, "Nowhere/X", "the name of a time zone, such as Europe/B"),
        (zoneinfo.ZoneInfo, "Europe", "the name of a time zone"),
        (zoneinfo.ZoneInfo, "../x", "the name of a time zone"),
        (zoneinfo.ZoneInfo, "x" * 5000, "the name of a time zone"),
        (list[dt.date], ["x"], "a date like"),
        (dict[str, Leaf], {"a": {"day": "x", "cost": "1"}}, "a date like"),
        (dt.date | None, "x", "a date like"),
    ],
)
def test_a_text_that_is_none_is_told(hint: Any, value: Any, expected: str) -> None:
    """Where a call did not go through its schema: what is expected, no traceback."""
    with pytest.raises(CommandError, match=f"expected {expected}"):
        _made(hint, value)


def test_mappings_have_the_keys_that_are_hinted() -> None:
    """Keys of JSON are texts."""
    assert _made(dict[int, str], {"1": "a"}) == {1: "a"}
    assert _made(dict[Colour, int], {"red": 1}) == {Colour.RED: 1}
    assert _made(dict[Shape, int], {"FLAT": 1}) == {Shape.FLAT: 1}
    counter = _made(collections.Counter[str], {"a": 2})
    assert (type(counter), counter["b"]) == (collections.Counter, 0)


def test_a_field_that_is_not_given_keeps_its_default() -> None:
    """Nothing is filled in."""
    assert _made(Tree, {"name": "a"}) == Tree("a")
    assert _made(Row, {"n": 1.0}) == {"n": 1}
    assert _made(list[Row], [{"n": 1, "day": "2026-01-02"}, {"n": 2}]) == [
        {"n": 1, "day": dt.date(2026, 1, 2)},
        {"n": 2},
    ]


def test_what_is_given_is_not_changed() -> None:
    """The journal has it."""
    value = {"name": "a", "below": [{"name": "b", "leaf": None}]}
    before = json.dumps(value)
    _made(Tree, value)
    assert json.dumps(value) == before


class Circle(msgspec.Struct, tag="circle", rename="camel"):
    wide_by: float


class Box(msgspec.Struct, tag=True, kw_only=True):
    wide: float = msgspec.field(name="width", default=1.0)
    inner: list[Box | Circle] = []


@pytest.mark.parametrize(
    "value", [Circle(2.0), Box(), Box(wide=3.0, inner=[Circle(1.0), Box()])]
)
def test_a_struct_is_written_and_read_as_msgspec_does(value: Any) -> None:
    """With its tag, and the names that its fields have in JSON."""
    written = msgspec.to_builtins(value)
    assert to_json_value(value) == (True, written)
    for hint in (type(value), Box | Circle, Circle | Box):
        defs = Defs()
        schema = Schema(inlined(schema_of(hint, defs), defs))
        assert schema.valid(written)
        assert not schema.valid({**written, "type": "neither"})
        assert _made(hint, written) == value


class Small(pydantic.BaseModel):
    x: int


class Large(pydantic.BaseModel):
    x: int
    y: int = 0


class Bare(pydantic.BaseModel):
    pass


class Holder(pydantic.BaseModel):
    inner: Small | None


class WideHolder(pydantic.BaseModel):
    inner: Large | None


@dataclasses.dataclass
class SmallData:
    x: int


@dataclasses.dataclass
class LargeData:
    x: int
    y: int = 0


class SmallDict(TypedDict):
    x: int


class LargeDict(TypedDict):
    x: int
    y: NotRequired[dt.date]


BOTH = {"x": 1, "y": 3}


@pytest.mark.parametrize(
    ("hint", "value", "made"),
    [
        (Small | Large, BOTH, Large(x=1, y=3)),
        (Large | Small, BOTH, Large(x=1, y=3)),
        (Bare | Small | Large | None, BOTH, Large(x=1, y=3)),
        (Small | Large, {"x": 1}, Small(x=1)),
        (Large | Small, {"x": 1, "z": 2}, Large(x=1)),
        (Small | dict[str, int], BOTH, Small(x=1)),
        (dict[str, int] | Large, BOTH, BOTH),
        (list[Small] | list[Large], [BOTH], [Large(x=1, y=3)]),
        (list[Small | Large], [BOTH, {"x": 1}], [Large(x=1, y=3), Small(x=1)]),
        (Holder | WideHolder, {"inner": BOTH}, WideHolder(inner=Large(x=1, y=3))),
        (Holder | WideHolder, {"inner": None}, Holder(inner=None)),
        (SmallData | LargeData, BOTH, LargeData(1, 3)),
        (SmallData | LargeData, {"x": 1}, SmallData(1)),
        (Small | LargeData, BOTH, LargeData(1, 3)),
        (
            SmallDict | LargeDict,
            {"x": 1, "y": "2026-01-02"},
            {"x": 1, "y": dt.date(2026, 1, 2)},
        ),
    ],
)
def test_a_union_drops_no_field_that_an_alternative_has(
    hint: Any, value: Any, made: Any
) -> None:
    """The first of those that know most of the keys."""
    found = _made(hint, value)
    assert (found, type(found)) == (made, type(made))


class Node(pydantic.BaseModel):
    below: list[Node | Leafless] = []


class Leafless(pydantic.BaseModel):
    below: list[Node | Leafless] = []


def test_keys_of_a_deep_value_are_counted_in_one_pass() -> None:
    """Following each alternative at each level would take for ever."""
    value: Any = {"other": 1}
    for _ in range(90):
        value = {"below": [value]}
    defs = Defs()
    schema = inlined(schema_of(Node, defs), defs)
    assert unknown_keys(value, schema, schema) == 0
    assert unknown_keys({"below": [], "other": 1}, schema, schema) == 1


@pytest.mark.parametrize(
    ("hint", "text", "made"),
    [
        (ipaddress.IPv4Network | ipaddress.IPv6Network, "2001:db8::/32", None),
        (ipaddress.IPv4Network | str, "example.com", "example.com"),
        (zoneinfo.ZoneInfo | str, "nowhere", "nowhere"),
    ],
)
def test_a_text_is_what_the_first_class_can_read(
    hint: Any, text: str, made: Any
) -> None:
    """A schema does not check these formats, so the first one always fitted."""
    change = converter(hint)
    assert change is not None
    assert change(text) == (ipaddress.ip_network(text) if made is None else made)


class ByName(pydantic.BaseModel):
    """Its field may be given by its name, which the schema does not have."""

    model_config = pydantic.ConfigDict(populate_by_name=True)
    xx: int = pydantic.Field(default=0, alias="X")


class Other(pydantic.BaseModel):
    """Has the same name in its schema."""

    xx: int


@pytest.mark.parametrize(
    ("hint", "value", "made"),
    [
        (ByName | Other, {"xx": 3}, ByName(X=3)),
        (Large | dict[str, int], {"x": 1, "z": 2}, Large(x=1)),
        (dict[str, int] | Large, {"x": 1, "z": 2}, {"x": 1, "z": 2}),
    ],
)
def test_a_union_takes_another_class_only_for_keys_that_it_knows(
    hint: Any, value: Any, made: Any
) -> None:
    """Not for keys that a class reads beside its schema, nor a mapping for any."""
    change = converter(hint)
    assert change is not None
    assert change(value) == made


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (dict[int, str], {"1": "a", "01": "b"}, "two that mean the same"),
        (dict[float, str], {"1": "a", "1.0": "b"}, "two that mean the same"),
        (dt.datetime, "2026-01-31T09:30:00.123456789Z", "without nanoseconds"),
        (dt.time, "09:30:00.123456789", "without nanoseconds"),
        (dt.time, "09:30:00,123456789", "without nanoseconds"),
        (dt.datetime, "2026-01-31T09:30:00.1234560001", "without nanoseconds"),
    ],
)
def test_what_python_would_drop_is_refused(hint: Any, value: Any, message: str) -> None:
    convert = converter(hint)
    assert convert is not None
    with pytest.raises(CommandError, match=message):
        convert(value)


T = TypeVar("T")


@dataclasses.dataclass
class Branch(Generic[T]):
    leaf: T
    twigs: list[Branch[T]] = dataclasses.field(default_factory=list)


class Pair(TypedDict, Generic[T]):
    one: T


class Titled(NamedTuple, Generic[T]):
    one: T
    title: str = ""


class Boxed(msgspec.Struct, Generic[T]):
    all: dict[str, T]


@dataclasses.dataclass
class Größe:
    nächste: Größe | None = None


class Model(pydantic.BaseModel, Generic[T]):
    one: T


@pytest.mark.parametrize(
    ("hint", "value", "made", "wrong"),
    [
        (
            Branch[dt.date],
            {"leaf": "2026-01-02", "twigs": [{"leaf": "2026-01-03"}]},
            Branch(dt.date(2026, 1, 2), [Branch(dt.date(2026, 1, 3))]),
            {"leaf": "2026-01-02", "twigs": [{"leaf": 3}]},
        ),
        (Branch[Branch[int]], {"leaf": {"leaf": 1}}, Branch(Branch(1)), {"leaf": 1}),
        (Pair[uuid.UUID], {"one": str(uuid.NAMESPACE_DNS)}, {"one": uuid.NAMESPACE_DNS},
         {"one": "x"}),
        (Titled[dt.date], {"one": "2026-01-02"}, Titled(dt.date(2026, 1, 2)),
         {"one": 1}),
        (Boxed[Pair[int]], {"all": {"a": {"one": 1}}}, Boxed({"a": {"one": 1}}),
         {"all": {"a": {"one": "x"}}}),
        (Größe, {"nächste": {}}, Größe(Größe()), {"nächste": 1}),
        (Model[int], {"one": 1}, Model[int](one=1), {"one": "x"}),
        (Branch[Model[int]], {"leaf": {"one": 1}}, Branch(Model[int](one=1)),
         {"leaf": {"one": "x"}}),
    ],
)  # fmt: skip
def test_a_class_is_checked_whatever_its_name_and_brackets(
    hint: Any, value: Any, made: Any, wrong: Any
) -> None:
    """Types in brackets are made at any depth, also where a class holds itself."""
    defs = Defs()
    schema = Schema(inlined(schema_of(hint, defs), defs))
    assert schema.problems(value) == ()
    assert schema.problems(wrong)
    convert = converter(hint)
    assert convert is not None
    assert convert(value) == made


def test_a_function_keeps_its_name() -> None:
    """A log line after Ctrl-C named it `_converting.<locals>.run`."""

    def wait(until: dt.datetime) -> None: ...

    assert caller_of(wait).run.__qualname__ == wait.__qualname__
