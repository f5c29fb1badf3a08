"""Schemas of type hints as a whole; `test_function` has the schema of each hint."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
from collections.abc import Iterator
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Required,
    TypedDict,
)

import pytest

from neuraxis.plugins.functions.hints import Defs, inlined, schema_of, understand
from neuraxis.schema.schema import Schema


@dataclasses.dataclass
class Leaf:
    size: int


@dataclasses.dataclass
class Tree:
    leaf: Leaf | None = None
    below: list[Tree] = dataclasses.field(default_factory=list["Tree"])


@dataclasses.dataclass
class Counted:
    """Numbers itself.

    Attributes:
        name: as it is called.
    """

    name: str
    number: int = dataclasses.field(init=False, default=1)


class Pair(NamedTuple):
    left: Leaf
    right: int = 0


Partial = TypedDict(
    "Partial", {"a": Required[int], "odd key": "list[Leaf]"}, total=False
)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Opaque:
    """What no JSON makes."""


@dataclasses.dataclass
class Around:
    inside: Opaque
    size: int = 0


HINTS: list[Any] = [
    int,
    Leaf,
    Tree,
    Pair,
    Partial,
    Level,
    Opaque,
    Around,
    list[Tree],
    dict[str, Tree | Leaf],
    tuple[Leaf, ...],
    tuple[()],
    Leaf | Opaque | None,
    Annotated[Tree, "A tree."],
    Literal[Level.HIGH, "x", None],
]


def _schema(hint: Any) -> dict[str, Any]:
    defs = Defs()
    return inlined(schema_of(hint, defs), defs)


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            yield from _nodes(item)


@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_a_schema_stands_by_itself(hint: Any) -> None:
    """It is JSON; what it refers to is in it, and all of that is used."""
    schema = _schema(hint)
    assert json.loads(json.dumps(schema)) == schema
    assert Schema(schema)
    named = {f"#/$defs/{name}" for name in schema.get("$defs", {})}
    assert {node["$ref"] for node in _nodes(schema) if "$ref" in node} == named
    assert "$ref" not in schema


@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_a_schema_is_the_same_each_time(hint: Any) -> None:
    """A word that is put to one is not in the next."""
    first = _schema(hint)
    before = json.dumps(first)
    first["description"] = "changed"
    assert json.dumps(_schema(hint)) == before


@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_what_has_a_schema_is_understood(hint: Any) -> None:
    """No author's mistake in it."""
    understand(hint)


def test_one_class_in_many_places_is_described_once() -> None:
    """Also one that holds itself; two roots share what they have in common."""
    defs = Defs()
    first, second = schema_of(list[Tree], defs), schema_of(dict[str, Leaf], defs)
    assert set(defs.schemas) == {"Tree", "Leaf"}
    assert first["items"] == {"$ref": "#/$defs/Tree"}
    assert second["additionalProperties"] == {"$ref": "#/$defs/Leaf"}


def test_a_field_that_a_class_fills_itself_is_not_asked_for() -> None:
    """It is answered; with the texts of the docstring, and nothing unknown beside."""
    schema = _schema(Counted)
    assert schema["required"] == ["name"]
    assert schema["properties"]["number"] == {"type": "integer", "readOnly": True}
    assert schema["properties"]["name"]["description"] == "as it is called."
    assert schema["description"] == "Numbers itself."
    assert not Schema(schema).valid({"name": "a", "nmae": "b"})


def test_keys_of_any_name_are_fields() -> None:
    """As a typed dict says which of them must be there."""
    schema = Schema(_schema(Partial))
    assert schema.valid({"a": 1})
    assert schema.valid({"a": 1, "odd key": [{"size": 2}]})
    assert not schema.valid({"odd key": []})


def test_the_words_around_a_class_are_those_of_its_place() -> None:
    """The class keeps its own for other places."""
    schema = _schema(tuple[Annotated[Counted, "the first"], Counted])
    assert schema["prefixItems"][0]["description"] == "the first"
    assert schema["prefixItems"][1] == {"$ref": "#/$defs/Counted"}
    assert schema["$defs"]["Counted"]["description"] == "Numbers itself."
    assert _schema(Annotated[Counted, "the first"])["description"] == "the first"


def test_B41_what_json_cannot_say_comes_by_reference() -> None:
    """As one of several kinds, and in a field."""
    assert not Schema(_schema(Opaque)).valid({})
    either = Schema(_schema(Opaque | int))
    assert either.valid(5)
    assert not either.valid("x")
    assert either.takes_reference(())
    assert not Schema(_schema(int)).takes_reference(())
    around = Schema(_schema(Around))
    assert around.takes_reference(("inside",))
    assert not around.takes_reference(("size",))


def test_bounds_are_those_of_the_hint() -> None:
    """Of any object that has them by these names, as `annotated_types` and pydantic."""

    @dataclasses.dataclass
    class Bound:
        ge: int | None = None
        lt: int | None = None
        min_length: int | None = None
        max_length: int | None = None
        metadata: tuple[Any, ...] = ()
        description: str = ""

    assert _schema(Annotated[int, Bound(ge=0), Bound(lt=9)]) == {
        "type": "integer",
        "minimum": 0,
        "exclusiveMaximum": 9,
    }
    text = Annotated[str, Bound(min_length=1, max_length=2, description="Short.")]
    assert _schema(text) == {
        "type": "string",
        "minLength": 1,
        "maxLength": 2,
        "description": "Short.",
    }
    inner = Annotated[list[int], Bound(metadata=(Bound(max_length=3),))]
    assert _schema(inner) == {
        "type": "array",
        "items": {"type": "integer"},
        "maxItems": 3,
    }


def test_subclasses_of_what_json_has_are_said_as_it() -> None:
    """But for numbers: an `int` of another class is more than a number."""

    class Name(str):
        __slots__ = ()

    class Moment(dt.datetime): ...

    class Level2(int): ...

    assert _schema(Name) == {"type": "string"}
    assert _schema(Moment) == {"type": "string", "format": "date-time"}
    assert _schema(Level2)["x-asset-ref"] is True


class Quoted(TypedDict):  # all hints of this file are texts
    n: int
    day: NotRequired[int]
    note: Annotated[NotRequired[str], "why"]


class Rest(TypedDict, total=False):
    n: Required[int]
    day: int


@pytest.mark.parametrize("hint", [Quoted, Rest])
def test_what_need_not_be_in_a_typed_dict_is_not_required(hint: Any) -> None:
    """Also where its hints are quoted, which Python's own list is wrong for."""
    assert _schema(hint)["required"] == ["n"]


@dataclasses.dataclass
class Documented:
    """A kind.

    Attributes:
        kind: the x-type of it.
    """

    kind: str


def test_only_what_json_cannot_say_needs_its_class() -> None:
    """A description may say what it likes."""
    defs = Defs()
    for hint in (Around, Documented, Tree):
        schema_of(hint, defs)
    classes = {name: "x-class" in schema for name, schema in defs.schemas.items()}
    assert classes == {
        "Around": True,
        "Documented": False,
        "Tree": False,
        "Leaf": False,
    }
