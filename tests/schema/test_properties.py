"""Properties of the notation that hold for every description and every value."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from neuraxis.schema.notation.nodes import parameter_schema
from neuraxis.schema.notation.type_refs import collect_types
from neuraxis.schema.notation.types import NotationProblem
from neuraxis.schema.notation.write import node_from_schema
from neuraxis.schema.schema import Schema

SIMPLE = st.sampled_from(
    [
        "int",
        "float",
        "str",
        "bool",
        "null",
        "Any",
        "List",
        "Dict",
        "numpy.ndarray",
        "date",
        'Literal["a", "B"]',
        "Literal[1, 2]",
    ]
)
TEXTS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        inner.map(lambda t: f"List[{t}]"),
        inner.map(lambda t: f"Dict[str, {t}]"),
        inner.map(lambda t: f"Optional[{t}]"),
        st.tuples(inner, inner).map(lambda p: f"Union[{p[0]}, {p[1]}]"),
        st.tuples(inner, inner).map(lambda p: f"Tuple[{p[0]}, {p[1]}]"),
    ),
    max_leaves=4,
)
NAMES = st.sampled_from(["a", "b", "c", "long_name"])


def _node(kind: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just(kind)},
        optional={
            "required": st.booleans(),
            "nullable": st.booleans(),
            "description": st.text(max_size=5),
            "asset_ref_acceptable": st.booleans(),
        },
    )


NODES: st.SearchStrategy[dict[str, Any]] = st.recursive(
    TEXTS.flatmap(_node),
    lambda inner: st.one_of(
        st.dictionaries(NAMES, inner, max_size=3),
        st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(
            lambda fields: [{"name": k, **node} for k, node in fields.items()]
        ),
    ).flatmap(_node),
    max_leaves=6,
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=True),
    st.sampled_from(["", "a", "A", "5", "2.5", "true", "[1]", '{"a": "1"}', "null"]),
    st.text(max_size=4),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)
    ),
    max_leaves=8,
)


def near(schema: Any, draw: Any) -> Any:
    """A value that mostly fits a schema, so that both verdicts are met."""
    if draw(st.integers(0, 11)) == 0 or not isinstance(schema, dict):
        return draw(VALUES)
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "anyOf" in schema:
        return near(draw(st.sampled_from(schema["anyOf"])), draw)
    kinds = schema.get("type")
    match draw(st.sampled_from(kinds)) if isinstance(kinds, list) else kinds:
        case "object":
            keys = list(schema.get("properties", {}))
            needed = set(schema.get("required", ()))
            value = {
                key: near(schema["properties"][key], draw)
                for key in keys
                if key in needed or draw(st.booleans())
            }
            if "additionalProperties" in schema and not keys:
                value["k"] = near(schema["additionalProperties"], draw)
            return value
        case "array":
            if "prefixItems" in schema:
                return [near(item, draw) for item in schema["prefixItems"]]
            count = draw(st.integers(0, 2))
            return [near(schema.get("items"), draw) for _ in range(count)]
        case "integer":
            return draw(st.one_of(st.integers(), st.integers().map(str)))
        case "number":
            return draw(st.one_of(st.integers(), st.floats(-9, 9), st.just("0.5")))
        case "boolean":
            return draw(st.sampled_from([True, False, "true"]))
        case "string":
            return draw(st.sampled_from(["2026-01-31", "x", "5"]))
        case "null":
            return None
        case _:
            return draw(VALUES)


@st.composite
def described(draw: Any) -> tuple[dict[str, Any], Any]:
    """A node that is translated without mistakes, and a value for it."""
    node = draw(NODES)
    problems: list[NotationProblem] = []
    schema = parameter_schema(node, problems=problems)
    assert [] == problems
    return schema, near(schema, draw)


@settings(max_examples=100, deadline=None)
@given(described())
def test_problems_are_empty_exactly_for_valid_values(pair: tuple[Any, Any]) -> None:
    """`problems` says something if and only if `valid` says no."""
    schema, value = pair
    checked = Schema(schema)
    assert checked.defect is None
    assert checked.valid(value) is (checked.problems(value) == ())


@settings(max_examples=100, deadline=None)
@given(described())
def test_coerce_keeps_valid_values_and_mutates_nothing(pair: tuple[Any, Any]) -> None:
    """A valid value stays equal, the input as it is; notes tell of every change."""
    schema, value = pair
    checked = Schema(schema)
    before = copy.deepcopy(value)
    result, notes = checked.coerce(value)
    assert repr(before) == repr(value)
    if checked.valid(value):
        assert value == result
        assert checked.valid(result)
    assert bool(notes) is (repr(result) != repr(value))
    if checked.valid(result):
        assert (repr(result), ()) == (repr(checked.coerce(result)[0]), ())


@settings(max_examples=100, deadline=None)
@given(described())
def test_a_written_node_keeps_the_verdicts(pair: tuple[Any, Any]) -> None:
    """Schema -> node -> schema accepts and refuses the same values."""
    schema, value = pair
    loss: list[str] = []
    node = node_from_schema(schema, loss=loss)
    problems: list[NotationProblem] = []
    again = parameter_schema(node, collect_types(node), problems=problems)
    assert [] == [p for p in problems if p.severity == "error"]
    if not loss:
        assert Schema(schema).valid(value) is Schema(again).valid(value)


@settings(max_examples=100, deadline=None)
@given(described(), VALUES)
def test_nothing_raises(pair: tuple[Any, Any], other: Any) -> None:
    """No value makes a question raise."""
    schema, value = pair
    checked = Schema(schema)
    for item in (value, other):
        checked.problems(item, holes=[("a",), ("b", 0)], strict=True)
        checked.accepts_native((), item)
    for path in ((), ("a",), ("a", 0), ("b", "c")):
        checked.at(path)
        checked.takes_reference(path)
        checked.wants_text(path)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="List[]int, |Union.\"'Dco_9-", max_size=20))
def test_no_type_text_raises(text: str) -> None:
    """Any text as a type is a schema or a mistake."""
    problems: list[NotationProblem] = []
    schema = parameter_schema({"type": {"x": {"type": text}}}, problems=problems)
    assert Schema(schema).defect is None


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_no_tree_raises(tree: Any) -> None:
    """Any YAML value as a node is a schema or mistakes."""
    for node in (tree, {"type": tree}, {"type": "str", "enum": tree, "items": tree}):
        problems: list[NotationProblem] = []
        types = collect_types({"parameter": node}, problems=problems)
        parameter_schema(node, types, problems=problems)
