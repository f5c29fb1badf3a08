"""What a fresh process loads: the time to a first run is the time of its imports.

Times are printed by `benchmarks/startup.py`; here is what can be held without a clock.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmark_file import benchmark
from neuraxis.dialects import DIALECTS

HEAVY = (
    "click", "httpx2", "httpcore2", "anyio", "rich", "yaml", "sqlite3", "http",
    "tomllib", "difflib", "secrets", "tempfile", "zipfile", "shutil",
    "importlib.metadata", "importlib.resources", "multiprocessing", "pydantic",
    "neuraxis.cli", "neuraxis.builtin", "neuraxis.testing", "neuraxis.journal.sqlite",
    "neuraxis.models.openai.model", "neuraxis.models.offline",
    "neuraxis.plugins.manifest.load",
    "neuraxis.parsing.yaml", "neuraxis.dialects.envelope.dialect",
    "neuraxis.dialects.native.dialect", "neuraxis.dialects.families.cut",
    "neuraxis.sandbox.process.supervise",
    "neuraxis.planning.draw",
    "neuraxis.planning.load", "neuraxis.planning.save",
)  # fmt: skip
"""What a first run of a scripted model with one `def` command has no use for."""


def _loaded(code: str, folder: Path) -> set[str]:
    """The modules of a fresh process that ran the code, without what Python loads."""
    whole = (
        "import sys; before = set(sys.modules)\n"
        f"{code}\n"
        "print('LOADED', *sorted(set(sys.modules) - before))"
    )
    env = dict(os.environ, HOME=str(folder))
    done = subprocess.run(
        [sys.executable, "-c", whole],
        capture_output=True, text=True, check=True, cwd=folder, env=env,
    )  # fmt: skip
    return set(done.stdout.rpartition("LOADED")[2].split())


def test_a_first_run_loads_what_it_needs(tmp_path: Path) -> None:
    """The benchmark's first run, which checks its own answer."""
    loaded = _loaded(benchmark("startup").FIRST_RUN, tmp_path)
    assert {"asyncio", "jsonschema_rs", "neuraxis.session.session"} <= loaded
    assert loaded.isdisjoint(HEAVY), loaded.intersection(HEAVY)


@pytest.mark.parametrize("name", DIALECTS)
def test_no_dialect_waits_for_the_patterns_of_replies(
    name: str, tmp_path: Path
) -> None:
    """They are loaded with the first reply that needs them."""
    code = f"from neuraxis.dialects import find_dialect; find_dialect({name!r})"
    loaded = _loaded(code, tmp_path)
    assert "neuraxis.dialects.cut_off" in loaded
    assert "neuraxis.dialects.families.cut" not in loaded


def test_a_first_run_compiles_no_data_class(tmp_path: Path) -> None:
    """A hundred are written down; of none were enough made to be worth compiling."""
    count = (
        "import dataclasses\n"
        "made = []\n"
        "whole = dataclasses._process_class\n"
        "def heard(cls, *rest):\n"
        "    made.append(cls.__module__ + '.' + cls.__name__)\n"
        "    return whole(cls, *rest)\n"
        "dataclasses._process_class = heard\n"
    )
    told = "\nsys.modules.update({f'compiled:{name}': None for name in made})"
    loaded = _loaded(count + benchmark("startup").FIRST_RUN + told, tmp_path)
    compiled = {name for name in loaded if name.startswith("compiled:neuraxis")}
    assert not compiled, compiled


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]], ids=str)
def test_help_loads_no_runtime(arguments: list[str], tmp_path: Path) -> None:
    """The command line says what it can before it loads what does it."""
    code = (
        f"sys.argv = ['neuraxis', *{arguments!r}]\n"
        "from neuraxis.cli import main\n"
        "try: main()\n"
        "except SystemExit as left: assert not left.code"
    )
    loaded = _loaded(code, tmp_path)
    assert "click" in loaded
    runtime = {
        "asyncio", "yaml", "jsonschema_rs", "httpx2", "sqlite3",
        "neuraxis.session.session",
        "neuraxis.models.offline", "tomllib",
    }  # fmt: skip
    assert loaded.isdisjoint(runtime), loaded.intersection(runtime)


def test_importing_neuraxis_imports_next_to_nothing() -> None:
    """Nothing at import time: no third-party package, no asyncio, no network."""
    code = (
        "import sys; before = set(sys.modules); import neuraxis; "
        "print(sorted(m for m in set(sys.modules) - before if 'neuraxis' not in m))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = done.stdout
    for heavy in ("asyncio", "yaml", "httpx2", "click", "rich", "jsonschema_rs", "ssl"):
        assert f"'{heavy}'" not in loaded
