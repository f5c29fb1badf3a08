"""The embedded model on requests that its builder never saw: sets in, figures out.

    python benchmarks/local_held.py [--no-model] [--show]

The sets, who wrote them and what an expectation means: data/held/README.md.
Expected: at least 85 % of the plans over the four tools right in full, 70 % over other
plugins, and no call in at least 90 % of the requests that need none.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import re
import resource
import time
from pathlib import Path
from typing import Any

import yaml

from neuraxis.messages import Message, Prompt
from neuraxis.models.gguf.lazy import LazyWriter
from neuraxis.models.local.model import LocalModel
from neuraxis.plugins.loader import builtin_names, load_plugin

HELD = Path(__file__).parent / "data" / "held"
SETS = {"four.yaml": 85, "others.yaml": 70, "none.yaml": 90}
CALLS = re.compile(r"<!-- RESPONSE_START -->(.*)<!-- RESPONSE_END -->", re.DOTALL)


def is_ref(value: Any, names: list[str]) -> bool:
    inside = re.findall(r"\{\{(.*?)\}\}", str(value), re.DOTALL)
    return any(
        re.search(rf"(?:\[\s*['\"]{name}['\"]\s*\]|\.{name}\b|['\"/]{name}\b)", part)
        for part in inside or [str(value)]
        for name in names
    )


def same(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, bool):
        return given is wanted or str(given).lower() == str(wanted).lower()
    if isinstance(wanted, int | float):
        try:
            return not isinstance(given, bool) and float(given) == float(wanted)
        except (TypeError, ValueError):
            return False
    return given == wanted


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return bool(text.strip())


def fits(check: dict[str, Any], value: Any) -> bool:
    if check.get("free"):
        return True
    if "any" in check:
        return any(same(value, one) for one in check["any"])
    if "ref" in check:
        names = check["ref"]
        return is_ref(value, names if isinstance(names, list) else [names])
    text = str(value)
    if "regex" in check and not re.search(check["regex"], text):
        return False
    if check.get("python") and not is_python(text):
        return False
    return all(part.lower() in text.lower() for part in check.get("contains", []))


def judge(
    expect: list[dict[str, Any]], calls: list[dict[str, Any]]
) -> tuple[bool, bool]:
    """Whether the tools are right in their order, and whether all is right."""
    if [step["tool"] for step in expect] != [call.get("tool") for call in calls]:
        return False, False
    for step, call in zip(expect, calls, strict=True):
        wanted = step.get("arguments", {})
        given = {key: value for key, value in call.items() if key not in ("tool", "as")}
        if any(name not in wanted for name in given):
            return True, False
        for name, check in wanted.items():
            if name not in given:
                if not check.get("optional"):
                    return True, False
            elif not fits(check, given[name]):
                return True, False
    return True, True


async def measure(file: str, least: int, *, with_model: bool, show: bool) -> None:
    rows = yaml.safe_load((HELD / file).read_text(encoding="utf-8"))
    model = LocalModel(LazyWriter(threads=1) if with_model else None)
    specs: dict[str, Any] = {}
    sequences = fulls = 0
    seconds: list[float] = []
    for row in rows:
        for name in row["plugins"]:
            if name not in specs:
                builtin = name in builtin_names()
                source = f"neuraxis:{name}" if builtin else HELD / "plugins" / name
                specs[name] = load_plugin(source).spec
        prompt = Prompt(
            messages=(Message(role="user", content=row["request"]),),
            plugins=tuple(specs[name] for name in row["plugins"]),
        )
        started = time.perf_counter()
        text = "".join([chunk.text async for chunk in model.stream(prompt)])
        seconds.append(time.perf_counter() - started)
        found = CALLS.search(text)
        calls = json.loads(found[1]) if found else []
        sequence, full = judge(row["expect"], calls)
        sequences += sequence
        fulls += full
        if show and not full:
            print(f"[{'ARGS' if sequence else 'TOOLS'}] {row['request']}")
            for call in calls:
                print("      ", json.dumps(call, ensure_ascii=False))
    await model.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds.sort()
    print(
        f"{file}: {len(rows)} requests, tools in order {sequences / len(rows):.0%}, "
        f"right in full {fulls / len(rows):.0%} (at least {least} %); seconds: median "
        f"{seconds[len(seconds) // 2]:.2f}, most {seconds[-1]:.1f}; "
        f"memory {memory:.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-model", action="store_true")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    for file, least in SETS.items():
        asyncio.run(
            measure(file, least, with_model=not given.no_model, show=given.show)
        )


if __name__ == "__main__":
    main()
