"""Tables and pictures on a terminal (N8)."""

from __future__ import annotations

import io
import math
from datetime import date, time, timedelta
from decimal import Decimal

import polars
from PIL import Image
from rich.console import Console

from neuraxis.cli.display.objects import digits, shown


def _text(value: object, width: int = 100) -> str:
    screen = io.StringIO()
    found = shown(value, width)
    assert found is not None
    Console(file=screen, width=width, color_system=None).print(found)
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
    assert "the first 10 of 30 rows, 2 columns" in seen
    assert seen.count("0.333333") == 10
    assert "city[0]" in seen
    assert "\x1b" not in seen


def test_n8_a_picture_is_half_blocks() -> None:
    """Two pixels in each cell, as wide as the terminal has room for."""
    lines = _text(Image.new("RGB", (400, 100), "red")).rstrip().splitlines()
    assert {len(line.strip()) for line in lines} == {60}
    assert len(lines) == 7
    assert shown({"a": 1}, 80) is None


def test_a_date_has_no_quotes() -> None:
    """Texts have none, either."""
    cells = [date(2026, 1, 3), time(4, 5), timedelta(hours=2), Decimal("1.50"), "a"]
    assert [digits(cell) for cell in cells] == [
        "2026-01-03", "04:05:00", "2:00:00", "1.50", "a",
    ]  # fmt: skip


def test_a_table_says_how_much_of_it_is_shown() -> None:
    """It named the size of the whole table only."""
    frame = polars.DataFrame({f"c{n}": [n] * 15 for n in range(10)})
    assert "the first 10 of 15 rows, 8 of 10 columns" in _text(frame)
    assert "the first 10 of 15 rows, 2 columns" in _text(frame[:, :2])
    assert "3 rows, the first 8 of 10 columns" in _text(frame[:3])
    assert "3 rows, 1 column" in _text(frame[:3, :1])


def test_a_number_is_never_cut() -> None:
    """Fewer columns are shown instead; a text is broken between words."""
    frame = polars.DataFrame(
        {"customer": ["a long name of a customer"]}
        | {f"amount_{n}": [1_239_570.5 * (n + 1)] for n in range(8)}
    )
    for width in range(32, 100):
        seen = _text(frame, width)
        assert "…" not in seen
        assert "1,239,570" in seen
        assert max(map(len, seen.splitlines())) <= width
    assert "the first 2 of 9 columns" in _text(frame, 32)
