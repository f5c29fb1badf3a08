"""What is fuzzed and how its inputs are made; `benchmarks/fuzz.py` is the command.

words.py      the dictionary of each format
inputs.py     mutators of texts and trees, and seeds from files
checks.py     what must hold of every answer: `Finding` where it does not
texts.py      targets that read what a model wrote: dialects, plans
json_texts.py the target that reads JSON in text
values.py     targets that are given trees: notation, references, events
files.py      targets that read files and answers: manifests, plans, bundles, URLs
engines.py    atheris, Hypothesis, and the mutators with a seeded random source
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One reader. `run` takes any bytes, and raises where a promise is broken.

    `tree`: the bytes are JSON text, with `{"$py": name}` for what JSON cannot say.
    """

    name: str
    run: Callable[[bytes], None]
    kind: Literal["text", "tree"]
    words: Sequence[str]
    seeds: Callable[[], Sequence[bytes]]


def all_targets() -> dict[str, Target]:
    """Every target by its name."""
    from fuzzing import files, json_texts, texts, values

    rooms = (texts, json_texts, values, files)
    return {target.name: target for room in rooms for target in room.TARGETS}
