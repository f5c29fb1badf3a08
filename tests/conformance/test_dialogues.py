"""Recorded dialogues through the whole runtime: the same answers in every dialect."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from neuraxis.dialects import DIALECTS


@pytest.fixture(scope="module")
def multi_turn() -> ModuleType:
    """The benchmark, loaded from its file."""
    path = Path(__file__).parents[2] / "benchmarks" / "multi_turn.py"
    spec = importlib.util.spec_from_file_location("_neuraxis_multi_turn", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("dialect", DIALECTS)
def test_D1_recorded_dialogues(
    shared_data: Path, multi_turn: ModuleType, dialect: str
) -> None:
    """Each call arrives as it was made, and each answer is told as it was given."""
    report = multi_turn.run(shared_data, dialect, most=25)
    assert [] == report.wrong
    assert report.dialogues == 25
    assert report.calls > 130
