"""Recorded dialogues through the whole runtime: the same answers in every dialect."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from benchmark_file import benchmark
from neuraxis.dialects import DIALECTS


@pytest.fixture(scope="module")
def multi_turn() -> ModuleType:
    return benchmark("multi_turn")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_D1_recorded_dialogues(
    shared_data: Path, multi_turn: ModuleType, dialect: str
) -> None:
    """Each call arrives as it was made, and each answer is told as it was given."""
    report = multi_turn.run(shared_data, dialect, most=25)
    assert [] == report.wrong
    assert report.dialogues == 25
    assert report.calls > 130
