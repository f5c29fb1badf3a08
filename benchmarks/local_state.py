"""The embedded model's first word in a fresh process, with and without what it kept.

    python benchmarks/local_state.py [--rounds 5]

Needs `neuraxis[local]` and the model file (`neuraxis models fetch`). Each line is the
least of several processes with one thread, from their start to the first token; both
ways take turns. `read` is what the model had to read of the prompt.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from neuraxis.models.gguf import weights
from neuraxis.models.gguf.lazy import STATES_MB, LazyWriter
from neuraxis.models.gguf.llama import Ask

TOOLS = [
    (f"{wish} the {thing} in the {room}", f"{wish.replace(' ', '_')}_{thing}", room)
    for room in ("hall", "kitchen")
    for wish in ("turn on", "turn off")
    for thing in ("light", "fan")
]


CHAT = "<|im_start|>system\nYou are a helpful assistant. Be short.<|im_end|>\n"
PROGRAMS = "".join(
    f"# Write a program that prints {n}\n```python\nprint({n})\n```\n\n"
    for n in range(8)
)


def prompts() -> dict[str, tuple[str, int]]:
    """What the product asks, and how much of it is constant."""
    program = f"{PROGRAMS}# Write a program that sorts three names\n"
    shots = "".join(
        f'q: {asked}\na: [{{"tool": "{tool}", "room": "{room}"}}]\n\n'
        for asked, tool, room in TOOLS
    )
    return {
        "chat": (f"{CHAT}Hello, who are you?<|im_end|>\n", len(CHAT)),
        "a program": (program, len(PROGRAMS)),
        "a near tie": (f"{shots}q: Turn the light in the hall off\na: ", len(shots)),
    }


async def first_token(kind: str, megabytes: int) -> dict[str, float]:
    prompt, constant = prompts()[kind]
    writer = LazyWriter(threads=1, states_mb=megabytes, may_fetch=False)
    heard: list[float] = []
    written = await writer.write(
        Ask(prompt=prompt, constant=constant, max_tokens=2),
        lambda _: heard.append(time.time()),
    )
    used = written.usage
    writer.close()
    return {
        "end": heard[0] if heard else time.time(),
        "cpu": time.process_time(),
        "read": used.input_tokens - used.cached_tokens,
        "tokens": used.input_tokens,
    }


def process(kind: str, megabytes: int, home: str) -> dict[str, float]:
    """One run of this file that does nothing else."""
    path = weights.find()
    kept = Path(home) / "cache" / "weights"
    kept.mkdir(parents=True, exist_ok=True)
    if path is not None and not (link := kept / path.name).exists():
        link.symlink_to(path.resolve())  # as fetched: it is not digested at each start
    env = {**os.environ, "NEURAXIS_HOME": home}
    env.pop("NEURAXIS_WEIGHTS", None)
    started = time.time()
    said = subprocess.run(
        [sys.executable, __file__, "--one", kind, str(megabytes)],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found: dict[str, float] = json.loads(said.splitlines()[-1])
    return {**found, "seconds": found["end"] - started}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        kind, megabytes = given.one
        print(json.dumps(asyncio.run(first_token(kind, int(megabytes)))))
        return
    if weights.find() is None:
        sys.exit("the model file is not here: neuraxis models fetch")
    print(
        f"{'prompt':<12} {'tokens':>6}   without: read   s  CPU s"
        "      with: read   s  CPU s"
    )
    with tempfile.TemporaryDirectory() as home:
        for kind in prompts():
            process(kind, STATES_MB, home)  # makes the state
            runs = [
                (process(kind, 0, home), process(kind, STATES_MB, home))
                for _ in range(given.rounds)
            ]
            cells = [
                f"{best['read']:6.0f} {best['seconds']:6.2f} {best['cpu']:6.2f}"
                for side in (0, 1)
                for best in [
                    {
                        key: min(run[side][key] for run in runs)
                        for key in ("read", "seconds", "cpu")
                    }
                ]
            ]
            tokens = runs[0][0]["tokens"]
            print(f"{kind:<12} {tokens:6.0f} {cells[0]:>24} {cells[1]:>24}")
        folder = Path(home) / "cache" / "states"
        sizes = sorted(path.stat().st_size for path in folder.iterdir())
        print("kept:", ", ".join(f"{size / 1e6:.1f} MB" for size in sizes))


if __name__ == "__main__":
    main()
