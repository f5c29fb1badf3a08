"""The notation against 723 real function documents and their calls (BFCL)."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from benchmark_file import benchmark


@pytest.fixture(scope="module")
def bfcl() -> ModuleType:
    return benchmark("bfcl")


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
