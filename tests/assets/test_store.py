"""The asset store: what is said, what is kept, what a reference leads to."""

import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.assets.describe import BUDGET, meta_of
from neuraxis.assets.store import AssetStore, ReferenceLost
from neuraxis.references.asset_ref import AssetRef

RESPONSE = ("content", "response")


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: float


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, None),
        (1, 1),
        ("text", "text"),
        ([1, (2, 3)], [1, [2, 3]]),
        ({"a": Decimal("1.50")}, {"a": "1.50"}),
        (date(2026, 1, 2), "2026-01-02"),
        (Path("a/b"), "a/b"),
        (Colour.RED, "red"),
        (Point(1, 2.5), {"x": 1, "y": 2.5}),
        ({"b", "a"}, ["a", "b"]),
        ((x for x in range(3)), [0, 1, 2]),
    ],
)
def test_B57_what_is_said(value: Any, said: Any) -> None:
    """JSON and what has a lossless rule; null is serialisable (defect 5)."""
    kept = AssetStore().keep("a1", "c", value)
    assert (kept.stored, kept.value) == (False, said)


@pytest.mark.parametrize(
    "value",
    [b"bytes", float("nan"), float("inf"), object(), {1: 2}, [1, {"x": complex(1)}]],
)
def test_B57_B58_what_is_not_said(value: Any) -> None:
    """One bad leaf makes the whole answer an asset."""
    store = AssetStore()
    assert store.keep("a1", "c", value).stored
    found = store.resolve(AssetRef(asset_id="a1", field_path=RESPONSE))
    if isinstance(value, dict | list):
        assert found == value  # the command may go on changing its own
    else:
        assert found is value


def test_B53_the_root_holds_command_and_response() -> None:
    """asset.content == {"command": …, "response": …}, also for a said answer."""
    store = AssetStore()
    store.keep("a1", "crop", {"x": 1})
    store.keep("a2", "crop", b"y")
    for name, value in (("a1", {"x": 1}), ("a2", b"y")):
        assert store.resolve(AssetRef(asset_id=name)) == {
            "content": {"command": "crop", "response": value}
        }


def test_B59_a_large_json_answer_becomes_an_asset() -> None:
    """Above the threshold; never where the threshold is off."""
    text = "x" * 20_000
    assert AssetStore().keep("a1", "c", {"text": text}).stored
    assert not AssetStore(inline_bytes=None).keep("a1", "c", {"text": text}).stored


def test_B49_a_wrong_path_says_how_far_it_led() -> None:
    """With what is there, and the corrected path as a hint (B54)."""
    store = AssetStore()
    store.keep("a1", "c", {"city": "Lyon"})
    with pytest.raises(ReferenceLost) as lost:
        store.resolve(AssetRef(asset_id="a1", field_path=(*RESPONSE, "town")))
    assert lost.value.error.code == "asset_path_not_found"
    assert "city" in lost.value.error.message
    with pytest.raises(ReferenceLost) as lost:
        store.resolve(AssetRef(asset_id="a1", field_path=("response", "city")))
    assert "content" in lost.value.error.message
    with pytest.raises(ReferenceLost) as lost:
        store.resolve(AssetRef(asset_id="a9"))
    assert lost.value.error.code == "asset_not_found"


@pytest.mark.parametrize("name", ["__class__", "__init__", "keys", "_root"])
def test_B50_no_attributes(name: str) -> None:
    """A path never reaches an attribute (defect 4)."""
    store = AssetStore()
    store.keep("a1", "c", {"x": object()})
    with pytest.raises(ReferenceLost):
        store.resolve(AssetRef(asset_id="a1", field_path=(*RESPONSE, "x", name)))


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=60,
)


@given(value=JSONISH)
def test_B56_the_meta_stays_in_its_budget(value: Any) -> None:
    """For any nested value; and it is JSON."""
    root = {"content": {"command": "c", "response": value}}
    assert len(json.dumps(meta_of("a1", root), ensure_ascii=False)) <= BUDGET


def test_B55_the_list_stays_in_its_budget_in_order() -> None:
    """The newest whole, older ones in a line, the rest by their number."""
    store = AssetStore()
    for number in range(200):
        store.keep(f"a{number}", "c", {"data": b"x" * 1000, "name": f"file {number}"})
    told = store.meta(budget=2000)
    assert len(json.dumps(told, ensure_ascii=False)) <= 2000
    assert told[-1]["asset_id"] == "a199"
    assert "content/response/name" in told[-1]
    assert "older assets" in str(told[0])


def test_B56_native_objects_are_told_by_what_matters() -> None:
    """Shape and dtype, rows and columns, size and mode."""
    numpy = pytest.importorskip("numpy")
    polars = pytest.importorskip("polars")
    pictures = pytest.importorskip("PIL.Image")
    store = AssetStore()
    store.keep("a1", "c", numpy.zeros((2500, 2500)))
    store.keep("a2", "c", polars.DataFrame({"city": ["x"] * 5, "n": range(5)}))
    store.keep("a3", "c", pictures.new("RGB", (640, 480)))
    text = json.dumps(store.meta())
    assert "shape (2500, 2500), float64, 50 MB" in text
    assert "5 rows, 2 columns: city String, n Int64" in text
    assert "640x480, RGB" in text


def test_B60_saved_objects_come_back_and_others_are_lost(tmp_path: Path) -> None:
    """A later store finds what could be saved; what could not says asset_lost."""
    numpy = pytest.importorskip("numpy")
    store = AssetStore(folder=tmp_path)
    array = store.keep("a1", "c", numpy.arange(4))
    odd = store.keep("a2", "c", object())
    later = AssetStore(folder=tmp_path)
    later.restore("a1", dict(array.meta), array.bytes)
    later.restore("a2", dict(odd.meta), odd.bytes)
    ref = AssetRef(asset_id="a1", field_path=RESPONSE)
    assert list(later.resolve(ref)) == [0, 1, 2, 3]
    with pytest.raises(ReferenceLost) as lost:
        later.resolve(AssetRef(asset_id="a2"))
    assert lost.value.error.code == "asset_lost"
    assert [told["asset_id"] for told in later.meta()] == ["a1", "a2"]


def test_memory_is_bounded_by_what_is_saved(tmp_path: Path) -> None:
    """Older objects leave the memory and are mapped back when they are asked for."""
    numpy = pytest.importorskip("numpy")
    store = AssetStore(folder=tmp_path, memory_bytes=2_000_000)
    for number in range(10):
        store.keep(f"a{number}", "c", numpy.full(125_000, number, dtype="f8"))
    assert store._memory_used <= 2_000_000  # type: ignore[attr-defined]
    for number in range(10):
        ref = AssetRef(asset_id=f"a{number}", field_path=RESPONSE)
        assert store.resolve(ref)[7] == number


def test_a_stored_array_cannot_be_changed() -> None:
    """All who refer to it get the same object."""
    numpy = pytest.importorskip("numpy")
    store = AssetStore()
    store.keep("a1", "c", {"x": numpy.zeros(3)})
    array = store.resolve(AssetRef(asset_id="a1", field_path=(*RESPONSE, "x")))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_a_value_that_holds_itself_is_an_asset() -> None:
    """Cycles neither hang nor crash (B57)."""
    loop: list[Any] = []
    loop += [loop, loop]
    store = AssetStore()
    assert store.keep("a1", "c", loop).stored
    assert json.dumps(store.meta())


def test_B57_a_list_that_stands_in_itself_many_times_is_an_asset() -> None:
    """Written out it would have a thousand million items."""
    bomb: list[Any] = ["x"] * 10
    for _ in range(9):
        bomb = [bomb] * 10
    kept = AssetStore().keep("a1", "c", bomb)
    assert kept.stored  # and it ends
    assert kept.bytes < 10_000


def test_an_id_that_is_stored_again_has_the_new_value(tmp_path: Path) -> None:
    """Whatever was stored before, and its bytes count once."""
    store = AssetStore()
    store.keep("a1", "c", "small")
    for letter in "xy":
        store.keep("a1", "c", letter * 40_000)
    assert store.root("a1")["content"]["response"] == "y" * 40_000
    other = AssetStore()
    other.keep("a1", "c", "y" * 40_000)
    assert store._memory_used == other._memory_used
    store.keep("a1", "c", "small")
    assert store.root("a1")["content"]["response"] == "small"
    assert not store.is_asset("a1")
    assert store._memory_used == 0
