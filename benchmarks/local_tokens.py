"""Weights of one's own: tokens a second and memory, beside the binding's own server.

    NEURAXIS_WEIGHTS=FILE.gguf python benchmarks/local_tokens.py

One process for each way, and one run for all: `bare`, the server of xllamacpp with the
same settings, asked by its own HTTP; `ours`, `GgufModel` in the process; `ours held`,
the same with its calls held to a grammar from the first word. Each answers the same
eleven requests at temperature 0, the ways in turn, so that other work on the
machine meets all of them. Memory is the largest that a process had (VmHWM) less what
it had before the file was loaded. Beside bare: the tokens for a second of the
processor's time, turn by turn, of which the median.

Expected: `ours` within 5 % of `bare` in both.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable
from operator import truediv
from pathlib import Path
from typing import Any

from neuraxis.dialects import find_dialect
from neuraxis.messages import CallForm, Message, Prompt
from neuraxis.models import complete
from neuraxis.models.gguf import weights
from neuraxis.models.gguf.engine import PORTION, REMEMBERED, Setup
from neuraxis.models.gguf.model import GgufModel
from neuraxis.models.http.settings import Options
from neuraxis.specs import CommandSpec, PluginSpec

WAYS = ("bare", "ours", "ours held")
TURNS = 11
TOKENS = 100
SETUP = Setup(threads=1, context=2048, states_mb=0)
KEY = "sk-benchmark"
NOTE = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "stars": {"type": "integer"}},
    "required": ["text"],
    "additionalProperties": False,
}


def asked(turn: int) -> str:
    return f"Tell a long story about {turn} cats."


def form(single: bool) -> CallForm:
    """The form of a command whose text may be as long as it likes."""
    plugin = PluginSpec(name="p", commands=(CommandSpec(name="note", parameters=NOTE),))
    dialect: Any = find_dialect("intents")
    return dialect.form((plugin,), {"note": ("p", "note")}, single)


def bare(file: Path) -> Callable[[int], Awaitable[int]]:
    """The binding's server, with the settings of ours."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx = SETUP.context
    params.n_batch = params.n_ubatch = PORTION
    params.n_parallel = SETUP.parallel
    params.kv_unified = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = SETUP.threads
    params.verbosity = 0
    params.warmup = False
    params.use_jinja = True
    params.cache_ram_mib = REMEMBERED
    params.api_keys = [KEY]
    server = xllamacpp.Server(params)

    async def ask(turn: int) -> int:
        said = [{"role": "user", "content": asked(turn)}]
        body = {"messages": said, "max_tokens": TOKENS, "temperature": 0}
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        request = urllib.request.Request(
            server.listening_address + "/v1/chat/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json", "authorization": f"Bearer {KEY}"},
        )
        used = 0
        with urllib.request.urlopen(request) as answer:  # noqa: ASYNC210
            for line in answer:
                if line.startswith(b"data: {"):
                    usage = json.loads(line[6:]).get("usage") or {}
                    used = usage.get("completion_tokens", used)
        return used

    return ask


def ours(file: Path, *, held: bool) -> Callable[[int], Awaitable[int]]:
    """Weights in this process, with what a session would ask of them."""
    choice = "note" if held else None
    options = Options(max_tokens=TOKENS, temperature=0, tool_choice=choice)
    model = GgufModel(lambda: file, name="local:", options=options, setup=SETUP)

    async def ask(turn: int) -> int:
        said = (Message(role="user", content=asked(turn)),)
        done = await complete(model, Prompt(messages=said, form=form if held else None))
        assert done.usage is not None
        return done.usage.output_tokens

    return ask


def memory(field: str) -> float:
    """Return what `/proc` says of this process, in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition(f"{field}:")[2].split()[0]) * 1024 / 1e6


async def serve(way: str, file: Path) -> None:
    """Answer one request for each line of the input."""
    import xllamacpp  # noqa: F401  its own memory is no part of the file's

    before = memory("VmRSS")
    ask = bare(file) if way == "bare" else ours(file, held=way == "ours held")
    for line in sys.stdin:
        began, cpu = time.perf_counter(), time.process_time()
        tokens = await ask(int(line))
        took = time.perf_counter() - began, time.process_time() - cpu
        told = (tokens / took[0], tokens / took[1], memory("VmHWM") - before)
        print(json.dumps(told), flush=True)


def main() -> None:
    file = weights.find()
    if file is None:
        raise SystemExit("NEURAXIS_WEIGHTS does not name the model file")
    processes = {
        way: subprocess.Popen(
            [sys.executable, __file__, way, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for way in WAYS
    }
    told: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    for turn in range(TURNS + 1):
        for way, process in processes.items():
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{turn}\n")
            process.stdin.flush()
            told[way].append(json.loads(process.stdout.readline()))
    for process in processes.values():
        process.communicate()
    print(f"{file.name}, {SETUP.threads} thread, load {os.getloadavg()[0]:.1f}")
    print(f"{'':<12}tokens/s  of CPU  least-most  beside bare  memory")
    first = [turn[1] for turn in told["bare"][1:]]
    for way, all_turns in told.items():
        turns = all_turns[1:]  # the first one loads the file
        wall, cpu = ([turn[place] for turn in turns] for place in (0, 1))
        print(
            f"{way:<12}{statistics.median(wall):8.1f}{statistics.median(cpu):8.1f}"
            f"  {min(wall):.1f}-{max(wall):.1f}"
            f"  {statistics.median(map(truediv, cpu, first)):10.2f}"
            f"  {turns[-1][2]:.0f} MB"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
    else:
        main()
