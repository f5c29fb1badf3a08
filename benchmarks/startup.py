"""From the start of a process: to `import neuraxis`, a first finished run, `--help`.

    python benchmarks/startup.py [ROUNDS]

Prints milliseconds of a fresh process (all of it, bare Python too) and what the core
installs. Expected, on a quiet machine: a first run within 150 ms, `import neuraxis` in
under 100 ms, `neuraxis --help` in under 300 ms; about 30 MB. It never fails on time.
The bytecode is kept in a folder of its own, so that no round compiles anything, as
after any installation.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import neuraxis

FIRST_RUN = '''
from neuraxis import Session, command
from neuraxis.models.scripted import ScriptedModel


@command(effects="read")
def population(city: str, year: int = 2025) -> dict[str, int]:
    """Inhabitants of a city.

    Args:
        city: its English name.
        year: the year asked for.
    """
    return {"inhabitants": {"Lyon": 520_774, "Turin": 841_600}[city]}


call = '[{"tool": "population", "city": "Turin"}]'
block = f"<!-- RESPONSE_START -->\\n{call}\\n<!-- RESPONSE_END -->"
session = Session(model=ScriptedModel([block, "841,600."]), plugins=[population])
answer = session.run_sync("What is the population of Turin?")
assert answer.text == "841,600.", answer
assert answer.calls[0].value == {"inhabitants": 841_600}, answer
'''

STARTS = {
    "bare Python": ["-c", "pass"],
    "import asyncio": ["-c", "import asyncio"],
    "import neuraxis": ["-c", "import neuraxis"],
    "import neuraxis.session.session": ["-c", "import neuraxis.session.session"],
    "first finished run": ["-c", FIRST_RUN],
    "neuraxis --help": ["-m", "neuraxis", "--help"],
}


def one(arguments: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU time of a process, ms."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], env=env, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments} left with {process.returncode}")
    took = time.perf_counter() - started
    return took * 1000, (used.ru_utime + used.ru_stime) * 1000


def measured(rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Each start in each round, one after the other; the first round is not counted."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in STARTS}
    with tempfile.TemporaryDirectory(prefix="neuraxis-startup-") as bytecode:
        env = dict(os.environ, PYTHONPYCACHEPREFIX=bytecode)
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        for count in range(rounds + 1):
            for name, arguments in STARTS.items():
                took = one(arguments, env)
                if count:
                    times[name].append(took)
    return times


def installed() -> dict[str, int]:
    """Bytes of each distribution that the core needs, without bytecode."""
    sizes: dict[str, int] = {}
    waiting = ["neuraxis"]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # behind a marker that is false here
        if name in sizes:
            continue
        files = [Path(str(file.locate())) for file in found.files or ()]
        if name == "neuraxis":  # also where it is installed as editable
            files = list(Path(neuraxis.__file__).parent.rglob("*"))
        sizes[name] = sum(
            file.stat().st_size
            for file in files
            if file.is_file() and file.suffix != ".pyc"
        )
        for required in found.requires or ():
            if "extra ==" not in required:
                waiting.append(re.split(r"[^\w.-]", required, maxsplit=1)[0])
    return sizes


def main() -> None:
    """Print both tables."""
    times = measured(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
    bare = min(cpu for _, cpu in times["bare Python"])
    print(f"{'ms':24} wall least  median  CPU least  times bare Python")
    for name, took in times.items():
        walls = [wall for wall, _ in took]
        cpu = min(cpu for _, cpu in took)
        print(
            f"{name:24} {min(walls):10.0f} {statistics.median(walls):7.0f} "
            f"{cpu:10.0f} {cpu / bare:18.1f}"
        )
    sizes = installed()
    parts = sorted(sizes.items(), key=lambda item: -item[1])
    told = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in parts)
    print(f"core install: {sum(sizes.values()) / 1e6:.1f} MB without bytecode ({told})")


if __name__ == "__main__":
    main()
