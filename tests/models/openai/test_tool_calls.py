"""To which call a piece belongs; `test_openai` has the quirks of servers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from neuraxis.messages import ToolCallDelta
from neuraxis.models.openai.tool_calls import CallPieces

ARGUMENTS = st.dictionaries(
    st.text(max_size=4), st.integers() | st.text(max_size=6) | st.just({}), max_size=3
)


def _add(pieces: CallPieces, piece: dict[str, Any]) -> ToolCallDelta:
    return pieces.add(piece, piece.get("function", {}))


def _joined(pieces: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Id, name and arguments of each call, in the order of their places."""
    calls: dict[int, tuple[str, str, str]] = {}
    reader = CallPieces()
    deltas = [_add(reader, piece) for piece in pieces]
    for delta in (*deltas, *reader.rest()):
        call_id, name, said = calls.get(delta.index, ("", "", ""))
        calls[delta.index] = (
            call_id or delta.id or "",
            name or delta.name or "",
            said + delta.arguments,
        )
    return [calls[index] for index in sorted(calls)]


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[tuple[str, str, str]], list[dict[str, Any]]]:
    """Whole calls, and the pieces of them as the form says, in any cut and order."""
    calls = [
        (f"id{n}", draw(st.sampled_from("fg")), json.dumps(arguments))
        for n, arguments in enumerate(draw(st.lists(ARGUMENTS, max_size=4)))
    ]
    waiting: list[list[dict[str, Any]]] = []
    for index, (call_id, name, said) in enumerate(calls):
        cuts = sorted(draw(st.sets(st.integers(0, len(said)), max_size=4)))
        parts = [said[a:b] for a, b in zip([0, *cuts], [*cuts, len(said)], strict=True)]
        first = {"id": call_id, "function": {"name": name, "arguments": parts[0]}}
        rest = [{"function": {"arguments": part}} for part in parts[1:]]
        waiting.append([{"index": index, **piece} for piece in (first, *rest)])
    pieces: list[dict[str, Any]] = []
    for index in range(len(waiting)):  # they begin in order, and then mix
        pieces.append(waiting[index].pop(0))
        while draw(st.booleans()) and any(waiting[: index + 1]):
            some = draw(st.sampled_from([w for w in waiting[: index + 1] if w]))
            pieces.append(some.pop(0))
    for left in waiting:
        pieces += left
    return calls, pieces


@given(streams())
def test_pieces_as_the_form_says_make_the_calls(
    stream: tuple[list[tuple[str, str, str]], list[dict[str, Any]]],
) -> None:
    """However they are cut, and whichever call goes on first."""
    calls, pieces = stream
    assert _joined(pieces) == calls


@given(streams())
def test_an_id_is_told_once_where_it_is_sent_once(
    stream: tuple[list[tuple[str, str, str]], list[dict[str, Any]]],
) -> None:
    """What is joined from all pieces has it once."""
    reader = CallPieces()
    told = [_add(reader, piece) for piece in stream[1]]
    for index in {delta.index for delta in told}:
        assert len([d for d in told if d.index == index and d.id]) == 1
        assert len([d for d in told if d.index == index and d.name]) == 1


@given(st.lists(st.tuples(st.sampled_from("fg"), ARGUMENTS), min_size=1, max_size=4))
def test_whole_calls_without_index_and_id(calls: list[tuple[str, Any]]) -> None:
    """A name begins another call; each has an id of its own."""
    pieces = [{"function": {"name": n, "arguments": a}} for n, a in calls]
    joined = _joined(pieces)
    assert [(name, json.loads(said)) for _, name, said in joined] == calls
    assert len({call_id for call_id, _, _ in joined}) == len(calls)
    assert all(call_id for call_id, _, _ in joined)


@pytest.mark.parametrize("index", [None, True, "0", 1.0])
def test_what_is_no_whole_number_is_no_index(index: Any) -> None:
    """As if there was none: the calls are told apart by their ids."""
    whole: list[dict[str, Any]] = [
        {"index": index, "id": name, "function": {"name": name, "arguments": "{}"}}
        for name in ("a", "b")
    ]
    assert _joined(whole) == [("a", "a", "{}"), ("b", "b", "{}")]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ({"name": "f", "arguments": None}, ""),
        ({"name": "f"}, ""),
        ({"name": "f", "arguments": {"x": "é"}}, '{"x": "é"}'),
        ({"name": "f", "arguments": []}, "[]"),
    ],
)
def test_arguments_of_any_kind_are_a_text(function: Any, expected: str) -> None:
    """Some servers send the object itself, or nothing."""
    delta = CallPieces().add({"index": 0, "id": "a"}, function)
    assert (delta.name, delta.arguments) == ("f", expected)


@pytest.mark.parametrize("value", [None, 5, "", [], {}])
def test_a_name_or_id_of_another_kind_is_none(value: Any) -> None:
    """The call gets an id all the same: the result is joined by it."""
    function = {"name": value, "arguments": "{}"}
    delta = CallPieces().add({"index": 0, "id": value}, function)
    assert delta.name is None
    assert delta.id
    assert isinstance(delta.id, str)


def test_a_call_that_goes_on_by_its_id() -> None:
    """Without index, behind another one."""
    pieces: list[dict[str, Any]] = [
        {"id": "a", "function": {"name": "f", "arguments": '{"x"'}},
        {"id": "b", "function": {"name": "g", "arguments": "{}"}},
        {"id": "a", "function": {"arguments": ": 1}"}},
    ]
    assert _joined(pieces) == [("a", "f", '{"x": 1}'), ("b", "g", "{}")]


@given(st.text(min_size=1, max_size=5))
def test_halves_of_characters_become_signs_that_can_be_sent(text: str) -> None:
    """In ids and names, too: they are sent again."""
    assume(text.isprintable())
    torn = text + "\ud83d"
    piece = {"index": 0, "id": torn, "function": {"name": torn, "arguments": torn}}
    delta = _add(CallPieces(), piece)
    assert (delta.id, delta.name, delta.arguments) == (text + "\ufffd",) * 3


def test_a_call_without_index_takes_no_place_of_another() -> None:
    """Behind one that went on after the one behind it began."""
    pieces: list[dict[str, Any]] = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}},
        {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": "}"}},
        {"id": "c", "function": {"name": "h", "arguments": "{}"}},
    ]
    told = [("a", "f", "{}"), ("b", "g", "{}"), ("c", "h", "{}")]
    assert _joined(pieces) == told


@pytest.mark.parametrize("first", ["{}", {}, " {}\n"])
@pytest.mark.parametrize("said", ["", "{}", '{"city": "Z\u00fcrich"}'])
def test_empty_braces_stand_for_what_follows(first: Any, said: str) -> None:
    """Some servers begin each call with them; alone they are the arguments."""
    pieces: list[dict[str, Any]] = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": first}},
        *(
            {"index": 0, "function": {"arguments": part}}
            for part in (said[:5], said[5:])
        ),
    ]
    assert _joined(pieces) == [("a", "f", said or "{}")]
