"""A benchmark as a module: some tests run its code with fewer rounds."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


def benchmark(name: str) -> ModuleType:
    """The benchmark `name`, loaded from its file: it is no package to import."""
    found = f"_neuraxis_benchmark_{name}"
    spec = importlib.util.spec_from_file_location(found, _FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[found] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module
