"""Asset references: their written forms, walking, templates, filling in."""

from __future__ import annotations

import collections
import copy
import datetime
import json
from pathlib import PurePosixPath
from typing import Any, ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neuraxis.messages import Problem
from neuraxis.references.asset_ref import (
    AssetRef,
    format_object,
    format_url,
    parse_embedded,
    parse_reference,
    reference_fault,
)
from neuraxis.references.evaluate import evaluate
from neuraxis.references.find import find_asset_refs, find_places
from neuraxis.references.path import WalkError, fill, walk
from neuraxis.references.render import ReferenceFailure
from neuraxis.references.template import Scope, Template, read_template

ANY_TEXT = st.text(st.characters(), max_size=8)  # surrogates among them
ODD_TEXT = st.text("/%?#é☃ 0123aA.~\n\x00{}[]'\"&=+", max_size=6)
PARTS = st.lists(
    st.one_of(ANY_TEXT, ODD_TEXT, st.integers(min_value=0, max_value=10**18 - 1)),
    max_size=6,
)
REFS = st.builds(
    lambda asset_id, parts: AssetRef(asset_id=asset_id, field_path=tuple(parts)),
    st.one_of(ANY_TEXT, ODD_TEXT).filter(bool),
    PARTS,
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def ref(asset_id: str, *parts: str | int) -> AssetRef:
    return AssetRef(asset_id=asset_id, field_path=parts)


# --- written forms -------------------------------------------------------------


@given(REFS)
def test_B48_url_round_trip(given_ref: AssetRef) -> None:
    """A reference written as a URL is read as exactly the same reference."""
    assert given_ref == parse_reference(format_url(given_ref))


@given(REFS)
def test_B48_object_round_trip(given_ref: AssetRef) -> None:
    """The same in object form, also through JSON text."""
    written = json.loads(json.dumps(format_object(given_ref)))
    assert given_ref == parse_reference(written)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("asset://a3", ref("a3")),
        ("asset://a3/", ref("a3")),
        ("asset://a3//", ref("a3", "")),
        ("asset://a3/a/", ref("a3", "a")),
        ("asset://a3/a//b", ref("a3", "a", "", "b")),
        ("asset://AbC/Key", ref("AbC", "Key")),
        ("asset://a3/labels/0", ref("a3", "labels", 0)),
        ("asset://a3/labels/%30", ref("a3", "labels", "0")),
        ("asset://a3/labels/007", ref("a3", "labels", "007")),
        ("asset://a3/-1", ref("a3", "-1")),
        ("asset://a3/a%2Fb/%25/%3f", ref("a3", "a/b", "%", "?")),
        ("asset://a3/x?y#z", ref("a3", "x?y#z")),
        ("asset://a3/schön/☃", ref("a3", "schön", "☃")),
        ("asset://a3/sch%C3%B6n", ref("a3", "schön")),
        ({"asset_id": "X"}, ref("X")),
        ({"asset_id": "X", "field_path": None}, ref("X")),
        ({"asset_id": "X", "field_path": []}, ref("X")),
        ({"asset_id": "X", "field_path": ["a", 0, ""]}, ref("X", "a", 0, "")),
    ],
)
def test_B48_forms(written: Any, expected: AssetRef) -> None:
    """All forms that mean a reference (defects 1 to 3 of the reference code)."""
    assert expected == parse_reference(written)


@pytest.mark.parametrize(
    "data",
    [
        "asset:a3",
        "ASSET://a3",
        "see asset://a3",
        "asset://a3 is the picture",
        "asset://a3\n",
        " asset://a3",
        "<|asset://a3|>",
        "asset://",
        "asset:///a",
        "asset://a3/%ff",
        {"asset_id": ""},
        {"asset_id": 5},
        {"asset_id": "a", "field_path": "content"},
        {"asset_id": "a", "field_path": [1.5]},
        {"asset_id": "a", "field_path": [True]},
        {"asset_id": "a", "field_path": [None]},
        {"asset_id": "a", "other": 1},
        {"asset_id": "a", "field_path": [], "other": 1},
        {"field_path": []},
        ["asset_id"],
        None,
        5,
    ],
)
def test_B44_everything_else_is_data(data: Any) -> None:
    """Only an exact form is a reference; any other text or object is data."""
    assert parse_reference(data) is None


def test_B48_a_near_miss_is_explained() -> None:
    """What looks like a reference and is none says what one looks like."""
    assert "%20" in reference_fault("asset://a3/my key")
    assert "percent-encoded" in reference_fault("asset:///x")
    assert "field_path" in reference_fault({"asset_id": "a", "field_path": "x"})
    assert [reference_fault(x) for x in ("text", 5, {"asset_id": "a"})] == [""] * 3


def test_find_asset_refs() -> None:
    """References are found at any depth, with their places, and not looked into."""
    found = dict(
        find_asset_refs(
            {
                "a": "asset://x",
                "b": [{"asset_id": "y", "field_path": ["asset://no"]}, "asset:// no"],
                "c": {"d": {"e": "asset://z/0"}},
            }
        )
    )
    expected = {
        ("a",): ref("x"),
        ("b", 0): ref("y", "asset://no"),
        ("c", "d", "e"): ref("z", 0),
    }
    assert expected == found


def test_B45_the_whole_param_may_be_a_reference() -> None:
    """The arguments themselves: path ()."""
    assert (((), ref("a")),) == find_asset_refs({"asset_id": "a"})
    assert (((), ref("a")),) == find_asset_refs("asset://a")


def test_find_in_very_deep_arguments() -> None:
    """Nesting costs no stack."""
    deep: Any = "asset://a"
    for _ in range(3_000):
        deep = [deep]
    ((path, found),) = find_asset_refs(deep)
    assert (3_000, ref("a")) == (len(path), found)


def test_B62_embedded() -> None:
    """Both embedded forms are found with their spans; broken ones are text."""
    text = (
        'a <|asset://a3/x|> b <|{"asset_id": "b", "field_path": ["k|>"]}|> '
        "<|asset://bad url|> <|{]|> <|other|> <|asset://open"
    )
    found = parse_embedded(text)
    assert [ref("a3", "x"), ref("b", "k|>")] == [item for _, _, item in found]
    assert text[found[0][0] : found[0][1]] == "<|asset://a3/x|>"
    assert text[found[1][0] : found[1][1]].endswith('"k|>"]}|>')


# --- walking -------------------------------------------------------------------

ROOT = {
    "content": {
        "command": "detect",
        "response": {"labels": ["cat", {"0": "zero"}], "pair": (1, 2), "5": "five"},
    }
}


def test_B48_walk() -> None:
    """Mappings by key, sequences by index; an integer is a key where there is one."""
    at = ("content", "response")
    assert walk(ROOT, (*at, "labels", 0)) == "cat"
    assert walk(ROOT, (*at, "labels", "0")) == "cat"
    assert walk(ROOT, (*at, "labels", 1, 0)) == "zero"
    assert walk(ROOT, (*at, 5)) == "five"
    assert walk(ROOT, (*at, "pair", 1)) == 2
    assert ROOT is walk(ROOT, ())
    assert walk({7: "v"}, (7,)) == "v"
    assert walk(collections.UserDict({"a": 1}), ("a",)) == 1


class Trap:
    """Writes down every attribute that is asked of it."""

    asked: ClassVar[list[str]] = []

    def __getattribute__(self, name: str) -> Any:
        if name != "__class__":  # isinstance looks at this one
            Trap.asked.append(name)
        return object.__getattribute__(self, name)


@pytest.mark.parametrize(
    "part", ["__class__", "__dict__", "asked", "__init__", 0, -1, "0", ""]
)
def test_B50_no_attributes(part: str | int) -> None:
    """No attribute of an object is reached (defect 4), not even asked for."""
    Trap.asked.clear()
    with pytest.raises(WalkError):
        walk({"x": Trap()}, ("x", part))
    assert Trap.asked == []


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ([1, 2], -1),
        ([1, 2], "-1"),
        ([1, 2], 2),
        ([1, 2], "0:1"),
        ([1, 2], "²"),
        ([1, 2], "9" * 5000),
        ("text", 0),
        (b"bytes", 0),
        ({1, 2}, 0),
        (None, "k"),
        (5, "real"),
        (collections.defaultdict(list), "made"),
    ],
)
def test_B50_not_walked(value: Any, part: str | int) -> None:
    """No negative index, no slice; texts, bytes and sets have no parts."""
    with pytest.raises(WalkError):
        walk(value, (part,))


def test_walk_makes_no_key_in_a_defaultdict() -> None:
    """Looking changes nothing."""
    value: dict[str, Any] = collections.defaultdict(list)
    with pytest.raises(WalkError):
        walk(value, ("made",))
    assert len(value) == 0


def test_B49_errors_say_how_far_and_what_is_there() -> None:
    """The deepest valid prefix, the nearest keys first, the length of a list."""
    with pytest.raises(WalkError) as raised:
        walk(ROOT, ("content", "response", "lables", 0))
    assert raised.value.deepest == ("content", "response")
    assert raised.value.keys[0] == "labels"
    assert "keys labels, pair, 5" in raised.value.available
    with pytest.raises(WalkError) as raised:
        walk(ROOT, ("content", "response", "labels", 9))
    assert raised.value.available == "a list of 2 items, 0 to 1"
    with pytest.raises(WalkError) as raised:
        walk({f"k{i}": 0 for i in range(100_000)}, ("x",))
    assert "99980 more" in raised.value.available


def test_B54_a_forgotten_prefix_gives_the_right_path() -> None:
    """A path without `content` or `response` is refused with the corrected one."""
    for path in (("labels", 0), ("response", "labels", 0), ("content", "labels", 0)):
        with pytest.raises(WalkError) as raised:
            walk(ROOT, path)
        assert raised.value.hint == "content/response/labels/0"
    with pytest.raises(WalkError) as raised:
        walk(ROOT, ("content", "response", "none"))
    assert raised.value.hint == ""


# --- templates -----------------------------------------------------------------

SCOPE = Scope(ids=("c0", "c1", "c2"), here=2, names={"search": 0, "me": 2})


def template(text: str, scope: Scope = SCOPE) -> Template:
    problems: list[Problem] = []
    found = read_template(text, scope, ("k",), problems)
    assert not problems
    assert found is not None
    return found


def value_of(text: str, *results: Any, wants_text: bool = False) -> Any:
    def lookup(wanted: AssetRef) -> Any:
        assert wanted.field_path == ("content", "response")
        return results[SCOPE.ids.index(wanted.asset_id)]

    return evaluate(template(text), lookup, wants_text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ previous_result['urls'] }}", ref("c1", "content", "response", "urls")),
        ('{{previous_result["urls"]}}', ref("c1", "content", "response", "urls")),
        ("{{ PREVIOUS['k'] }}", ref("c1", "content", "response", "k")),
        ("{{ PREVIOUS.k[0] }}", ref("c1", "content", "response", "k", 0)),
        ("{{ results[0]['k'] }}", ref("c0", "content", "response", "k")),
        ("{{ results[-1].k }}", ref("c1", "content", "response", "k")),
        ("{{ search.k.j[-1] }}", ref("c0", "content", "response", "k", "j")),
        ("{{ previous_result }}", ref("c1", "content", "response")),
        ("PREVIOUS", ref("c1", "content", "response")),
    ],
)
def test_C18_forms(text: str, expected: AssetRef) -> None:
    """Every way to name an earlier result is one AssetRef into its asset (B53)."""
    assert (expected,) == template(text).refs
    assert template(text).whole


def test_C18_bare_keyword_is_data_where_it_cannot_be_a_reference() -> None:
    """In the first step, in strict, and as a part of a text."""
    problems: list[Problem] = []
    for scope in (Scope(ids=("c0",)), Scope(ids=("a", "b"), here=1, bare=False)):
        assert read_template("PREVIOUS", scope, (), problems) is None
    assert read_template("PREVIOUS ", SCOPE, (), problems) is None
    assert problems == []


def test_C20_whole_value_keeps_its_type() -> None:
    """The object itself goes through, whatever it is."""
    frame = Trap()
    urls = ["u1", "u2"]
    assert urls is value_of("{{ PREVIOUS.urls }}", None, {"urls": urls})
    assert frame is value_of("{{ PREVIOUS.frame }}", None, {"frame": frame})
    assert value_of("{{ search.n }}", {"n": 5}) == 5
    assert value_of("{{ search.n }}", {"n": None}) is None


def test_C20_text_is_made_where_text_is_wanted() -> None:
    """A string as it is, other JSON values as JSON, not as Python writes them."""
    assert value_of("{{ search.n }}", {"n": "s"}, wants_text=True) == "s"
    result = {"u": ["é", None, True], "s": "x", "n": 1.5}
    whole = value_of("{{ search }}", result, wants_text=True)
    assert whole == '{"u": ["é", null, true], "s": "x", "n": 1.5}'
    around = value_of("<{{ search.u }}|{{ search.s }}|{{ search.n }}>", result)
    assert around == '<["é", null, true]|x|1.5>'


def test_C20_a_value_as_python_writes_it() -> None:
    """For a program that is written: a literal that reads as the same value."""
    result = {"u": ["it's", None, True, {"k": 1.5}], "s": "a\n", "t": (1, 2)}
    told = value_of("x = {{ search.u | topython }}", result)
    assert told == "x = [\"it's\", None, True, {'k': 1.5}]"
    assert value_of("{{ search.s | topython }}", result) == r"'a\n'"
    assert value_of("{{ search.t | topython }}", result) == "[1, 2]"


def test_C20_what_json_cannot_hold_has_no_text() -> None:
    """The class is named, the object is not written out."""
    for value in (Trap(), b"raw", float("nan"), {1, 2}, {"k": object()}):
        with pytest.raises(ReferenceFailure):
            value_of("{{ search.x | topython }}", {"x": value})
        with pytest.raises(ReferenceFailure) as raised:
            value_of("a {{ search.x }}", {"x": value})
        assert "JSON can hold" in raised.value.problem.expected


def test_C24_a_value_is_never_read_again() -> None:
    """References in a result, also ones put together by two values, stay text."""
    inner = "{{ search.k }} {{ previous_result }} asset://a PREVIOUS"
    assert inner == value_of("{{ PREVIOUS.t }}", None, {"t": inner})
    text = value_of("{{ PREVIOUS.a }}{ search.k }}", None, {"a": "{"})
    assert text == "{{ search.k }}"
    text = value_of(
        "{{ PREVIOUS.a }}{{ PREVIOUS.b }}", None, {"a": "{{ sea", "b": "rch }}"}
    )
    assert text == "{{ search }}"


def test_C23_what_cannot_be_referred_to() -> None:
    """First step, own result, later step, no such step: all told, with the place."""
    names = {"one": 0, "two": 1, "three": 2}
    ids = ("c0", "c1", "c2")
    arguments = {
        "a": "{{ two.x }}",
        "b": ["{{ three.x }}"],
        "c": "{{ results[7] }} {{ results[-5] }}",
        "d": "{{ results[2].x }}",
    }
    problems: list[Problem] = []
    scope = Scope(ids=ids, here=1, names=names)
    for path, text in find_places(arguments):
        read_template(text, scope, path, problems)
    assert {("a",), ("b", 0), ("c",), ("d",)} == {p.path for p in problems}
    kinds = sorted(problem.keyword for problem in problems)
    assert kinds == ["cyclic", "dangling", "dangling", "forward", "forward"]
    problems = []
    read_template("{{ previous_result }}", Scope(ids=ids), ("a",), problems)
    assert "first step" in problems[0].expected


def test_missing_key_lists_the_keys() -> None:
    """The problem has the place, the reference, and the keys, nearest first."""
    with pytest.raises(ReferenceFailure) as raised:
        evaluate(
            template("{{ search.url }}"),
            lambda _: {"title": 1, "urls": 2},
            False,
            path=("contents",),
        )
    problem = raised.value.problem
    assert problem.path == ("contents",)
    assert problem.candidates == ("urls",)
    assert "the keys title, urls" in problem.got
    assert "{{ search.url }}" in problem.expected
    assert "keys title, urls" in raised.value.message


@pytest.mark.parametrize(
    ("inside", "value", "said"),
    [
        (".urls.length", {"urls": [1]}, "| length counts it"),
        (".response.urls", {"urls": []}, "leave out .response"),
        (".output", "a text", "leave out .output"),
        (".urls.name", {"urls": [{"name": 1}]}, '| map("name") this key of each'),
    ],
)
def test_what_models_often_write_is_told_how_to_write(
    inside: str, value: Any, said: str
) -> None:
    """The message says what to write, and does not offer every key as a guess."""
    with pytest.raises(ReferenceFailure) as raised:
        evaluate(template(f"{{{{ search{inside} }}}}"), lambda _: value, False)
    assert said in raised.value.message
    assert "did you mean" not in raised.value.message


@pytest.mark.parametrize(
    "value", [datetime.date(2026, 1, 2), PurePosixPath("2026-01-02"), "2026-01-02"]
)
def test_C20_what_json_writes_as_a_string_is_a_text(value: Any) -> None:
    """A date or a path has no quotation marks in a file name made of it."""
    found = evaluate(template("a-{{ search.day }}.md"), lambda _: {"day": value}, True)
    assert found == "a-2026-01-02.md"
    assert evaluate(template("{{ search }}"), lambda _: value, True) == "2026-01-02"


@given(st.text("{} '\"prevsultPREVIOUS_[]0.|%#\n$}}{{", max_size=60))
@example("{{results[0]}}")
@example("{{ results[0] }")
def test_C21_text_without_our_roots_stays(text: str) -> None:
    """Whatever has none of our roots is not touched, byte for byte."""
    for name in ("previous_result", "PREVIOUS", "results"):
        text = text.replace(name, "x")
    problems: list[Problem] = []
    found = read_template(text, Scope(ids=("a", "b"), here=1), (), problems)
    assert problems == []
    if found is not None:  # only by `{{ '{{' }}`
        assert "'{{'" in text or '"{{"' in text


# --- filling in ----------------------------------------------------------------


@given(JSON_VALUES, st.data())
def test_fill_leaves_its_input_alone(value: Any, data: st.DataObject) -> None:
    """The new value has the replacements; the old one is as it was."""
    paths: list[tuple[str | int, ...]] = []

    def visit(node: Any, path: tuple[str | int, ...]) -> None:
        children = (
            node.items()
            if isinstance(node, dict)
            else enumerate(node)
            if isinstance(node, list)
            else ()
        )
        leaf = True
        for key, item in children:
            leaf = False
            visit(item, (*path, key))
        if leaf:
            paths.append(path)

    visit(value, ())
    chosen = data.draw(st.lists(st.sampled_from(paths), unique=True))
    before = copy.deepcopy(value)
    mark = object()
    filled = fill(value, dict.fromkeys(chosen, mark))
    assert before == value
    for path in paths:
        assert (walk(filled, path) is mark) == (path in chosen)


def test_fill_passes_objects_by_identity() -> None:
    """Native values travel (decision 4)."""
    thing = object()
    arguments = {"a": [{"b": "x"}], "c": [1]}
    filled = fill(arguments, {("a", 0, "b"): thing})
    assert filled["a"][0]["b"] is thing
    assert filled["c"] is arguments["c"]
    assert arguments is fill(arguments, {})
    assert thing is fill(arguments, {(): thing})
