"""The notation against 723 real function documents and their calls (BFCL)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def bfcl() -> ModuleType:
    """The benchmark, loaded from its file."""
    path = Path(__file__).parents[2] / "benchmarks" / "bfcl.py"
    spec = importlib.util.spec_from_file_location("_neuraxis_bfcl", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("form", ["dsl_v2", "dsl_v2+", "dsl_v1", "json_schema"])
def test_bfcl(shared_data: Path, bfcl: ModuleType, form: str) -> None:
    """All accepted calls pass, all bad ones name the field, none passes through raw."""
    report = bfcl.run(shared_data, form)
    assert report.functions > 700
    assert report.counts["accepted"] > 1600
    assert report.counts["rejected"] > 5000
    assert [] == report.problems
    assert [] == report.wrong
    if form in ("dsl_v2+", "json_schema"):
        assert {} == report.explained
