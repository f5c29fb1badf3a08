"""What an object is, in words for a person."""

from __future__ import annotations

import hashlib
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from PIL import Image

from cpu_time import within
from neuraxis.assets.in_words import beginning, in_words

ROWS = {"city": ["Lyon\nLyon", "Oslo"], "n": [1, None]}


class Broken:
    """An object of which nothing can be asked."""

    def __repr__(self) -> str:
        raise RuntimeError

    @property
    def columns(self) -> Any:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (pl.DataFrame(ROWS), "a table of 2 rows and 2 columns: city, n"),
        (pd.DataFrame(ROWS), "a table of 2 rows and 2 columns: city, n"),
        ([{"n": 1}], "a table of 1 row and 1 column: n"),
        (Image.new("RGB", (320, 240)), "a picture of 320 x 240 pixels"),
        (b"x" * 1_500, "1.5 kB"),
        ([1, 2], "a list of 2 items"),
        ({"a": 1, "b": 2}, "a mapping with the keys a, b"),
        ({}, "an empty mapping"),
        (None, "nothing"),
        ("abc", "a text of 3 characters"),
        (date(2026, 1, 2), "an object of the type datetime.date"),
        (
            np.zeros((2, 3)),
            "an object of the type numpy.ndarray (shape (2, 3), float64, 48 bytes)",
        ),
        (Broken(), f"an object of the type {__name__}.Broken"),
    ],
)
def test_an_object_is_told_by_kind_and_size(value: Any, told: str) -> None:
    assert in_words(value) == told
    assert beginning(value).startswith(told)


def test_a_table_begins_with_its_first_rows() -> None:
    """Each on a line of its own, whatever stands in it."""
    told = "a table of 2 rows and 2 columns: city, n"
    assert beginning(pl.DataFrame(ROWS)) == f"{told}\nLyon Lyon | 1\nOslo | "
    long = beginning(pl.DataFrame({"n": range(100)}))
    assert long.endswith("\n0\n1\n2")
    wide = beginning(pl.DataFrame({f"{'c' * 100}{n}": ["x" * 90] for n in range(40)}))
    assert len(wide) < 3_000
    assert "and 28 more" in wide


def test_bytes_are_told_by_their_digest() -> None:
    """Two of the same size and beginning are not taken for each other."""
    digest = hashlib.sha256(b"ab").hexdigest()[:16]
    for value in (b"ab", bytearray(b"ab"), memoryview(b"ab")):
        assert beginning(value) == f"2 bytes, sha256 {digest}: b'ab'"


def test_of_millions_of_keys_only_those_shown_are_written() -> None:
    """A question is asked on the event loop."""
    told = within(0.2, lambda: in_words(dict.fromkeys(range(500_000))), attempts=3)
    assert told.endswith("and 499988 more")
