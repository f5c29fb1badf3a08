"""No trust marker is lost, however large a schema is, and wherever it refers to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, make_dataclass
from functools import partial
from typing import Any

import pydantic
import pytest

from cpu_time import within
from neuraxis.plugins.functions.command import command, plugin_from
from neuraxis.schema.annotations import (
    NO_MARKS,
    Annotations,
    is_covered,
    marks_of,
    trusted_fields,
)
from neuraxis.schema.marked_places import MOST
from neuraxis.specs import Json

TO: Json = {"type": "string", "x-trusted-only": True}
URL: Json = {"type": "string", "x-sends-out": True}
KEY: Json = {"type": "string", "x-secret-ok": True}
FILE: Json = {"type": "string", "x-names-file": "write"}


class Filter(pydantic.BaseModel):
    """Refers to itself five times."""

    all_of: list[Filter] = []
    any_of: list[Filter] = []
    negated: Filter | None = None
    left: Filter | None = None
    right: Filter | None = None


class Message(pydantic.BaseModel):
    """A marked field, in a type that refers to itself."""

    to: str = pydantic.Field("", json_schema_extra={"x-trusted-only": True})
    text: str = ""
    replies: list[Message] = []


WIDE = make_dataclass(
    "Wide", [(f"f{at}", str | None, field(default=None)) for at in range(500)]
)


def marks_of_function(function: Callable[..., Any]) -> Annotations:
    return marks_of(plugin_from(function).spec.commands[0].parameters)


def fields(**properties: Json) -> dict[str, Json]:
    return {"type": "object", "properties": properties}


def nested(levels: int, inside: Json, wrap: Callable[[Json], Json]) -> Json:
    for _ in range(levels):
        inside = wrap(inside)
    return inside


def tree(**properties: Json) -> dict[str, Json]:
    """A parameter of a type that refers to itself."""
    ref = {"$ref": "#/$defs/Tree"}
    body = fields(**properties, parts={"type": "array", "items": ref})
    return {**fields(tree=ref), "$defs": {"Tree": body}}


def test_attack16_a3_a_pydantic_type_that_refers_to_itself_hides_no_marker() -> None:
    """Neither before nor after it."""

    @command(trusted_only=["to"], sends_out=["url"])
    def send(to: str, where: Filter, url: str) -> None:
        """Sends."""

    marks = marks_of_function(send)
    assert marks.trusted_only == (("to",),)
    assert marks.sends_out == (("url",),)


def test_attack16_a3_five_hundred_fields_hide_no_marker() -> None:
    """All four markers of parameters around a large one are read."""

    @command(
        trusted_only=["to"],
        sends_out=["url"],
        secret_ok=["key"],
        names_file={"file": "write"},
    )
    def send(to: str, url: str, body: Any, key: str, file: str) -> None:
        """Sends."""

    send.__annotations__["body"] = WIDE
    marks = marks_of_function(send)
    assert marks.trusted_only == (("to",), ("key",))
    assert marks.sends_out == (("url",),)
    assert marks.secret_ok == (("key",),)
    assert marks.files == ((("file",), "write"),)


def test_attack16_a3_a_marker_in_a_recursive_type_holds_at_every_depth() -> None:
    """Precisely in the first object; those inside it are marked whole."""

    @command(effects="once")
    def send(message: Message) -> None:
        """Sends."""

    def place(depth: int, name: str) -> tuple[str | int, ...]:
        return ("message", *(("replies", 0) * depth), name)

    marked = marks_of_function(send).trusted_only
    assert is_covered(marked, place(0, "to"))
    assert not is_covered(marked, place(0, "text"))
    assert all(is_covered(marked, place(depth, "to")) for depth in range(1, 30))


def test_attack16_a3_a_recursive_definition_gives_no_right_at_depth() -> None:
    """A part inside itself may name no secret; nor does a system vouch for it."""
    marks = marks_of(tree(key=KEY, url=URL, file=FILE))
    deep = ("tree", "parts", 0, "parts", 0, "key")
    assert is_covered(marks.secret_ok, ("tree", "key"))
    assert not is_covered(marks.secret_ok, deep)
    assert is_covered(marks.trusted_only, deep)
    assert is_covered(marks.sends_out, deep)
    assert marks.file_use(deep) == "write"
    vouched = trusted_fields(tree(id={"x-trusted": True}))
    assert vouched == (("tree", "id"),)


def test_attack16_a3_the_strictest_of_several_uses_is_found() -> None:
    """A tree with files that are read and files that are run."""
    reads: Json = {"type": "string", "x-names-file": "read"}
    runs: Json = {"type": "string", "x-names-file": "run"}
    marks = marks_of(tree(a=reads, b=runs))
    assert marks.file_use(("tree", "a")) == "read"
    assert marks.file_use(("tree", "parts", 0, "a")) == "run"


IN_ITSELF: Mapping[str, tuple[dict[str, Json], tuple[str | int, ...]]] = {
    "the root": (fields(to=TO, more={"$ref": "#"}), ("more", "more", "to")),
    "two types": (
        {
            **fields(a={"$ref": "#/$defs/A"}),
            "$defs": {
                "A": fields(b={"$ref": "#/$defs/B"}),
                "B": fields(a={"$ref": "#/$defs/A"}, to=TO),
            },
        },
        ("a", "b", "a", "b", "a", "b", "to"),
    ),
    "draft 7": (
        {
            **fields(a={"$ref": "#/definitions/A"}),
            "definitions": {"A": fields(a={"$ref": "#/definitions/A"}, to=TO)},
        },
        ("a", "a", "a", "to"),
    ),
    "a pointer": (
        fields(a=fields(to=TO), b={"$ref": "#/properties/a"}),
        ("b", "to"),
    ),
    "an anchor": (
        {
            **fields(a={"$ref": "#there"}),
            "$defs": {"A": {**fields(to=TO), "$anchor": "there"}},
        },
        ("a", "to"),
    ),
    "a map": (
        {
            **fields(a={"$ref": "#/$defs/A"}),
            "$defs": {
                "A": {**fields(to=TO), "additionalProperties": {"$ref": "#/$defs/A"}}
            },
        },
        ("a", "x", "y", "to"),
    ),
}


@pytest.mark.parametrize("name", IN_ITSELF)
def test_attack16_a3_references_are_followed(name: str) -> None:
    """Wherever they lead inside the schema, the marker is found there."""
    schema, path = IN_ITSELF[name]
    assert is_covered(marks_of(schema).trusted_only, path)
    assert not is_covered(marks_of(schema).trusted_only, ("other",))


DEEP: Mapping[str, tuple[Callable[[Json], Json], tuple[str | int, ...]]] = {
    "properties": (lambda part: fields(a=part), ("a",)),
    "items": (lambda part: {"type": "array", "items": part}, (3,)),
    "items of draft 7": (lambda part: {"items": [{}, part]}, (1,)),
    "prefixItems": (lambda part: {"prefixItems": [{}, part]}, (1,)),
    "additionalProperties": (lambda part: {"additionalProperties": part}, ("any",)),
    "patternProperties": (lambda part: {"patternProperties": {"^a": part}}, ("ab",)),
    "contains": (lambda part: {"contains": part}, (0,)),
    "allOf": (lambda part: {"allOf": [{}, part]}, ()),
    "anyOf": (lambda part: {"anyOf": [{"type": "null"}, part]}, ()),
    "oneOf": (lambda part: {"oneOf": [part, {"type": "null"}]}, ()),
    "then": (lambda part: {"if": {}, "then": part}, ()),
    "dependentSchemas": (lambda part: {"dependentSchemas": {"x": part}}, ()),
}


@pytest.mark.parametrize("levels", [1, 13, 700])
@pytest.mark.parametrize("keyword", DEEP)
def test_attack16_a3_a_marker_below_twelve_levels_is_read(
    keyword: str, levels: int
) -> None:
    """Through each keyword that leads to a sub-schema."""
    wrap, step = DEEP[keyword]
    marks = marks_of(fields(top=nested(levels, TO, wrap), free={"type": "string"}))
    assert marks.trusted_only
    assert is_covered(marks.trusted_only, ("top", *(step * levels)))
    assert not is_covered(marks.trusted_only, ("free",))


def doubling(inside: Json, levels: int = 40) -> dict[str, Json]:
    """A schema of few parts, to which 2**levels ways lead."""
    defs: dict[str, Json] = {f"A{levels}": inside}
    for at in range(levels):
        ref = {"$ref": f"#/$defs/A{at + 1}"}
        defs[f"A{at}"] = {**fields(p=ref, q=ref), "allOf": [ref, ref]}
    return {**fields(first=TO, a={"$ref": "#/$defs/A0"}, last=URL), "$defs": defs}


def test_attack16_a3_what_is_not_unfolded_is_marked_whole() -> None:
    """Beyond the bound of ways, which a doubling schema has at once."""
    marks = marks_of(doubling(fields(to=TO, key=KEY)))
    assert ("first",) in marks.trusted_only
    assert marks.sends_out == (("last",),)
    assert len(marks.trusted_only) < 5 * MOST
    for ways in ("p" * 40, "q" * 40, "pq" * 20, "p", ""):
        assert is_covered(marks.trusted_only, ("a", *ways, "to"))
    assert not is_covered(marks.secret_ok, ("a", *("p" * 40), "key"))


def test_attack16_a3_types_that_all_contain_each_other_are_marked() -> None:
    """Forty types with forty references each: more ways than could be read."""
    refs = {f"t{at}": {"$ref": f"#/$defs/T{at}"} for at in range(40)}
    defs = {f"T{at}": fields(**refs) for at in range(40)}
    defs["T39"] = fields(**refs, to=TO)
    marks = marks_of({**fields(a=refs["t0"], b=URL), "$defs": defs})
    assert is_covered(marks.trusted_only, ("a", "t1", "t2", "t3", "t39", "to"))
    assert marks.sends_out == (("b",),)


def test_attack16_a3_many_marked_parameters_stay_single() -> None:
    """The fields of the call itself are read in any number."""
    many = {f"p{at}": TO for at in range(3 * MOST)}
    marks = marks_of(fields(**many, free={"type": "string"}))
    assert len(marks.trusted_only) == 3 * MOST
    assert not is_covered(marks.trusted_only, ("free",))


def test_attack16_a3_a_schema_without_markers_costs_nothing() -> None:
    """A large one is only searched for the words, a doubling one is not unfolded."""
    wide = fields(**{f"p{at}": fields(a={"type": "string"}) for at in range(2_000)})
    assert within(0.02, lambda: marks_of(wide)) is NO_MARKS
    assert marks_of(fields(a={"default": "x-trusted-only"})) is NO_MARKS
    unmarked = doubling(fields(to={"type": "string"}))
    assert marks_of(unmarked).trusted_only == (("first",),)


def test_attack16_a3_a_hostile_schema_is_read_in_time() -> None:
    """Doubling ways, many references to nowhere, and a very long chain."""
    nowhere = {f"p{at}": {"$ref": f"#no{at}"} for at in range(3_000)}
    chain: dict[str, Json] = {
        f"A{at}": {"allOf": [{"$ref": f"#/$defs/A{at + 1}"}]} for at in range(3_000)
    }
    chain["A3000"] = TO
    schemas = (
        doubling(fields(to=TO)),
        {**fields(**nowhere), "$defs": {f"D{at}": TO for at in range(3_000)}},
        {**fields(a={"$ref": "#/$defs/A0"}), "$defs": chain},
    )
    for schema in schemas:
        assert within(1, partial(marks_of, schema)).trusted_only
