"""Engines: atheris with coverage, Hypothesis, and the mutators alone; one target each.

A target and seconds flow in; the executions and the findings flow out. A finding is
told once by its kind, made smaller and saved; fuzzing goes on after it.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fuzzing import Target, all_targets, checks
from fuzzing.inputs import as_text, mutate_text, mutate_tree, own_files


@dataclass(slots=True)
class Found:
    """One finding: what it is, and the input that shows it."""

    kind: str
    data: bytes
    details: str = ""


@dataclass(slots=True)
class Outcome:
    """What came of fuzzing one target."""

    target: str
    executions: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    """Seconds of processor time; less than `seconds` on a machine that is shared."""
    edges: int | None = None
    found: list[Found] = field(default_factory=list[Found])


def kind_of(error: BaseException) -> str:
    """The same for findings of one cause: the exception, and where it was raised."""
    if isinstance(error, checks.Finding):
        said = re.sub(r"[\d'\"].*", "", str(error)).split(":")[0]
        return f"Finding {said.strip()}"
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if "neuraxis" in frame.filename:
            place = f"{Path(frame.filename).name}:{frame.name}"
    return f"{type(error).__name__} in {place}"


def attempt(target: Target, data: bytes) -> Found | None:
    """Run the target once."""
    try:
        target.run(data)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  whatever comes is a finding
        details = "".join(traceback.format_exception(error))[-3_000:]
        return Found(kind_of(error), data, f"{str(error)[:300]}\n{details}")
    return None


def smaller(target: Target, found: Found, seconds: float = 5.0) -> Found:
    """The finding with as little of its input as shows it."""
    end = time.monotonic() + seconds
    width = max(1, len(found.data) // 2)
    while width and time.monotonic() < end:
        at = 0
        while at < len(found.data) and time.monotonic() < end:
            less = found.data[:at] + found.data[at + width :]
            again = attempt(target, less)
            if again is not None and again.kind == found.kind:
                found = again
            else:
                at += width
        width //= 2
    return found


class Collector:
    """Runs inputs and keeps one finding of each kind."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.executions = 0
        self.found: dict[str, Found] = {}
        self._before = time.process_time()

    def outcome(self, started: float) -> Outcome:
        """What came of it."""
        return Outcome(
            self.target.name,
            self.executions,
            time.monotonic() - started,
            time.process_time() - self._before,
            found=[*self.found.values()],
        )

    def __call__(self, data: bytes) -> None:
        """Run one input."""
        self.executions += 1
        found = attempt(self.target, data)
        if found is not None and found.kind not in self.found:
            self.found[found.kind] = smaller(self.target, found)


def seeds_of(target: Target) -> tuple[bytes, ...]:
    """Its own seeds, and what once broke it."""
    return (*target.seeds(), *own_files(f"tests/fuzz/cases/{target.name}/*"))


def mutator(
    target: Target, seeds: Sequence[bytes]
) -> Callable[[bytes, random.Random], bytes]:
    """One change of an input, by the target's kind."""
    if target.kind == "tree":
        return lambda data, dice: mutate_tree(data, dice, target.words, seeds)
    return lambda data, dice: mutate_text(data, dice, target.words)


def with_mutators(target: Target, seconds: float, seed: int = 1) -> Outcome:
    """The mutators over the seeds, and over what they made of them."""
    dice = random.Random(seed)
    run = Collector(target)
    pool = list(seeds_of(target))
    change = mutator(target, tuple(pool))
    started = time.monotonic()
    for data in pool:
        run(data)
    while time.monotonic() - started < seconds:
        data = dice.choice(pool)
        for _ in range(dice.choice((1, 1, 2, 4))):
            data = change(data, dice)
        run(data)
        if dice.random() < 0.02:
            if len(pool) < 400:
                pool.append(data)
            else:
                pool[dice.randrange(200, 400)] = data
    return run.outcome(started)


def with_hypothesis(target: Target, seconds: float, seed: int = 1) -> Outcome:
    """Texts and trees that Hypothesis makes of the target's words."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    words = st.sampled_from(tuple(target.words))
    known = seeds_of(target)
    seeds = st.sampled_from(known)
    leaves = words | st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    trees = st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(words | st.text(max_size=3), inner, max_size=4)
        ),
        max_leaves=12,
    )
    if target.kind == "tree":
        keys = sorted({key for data in known for key in _keys(data)})
        shaped = st.fixed_dictionaries({}, optional=dict.fromkeys(keys, trees))
        inputs = (trees | shaped).map(lambda tree: json.dumps(tree).encode())
    else:
        texts = st.text(st.characters(), max_size=6)
        piece = words | texts | trees.map(json.dumps) | seeds.map(as_text)
        inputs = st.lists(piece, max_size=12).map(
            lambda parts: "".join(parts).encode("utf-8", "surrogatepass")
        )
    change = mutator(target, known)
    changed = st.builds(
        lambda data, number: change(data, random.Random(number)),
        seeds,
        st.integers(0, 2**64),
    )
    run = Collector(target)
    started = time.monotonic()
    rounds = 0
    while time.monotonic() - started < seconds:

        @seeded(seed + rounds)
        @settings(
            max_examples=40,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(inputs | changed)
        def explore(data: bytes) -> None:
            if time.monotonic() - started < seconds:
                run(data)

        explore()
        rounds += 1
    return run.outcome(started)


def _keys(data: bytes) -> list[str]:
    tree = json.loads(data)
    return list(tree) if isinstance(tree, dict) else []


# --- atheris --------------------------------------------------------------------


def with_atheris(target: Target, seconds: float, folder: Path, seed: int) -> Outcome:
    """Guided by coverage, in a process of its own: a crash ends only that one."""
    work = folder / target.name
    for name in ("corpus", "crashes", "kept"):
        (work / name).mkdir(parents=True, exist_ok=True)
    for data in seeds_of(target):
        name = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        (work / "corpus" / name).write_bytes(data)
    started = time.monotonic()
    before = os.times()
    command = [
        *(sys.executable, str(Path(__file__).parents[1] / "fuzz.py")),
        *("--worker", target.name, "--save", str(work)),
        *("--seconds", str(seconds), "--seed", str(seed)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    after = os.times()
    outcome = Outcome(target.name, seconds=time.monotonic() - started)
    outcome.processor = after.children_user - before.children_user
    outcome.processor += after.children_system - before.children_system
    told = done.stderr
    counts = re.findall(r"stat::number_of_executed_units:\s*(\d+)", told)
    counts = counts or re.findall(r"^#(\d+)", told, re.MULTILINE)
    if counts:
        outcome.executions = int(counts[-1])
    if edges := re.findall(r"\bcov: (\d+)", told):
        outcome.edges = int(edges[-1])
    inputs = [*sorted((work / "kept").iterdir()), *sorted((work / "crashes").iterdir())]
    for path in inputs:
        # Only what shows itself without the tracing is a finding.
        again = _replayed(target, path)
        if again is not None:
            outcome.found.append(again)
    if not outcome.executions or (done.returncode and not inputs):
        outcome.found.append(Found("the engine did not run", b"", told[-3_000:]))
    return outcome


def _replayed(target: Target, path: Path) -> Found | None:
    script = Path(__file__).parents[1] / "fuzz.py"
    command = [sys.executable, str(script), "--replay", target.name, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return Found("no end", path.read_bytes(), "over 60 seconds")
    if done.returncode == 0:
        return None
    kind = done.stdout.partition("\n")[0] or f"the process died: {done.returncode}"
    return Found(kind, path.read_bytes(), done.stdout + done.stderr[-3_000:])


def worker(name: str, seconds: float, work: Path, seed: int) -> None:
    """What the process of one target does; it does not return."""
    import atheris  # pyright: ignore[reportMissingImports]

    with atheris.instrument_imports(include=["neuraxis"]):
        target = all_targets()[name]
    checks.slowness = 8.0
    run = Collector(target)
    change = mutator(target, seeds_of(target))
    kept = work / "kept"

    def one(data: bytes) -> None:
        known = len(run.found)
        run(data)
        if len(run.found) > known:
            found = list(run.found.values())[-1]
            digest = hashlib.sha1(found.kind.encode(), usedforsecurity=False)
            (kept / digest.hexdigest()[:12]).write_bytes(found.data)

    def custom(data: bytes, most: int, number: int) -> bytes:
        dice = random.Random(number)
        if target.kind == "text" and dice.random() < 0.1:
            return atheris.Mutate(data, most)
        return change(data, dice)[:most]

    def cross(one: bytes, other: bytes, most: int, number: int) -> bytes:
        if target.kind == "tree":
            return change(one, random.Random(number))[:most]
        dice = random.Random(number)
        start, end = dice.randrange(len(one) + 1), dice.randrange(len(other) + 1)
        return (one[:start] + other[end:])[:most]

    arguments = [
        sys.argv[0],
        *(f"-max_total_time={max(1, round(seconds))}", "-print_final_stats=1"),
        *("-max_len=16000", "-timeout=20", "-rss_limit_mb=2500", f"-seed={seed}"),
        *(f"-artifact_prefix={work / 'crashes'}/", str(work / "corpus")),
    ]
    atheris.Setup(arguments, one, custom_mutator=custom, custom_crossover=cross)
    atheris.Fuzz()
