"""`Schema.coerce`: lossless, noted, never a guess (rule D4)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from neuraxis.schema.coerce import coerce
from neuraxis.schema.notation.nodes import parameter_schema
from neuraxis.schema.notation.type_refs import collect_types
from neuraxis.schema.schema import Schema

NODE: dict[str, Any] = {
    "type": {
        "n": {"type": "int", "required": False},
        "f": {"type": "float", "required": False},
        "b": {"type": "bool", "required": False},
        "s": {"type": "str", "required": False},
        "l": {"type": "List[int]", "required": False},
        "d": {"type": "Dict[str, int]", "required": False},
        "o": {"type": {"x": {"type": "int"}}, "required": False},
        "e": {"type": "str", "enum": ["Red", "green"], "required": False},
        "c": {"type": "str", "enum": ["a", "A"], "required": False},
        "i": {"type": "int", "enum": [1, 2], "required": False},
        "u": {"type": "Union[int, List[int]]", "required": False},
        "t": {"type": "Union[int, str]", "required": False},
        "m": {"type": "Optional[int]", "required": False},
        "k": {"type": "Union[bool, int]", "required": False},
        "p": {"type": "decimal", "required": False},
        "q": {"type": "Union[float, decimal]", "required": False},
        "w": {"type": "Set[int]", "required": False},
        "v": {"type": "Set", "required": False},
        "any": {"type": "Any", "required": False},
        "r": {"type": "List[node]", "required": False},
        "z": {
            "type": {"_type_ref": "node", "v": {"type": "int"}},
            "required": False,
        },
    }
}
SCHEMA = Schema(parameter_schema(NODE, collect_types(NODE)))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"n": "5"}, {"n": 5}),
        ({"n": " -5 "}, {"n": -5}),
        ({"n": "1" + "0" * 40}, {"n": 10**40}),
        ({"n": 2.0}, {"n": 2}),
        ({"n": 1e23}, {"n": 10**23}),
        ({"f": "2.5"}, {"f": 2.5}),
        ({"f": "2"}, {"f": 2}),
        ({"f": "-1e3"}, {"f": -1000.0}),
        ({"b": "true"}, {"b": True}),
        ({"b": "False"}, {"b": False}),
        ({"l": "[1, 2]"}, {"l": [1, 2]}),
        ({"l": '["1", 2]'}, {"l": [1, 2]}),
        ({"l": ["1", 2]}, {"l": [1, 2]}),
        ({"d": '{"a": 1}'}, {"d": {"a": 1}}),
        ({"d": {"a": "1"}}, {"d": {"a": 1}}),
        ({"o": {"x": "1"}}, {"o": {"x": 1}}),
        ({"e": "red"}, {"e": "Red"}),
        ({"e": "GREEN"}, {"e": "green"}),
        ({"i": "2"}, {"i": 2}),
        ({"u": "7"}, {"u": 7}),
        ({"u": "[7]"}, {"u": [7]}),
        ({"m": "7"}, {"m": 7}),
        ({"m": "null"}, {"m": None}),
        ({"p": 12.5}, {"p": "12.5"}),
        ({"p": 0.1}, {"p": "0.1"}),
        ({"p": -3}, {"p": "-3"}),
        ({"w": [2, 1, 2]}, {"w": [2, 1]}),
        ({"w": ["1", 1.0]}, {"w": [1]}),
        ({"n": None}, {}),
        ({"r": [{"v": "1"}]}, {"r": [{"v": 1}]}),
        ({"z": '{"v": "1"}'}, {"z": {"v": 1}}),
        ('{"n": "5"}', {"n": 5}),
    ],
)
def test_lossless_changes(given: Any, meant: Any) -> None:
    """What can mean one thing only becomes that, with a note; the input stays."""
    before = copy.deepcopy(given)
    value, notes = SCHEMA.coerce(given)
    assert repr(meant) == repr(value)
    assert notes
    assert before == given
    assert SCHEMA.valid(value)
    assert (value, ()) == SCHEMA.coerce(value)


@pytest.mark.parametrize(
    "given",
    [
        {"n": "05"},
        {"n": "5.5"},
        {"n": "five"},
        {"n": 2.5},
        {"n": True},
        {"n": "-0"},
        {"n": "1_000"},
        {"n": "٣"},
        {"f": "nan"},
        {"f": "1e999"},
        {"f": "0.1000000000000000000001"},
        {"f": True},
        {"b": 1},
        {"b": 0},
        {"b": "yes"},
        {"s": 5},
        {"s": True},
        {"l": "1, 2"},
        {"l": 1},
        {"l": '{"a": 1}'},
        {"d": "[1]"},
        {"d": '{"a": 1, "a": 2}'},
        {"d": '{"a": NaN}'},
        {"c": "B"},
        {"e": "blue"},
        {"i": "3"},
        {"o": None, "unknown": None},
        {"k": "maybe"},
        {"p": "1,5"},
        {"p": True},
        {"v": [1, 1.0]},
        "text",
        ["n"],
    ],
)
def test_nothing_is_guessed(given: Any) -> None:
    """What loses something, or can mean several things, stays and is refused."""
    before = copy.deepcopy(given)
    value, _ = SCHEMA.coerce(given)
    assert not SCHEMA.valid(value)
    assert before == given


@pytest.mark.parametrize(
    "given",
    [
        {"s": "5"},
        {"s": "[1]"},
        {"t": "5"},
        {"any": "5"},
        {"any": None},
        {"m": None},
        {"f": 2.0},
        {"q": 2.5},
        {"v": [1, True, "1"]},
        {"any": 2.0},
        {"k": True},
        {"c": "a"},
        {"n": 5, "l": [], "d": {}},
    ],
)
def test_valid_values_stay(given: Any) -> None:
    """A value that fits is given back as it is, without a note."""
    value, notes = SCHEMA.coerce(given)
    assert value is given
    assert () == notes


def test_notes_say_where_and_what() -> None:
    """A note names the path, what stood there and what it became."""
    value, notes = SCHEMA.coerce({"l": ["1", 2], "n": None, "e": "red"})
    assert {"l": [1, 2], "e": "Red"} == value
    assert {'l[0]: "1" -> 1', "n: null -> left out", 'e: "red" -> "Red"'} == set(notes)


def test_half_good_values_are_mended_where_they_can() -> None:
    """One bad place does not keep the others from being read."""
    value, _ = SCHEMA.coerce({"n": "5", "l": ["1", "x"]})
    assert {"n": 5, "l": [1, "x"]} == value
    assert [("l", 1)] == [problem.path for problem in SCHEMA.problems(value)]


def test_required_null_is_not_dropped() -> None:
    """null for a required parameter stays an error."""
    checked = Schema(parameter_schema({"type": {"n": {"type": "int"}}}))
    assert ({"n": None}, ()) == checked.coerce({"n": None})
    assert [("n",)] == [problem.path for problem in checked.problems({"n": None})]


def test_references_stay() -> None:
    """What may be a reference is no text to be read as a value."""
    for given in ("asset://x/content", "{{ previous_result }}", "{{ PREVIOUS['a'] }}"):
        assert {"l": given} == SCHEMA.coerce({"l": given})[0]
    reference = {"asset_id": "x", "field_path": None}
    assert {"o": reference} == SCHEMA.coerce({"o": reference})[0]


def test_unions_inside_unions_end() -> None:
    """Nested unions that all nearly fit are given up, not guessed."""
    node = {"type": {"_type_ref": "n", "a": {"type": "Union[List[n], List[m], int]"}}}
    other = {"type": {"_type_ref": "m", "a": {"type": "Union[List[m], List[n], int]"}}}
    tree = {"type": {"x": node, "y": {**other, "required": False}}}
    checked = Schema(parameter_schema(tree, collect_types(tree)))
    value: Any = {"a": "wrong"}
    for _ in range(7):
        value = {"a": [value]}
    assert ({"x": value}, ()) == checked.coerce({"x": value})
    assert checked.problems({"x": value})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT5M", 300),
        ("P1DT2H0.5S", 93600.5),
        ("P2W", 1209600),
        (" -PT1.5S ", -1.5),
        ("60", 60),
        ("P1M", None),
        ("P1Y", None),
        ("P", None),
        ("P1DT", None),
        ("PT5", None),
        ("5M", None),
    ],
)
def test_durations_become_seconds(text: str, seconds: float | None) -> None:
    """Those of ISO 8601, but no months and years, which differ in length."""
    checked = Schema({"type": "number", "format": "seconds"})
    value, notes = checked.coerce(text)
    assert value == (text if seconds is None else seconds)
    assert bool(notes) is checked.valid(value) is (seconds is not None)


def test_D4_strict_asks_for_a_decimal_in_quotes() -> None:
    """Where a number is not coerced, the model reads what to write."""
    (problem,) = SCHEMA.problems({"p": 12.5}, strict=True)
    assert problem.expected == 'a decimal number in quotes, such as "1.1"'


def test_D4_a_fraction_of_many_digits_is_no_decimal() -> None:
    """It was rounded when the reply was read."""
    schema = {"type": "string", "format": "decimal"}
    assert coerce(schema, 12345678901234567890.123456789, lambda *_: True)[1] == ()
    assert coerce(schema, 12.1, lambda *_: True)[0] == "12.1"
