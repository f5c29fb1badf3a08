"""How model text is read: the bench's cases, foreign corpora, and the times.

    python benchmarks/malformed.py [folder with data/ and bench/]

A row agrees where our outcome is the one its source expects. The sources complete cut
texts and guess meanings on purpose, so refusing is counted on its own; what matters
is the column `other`: a value that is neither the source's nor refused.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from neuraxis.parsing.json_errors import Fault
from neuraxis.parsing.json_scan import Value, loads, pieces, read_at

_REFUSED = object()
_SHARED = Path(__file__).resolve().parents[2] / "shared"


def parse(text: str) -> Any:
    """The one value of a text, a list of several, or `_REFUSED`."""
    strict = loads(text)
    if isinstance(strict, Value):
        return strict.value
    found = pieces(text)
    faults = [piece for piece in found if piece.fault is not None]
    values = [piece.value.value for piece in found if piece.value is not None]
    if values and not faults:
        return values[0] if len(values) == 1 else values
    if not faults:
        alone = read_at(text, len(text) - len(text.lstrip()))
        if isinstance(alone, Value) and not text[alone.end :].strip():
            return alone.value
    return _REFUSED


def best_us(text: str, read: Any, rounds: int = 5) -> float:
    """Microseconds of the fastest of some readings."""
    best = 1e9
    once = time.perf_counter()
    read(text)
    count = max(1, int(0.02 / max(time.perf_counter() - once, 1e-6)))
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(count):
            read(text)
        best = min(best, (time.perf_counter() - started) / count)
    return best * 1e6


def bench_cases(folder: Path) -> None:
    """The cases of the bench beside the checkout, if it is there."""
    if not (folder / "malformed.py").is_file():
        print(f"no bench in {folder}")
        return
    sys.path.insert(0, str(folder))
    bench = importlib.import_module("malformed")
    score: Counter[str] = Counter()
    spent: list[float] = []
    for name, text, accepted in bench.CASES:
        value = parse(text)
        if value is _REFUSED:
            verdict = "ok" if None in accepted else "refused"
        else:
            verdict = bench.judge(value, accepted)
        score[verdict] += 1
        spent.append(best_us(text, parse, rounds=2))
        if verdict != "ok":
            print(f"  {verdict}: {name}")
    print(f"bench cases: {len(bench.CASES)}  {dict(score)}")
    print(f"mean time of a case: {sum(spent) / len(spent):.1f} µs")
    ours, theirs = best_us(bench.GOOD, parse), best_us(bench.GOOD, json.loads)
    print(f"well-formed, {len(bench.GOOD)} characters: {ours:.1f} µs")
    print(f"  json.loads: {theirs:.1f} µs; ratio {ours / theirs:.2f}")


def large_texts() -> None:
    """Orders of 200 and 2,000 items, flawless and with one comma too many."""
    for count in (200, 2000):
        items = [
            {"sku": f"SKU-{n}", "qty": n, "price": n * 0.5, "note": "as before"}
            for n in range(count)
        ]
        text = json.dumps({"name": "order", "arguments": {"items": items}})
        variants = {
            "flawless": text,
            "comma at the end": text[:-2] + ",}}",
            "single quotes": text.replace('"', "'"),
        }
        for name, variant in variants.items():
            if parse(variant) != json.loads(text):
                print(f"  WRONG: {name}")
            spent = best_us(variant, parse, rounds=3) / 1000
            print(f"  {len(variant):>7} characters, {name}: {spent:.2f} ms")
        print(f"  json.loads: {best_us(text, json.loads, rounds=3) / 1000:.2f} ms")


def corpora(folder: Path) -> None:
    """Agreement with the foreign files, each by its own convention."""
    print(f"{'file':22}{'rows':>6}{'same':>6}{'refused':>9}{'other':>7}{'ms':>8}")
    for name in ("json_repair", "jsonrepair_js", "partial_json"):
        _corpus(folder / "malformed" / f"{name}.jsonl")
    counted: Counter[str] = Counter()
    for line in _lines(folder / "json_nst" / "parsing.jsonl"):
        row = json.loads(line)
        if "text" not in row or row["expect"] == "either":
            continue
        refused = isinstance(loads(row["text"]), Fault)
        counted["same" if refused == (row["expect"] == "reject") else "other"] += 1
    print(f"json_nst, strict (keys twice are refused on purpose): {dict(counted)}")


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []


def _corpus(file: Path) -> None:
    counted: Counter[str] = Counter()
    spent = 0.0
    for line in _lines(file):
        row = json.loads(line)
        if not isinstance(row["input"], str):
            continue
        started = time.perf_counter()
        value = parse(row["input"])
        spent += time.perf_counter() - started
        counted["rows"] += 1
        if value is _REFUSED:
            counted["refused" if row["expect"] == "value" else "same"] += 1
        elif row["expect"] == "value" and value == row["value"]:
            counted["same"] += 1
        else:
            counted["other"] += 1
            if "-v" in sys.argv:
                print(f"    {row['id']}: {row['input']!r:.100} -> {value!r:.100}")
    print(
        f"{file.stem:22}{counted['rows']:>6}{counted['same']:>6}"
        f"{counted['refused']:>9}{counted['other']:>7}{spent * 1000:>8.1f}"
    )


def main() -> None:
    given = [argument for argument in sys.argv[1:] if argument != "-v"]
    shared = Path(given[0]) if given else _SHARED
    data = Path(os.environ.get("NEURAXIS_SHARED_DATA", shared / "data"))
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    bench_cases(shared / "bench")
    large_texts()
    corpora(data)


if __name__ == "__main__":
    main()
