"""Fuzz every reader of what a model, a server, a file or a plugin's author wrote.

    python benchmarks/fuzz.py --seconds N [--target NAME] [--engine atheris]

`atheris` is guided by coverage (pip install atheris), `hypothesis` makes texts and
trees of each format's words, `random` runs the mutators alone. Prints executions,
edges and findings of each target; a finding's input is saved, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fuzzing import all_targets
from fuzzing.engines import (
    Outcome,
    attempt,
    with_atheris,
    with_hypothesis,
    with_mutators,
    worker,
)


def main() -> int:
    asked = _arguments()
    if asked.worker:
        worker(asked.worker, asked.seconds, asked.save, asked.seed)
        return 0
    targets = all_targets()
    if asked.replay:
        name, path = asked.replay
        found = attempt(targets[name], Path(path).read_bytes())
        if found is not None:
            print(f"{found.kind}\n{found.details}")
        return found is not None
    chosen = [targets[name] for name in asked.target] or list(targets.values())
    each = asked.seconds / len(chosen)
    started = time.monotonic()
    outcomes: list[Outcome] = []
    print(f"{'target':16}{'executions':>12}{'cpu s':>8}{'edges':>8}  findings")
    for target in chosen:
        if asked.engine == "atheris":
            outcome = with_atheris(target, each, asked.save, asked.seed)
        elif asked.engine == "hypothesis":
            outcome = with_hypothesis(target, each, asked.seed)
        else:
            outcome = with_mutators(target, each, asked.seed)
        outcomes.append(outcome)
        _tell(outcome, asked.save)
    total = sum(outcome.executions for outcome in outcomes)
    found = sum(len(outcome.found) for outcome in outcomes)
    spent = time.monotonic() - started
    processor = sum(outcome.processor for outcome in outcomes)
    print(
        f"{asked.engine}: {total} executions, {spent:.0f} s ({processor:.0f} s of a "
        f"processor), {found} findings"
    )
    return found > 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of all targets")
    parser.add_argument("--target", action="append", default=[], help="only this one")
    engines = ("atheris", "hypothesis", "random")
    parser.add_argument("--engine", choices=engines, default="hypothesis")
    parser.add_argument("--seed", type=int, default=1)
    folder = Path(tempfile.gettempdir()) / "neuraxis-fuzz"
    parser.add_argument("--save", type=Path, default=folder, help="for the findings")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--replay", nargs=2, metavar=("TARGET", "FILE"))
    return parser.parse_args()


def _tell(outcome: Outcome, folder: Path) -> None:
    edges = "-" if outcome.edges is None else str(outcome.edges)
    print(
        f"{outcome.target:16}{outcome.executions:12}{outcome.processor:8.1f}{edges:>8}"
        f"  {len(outcome.found)}",
        flush=True,
    )
    for found in outcome.found:
        digest = hashlib.sha1(found.data, usedforsecurity=False).hexdigest()[:12]
        path = folder / "findings" / outcome.target / digest
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(found.data)
        print(f"    {found.kind}\n      {found.data[:160]!r}\n      saved as {path}")


if __name__ == "__main__":
    sys.exit(main())
