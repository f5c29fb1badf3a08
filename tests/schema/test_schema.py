"""`Schema`: verdicts, every problem at once, holes, sub-schemas, native objects."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from neuraxis.messages import Problem
from neuraxis.schema.notation.nodes import parameter_schema
from neuraxis.schema.notation.type_refs import collect_types
from neuraxis.schema.schema import Schema


def schema(fields: dict[str, Any], **beside: Any) -> Schema:
    """The `Schema` of a `parameter:` with these fields."""
    node = {"type": fields, **beside}
    return Schema(parameter_schema(node, collect_types(node)))


def told(checked: Schema, value: Any, **more: Any) -> dict[tuple[Any, ...], str]:
    return {
        problem.path: problem.expected for problem in checked.problems(value, **more)
    }


BOX = schema(
    {
        "name": {"type": "str"},
        "kind": {"type": "str", "enum": ["red", "green"], "required": False},
        "boxes": {
            "type": [
                {"name": "x", "type": "int"},
                {"name": "y", "type": "int", "required": False},
            ],
            "required": False,
        },
    }
)


def test_D7_every_problem_at_once() -> None:
    """Missing, unknown and wrong values of all depths come together, with paths."""
    value = {"nam": "a", "kind": "gren", "boxes": [{"x": "one"}, {"y": True}]}
    found = {problem.path: problem for problem in BOX.problems(value)}
    assert {
        ("name",),
        ("nam",),
        ("kind",),
        ("boxes", 0, "x"),
        ("boxes", 1, "x"),
        ("boxes", 1, "y"),
    } == set(found)
    assert ("name",) == found["nam",].candidates
    assert ("green",) == found["kind",].candidates
    assert 'one of "red", "green"' == found["kind",].expected
    assert ("integer", '"one"') == (
        found["boxes", 0, "x"].expected,
        found["boxes", 0, "x"].got,
    )
    assert "integer (required)" == found["boxes", 1, "x"].expected


@pytest.mark.parametrize("value", [None, "text", 7, [], [{"name": "a"}]])
def test_A21_param_must_be_an_object(value: Any) -> None:
    """Anything but an object is one problem at the root."""
    assert [()] == list(told(BOX, value))


def test_B46_deep_values_are_shortly_quoted() -> None:
    """A long value is quoted short; a container by its type."""
    (problem,) = BOX.problems({"name": ["x" * 1000]})
    assert "array" == problem.got
    (problem,) = BOX.problems({"name": "a", "boxes": "x" * 1000})
    assert len(problem.got) < 70


def test_D4_numbers() -> None:
    """true is no integer, big integers are kept, NaN and infinity are refused."""
    number = schema({"n": {"type": "int"}, "f": {"type": "float", "required": False}})
    assert number.valid({"n": 10**30})
    assert number.valid({"n": -(10**400)})
    assert number.valid({"n": 1, "f": 1})
    for bad in (True, "1", None, 1.5, float("nan"), float("inf")):
        assert not number.valid({"n": bad})
        assert [("n",)] == list(told(number, {"n": bad}))
    assert [("f",)] == list(told(number, {"n": 1, "f": float("inf")}))
    assert [("f",)] == list(told(number, {"n": 1, "f": False}))


def test_D4_strict_refuses_whole_floats() -> None:
    """3.0 is an integer for JSON Schema; the strict profile says no."""
    number = schema({"n": {"type": "int"}, "f": {"type": "Union[int, float]"}})
    value = {"n": 3.0, "f": 3.0}
    assert () == number.problems(value)
    assert {("n",): "integer"} == told(number, value, strict=True)
    assert () == number.problems({"n": 3, "f": 3.0}, strict=True)


@pytest.mark.parametrize(
    "bad",
    [
        object(),
        {1: 2},
        {"a": {3}},
        b"x",
        "\ud800",
        float("nan"),
        [float("-inf")],
        datetime.date(2026, 1, 31),
        {"deep": object()},
        complex(1, 2),
    ],
)
@pytest.mark.parametrize("kind", ["Any", "str", "List", "Dict", "List[Any]", "int"])
def test_no_value_raises(bad: Any, kind: str) -> None:
    """What is no JSON at all ends as a problem, never as an exception."""
    checked = schema({"a": {"type": kind}})
    value = {"a": bad}
    if not checked.valid(value):
        assert {"a"} == {path[0] for path in told(checked, value)}
    else:
        assert (kind, bad) == ("str", "\ud800")  # text, of a kind
    checked.coerce(value)


def test_too_deep_values_are_refused() -> None:
    """Endless nesting is a problem (rule D6), also where anything is taken."""
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    loop: list[Any] = []
    loop.append(loop)
    tree = {"type": {"_type_ref": "n", "below": {"type": "List[n]"}}}
    for checked in (schema({"a": {"type": "Any"}}), schema({"a": tree})):
        for value in (deep, loop):
            assert not checked.valid({"a": value})
            assert checked.problems({"a": value})
            checked.coerce({"a": value})


def test_unions_are_readable() -> None:
    """One line where no arm fits; the arm's own problems where one was meant."""
    checked = schema(
        {
            "u": {"type": "Union[int, List[str], Dict[str, int]]"},
            "o": {"type": {"x": {"type": "int"}}, "nullable": True},
        }
    )
    assert {
        ("u",): "Union[int, List[string], Dict[str, int]]",
        ("o", "x"): "integer (required)",
    } == told(checked, {"u": 1.5, "o": {}})
    assert {("u", 1): "string"} == told(checked, {"u": ["a", 1], "o": None})
    assert {("u", "k"): "integer"} == told(checked, {"u": {"k": "v"}, "o": None})


def test_tagged_union() -> None:
    """A tag says which arm was meant."""
    checked = Schema(
        {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": kind}, name: {"type": "number"}},
                    "required": ["kind", name],
                }
                for kind, name in (("circle", "r"), ("square", "a"))
            ]
        }
    )
    assert {("r",): "number"} == told(checked, {"kind": "circle", "r": "x"})
    paired = {("r",): 'number (required), since kind is "circle"'}
    assert paired == told(checked, {"kind": "circle", "a": 1})


def pet(kind: str, field: str, **more: Any) -> dict[str, Any]:
    properties = {"size": {"enum": [1, 2]}, "kind": {"const": kind}, field: {}}
    return {"type": "object", "properties": {**properties, **more}} | {
        "required": ["kind", field],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("value", "place", "expected"),
    [
        ({"kind": "fish"}, ("kind",), 'one of "cat", "dog"'),
        ({"kind": ["cat"], "lives": 1}, ("kind",), 'one of "cat", "dog"'),
        ({"lives": 9}, ("kind",), 'one of "cat", "dog" (required)'),
        ({"kind": "cat"}, ("lives",), "Any (required)"),
        ({"kind": "dog", "bark": 1, "lives": 9}, ("lives",), "only these keys: "),
        ({"kind": "dog", "bark": 1, "size": 3}, ("size",), "one of 1, 2"),
        (5, (), "Union[{size?: Literal[1, 2]"),
    ],
)
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_D7_the_tag_of_a_union_explains(
    keyword: str, value: Any, place: Any, expected: str
) -> None:
    """A wrong tag is the only problem; a right one chooses the object."""
    arms = [pet("cat", "lives"), pet("dog", "bark"), {"type": "null"}]
    (problem,) = Schema({keyword: arms}).problems(value)
    assert problem.path == place
    assert problem.expected.startswith(expected)


def test_D7_a_tag_that_may_be_omitted() -> None:
    """Without it, the object that may omit it is meant."""
    cat, dog = pet("cat", "lives"), pet("dog", "bark")
    told_ = told(Schema({"anyOf": [{**cat, "required": ["lives"]}, dog]}), {})
    assert told_ == {("lives",): "Any (required)"}


def test_holes() -> None:
    """What an unresolved reference decides is left out; the rest is told."""
    checked = schema(
        {
            "n": {"type": "int"},
            "list": {"type": "List[int]", "required": False},
            "set": {"type": "Set[int]", "required": False},
            "either": {"type": "Union[List[int], int]", "required": False},
            "im": {"type": "numpy.ndarray", "required": False},
        }
    )
    assert {} == told(checked, {"n": "{{ x }}"}, holes=[("n",)])
    assert {} == told(checked, {"n": {"asset_id": "x"}}, holes=[("n",)])
    assert {} == told(checked, {"n": 1, "im": {"asset_id": "a"}}, holes=[("im",)])
    value = {"n": 1, "list": ["{{ x }}", "no"]}
    assert [("list", 1)] == list(told(checked, value, holes=[("list", 0)]))
    value = {"n": 1, "either": ["{{ x }}"]}
    assert {} == told(checked, value, holes=[("either", 0)])
    value = {"n": 1, "set": ["{{ x }}", "{{ x }}"]}
    assert {} == told(checked, value, holes=[("set", 0), ("set", 1)])
    # required and unknown keys above a hole are still told
    value = {"list": ["{{ x }}"], "m": "{{ y }}"}
    holes = [("list", 0), ("m",)]
    assert ("n",) in told(checked, value, holes=holes)


def test_at() -> None:
    """Sub-schemas through properties, items, additionalProperties, refs and unions."""
    checked = schema(
        {
            "rows": {"type": [{"name": "a", "type": "int"}]},
            "map": {"type": "Dict[str, List[float]]"},
            "pair": {"type": "Tuple[int, str]"},
            "tree": {"type": {"_type_ref": "n", "below": {"type": "List[n]"}}},
            "maybe": {"type": {"x": {"type": "int"}}, "nullable": True},
            "any": {"type": "Any"},
            "image": {"type": "PIL.Image.Image"},
            "text": {"type": "str"},
        }
    )
    assert {"type": "integer"} == checked.at(("rows", 3, "a"))
    assert {"type": "number"} == checked.at(("map", "k", 0))
    assert {"type": "string"} == checked.at(("pair", 1))
    assert {"type": "integer"} == checked.at(("maybe", "x"))
    assert {} == checked.at(("any", "x", 0))
    assert {} == checked.at(("image", "size"))
    for path in (
        ("nope",),
        ("rows", "a"),
        ("rows", 0, "b"),
        ("text", 0),
        ("pair", 2),
        ("maybe", "y"),
        ("rows", -1),
    ):
        assert checked.at(path) is None
    below = checked.at(("tree", "below", 0, "below"))
    assert below is not None
    assert Schema(below).valid([{"below": []}])
    assert not Schema(below).valid([{"below": [1]}])


def test_B42_B46_takes_reference() -> None:
    """At the flagged node and at elements of a flagged list; flags do not inherit."""
    checked = schema(
        {
            "a": {"type": "List[int]", "asset_ref_acceptable": True},
            "b": {"type": {"c": {"type": "int"}}, "nullable": True},
            "d": {"type": "int", "nullable": True, "asset_ref_acceptable": True},
        },
        asset_ref_acceptable=True,
    )
    assert checked.takes_reference(())
    assert checked.takes_reference(("a",))
    assert checked.takes_reference(("a", 0))
    assert checked.takes_reference(("d",))
    assert not checked.takes_reference(("b",))
    assert not checked.takes_reference(("b", "c"))
    assert not checked.takes_reference(("nope",))


def test_wants_text() -> None:
    """Only nodes that take nothing but text."""
    checked = schema(
        {
            "a": {"type": "str"},
            "b": {"type": "Optional[str]"},
            "c": {"type": "Union[str, List[str]]"},
            "d": {"type": "Any"},
            "e": {"type": 'Literal["x"]'},
            "f": {"type": "List[str]"},
        }
    )
    wanted = {name: checked.wants_text((name,)) for name in "abcdef"}
    assert {"a", "b", "e"} == {name for name, wants in wanted.items() if wants}
    assert checked.wants_text(("f", 0))


class Image:
    """Stands for a foreign class."""


class Photo(Image):
    """A subclass of it."""


def test_B41_native_objects() -> None:
    """Opaque classes by name over the bases; containers element by element."""
    name = f"{Image.__module__}.{Image.__qualname__}"
    checked = schema(
        {
            "one": {"type": name},
            "many": {"type": f"List[Union[{name}, int]]"},
            "box": {"type": {"i": {"type": name}, "n": {"type": "int"}}},
            "any": {"type": "Any"},
            "n": {"type": "List[int]"},
            "day": {"type": "date"},
        }
    )
    assert checked.accepts_native(("one",), Photo()) is None
    assert checked.accepts_native(("many",), [Image(), 3]) is None
    assert checked.accepts_native(("any",), object()) is None
    assert checked.accepts_native(("any",), [object()]) is None
    assert checked.accepts_native(("n",), (1, 2)) is None
    assert checked.accepts_native(("day",), datetime.date(2026, 1, 31)) is None
    assert checked.accepts_native(("box",), {"i": Image(), "n": 1}) is None
    problem = checked.accepts_native(("one",), {"a": 1})
    assert isinstance(problem, Problem)
    assert (("one",), name, "object") == (problem.path, problem.expected, problem.got)
    for path, bad, where in [
        (("many",), [Image(), "x"], ("many", 1)),
        (("box",), {"i": Image(), "n": "1"}, ("box", "n")),
        (("box",), {"i": Image()}, ("box", "n")),
        (("box",), {"i": Image(), "n": 1, "z": 1}, ("box", "z")),
        (("n",), [1, object()], ("n", 1)),
        (("n",), "12", ("n",)),
        (("day",), object(), ("day",)),
    ]:
        found = checked.accepts_native(path, bad)
        assert found is not None
        assert where == found.path


def test_B41_public_name_of_an_imported_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pandas.DataFrame` is defined elsewhere: found where it is imported already."""
    module = ModuleType("frames")
    module.Frame = Photo  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "frames", module)
    checked = schema({"one": {"type": "frames.Frame"}})
    assert checked.accepts_native(("one",), Photo()) is None
    assert checked.accepts_native(("one",), Image()) is not None


def test_B41_no_module_is_imported() -> None:
    """A class named in YAML never makes its module be imported."""
    code = (
        "import sys\n"
        "from neuraxis.schema.notation.nodes import parameter_schema\n"
        "from neuraxis.schema.schema import Schema\n"
        "s = Schema(parameter_schema({'type': 'antigravity.Thing'}))\n"
        "assert s.accepts_native((), object()) is not None\n"
        "assert 'antigravity' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_import_is_light() -> None:
    """The validator is imported at the first check, not with the package."""
    code = (
        "import sys, neuraxis.schema.schema\nassert 'jsonschema_rs' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_broken_schemas_are_told() -> None:
    """A schema that cannot be used is the author's mistake, and says so; no network."""
    for broken in (
        {"type": "nonsense"},
        {"$ref": "#/$defs/none"},
        {"$ref": "http://example.invalid/schema.json"},
        {"pattern": "("},
    ):
        checked = Schema(broken)
        assert checked.defect
        assert not checked.valid(1)
        assert "schema" == checked.problems(1)[0].keyword
        assert (1, ()) == checked.coerce(1)


def test_formats() -> None:
    """Types of dates and their like are checked; a foreign schema may say not to."""
    day = {"type": "string", "format": "date"}
    assert not Schema(day).valid("Jan 15, 2021")
    assert Schema({**day, "x-formats": "annotation"}).valid("Jan 15, 2021")
    assert Schema({"type": "string", "format": "byte"}).valid("aGk=")
    assert not Schema({"type": "string", "format": "byte"}).valid("a?")
    assert not Schema({"type": "string", "format": "decimal"}).valid("1,5")
    for name, good, bad in (
        ("date-time", "2026-01-31T09:30:00Z", "2026-01-31"),
        ("date-time", "2026-01-31 09:30", "2026-02-31T09:30"),
        ("time", "09:30", "25:00"),
        ("time", "09:30:00.5+02:00", "9"),
    ):
        assert Schema({"type": "string", "format": name}).valid(good)
        assert not Schema({"type": "string", "format": name}).valid(bad)
    (problem,) = Schema(day).problems("x")
    assert problem.expected.startswith("a date such as")


def test_json_schema_suite(shared_data: Any) -> None:
    """The verdicts of the JSON Schema test suite (draft 7), problems included."""
    wrong: list[str] = []
    checks = 0
    text = (shared_data / "json_schema_suite" / "draft7.jsonl").read_text("utf-8")
    for row in map(json.loads, text.splitlines()):
        if not isinstance(row["schema"], dict) or row["keyword"] == "refRemote":
            continue  # nothing is fetched
        draft = {"$schema": "http://json-schema.org/draft-07/schema#"}
        checked = Schema({**draft, **row["schema"]})
        for case in row["tests"]:
            checks += 1
            verdicts = (checked.valid(case["data"]), not checked.problems(case["data"]))
            if verdicts != (case["valid"], case["valid"]):
                wrong.append(f"{row['description']}: {case['description']}")
    assert [] == wrong
    assert checks > 800


def test_R6_a_long_list_is_checked_in_slices() -> None:
    """Each item is checked, and what is around the list too."""
    item = {"$ref": "#/$defs/number"}
    schema = Schema(
        {
            "type": "object",
            "properties": {"rows": {"type": "array", "items": item}, "x": item},
            "required": ["x"],
            "$defs": {"number": {"type": "integer"}},
        }
    )
    rows: list[Any] = [1] * 5000
    assert schema.valid({"rows": rows, "x": 1})
    assert not schema.valid({"rows": rows})
    assert not schema.valid({"rows": rows, "x": "1"})
    rows[4321] = "1"
    assert not schema.valid({"rows": rows, "x": 1})
    assert [one.path for one in schema.problems({"rows": rows, "x": 1})] == [
        ("rows", 4321)
    ]
    assert not Schema({"type": "array", "items": {"type": "integer"}}).valid(rows)
    most = Schema({"type": "array", "maxItems": 4999})
    assert not most.valid(rows)


def test_a_problem_of_two_keywords_is_told_once() -> None:
    """Type and enum of a number both refuse a text, in the same words."""
    schema = Schema({"type": "integer", "enum": [1, 2]})
    (problem,) = schema.problems("q")
    assert (problem.expected, problem.got) == ("one of 1, 2", '"q"')


def closed(*keyword: dict[str, Any]) -> Schema:
    """An object of a name and of other types, closed around them."""
    pair = {
        "type": "object",
        "properties": {"key": {"type": "integer"}, "unit": {"type": "string"}},
        "required": ["key"],
    }
    return Schema(
        {
            "properties": {"name": {"type": "string"}},
            "allOf": [{"$ref": "#/$defs/Pair"}, *keyword],
            "unevaluatedProperties": False,
            "$defs": {"Pair": pair},
        }
    )


def test_holes_in_a_closed_object() -> None:
    """Whether a type of it fits, and so describes its keys, is not known yet."""
    value = {"key": "{{ f }}", "name": "x", "other": 1}
    assert {} == told(closed(), value, holes=[("key",)])
    assert {} == told(closed(), {**value, "key": 1}, holes=[("other",)])


def test_only_unknown_keys_are_told_to_be_unknown() -> None:
    """A type that does not fit describes no keys, for a validator."""
    keys = "only these keys: name, key, unit"
    assert {("nmae",): keys} == told(closed(), {"key": 1, "nmae": "x"})
    assert {("key",): "integer"} == told(closed(), {"key": "k", "unit": "m"})
    problems = told(closed(), {"kye": 1, "unit": "m"})
    assert problems == {("key",): "integer (required)", ("kye",): keys}
    deep = closed({"properties": {"in": {"properties": {"n": {"type": "integer"}}}}})
    value = {"key": 1, "in": {"n": "one"}}
    assert {("in", "n"): "integer"} == told(deep, value)
    arms = [
        {"properties": {name: {"type": "string"}}, "required": [name]} for name in "ab"
    ]
    assert {("b",): "only keys of the types that the value fits"} == told(
        closed({"anyOf": [arms[0], {**arms[1], "required": ["b", "c"]}]}),
        {"key": 1, "a": "x", "b": "y"},
    )
