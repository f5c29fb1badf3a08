"""M4: a table is refused before it takes much more than its file."""

from __future__ import annotations

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
