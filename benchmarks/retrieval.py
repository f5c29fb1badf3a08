"""Commands found for a request, beside plain BM25 in the same run; and 10,000 of them.

    python benchmarks/retrieval.py [FOLDER] [--draws 30] [--embed]

FOLDER holds the retrieval collections (default: ../shared/data/retrieval). Both see the
same texts: name, description and parameters; vectors see the first two. Plain BM25:
lower-case words, k1 1.5, b 0.75, one field. "All": among all tools; "own": among those
of the query's collection.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuraxis.plugins.search import index
from neuraxis.plugins.search.index import FIELDS, Entry, Index
from neuraxis.plugins.search.store import Store
from neuraxis.plugins.search.vectors import CANDIDATES, Vectors, static_embedding

MOST = 5
Find = Callable[[str], Sequence[str]]


def plain(tools: list[dict[str, Any]]) -> Find:
    """The usual BM25 over one text."""

    def split(text: str) -> list[str]:
        return re.findall(r"\w+", text.lower())

    texts = [
        split(" ".join((tool["name"], tool["description"], tool["params"])))
        for tool in tools
    ]
    having = Counter(word for words in texts for word in set(words))
    mean = sum(map(len, texts)) / len(texts)
    weights: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for number, words in enumerate(texts):
        for word, times in Counter(words).items():
            rare = math.log(
                1 + (len(texts) - having[word] + 0.5) / (having[word] + 0.5)
            )
            length = 1.5 * (0.25 + 0.75 * len(words) / mean)
            weights[word].append((number, rare * times * 2.5 / (times + length)))

    def find(request: str) -> list[str]:
        scores: Counter[int] = Counter()
        for word in split(request):
            for number, weight in weights.get(word, ()):
                scores[number] += weight
        return [tools[number]["tid"] for number, _ in scores.most_common(MOST)]

    return find


def entries(tools: list[dict[str, Any]]) -> list[Entry]:
    return [
        Entry(
            key=tool["tid"],
            texts=(tool["name"], "", tool["description"], tool["params"], ""),
        )
        for tool in tools
    ]


def ours(tools: list[dict[str, Any]]) -> Find:
    made = Index()
    made.add(entries(tools))
    return lambda request: [hit.key for hit in made.find(request, MOST)]


def meaning(tools: list[dict[str, Any]]) -> Find:
    """Ours, fused with the static vectors of the extra `embeddings`."""
    given = entries(tools)
    made, vectors = Index(), Vectors(static_embedding())
    made.add(given)
    vectors.update(given)

    def find(request: str) -> list[str]:
        hits = made.find(request, CANDIDATES)
        return [hit.key for hit in vectors.fused(request, hits, MOST)]

    return find


def recalls(
    finders: Mapping[str, Find],
    queries: list[dict[str, Any]],
    wanted: dict[str, set[str]],
) -> dict[str, float]:
    """Mean recall of the first five, for all queries and by collection."""
    found: dict[str, list[float]] = defaultdict(list)
    for query in queries:
        right = wanted[query["qid"]]
        find = finders[query["source"].removesuffix("-multi")]
        part = len(right & set(find(query["query"]))) / len(right)
        found[query["source"]].append(part)
        found["all queries"].append(part)
    return {name: sum(parts) / len(parts) for name, parts in found.items()}


def read(
    folder: Path,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, set[str]]]:
    """The tools, the queries, and which tools are right for each."""
    tools = [json.loads(line) for line in (folder / "tools.jsonl").open()]
    queries = [json.loads(line) for line in (folder / "queries.jsonl").open()]
    wanted: dict[str, set[str]] = defaultdict(set)
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]:
        qid, tid, _ = line.split("\t")
        wanted[qid].add(tid)
    return tools, queries, wanted


def fewer(before: float, after: float) -> float:
    """The share of misses that are misses no more."""
    return 1 - (1 - after) / (1 - before) if before < 1 else 0.0


def quality(folder: Path, second: Callable[[list[dict[str, Any]]], Find]) -> None:
    tools, queries, wanted = read(folder)
    sources: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for tool in tools:
        sources[tool["source"]].append(tool)
    rows: dict[str, dict[str, float]] = {}
    for title, make in (("plain", plain), ("ours", second)):
        own = {source: make(given) for source, given in sources.items()}
        finders = {"all": dict.fromkeys(sources, make(tools)), "own": own}
        for setting, finder in finders.items():
            rows[f"{title} {setting}"] = recalls(finder, queries, wanted)
    print(f"recall@{MOST}: {len(tools)} tools, {len(queries)} queries")
    for setting in ("all", "own"):
        print(f"  among {setting}:                plain    ours   fewer misses")
        before, after = rows[f"plain {setting}"], rows[f"ours {setting}"]
        for name, was in before.items():
            share = fewer(was, after[name])
            print(f"    {name:<22} {was:>8.3f} {after[name]:>8.3f} {share:>8.1%}")


def held_out(folder: Path, draws: int) -> None:
    """Weights chosen without a collection, measured on that collection.

    Each draw sets all weights at random, from ranges wider than any sensible choice.
    """
    tools, queries, wanted = read(folder)
    sources = sorted({tool["source"] for tool in tools})
    built = Index()
    built.add(entries(tools))
    everywhere = dict.fromkeys(sources, plain(tools))
    before = recalls(everywhere, queries, wanted)

    def find(request: str) -> list[str]:
        return [hit.key for hit in built.find(request, MOST)]

    def measured() -> dict[str, float]:
        built.weights.clear()
        return recalls(dict.fromkeys(sources, find), queries, wanted)

    kept = (index.WEIGHTS, index.LENGTHS, index.SATURATION)
    ship = measured()
    chance = random.Random(1)
    drawn: list[dict[str, float]] = []
    for _ in range(draws):
        index.WEIGHTS = tuple(chance.uniform(0.2, 4) for _ in FIELDS)
        index.LENGTHS = tuple(chance.uniform(0.2, 0.9) for _ in FIELDS)
        index.SATURATION = chance.uniform(0.3, 2)
        drawn.append(measured())
    index.WEIGHTS, index.LENGTHS, index.SATURATION = kept
    print(f"among all, fewer misses than plain BM25 ({draws} draws of the weights):")
    print("    held out        chosen without it   as shipped   worst draw")
    names = [name for name in before if name != "all queries"]
    count = Counter(query["source"] for query in queries)
    missed: dict[str, float] = defaultdict(float)
    for source in sources:
        mine = [name for name in names if name.removesuffix("-multi") == source]
        others = [name for name in names if name not in mine]
        best = max(drawn, key=lambda row: sum(row[name] for name in others))
        worst = min(drawn, key=lambda row: sum(row[name] for name in mine))
        for name in mine:
            told = [fewer(before[name], row[name]) for row in (best, ship, worst)]
            missed["before"] += count[name] * (1 - before[name])
            missed["after"] += count[name] * (1 - best[name])
            print(f"    {name:<16}{told[0]:>17.1%}{told[1]:>13.1%}{told[2]:>13.1%}")
    whole = fewer(before["all queries"], ship["all queries"])
    chosen = 1 - missed["after"] / missed["before"]
    print(f"    {'all queries':<16}{chosen:>17.1%}{whole:>13.1%}")


def speed(folder: Path, count: int) -> None:
    tools, asked, _ = read(folder)
    given = entries(tools)
    extra = [
        Entry(key=f"{entry.key}#2", texts=(f"{entry.texts[0]} again", *entry.texts[1:]))
        for entry in given
    ]
    given = [*given, *extra][:count]
    queries = [each["query"] for each in asked]
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "commands.msgpack"
        start = time.perf_counter()
        Store(file).update(given)
        built = time.perf_counter() - start
        start = time.perf_counter()
        store = Store(file)
        loaded = time.perf_counter() - start
        start = time.perf_counter()
        changed = store.update(given)
        same = time.perf_counter() - start
        times: list[float] = []
        for query in queries:
            # CPU time: other programs on this machine are not counted
            start = time.process_time()
            store.index.find(query, 8)
            times.append(time.process_time() - start)
        times.sort()
        print(
            f"{len(given)} commands: built and written in {built:.2f} s, loaded in "
            f"{loaded * 1e3:.0f} ms, compared in {same * 1e3:.0f} ms ({changed} "
            f"changed), file {file.stat().st_size / 1e6:.1f} MB"
        )
        print(
            f"    a query (the first use of each word included): median "
            f"{times[len(times) // 2] * 1e3:.2f} ms, 99 % within "
            f"{times[int(len(times) * 0.99)] * 1e3:.2f} ms, longest "
            f"{times[-1] * 1e3:.2f} ms"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    default = Path(__file__).resolve().parents[2] / "shared" / "data" / "retrieval"
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--draws", type=int, default=0, help="cross-validate so often")
    parser.add_argument("--embed", action="store_true", help="with vectors")
    chosen = parser.parse_args()
    if chosen.draws:
        held_out(chosen.folder, chosen.draws)
        return
    quality(chosen.folder, meaning if chosen.embed else ours)
    speed(chosen.folder, chosen.count)


if __name__ == "__main__":
    main()
