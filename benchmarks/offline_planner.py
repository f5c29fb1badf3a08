"""The offline planner on sets of requests: done right, wrong, declined.

    python benchmarks/offline_planner.py [--show wrong|declined]

All sets were seen while it was made, so their figures are the best that it can do. The
held ones (data/held/README.md) were written by others. Expected: no wrong plan with an
effect, at least a quarter done right, everything else declined; median below 50 ms.
An expectation is a tool's name with checks of its arguments: a value, or one of {any},
{regex, as}, {same}, {absent}, {ref}, {contains}, {free}, {optional}.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from neuraxis.models.offline.catalogue import Catalogue, build
from neuraxis.models.offline.planner import plan
from neuraxis.plugins.loader import builtin_names, load_plugin
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.specs import PluginSpec

DATA = Path(__file__).parent / "data"
CHECKS = {"any", "regex", "same", "absent", "free", "ref", "contains", "optional"}


def plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip(" \n.!?'\"").casefold()
    return float(value) if isinstance(value, int) and value is not True else value


def is_python(text: str) -> bool:
    try:
        return bool(ast.parse(text).body)
    except (SyntaxError, ValueError):
        return False


def fits(
    check: Any, given: Mapping[str, Any], name: str, named: dict[str, Any]
) -> bool:
    if not (isinstance(check, dict) and check.keys() & {*CHECKS, "python"}):
        return name in given and plain(given[name]) == plain(check)
    if "absent" in check or name not in given:
        return name not in given and bool(check.get("optional") or "absent" in check)
    value = given[name]
    if "as" in check:
        named[check["as"]] = value
    text = value if isinstance(value, str) else json.dumps(value)
    tests = {
        "any": lambda: plain(value) in [plain(item) for item in check["any"]],
        "same": lambda: value == named.get(check["same"]),
        "ref": lambda: re.search(rf"{{{{.*\b({'|'.join(_many(check['ref']))})\b", text),
        "regex": lambda: re.search(check["regex"], text),
        "python": lambda: is_python(text),
        "contains": lambda: all(p.lower() in text.lower() for p in check["contains"]),
    }
    return bool(check.get("free")) or all(
        test() for key, test in tests.items() if key in check
    )


def _many(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _names(tool: Any) -> list[str]:
    return tool["any"] if isinstance(tool, dict) else [tool]


def judge(expect: list[dict[str, Any]], calls: list[dict[str, Any]]) -> bool:
    named: dict[str, Any] = {}
    return len(expect) == len(calls) and all(
        call["tool"]
        in _many(
            want["tool"]["any"] if isinstance(want["tool"], dict) else want["tool"]
        )
        and all(
            fits(check, call, name, named)
            for name, check in (want.get("arguments") or {}).items()
        )
        for want, call in zip(expect, calls, strict=True)
    )


def manifests(file: Path) -> dict[str, PluginSpec]:
    trees = yaml.safe_load(file.read_text(encoding="utf-8")).get("manifests", ())
    texts = [yaml.safe_dump(tree, sort_keys=False) for tree in trees]
    specs = [parse_manifest(text, file=file.name)[0] for text in texts]
    return {spec.name: spec for spec in specs}


def sets() -> Iterator[tuple[str, list[dict[str, Any]], dict[str, PluginSpec]]]:
    for file in sorted(DATA.glob("local_dev_*.yaml")):
        tree = yaml.safe_load(file.read_text(encoding="utf-8"))
        own = manifests(file)
        for name in tree.get("plugins") or ():
            own |= manifests(DATA / name) if name.endswith(".yaml") else {}
        shared = tree.get("plugins") or list(own)
        rows = [
            {**row, "plugins": row.get("plugins") or shared} for row in tree["requests"]
        ]
        yield file.name, rows, own
    for name in ("four", "others", "none"):
        rows = yaml.safe_load(
            (DATA / "held" / f"{name}.yaml").read_text(encoding="utf-8")
        )
        yield f"held/{name}.yaml", rows, {}


def specs_of(names: list[str], own: dict[str, PluginSpec]) -> Iterator[PluginSpec]:
    for name in names:
        if name in own:
            yield own[name]
        elif name.endswith(".yaml"):
            yield from manifests(DATA / name).values()
        elif name in builtin_names():
            yield load_plugin(f"neuraxis:{name}").spec
        else:
            folder = DATA / "held" / "plugins" / name
            yield load_plugin(folder if folder.is_dir() else name).spec


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", choices=["wrong", "declined"])
    show = parser.parse_args().show
    total: Counter[str] = Counter()
    for title, rows, own in sets():
        known: dict[str, Catalogue] = {}
        counted: Counter[str] = Counter()
        times: list[float] = []
        for row in rows:
            key = json.dumps(row["plugins"])
            if key not in known:
                known[key] = build(tuple(specs_of(row["plugins"], own)), {})
            started = time.perf_counter()
            steps = plan(row["request"], known[key]).steps
            times.append(time.perf_counter() - started)
            calls = [{"tool": step.tool.name, **step.arguments} for step in steps]
            expect = row["expect"] or []
            right = judge(expect, calls)
            said = "right" if right and expect else "declined" if not calls else "wrong"
            counted[said if expect or calls else "rightly nothing"] += 1
            acts = any(not step.tool.spec.effects.readonly for step in steps)
            counted["wrong with an effect"] += said == "wrong" and acts
            if said == show and (expect or calls):
                print(f"[{said}] {row['request']} {calls or ''}")
        total += counted
        median = sorted(times)[len(times) // 2] * 1000
        print(f"{title}: {len(rows)} requests, {dict(counted)}, median {median:.1f} ms")
    print(dict(total))


if __name__ == "__main__":
    main()
