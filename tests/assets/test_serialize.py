"""Assets as files: what is saved is loaded again, and a damaged file never crashes."""

import datetime
import decimal
import json
import os
import random
import struct
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuraxis.assets.serialize import ALIGN, MAGIC, CannotBeSaved, load, save
from neuraxis.errors import StorageError

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes().map(lambda moment: moment.replace(fold=0))  # ISO has no fold
    | st.times().map(lambda moment: moment.replace(fold=0))
    | st.uuids()
    | st.decimals(allow_nan=False)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=20,
)


@given(value=VALUES)
@settings(max_examples=100, deadline=None)
def test_B60_round_trip(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    """load(save(x)) == x, with the types of tuples, dates and decimals."""
    path = tmp_path_factory.mktemp("bundle") / "a.nxb"
    save({"content": value}, path)
    loaded = load(path)
    assert loaded == {"content": value}
    assert repr(loaded) == repr({"content": value})


def test_an_array_is_mapped_and_read_only(tmp_path: Path) -> None:
    """Raw bytes where they lie: no copy, and no way to change the stored object."""
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(12.0).reshape(3, 4)
    save({"a": array, "empty": numpy.zeros((0, 3))}, tmp_path / "a.nxb")
    loaded = load(tmp_path / "a.nxb")
    assert numpy.array_equal(loaded["a"], array)
    assert loaded["empty"].shape == (0, 3)
    assert not loaded["a"].flags.writeable
    assert not loaded["a"].flags.owndata
    dates = numpy.array(["2026-01-01", "2026-02-01"], dtype="datetime64[D]")
    save(dates, tmp_path / "d.nxb")
    assert numpy.array_equal(load(tmp_path / "d.nxb"), dates)


def test_objects_in_an_array_are_refused(tmp_path: Path) -> None:
    """An object array would need pickle."""
    numpy = pytest.importorskip("numpy")
    with pytest.raises(CannotBeSaved, match="Python objects"):
        save(numpy.array([object()]), tmp_path / "a.nxb")
    with pytest.raises(CannotBeSaved):
        save({"x": object()}, tmp_path / "a.nxb")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_comes_back_as_what_it_was(tmp_path: Path, library: str) -> None:
    """Through Arrow, validated on read."""
    frames = pytest.importorskip(library)
    pytest.importorskip("pyarrow")
    table = frames.DataFrame({"city": ["Lyon", "Turin"], "people": [1, 2]})
    save(table, tmp_path / "a.nxb")
    loaded = load(tmp_path / "a.nxb")
    assert type(loaded) is type(table)
    assert loaded.equals(table)


def test_a_picture_comes_back(tmp_path: Path) -> None:
    """Raw pixels with size and mode."""
    pictures = pytest.importorskip("PIL.Image")
    picture = pictures.new("RGB", (7, 5), (1, 2, 3))
    save(picture, tmp_path / "a.nxb")
    loaded = load(tmp_path / "a.nxb")
    assert (loaded.size, loaded.mode) == ((7, 5), "RGB")
    assert loaded.tobytes() == picture.tobytes()


def test_a_damaged_file_is_a_storage_error(tmp_path: Path) -> None:
    """300 mutations of a good file: an error or a value, never anything else."""
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "a.nxb"
    value = {
        "a": numpy.arange(5),
        "t": "x" * 2000,
        "d": datetime.date(2026, 1, 1),
        "n": decimal.Decimal("1.5"),
        "u": uuid.UUID(int=1),
        "l": [1, "two", None],
    }
    save(value, path)
    good = path.read_bytes()
    chance = random.Random(1)
    refused = 0
    for round_ in range(300):
        bad = bytearray(good)
        if round_ % 5 == 0:
            bad = bad[: chance.randrange(len(bad))]
        else:
            for _ in range(chance.randrange(1, 4)):
                bad[chance.randrange(600)] = chance.randrange(256)
        other = tmp_path / f"{round_}.nxb"
        other.write_bytes(bytes(bad))
        try:
            load(other)
        except StorageError:
            refused += 1
    assert refused > 100
    with pytest.raises(StorageError, match="cannot be read"):
        load(tmp_path / "missing.nxb")


def test_a_value_that_holds_itself_is_refused(tmp_path: Path) -> None:
    """Cycles end in a sentence, not in a recursion error."""
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(CannotBeSaved, match="nested deeper"):
        save(loop, tmp_path / "a.nxb")


def test_B60_numbers_of_numpy_are_kept_beside_arrays(tmp_path: Path) -> None:
    """A mean beside a picture is no reason to lose both; types stay as they were."""
    numpy = pytest.importorskip("numpy")
    given = {
        "mean": numpy.float64(1.5),
        "count": numpy.int16(-3),
        "flag": numpy.bool_(True),
        "name": numpy.str_("é"),
        "none": numpy.str_(""),
        "when": numpy.datetime64("2020-01-02"),
        "all": numpy.arange(3),
    }
    save(given, tmp_path / "a.nxb")
    loaded = load(tmp_path / "a.nxb")
    numpy.testing.assert_array_equal(loaded.pop("all"), given.pop("all"))
    assert loaded == given
    assert [type(value) for value in loaded.values()] == [
        type(value) for value in given.values()
    ]
    hidden = numpy.ma.masked_array([1, 2], mask=[True, False])
    with pytest.raises(CannotBeSaved, match="MaskedArray"):
        save(hidden, tmp_path / "b.nxb")


def test_what_could_not_be_read_again_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header beyond the reader's limit."""
    monkeypatch.setattr("neuraxis.assets.serialize.HEADER_BYTES", 1_000)
    with pytest.raises(CannotBeSaved, match="too many parts"):
        save(list(range(1_000)), tmp_path / "a.nxb")
    assert list(tmp_path.iterdir()) == []


def test_the_rest_of_a_killed_process_is_in_nobodys_way(tmp_path: Path) -> None:
    """In a container every process may have the same number."""
    (tmp_path / f".a.nxb.{os.getpid()}.part").write_bytes(b"half")
    save([1], tmp_path / "a.nxb")
    assert load(tmp_path / "a.nxb") == [1]
    assert [file.name for file in tmp_path.iterdir()] == ["a.nxb"]


def test_R6_long_lists_are_written_in_slices(tmp_path: Path) -> None:
    """No JSON text of the file is longer than a thousand nodes."""
    value = {
        "rows": [{"id": n, "in": [n] * (1500 if n == 7 else 1)} for n in range(2500)],
        "by name": {f"name {n}": (n, None) for n in range(1200)},
        "c": ["c", ["c"]],
    }
    save(value, tmp_path / "a.nxb")
    assert load(tmp_path / "a.nxb") == value


@pytest.mark.parametrize(
    "tree", [["l", ["c", [0, 0]]], ["l", ["c", [1]]], ["l", ["c", "ab"]], ["d", ["c"]]]
)
def test_R6_slices_of_a_changed_file_are_refused(tree: Any, tmp_path: Path) -> None:
    """A slice that holds itself would never end."""
    inside = json.dumps([["l", ["c", [0]]]]).encode()
    header = json.dumps(
        {
            "tree": tree,
            "parts": [{"kind": "tree", "offset": 0, "bytes": len(inside)}],
        }
    ).encode()
    start = -(-(16 + len(header)) // ALIGN) * ALIGN
    body = struct.pack("<8sQ", MAGIC, len(header)) + header
    (tmp_path / "a.nxb").write_bytes(body.ljust(start, b"\0") + inside.ljust(64, b"\0"))
    with pytest.raises(StorageError):
        load(tmp_path / "a.nxb")


def test_what_a_file_would_change_is_not_saved(tmp_path: Path) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    nanoseconds = pandas.Timestamp("2026-01-02T03:04:05.123456789")
    itself: list[Any] = []
    itself.append(itself)
    for value in (
        {"when": nanoseconds},
        {"when": pandas.NaT, "x": b""},
        polars.DataFrame({"a": polars.Series([object()], dtype=polars.Object)}),
        pandas.DataFrame({"a": [{"x": 1}, {"y": 2}]}),
        pandas.DataFrame({"a": [{1, 2}]}),
        pandas.DataFrame({"a": [[{"x": 1}, {"y": 2}]]}),
        pandas.DataFrame({"a": [itself, None]}),
        pandas.DataFrame({"a": [1j]}),
        pandas.DataFrame({"a": [10**30]}),
        pandas.DataFrame({"a": pandas.arrays.SparseArray([0, 1])}),
    ):
        with pytest.raises(CannotBeSaved):
            save(value, tmp_path / "a")


def test_lists_in_cells_are_saved(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    save(pandas.DataFrame({"a": [[[1], [2, 3]], None]}), tmp_path / "a")
    first, second = load(tmp_path / "a")["a"]
    assert [list(part) for part in first] == [[1], [2, 3]]
    assert second is None


def test_large_integers_beside_nothing_are_not_rounded(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [2**53 + 1, None]}, dtype=object)
    save(frame, tmp_path / "a")
    assert load(tmp_path / "a")["a"].tolist() == [2**53 + 1, None]


def test_a_transparent_colour_stays_transparent(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    picture = image.new("RGB", (2, 2), (255, 0, 0))
    picture.info["transparency"] = (255, 0, 0)
    save(picture, tmp_path / "a")
    assert load(tmp_path / "a").getpixel((0, 0)) == (255, 0, 0, 0)
    grey = image.new("I;16", (2, 2), 5000)
    grey.info["transparency"] = 5000
    save(grey, tmp_path / "c")
    assert load(tmp_path / "c").getpixel((0, 0)) == 5000  # not clipped to 8 bits
    indexed = image.new("RGB", (2, 2), (9, 200, 9)).convert("PA")
    save(indexed, tmp_path / "b")
    assert load(tmp_path / "b").convert("RGB").tobytes() == (
        indexed.convert("RGB").tobytes()
    )
