"""What a large value costs: characters in the history, time, peak memory.

    python benchmarks/large_values.py

A scripted model calls commands that give a 50 MB array, a 20 MB text, a table of 5,000
rows and a picture. Measured is what the next request holds more than it would without
the value (the result's message and the description of the asset), the time of the run,
and how far the process grew over what it held before (VmHWM, reset before each run);
the values are made before. Then five commands over the array, each of which makes
nothing, and one that makes a second array; and a whole text read back in pages. At last
600,000 rows of dicts that five commands hand on: the longest time for which the event
loop stood still, and the longest that this process computed (the rest: the machine).
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import polars
from PIL import Image

from neuraxis import Session, command
from neuraxis.messages import Call, Prompt, Result
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings

HELD: dict[str, Any] = {}


@command(effects="read")
def small() -> int:
    """Gives a number."""
    return 1


@command(effects="read")
def large(kind: str) -> Any:
    """Gives a large value.

    Args:
        kind: which.
    """
    return HELD[kind]


@command(effects="none")
def same(array: numpy.ndarray) -> Any:
    """Gives the array on as it is."""
    return array


@command(effects="none")
def handed(rows: list[dict[str, Any]]) -> Any:
    """Gives the rows on as they are."""
    return rows


@command(effects="none")
def doubled(array: numpy.ndarray) -> Any:
    """A new array."""
    return array * 2


def _status(key: str) -> float:
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1e3
    raise KeyError(key)


def measured(run: Callable[[], Any]) -> tuple[Any, float, float]:
    """The answer, milliseconds, and megabytes of growth at the highest point."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    before = _status("VmRSS")
    start = time.perf_counter()
    answer = run()
    took = (time.perf_counter() - start) * 1000
    return answer, took, _status("VmHWM") - before


class Seen(ScriptedModel):
    """Counts the characters of each request."""

    characters: list[int]

    def stream(self, prompt: Prompt) -> Any:
        self.characters.append(sum(len(m.content) for m in prompt.messages))
        return super().stream(prompt)


def session(replies: list[Any], **options: Any) -> tuple[Session, Seen]:
    model = Seen(replies)
    model.characters = []
    made = Session(
        model=model,
        plugins=[small, large, same, handed, doubled, "neuraxis:assets"],
        settings=Settings(),
        **options,
    )
    return made, model


def one_value(kind: str) -> str:
    call = json.dumps([{"tool": "large", "kind": kind}])
    HELD["nothing"] = None
    plain, seen = session([json.dumps([{"tool": "large", "kind": "nothing"}]), "done"])
    with plain:
        plain.run_sync("go")
    asked = seen.characters[1] - len("nothing")
    made, seen = session([call, "done"])
    with made:
        answer, took, peak = measured(lambda: made.run_sync("go"))
    characters = seen.characters[1] - len(kind) - asked
    assert answer.calls[0].stored
    assert characters <= 600, characters
    return f"{kind:12} {characters:6} {took:9.1f} {peak:9.1f}"


def chain(tool: str) -> str:
    steps: list[dict[str, Any]] = [{"tool": "large", "kind": "array"}]
    steps += [{"tool": tool, "array": "{{ previous_result }}"} for _ in range(5)]
    made, seen = session([json.dumps(steps), "done"])
    with made:
        answer, took, peak = measured(lambda: made.run_sync("go"))
    assert all(result.status == "done" for result in answer.calls)
    new = 5 * HELD["array"].nbytes / 1e6 if tool == "doubled" else 0.0
    return (
        f"5 x {tool:8} {seen.characters[1] - seen.characters[0]:6} {took:9.1f} "
        f"{peak:9.1f}   (made by the commands: {new:.0f} MB)"
    )


def handed_on() -> str:
    """Rows are walked beside the loop, in slices that let it in."""
    HELD["rows"] = [{"id": n, "name": f"row {n}", "x": n / 2} for n in range(600_000)]
    steps: list[dict[str, Any]] = [{"tool": "large", "kind": "rows"}]
    steps += [{"tool": "handed", "rows": "{{ previous_result }}"} for _ in range(5)]
    stops: list[tuple[float, float]] = []

    async def watched() -> Any:
        async def tick() -> None:
            while True:
                now, cpu = time.perf_counter(), time.process_time()
                await asyncio.sleep(0.001)
                stops.append((time.perf_counter() - now, time.process_time() - cpu))

        ticking = asyncio.create_task(tick())
        try:
            return await made.run("go")
        finally:
            ticking.cancel()

    made, _ = session([json.dumps(steps), "done"])
    with made:
        answer, took, _ = measured(lambda: asyncio.run(watched()))
    assert all(result.status == "done" for result in answer.calls)
    longest, computed = max(stops)[0], max(min(stop) for stop in stops)
    return (
        f"5 x handed on, 600,000 rows: {took / 1000:.1f} s, the loop's longest stop "
        f"{longest * 1000:.0f} ms (computed {computed * 1000:.0f})"
    )


def read_back() -> str:
    """The whole text, page by page, is the text."""
    made, _ = session([])

    def call(number: int, tool: str, arguments: dict[str, Any]) -> Result:
        asked = Call(id=f"b{number}", plugin=None, command=tool, arguments=arguments)
        return asyncio.run(made.call(asked))

    with made:
        first = asyncio.run(
            made.call(
                Call(id="a1", plugin=None, command="large", arguments={"kind": "text"})
            )
        )
        assert first.stored
        ref = "asset://a1/content/response"
        start, pages, whole = 0, 0, HELD["text"]
        begin = time.perf_counter()
        for start in (0, 8_000, 10_000_000, len(whole) - 5):
            told = call(
                pages, "asset_text", {"asset": ref, "start": start, "count": 8000}
            )
            assert told.value["text"] == whole[start : start + 8000]
            pages += 1
        took = (time.perf_counter() - begin) * 1000 / pages
        begin = time.perf_counter()
        found = call(90, "asset_grep", {"asset": ref, "pattern": "(9+)+3141$"})
        grep = (time.perf_counter() - begin) * 1000
        begin = time.perf_counter()
        lines = call(91, "asset_lines", {"asset": ref, "start": 300_000, "count": 2})
        line = (time.perf_counter() - begin) * 1000
    assert found.value["matches"], found
    assert lines.value["lines"][0] == whole.split("\n")[299_999]
    return (
        f"read back: a page {took:.1f} ms, lines at 300,000 {line:.1f} ms, "
        f"grep of all {lines.value['total_lines']} lines {grep:.0f} ms"
    )


def main() -> None:
    HELD["array"] = numpy.random.default_rng(1).random(6_250_000)
    HELD["text"] = "".join(
        f"line {n:7} of a long log, {n * 7}\n" for n in range(550_000)
    )
    HELD["table"] = polars.DataFrame(
        {f"column_{c}": [f"r{r} c{c}" for r in range(5000)] for c in range(12)}
    )
    HELD["picture"] = Image.effect_noise((1600, 1200), 50).convert("RGB")
    made, _ = session([json.dumps([{"tool": "small"}]), "done"])
    with made:  # imports and caches
        made.run_sync("go")
    text = len(HELD["text"]) / 1e6
    print(f"array 50 MB, text {text:.0f} MB, table 5,000 x 12, picture 1600x1200")
    print("             characters        ms   peak +MB")
    for kind in ("array", "text", "table", "picture"):
        print(one_value(kind))
    for tool in ("same", "doubled"):
        print(chain(tool))
    print(read_back())
    print(handed_on())


if __name__ == "__main__":
    main()
