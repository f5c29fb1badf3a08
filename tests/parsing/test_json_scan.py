"""JSON in model text: strict is exactly JSON, lenient guesses no meaning."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuraxis.parsing.flawless_json import DEPTH, LONGEST
from neuraxis.parsing.json_errors import Fault, call_error
from neuraxis.parsing.json_scan import Piece, Value, loads, pieces, read_at

GOOD = {"name": "order", "arguments": {"n": 2, "items": [{"sku": "A-1"}], "x": None}}


def lenient(text: str) -> Any:
    """The value of a text that is nothing but (broken) JSON, or the fault's code."""
    read = read_at(text, 0)
    return read.value if isinstance(read, Value) else read.code


def values(text: str) -> list[Any]:
    """The values among the pieces of a text."""
    return [piece.value.value for piece in pieces(text) if piece.value is not None]


def broken(text: str) -> list[Piece]:
    """The pieces that look like JSON and are none."""
    return [piece for piece in pieces(text) if piece.fault is not None]


def rows(shared_data: Path, name: str) -> list[dict[str, Any]]:
    with (shared_data / name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


# --- strict -------------------------------------------------------------------


def nst_text(row: dict[str, Any]) -> str:
    if "generate" in row:
        piece = '[{"":' if row["head"].startswith("[{") else "["
        return piece * (int(row["size"]) // len(piece))
    if "base64" in row:
        return base64.b64decode(row["base64"]).decode()
    return row["text"]


def test_json_nst_strict_is_exactly_json(shared_data: Path) -> None:
    """JSONTestSuite: y_ as json.loads reads it, n_ refused, i_ without a crash."""
    counted = 0
    for row in rows(shared_data, "json_nst/parsing.jsonl"):
        try:
            text = nst_text(row)
        except UnicodeDecodeError:
            continue  # no text at all: never reaches a dialect
        read = loads(text)
        pieces(text)
        if row["expect"] == "accept" or row["name"].startswith("y_"):
            # y_object_duplicated_key is valid JSON, and refused by rule D5.
            if "duplicated_key" in row["name"]:
                assert isinstance(read, Fault)
                assert read.code == "duplicate_key"
            else:
                assert isinstance(read, Value), row["name"]
                assert json.loads(text) == read.value
                assert json.loads(text) == lenient(text)
        elif row["name"].startswith("n_"):
            assert isinstance(read, Fault), row["name"]
        counted += 1
    assert counted > 290


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("", "truncated", "where a value was expected"),
        ("{", "truncated", "before a key"),
        ('{"a"', "truncated", "after a key"),
        ('{"a":', "truncated", "where a value was expected"),
        ('{"a": "b', "truncated", "inside the string"),
        ('{"a": 1', "truncated", "inside a number"),
        ('{"a": 1 ', "truncated", "before its closing brackets"),
        ('{"a": tr', "truncated", "inside a word"),
        ("[1,", "truncated", "after a comma"),
        ("[1,]", "malformed", "line 1, column 4"),
        ('{"a": 1}\n x', "malformed", "line 2, column 2"),
        ("{'a': 1}", "malformed", "double quotes"),
        ("[NaN]", "malformed", "expected a value"),
        ("[NaN]", "malformed", "JSON has no NaN and no infinity"),
        ("[-Infinity]", "malformed", "write a number or null"),
        ("[1e999]", "malformed", "too large"),
        ("[" + "1" * 5000 + "]", "malformed", "too many digits"),
        ('["\\ud800"]', "malformed", "half of a character"),
        ('["\ud800"]', "malformed", "half of a character"),
        ('["a\nb"]', "malformed", "does not allow"),
        ('["\\x"]', "malformed", "does not allow"),
        ("[01]", "malformed", "as JSON writes it"),
        ('{"a" 1}', "malformed", 'expected ":"'),
        ("[1 2]", "malformed", 'expected "," or "]"'),
        ("\ufeff{}", "malformed", "expected a value"),
    ],
)
def test_strict_says_what_is_wrong_and_where(text: str, code: str, where: str) -> None:
    """Each mistake has a code and a sentence with the place."""
    read = loads(text)
    assert isinstance(read, Fault)
    assert code == read.code
    assert where in read.message


def test_D5_a_key_twice_is_refused_with_key_and_path() -> None:
    """At any depth, in flawless and in broken text."""
    for text in ('{"a": [{"b": 1, "b": 1}]}', '{"a": [{"b": 1, b: 1,}]}'):
        read = read_at(text, 0)
        assert isinstance(read, Fault)
        assert (read.code, read.key, read.path) == ("duplicate_key", "b", ("a", 0))
        assert "a[0]" in call_error(read).message


@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a":', "}")])
def test_D6_nesting_and_length_are_bounded(brackets: tuple[str, str]) -> None:
    """Deep text is an error and no RecursionError; the limit itself is allowed."""
    first, last = brackets
    deep = first * DEPTH + "1" + last * DEPTH
    assert isinstance(loads(deep), Value)
    assert isinstance(read_at(deep, 0), Value)
    for count in (DEPTH + 1, 100_000):
        for text in (first * count, first * count + "1" + last * count):
            for read in (loads(text), read_at(text, 0)):
                assert isinstance(read, Fault)
                assert "inside each other" in read.message
            assert values(text) == []
    assert isinstance(loads(" " * (LONGEST + 1)), Fault)


def test_D6_many_brackets_in_strings_are_not_deep() -> None:
    """What looks deep to a quick look is read all the same."""
    value = {"a": "[{" * 400, "b": [[[]]] * 300}
    assert lenient(json.dumps(value)) == value


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=80, deadline=None)
@given(value=json_values, indent=st.none() | st.integers(0, 3), ascii_=st.booleans())
def test_valid_json_is_never_changed(value: Any, indent: int, ascii_: bool) -> None:
    """Strict and lenient give what json.loads gives, without a note."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_)
    strict = loads(text)
    assert isinstance(strict, Value)
    assert value == strict.value
    loose = read_at(text, 0)
    assert isinstance(loose, Value)
    assert (value, ()) == (loose.value, loose.notes)


@settings(max_examples=80, deadline=None)
@given(value=st.dictionaries(st.text(), json_values, min_size=1))
def test_one_leniency_leaves_the_rest_as_it_was(value: dict[str, Any]) -> None:
    """The slow reader gives the same value as the quick one."""
    text = json.dumps(value)
    assert lenient(text[:-1] + ",}") == value
    assert lenient(text.replace("{", "{ // x\n", 1)) == value


# --- lenient ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1,}', {"a": 1}),
        ("[1, 2, ]", [1, 2]),
        ("{'a': 'b'}", {"a": "b"}),
        ("{'a': 'it's'}", {"a": "it's"}),
        ("{'a': 'it\\'s', 'b': \"x'y\"}", {"a": "it's", "b": "x'y"}),
        ("{'a': True, 'b': None, 'c': False}", {"a": True, "b": None, "c": False}),
        ("{a: 1, b-c: 2, $d: 3}", {"a": 1, "b-c": 2, "$d": 3}),
        ("{“a”: “b “c” d”}", {"a": "b “c” d"}),
        ("{‘a’: ‘don’t’}", {"a": "don’t"}),
        ('{"a": "x\ny\tz"}', {"a": "x\ny\tz"}),
        (r'{"a": "\d\x41\u12"}', {"a": r"\d\x41\u12"}),
        (r'{"a": "it\'s \u0041\ud83d\ude00", }', {"a": "it's A😀"}),
        ('{"a": "5" pipe"}', {"a": '5" pipe'}),
        ('{"a": "he said "yes""}', {"a": 'he said "yes"'}),
        ('{"a": "say "yes", please", "b": 1}', {"a": 'say "yes", please', "b": 1}),
        ('{"a": "print("x")"}', {"a": 'print("x")'}),
        ('{"a": "see "//host" path"}', {"a": 'see "//host" path'}),
        ('{"a": 1\n "b": 2}', {"a": 1, "b": 2}),
        ('{"a": "x"\n "b": 2}', {"a": "x", "b": 2}),
        ('[{"a": 1} {"a": 2}]', [{"a": 1}, {"a": 2}]),
        ('{"a": 1, // one\n /* two */ "b": 2 # three\n}', {"a": 1, "b": 2}),
        ('{"a": "http://x/#y" // see\n}', {"a": "http://x/#y"}),
        ('\ufeff{"a":\u00a01}', {"a": 1}),
    ],
)
def test_what_models_write_is_read_where_it_can_mean_one_thing(
    text: str, value: Any
) -> None:
    """Each leniency gives the value and leaves a note."""
    read = read_at(text, 0)
    assert isinstance(read, Value)
    assert value == read.value
    assert read.notes


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "x" + "y"}',
        '{"a": "first, b: "second"}',
        '{"a": "x" "y"}',
        '{"a": "x" if y else "z"}',
        '{"a": "x"; "b": "y"}',
        '{"a": "x", "b: "y", "c": "z"}',
        '{"a": "x", ""b": "y"}',
        '{"a": ""x", "b": "y"}',
        '{"a": "x"", "b": "y"}',
        '{"a": "x\\\\"y", "b": 1}',
        '["a", "b, "c"]',
        '["a", b", "c"]',
        '["a", "b", c"]',
        "{a: 1 b: 2}",
        '{"a": "x,\n "b": "y"}',
        '{"a": "{"b": 1}", "c": 2}',
        '{"a": "b "c" d": 1}',
        '["a "b", "c" d"]',
        '["a" "b"]',
        "[1 2]",
        "[1,,2]",
        "[,1]",
        "{,}",
        '{"a": [1, 2}',
        '{"a": bare words}',
        '{"a": undefined}',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": .5}',
        '{"a": +1}',
        '{"a": 0x1F}',
        '{"a": 1_000}',
        '{"a": 1.2.3}',
        '{1: "a"}',
        '{"a" "b"}',
        '{"a": "b", "c"}',
        '{"a": (1, 2)}',
        '{“a": 1, "b”: “x”}',
    ],
)
def test_what_could_mean_two_things_is_refused(text: str) -> None:
    """No value is better than a wrong one."""
    assert lenient(text) in ("malformed", "truncated")


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "b',
        '{"a": "b\\',
        '{"a": 12',
        '{"a": -',
        '{"a": 1.',
        '{"a": 1.5e-',
        '{"a": tru',
        '{"a": Non',
        '{"a": "x", ',
        '{"a": "x", "b',
        '{"a": "x", "b"',
        '{"a": "x", "b":',
        '{"a": [1, ',
        "{'a': 'it'",
        '{"a": "5" pipe"',
        '{"a": 1 // why',
        "[",
        "{",
    ],
)
def test_D9_a_cut_inside_a_value_is_never_completed(text: str) -> None:
    """Strings, numbers and words may have gone on; so may an opened list."""
    assert lenient(text) == "truncated"


@pytest.mark.parametrize("text", ['{"a": "x"', '[{"a": 1}', '{"a": {"b": 1}', "[1"])
def test_D9_no_bracket_is_ever_added(text: str) -> None:
    """What is not closed is no value, whoever ended the text."""
    assert lenient(text) == "truncated"
    assert values(text) == []


def test_nothing_is_looked_for_inside_a_broken_value() -> None:
    """A broken message never turns into its own receiver."""
    text = '{"receiver": {"role": "plugin"}, "content": oops} {"b": 1}'
    assert pieces(text)[0].kind == "broken"
    assert values(text) == [{"b": 1}]


def test_a_text_is_cut_into_pieces_without_gaps() -> None:
    """Thoughts, values and text follow one another to the end."""
    text = 'a<think>{"b": 1}</think> {"c": 2} d {e} [f] {"g": ?} [{"h": 3}]'
    found = pieces(text)
    assert [piece.kind for piece in found] == [
        "text", "thought", "text", "value", "text", "broken", "text", "value",
    ]  # fmt: skip
    assert text == "".join(text[piece.start : piece.end] for piece in found)


# --- time ---------------------------------------------------------------------


def order(count: int) -> str:
    items = [{"sku": f"S-{n}", "qty": n, "price": n / 2} for n in range(count)]
    return json.dumps({"name": "order", "arguments": {"items": items}})


def seconds(text: str) -> float:
    best = 9.0
    for _ in range(2):
        started = time.process_time()
        pieces(text)
        best = min(best, time.process_time() - started)
    return best


def test_a_stray_comma_in_100_kB_costs_less_than_50_ms() -> None:
    """At the beginning, in the middle and at the end."""
    text = order(2300)
    assert len(text) > 100_000
    middle = text.index("},", len(text) // 2)
    for broken in (
        text.replace("[{", "[{", 1).replace("}", ",}", 1),
        text[:middle] + "," + text[middle:],
        text[:-2] + ",}}",
    ):
        assert not any(piece.fault for piece in pieces(broken))
        assert seconds(broken) < 0.15  # 50 ms on a quiet machine


@pytest.mark.parametrize(
    "piece",
    [
        '{"a": "b" ',
        '{"a": 1} ',
        '{"a": ',
        '"',
        "'",
        '", "',
        '","a":"',
        '{"',
        "{a:",
        "[",
        "[[],",
        "/*",
        "//",
        "<think>",
        "```json\n",
        "\\",
        '"a" ',
        "{'a': 'b' c",
        "   ",
        "{ ",
        '"}]',
    ],
)
def test_time_is_linear_whatever_is_repeated(piece: str) -> None:
    """Ten times the text takes no more than some ten times as long."""
    for before in ("", '{"a": "', "[", '["x", {"y": \''):
        short = before + piece * (3_000 // len(piece))
        long = before + piece * (30_000 // len(piece))
        assert seconds(long) < 30 * max(seconds(short), 0.01)


# --- foreign material ---------------------------------------------------------

MALFORMED = ["json_repair", "jsonrepair_js", "partial_json"]
TOOL_TEXTS = ["vllm_tool_parsers", "llamacpp_chat"]


@pytest.mark.parametrize("name", [*MALFORMED, *TOOL_TEXTS])
def test_nothing_crashes_or_hangs(shared_data: Path, name: str) -> None:
    """Every foreign text is read or refused, quickly, in both modes."""
    for row in rows(shared_data, f"malformed/{name}.jsonl"):
        text = row["input"]
        if not isinstance(text, str):
            continue
        started = time.perf_counter()
        loads(text)
        read_at(text, 0)
        pieces(text)
        assert time.perf_counter() - started < 1.0, row["id"]


@pytest.mark.parametrize("name", MALFORMED)
def test_valid_json_of_others_is_never_changed(shared_data: Path, name: str) -> None:
    """What the row calls valid JSON is read as json.loads reads it."""
    for row in rows(shared_data, f"malformed/{name}.jsonl"):
        text = row["input"]
        try:
            value = json.loads(text)
        except (ValueError, TypeError):
            continue
        for read in (loads(text), read_at(text, len(text) - len(text.lstrip()))):
            if isinstance(read, Fault):
                # D5 and half characters: refused, never changed.
                assert read.code == "duplicate_key" or "half" in read.message
            else:
                assert value == read.value


@pytest.mark.parametrize("name", [*MALFORMED, *TOOL_TEXTS])
def test_no_truncated_text_becomes_a_value(shared_data: Path, name: str) -> None:
    """Of any prefix of a value, cut by the server, nothing is read."""
    for row in rows(shared_data, f"malformed/{name}.jsonl"):
        text = row["input"]
        if not isinstance(text, str) or len(text) > 300:
            continue
        start = len(text) - len(text.lstrip())
        read = read_at(text, start)
        if text[start : start + 1] not in "{[" or isinstance(read, Fault):
            continue
        for end in range(start, read.end):
            assert isinstance(read_at(text[:end], start), Fault)


def test_members_behind_a_closing_bracket_are_not_dropped() -> None:
    """A value with members left over is refused, prose behind it is not."""
    for text in ('{"a": 1}, "b": 2}', '{"a": 1} "b" "c"}', '[{"a": 1}, "b": 2}]'):
        assert broken(text)
    assert not broken('{"a": 1}, "b" and so on')


def test_what_lost_its_bracket_is_not_searched_for_smaller_objects() -> None:
    """The value of a member is no value of its own."""
    for text in (
        '"name": "order", "arguments": {"n": 2}}',
        '{name": "order", "arguments": {"n": 2}}',
        "name': 'order', 'arguments': {'n': 2}}",
    ):
        assert values(text) == []
        assert broken(text)


def test_no_single_slip_gives_another_call() -> None:
    """Each bracket, comma, colon and quote of a call dropped or doubled in turn."""
    call = {"name": "order", "arguments": {"to": "Anna Berg", "n": 2, "tags": ["a"]}}
    for text in (json.dumps(call), json.dumps(call, indent=1), repr(call)):
        for place, char in enumerate(text):
            if char not in "\"',:{}[]":
                continue
            for slip in (
                text[:place] + text[place + 1 :],
                text[:place] + char + text[place:],
            ):
                found = values(slip)
                if not broken(slip) and found:
                    assert found in ([call], [[call]])
