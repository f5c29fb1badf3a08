"""What a command gives and what it gets is its own to change (rules B41, B53)."""

from __future__ import annotations

import asyncio
import copy
import time
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis import Session, command
from neuraxis.assets.copying import copy_value
from neuraxis.execution import retry
from neuraxis.messages import Call, Result
from neuraxis.models.scripted import ScriptedModel

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def _containers(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value, *(c for item in value.values() for c in _containers(item))]
    if isinstance(value, list):
        return [value, *(c for item in value for c in _containers(item))]
    return []


@given(JSON)
def test_equal_and_nothing_shared(value: Any) -> None:
    """Every list and object of it is another one."""
    made = copy_value(value)
    assert made == value
    assert not {id(c) for c in _containers(made)} & {id(c) for c in _containers(value)}


def test_one_in_several_places_or_in_itself() -> None:
    """Stays one, and ends."""
    row: list[Any] = [1]
    row.append(row)
    rows = {"a": row, "b": row}
    made = copy_value(rows)
    assert made["a"] is made["b"] is made["a"][1]
    assert made["a"] is not row


def test_mappings_and_lists_of_the_standard_library() -> None:
    """Stay of their class; what stands in them is another, too."""
    given_: dict[str, Any] = {
        "ordered": OrderedDict(a=[1]),
        "default": defaultdict(list, a=[1]),
        "queue": deque([[1]], 5),
        "bytes": bytearray(b"a"),
        "counts": Counter("a"),
    }
    before = copy.deepcopy(given_)
    made = copy_value(given_)
    assert made == before
    assert [type(item) for item in made.values()] == [
        type(item) for item in given_.values()
    ]
    made["ordered"]["a"].append(2)
    made["default"]["b"].append(2)
    made["queue"][0].append(2)
    made["bytes"].append(2)
    made["counts"]["b"] = 2
    assert given_ == before


def test_a_long_queue_is_gone_through_once() -> None:
    """Not from its nearer end to each of its places: that took seconds."""
    given_ = deque([{"n": n} for n in range(200_000)])
    started = time.process_time()
    made = copy_value(given_)
    assert time.process_time() - started < 1
    assert made == given_
    assert made[7] is not given_[7]


def test_pairs_of_pairs_are_looked_at_once() -> None:
    """Not twice as often on each level."""
    pairs: Any = ([1],)
    for _ in range(100):
        pairs = (pairs, pairs)
    made = copy_value(pairs)
    assert made[0] is made[1]


def test_other_things_are_shared_and_sets_are_not() -> None:
    """An object of a class is the same; a set and a tuple around a list are not."""
    thing = object()
    given_ = {"thing": thing, "many": ({1, 2}, [thing])}
    made = copy_value(given_)
    assert made["thing"] is thing
    assert made["many"][1][0] is thing
    made["many"][0].add(3)
    made["many"][1].clear()
    assert given_["many"] == ({1, 2}, [thing])


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_column_more_is_seen_by_one_only(name: str) -> None:
    """A table is another one over the same data."""
    frames = pytest.importorskip(name)
    table = frames.DataFrame({"a": [1, 2]})
    made = copy_value({"table": table})["table"]
    if name == "pandas":
        made["b"] = made["a"] * 2
        made.loc[0, "a"] = 9
    else:
        made.insert_column(1, frames.Series("b", [2, 4]))
    assert list(table.columns) == ["a"]
    assert list(table["a"]) == [1, 2]


STATE: dict[str, Any] = {}


@command(effects="once")
def note(text: str) -> dict[str, Any]:
    """Note a text; gives its own list of them, which goes on changing."""
    STATE["last"] = text
    STATE.setdefault("all", []).append(text)
    return STATE


@command(effects="once")
def tally() -> dict[str, int]:
    """Count; gives its own object."""
    STATE["n"] = STATE.get("n", 0) + 1
    return STATE


@command(effects="none")
def take_last(items: list[Any]) -> Any:
    """The last, taken off."""
    return items.pop()


@pytest.fixture(autouse=True)
def _fresh_state() -> None:
    STATE.clear()


def _run(calls: list[Call], **options: Any) -> list[Result]:
    session = Session(model=ScriptedModel([]), plugins=[note, tally, take_last, flaky])
    with session:
        return asyncio.run(session.call_all(calls, **options))


@command(effects="idempotent")
def flaky(items: list[Any]) -> int:
    """Takes all off, and works the second time."""
    count = len(items)
    items.clear()
    if not STATE.get("tried"):
        STATE["tried"] = True
        raise OSError("not yet")
    return count


def _call(number: int, tool: str, **more: Any) -> Call:
    own = {"for_each": more.pop("for_each")} if "for_each" in more else {}
    return Call(id=f"c{number}", plugin=None, command=tool, arguments=more, **own)


def test_C25_an_answer_is_what_it_was_when_it_was_given() -> None:
    """Short ones and nested ones, though the command goes on with its own."""
    results = _run([_call(1, "tally"), _call(2, "tally")])
    assert [result.value for result in results] == [{"n": 1}, {"n": 2}]
    STATE.clear()
    results = _run([_call(1, "note", text="a"), _call(2, "note", text="b")])
    assert [result.value["all"] for result in results] == [["a"], ["a", "b"]]


def test_B53_one_that_changes_what_it_gets_changes_no_answer() -> None:
    """The next command that refers to it gets what was answered."""
    last = "{{ results[0].all }}"
    calls = [
        _call(1, "note", text="a"),
        _call(2, "take_last", items=last),
        _call(3, "take_last", items=f"{last}"),
    ]
    results = _run(calls)
    assert [result.value for result in results[1:]] == ["a", "a"], results


def test_a_second_try_gets_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the first changed its arguments before it failed."""
    monkeypatch.setattr(retry, "PAUSES", (0.0,))
    given_ = [1, 2, 3]
    (result,) = _run([_call(1, "flaky", items=copy.copy(given_))], on_error="retry")
    assert result.value == 3, result


def test_each_item_gets_the_same() -> None:
    """A list that is written once for all of them."""
    calls = [_call(1, "take_last", items=[1, 2, 3], for_each=["x", "y"])]
    (result,) = _run(calls)
    assert result.value == [3, 3], result
