"""Every reader is fuzzed for seconds, and each input that once broke one is tried.

`NEURAXIS_FUZZ_SECONDS` is the time of all targets together, `NEURAXIS_FUZZ_SEED` the
seed. `benchmarks/fuzz.py` does the same for longer, also guided by coverage. A finding
that was mended becomes a file in `cases/<target>/`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).resolve().parent
# The targets are the benchmark's own: one list of what is fuzzed.
sys.path.append(str(_HERE.parents[1] / "benchmarks"))

from fuzzing import Target, all_targets  # noqa: E402
from fuzzing.checks import Finding, must  # noqa: E402
from fuzzing.engines import attempt, with_hypothesis, with_mutators  # noqa: E402

# Read here, since no test sees the person's settings.
SECONDS = float(os.environ.get("NEURAXIS_FUZZ_SECONDS", "60"))
SEED = int(os.environ.get("NEURAXIS_FUZZ_SEED", "1"))
TARGETS = all_targets()
EACH = SECONDS / len(TARGETS)
CASES = sorted(path for path in (_HERE / "cases").glob("*/*") if path.is_file())

# A warning of a library about damaged data is no mistake of the reader.
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(120 + 4 * EACH),
]


@pytest.mark.parametrize("name", TARGETS)
def test_D6_no_input_breaks_a_promise(name: str) -> None:
    """Readers answer with values, problems or their own errors, and in time."""
    target = TARGETS[name]
    outcomes = (
        with_mutators(target, EACH * 0.75, SEED),
        with_hypothesis(target, EACH * 0.25, SEED),
    )
    found = [
        (item.kind, item.data, item.details)
        for outcome in outcomes
        for item in outcome.found
    ]
    assert [] == found
    assert all(outcome.executions for outcome in outcomes)


@pytest.mark.parametrize(
    "path", CASES, ids=[f"{path.parent.name}-{path.stem}" for path in CASES]
)
def test_what_once_broke_a_reader_no_longer_does(path: Path) -> None:
    """The regression cases: each file is an input of the target of its folder."""
    found = attempt(TARGETS[path.parent.name], path.read_bytes())
    assert found is None, found


def _planted(data: bytes) -> None:
    must(b'"tool"' not in data or b"]]" not in data, "planted")


def test_a_planted_mistake_is_found_and_made_small() -> None:
    """The fuzzer itself works: a broken promise is found by both engines."""
    like = TARGETS["intents"]
    target = Target(
        name="planted", run=_planted, kind="text", words=like.words, seeds=like.seeds
    )
    for engine in (with_mutators, with_hypothesis):
        outcome = engine(target, 5.0, 5)
        assert ["Finding planted"] == [item.kind for item in outcome.found]
        assert len(outcome.found[0].data) <= 12
    with pytest.raises(Finding):
        _planted(b'"tool"]]')
