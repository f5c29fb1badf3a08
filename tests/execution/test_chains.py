"""NESTFUL and Seal-Tools chains in every dialect, by the benchmark that has them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from benchmark_file import benchmark


@pytest.fixture(scope="module")
def chains() -> ModuleType:
    return benchmark("chains")


FORMS = ("intents", "envelope_v2", "envelope_v2 with asset URLs", "native")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("data", ["nestful", "sealtools"])
def test_C17_C26_every_chain_passes_exactly_what_it_must(
    chains: ModuleType, shared_data: Path, data: str, form: str
) -> None:
    """Each tool receives the expected arguments, each result is its stub's answer."""
    folder = shared_data / "chains"
    every = list(getattr(chains, data)(folder))
    assert len(every) > 50
    faults = {chain.id: told for chain in every if (told := chains.fault(chain, form))}
    assert faults == {}


def test_the_check_of_chains_sees_a_wrong_argument(
    chains: ModuleType, shared_data: Path
) -> None:
    """What the benchmark calls right would not be right with anything else."""
    chain = next(chains.nestful(shared_data / "chains"))
    wrong = [*chain.expected[:-1], {**chain.expected[-1], "more": 1}]
    assert chains.fault(replace(chain, expected=wrong), "intents").startswith("step 5")
    fewer = replace(chain, outputs=[{} for _ in chain.outputs])
    assert chains.fault(fewer, "intents") != ""
