"""Tables and pictures on a terminal (N8)."""

from __future__ import annotations

import io
import math

import polars
from PIL import Image
from rich.console import Console

from neuraxis.cli.display.objects import digits, shown


def _text(value: object) -> str:
    screen = io.StringIO()
    found = shown(value)
    assert found is not None
    Console(file=screen, width=100, color_system=None).print(found)
    return screen.getvalue()


def test_n8_numbers_have_sensible_digits() -> None:
    """Six that say something."""
    cells = [1234.5678901234567, 0.1 + 0.2, 2.0, 0.0, 1e-7, math.inf, None, 12345678.9]
    assert [digits(cell) for cell in cells] == [
        "1,234.57", "0.3", "2", "0", "0.0000001", "inf", "", "12,345,679",
    ]  # fmt: skip


def test_n8_a_table_is_a_table() -> None:
    """Ten rows, its size below."""
    seen = _text(polars.DataFrame({"city[0]": ["a\x1b[2J"] * 30, "n": [1 / 3] * 30}))
    assert "30 rows, 2 columns" in seen
    assert seen.count("0.333333") == 10
    assert "city[0]" in seen
    assert "\x1b" not in seen


def test_n8_a_picture_is_half_blocks() -> None:
    """Two pixels in each cell, as wide as the terminal has room for."""
    lines = _text(Image.new("RGB", (400, 100), "red")).rstrip().splitlines()
    assert {len(line.strip()) for line in lines} == {60}
    assert len(lines) == 7
    assert shown({"a": 1}) is None
