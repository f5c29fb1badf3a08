"""M4: a table is refused before it takes much more than its file."""

from __future__ import annotations

import io
import json
import resource
import time

import pytest

from neuraxis.assets.readers.tables import read_frame
from neuraxis.errors import CommandError

polars = pytest.importorskip("polars")


@pytest.mark.parametrize(
    ("data", "ending", "said"),
    [
        (b"a," * 1_500_000, ".csv", "more than 5000 columns"),
        (b"a," * 1_500_000 + b"\n1", ".csv", "more than 5000 columns"),
        (
            json.dumps([{f"k{n}": 1} for n in range(13_500)]).encode(),
            ".json",
            "at most 10000000 are read",
        ),
        (
            b"\n".join(b'{"k%d": 1}' % n for n in range(13_500)),
            ".jsonl",
            "at most 10000000 are read",
        ),
    ],
    ids=["line", "header", "keys", "lines of keys"],
)
def test_m4_a_table_larger_than_its_file_is_refused_soon(
    data: bytes, ending: str, said: str
) -> None:
    """M4: 3 MB took 3.9 GB and 53 s, 0.19 MB took 3 GB and 21 s."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    with pytest.raises(CommandError, match=said):
        read_frame(polars, data, ending)
    assert time.process_time() - began < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_m4_a_table_of_many_columns_is_read_a_few_times_only() -> None:
    """M4: 10 MB of 5,000 columns were read 625 times, in 24 s."""
    names = ",".join(f"c{n}" for n in range(4000)).encode()
    data = b"\n".join([names, *[b",".join([b"1"] * 4000)] * 500])
    began = time.perf_counter()
    assert read_frame(polars, data, ".csv").shape == (500, 4000)
    assert time.perf_counter() - began < 6


def test_a_table_of_too_many_rows_is_refused_before_it_is_made() -> None:
    """190 MB were parsed for 5 s, in 1.7 GB, and then refused."""
    sink = io.BytesIO()
    polars.DataFrame({"a": range(100)}).write_parquet(sink)
    for data, ending in (
        (b"a,b\n" + b"1,2\n" * 100, ".csv"),
        (sink.getvalue(), ".parquet"),
    ):
        reads: list[str] = []
        watched = _Watched(reads)
        with pytest.raises(CommandError, match="more than 50 rows; split the file"):
            read_frame(watched, data, ending, most=50)
        assert reads == []
        assert read_frame(watched, data, ending, most=100).height == 100
        assert reads


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n\r\n"])
@pytest.mark.parametrize("start", ["", "\n", "\ufeff", "sep=;\n"])
def test_a_table_of_just_as_many_rows_is_read(start: str, end: str) -> None:
    """Blank lines are no rows."""
    text = start + "a;b\n" + "\n".join(["1;2"] * 50) + end
    assert read_frame(polars, text.encode(), ".csv", most=50).height == 50


class _Watched:
    """Polars, and what it reads as a whole."""

    def __init__(self, reads: list[str]) -> None:
        self._reads = reads

    def __getattr__(self, name: str) -> object:
        if name in ("read_csv", "read_parquet"):
            self._reads.append(name)
        return getattr(polars, name)
