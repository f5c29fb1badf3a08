"""How many requests the local model plans rightly: sets of requests in, figures out.

    python benchmarks/local_model.py [--set FILE]... [--no-model] [--show]

A set is a YAML file:

    plugins: [NAME or SOURCE, ...]      # optional: for all requests of the file
    manifests: [manifest, ...]          # optional: plugins written in the file itself
    requests:
    - request: text
      plugins: [...]                    # optional: only these for this request
      expect:                           # [] means that nothing may be called
      - tool: NAME                      # or {any: [NAME, ...]}
        arguments: {parameter: check, ...}

A plugin is the name of one of the file's manifests, another set's file (all of its
manifests), or a source that `neuraxis.plugins` loads ("neuraxis:files", a folder).
A check is a value that must be equal (texts: but for case, outer space, quotes and a
final full stop), or one of {any: [values]}, {regex: text} (searched in the value as
text), {regex:, as: name} and {same: name} (equal to what was named), {absent: true}.
Parameters that are not named may have any value.

"sequence" counts requests with the right tools in the right order, "full" those whose
arguments are right as well.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from neuraxis.messages import Message, Prompt
from neuraxis.models.gguf.lazy import LazyWriter
from neuraxis.models.local.model import LocalModel
from neuraxis.plugins.loader import load_plugin
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.specs import PluginSpec

DATA = Path(__file__).parent / "data"
SETS = sorted(path.name for path in DATA.glob("local_dev_*.yaml"))
CALLS = re.compile(r"<!-- RESPONSE_START -->(.*)<!-- RESPONSE_END -->", re.DOTALL)


def manifests(file: Path) -> dict[str, PluginSpec]:
    found: dict[str, PluginSpec] = {}
    for tree in yaml.safe_load(file.read_text(encoding="utf-8")).get("manifests", ()):
        text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
        spec, problems = parse_manifest(text, file=f"{file.name}:{tree.get('name')}")
        for problem in problems:
            if problem.severity == "error":
                sys.exit(str(problem))
        found[spec.name] = spec
    return found


def plugins(names: list[Any], own: Mapping[str, PluginSpec], folder: Path):
    found: list[PluginSpec] = []
    for name in names:
        if name in own:
            found.append(own[name])
        elif str(name).endswith((".yaml", ".yml")) and (folder / name).is_file():
            found += manifests(folder / name).values()
        else:
            source = folder / name if (folder / str(name)).is_dir() else name
            found.append(load_plugin(source).spec)
    return tuple(found)


def plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip(" \n.!?'\"").casefold()
    return float(value) if isinstance(value, int) and value is not True else value


def fits(check: Any, arguments: Mapping[str, Any], name: str, named: dict[str, Any]):
    if isinstance(check, dict) and check.keys() & {"any", "regex", "same", "absent"}:
        if "absent" in check:
            return name not in arguments
        if name not in arguments:
            return False
        value = arguments[name]
        if "as" in check:
            named[check["as"]] = value
        if "any" in check:
            return any(plain(value) == plain(item) for item in check["any"])
        if "same" in check:
            return value == named.get(check["same"])
        text = value if isinstance(value, str) else json.dumps(value)
        return re.search(check["regex"], text) is not None
    return name in arguments and plain(arguments[name]) == plain(check)


def judge(
    expect: list[dict[str, Any]], calls: list[dict[str, Any]]
) -> tuple[bool, bool]:
    def right(wanted: Any, tool: str) -> bool:
        return tool in (wanted["any"] if isinstance(wanted, dict) else [wanted])

    sequence = len(expect) == len(calls) and all(
        right(want["tool"], call["tool"])
        for want, call in zip(expect, calls, strict=True)
    )
    named: dict[str, Any] = {}
    full = sequence and all(
        fits(check, call, name, named)
        for want, call in zip(expect, calls, strict=True)
        for name, check in (want.get("arguments") or {}).items()
    )
    return sequence, full


async def ask(model: LocalModel, prompt: Prompt) -> tuple[str, list[str]]:
    text, notes = "", []
    async for chunk in model.stream(prompt):
        text += chunk.text
        if chunk.note:
            notes.append(chunk.note)
    return text, notes


def read(file: Path) -> dict[str, Any]:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


async def measure(file: Path, *, with_model: bool, show: bool) -> None:
    tree = read(file)
    own = manifests(file)
    shared = tree.get("plugins") or list(own)
    for name in tree.get("plugins") or ():
        if str(name).endswith((".yaml", ".yml")) and (file.parent / name).is_file():
            own.update(manifests(file.parent / name))
    cache: dict[str, tuple[PluginSpec, ...]] = {}
    model = LocalModel(LazyWriter(threads=1) if with_model else None)
    sequences = fulls = 0
    seconds: list[float] = []
    rows = tree["requests"]
    for row in rows:
        names = row.get("plugins") or shared
        key = json.dumps(names)
        if key not in cache:
            cache[key] = plugins(names, own, file.parent)
        prompt = Prompt(
            messages=(Message(role="user", content=row["request"]),),
            plugins=cache[key],
        )
        start = time.perf_counter()
        text, notes = await ask(model, prompt)
        seconds.append(time.perf_counter() - start)
        found = CALLS.search(text)
        calls = json.loads(found.group(1)) if found else []
        sequence, full = judge(row["expect"] or [], calls)
        sequences += sequence
        fulls += full
        if show or not full:
            mark = "ok" if full else "ARGS" if sequence else "TOOLS"
            print(f"[{mark}] {row['request']}")
            for call in calls:
                print("      ", json.dumps(call, ensure_ascii=False))
            if not calls:
                print("      ", text[:120])
            if show:
                print("      #", "; ".join(notes))
    await model.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds.sort()
    print(
        f"{file.name}: {len(rows)} requests, sequence {sequences / len(rows):.1%}, "
        f"full {fulls / len(rows):.1%}; seconds median "
        f"{seconds[len(seconds) // 2]:.3f}, most {seconds[-1]:.2f}; "
        f"memory at most {memory:.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", action="append", type=Path, default=[])
    parser.add_argument("--no-model", action="store_true")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    for file in given.set or [DATA / name for name in SETS]:
        asyncio.run(measure(file, with_model=not given.no_model, show=given.show))


if __name__ == "__main__":
    main()
