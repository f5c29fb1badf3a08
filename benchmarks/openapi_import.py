"""OpenAPI documents imported, time and size, beside fastmcp where it is installed.

    python benchmarks/openapi_import.py [FOLDER] [--peer PYTHON]

FOLDER holds `openapi/` and `chatgpt_plugins/` (default: ../shared/data). Both importers
get the same parsed documents in the same order, each in a process of its own. PYTHON is
one that has fastmcp; default: this one.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PEER = """
import asyncio, json, sys, time
try:
    import httpx2 as httpx
except ImportError:
    import httpx
from fastmcp import FastMCP
async def one(tree):
    client = httpx.AsyncClient(base_url="http://localhost")
    server = FastMCP.from_openapi(tree, client=client)
    listed = await server.list_tools()
    return [json.dumps(tool.parameters) for tool in listed]
rows = []
for line in sys.stdin:
    name, tree = json.loads(line)
    start = time.perf_counter()
    try:
        sizes = [len(text) for text in asyncio.run(one(tree))]
        row = [name, len(sizes), sum(sizes), max(sizes, default=0), ""]
    except Exception as error:
        row = [name, 0, 0, 0, f"{type(error).__name__}: {error}"[:200]]
    rows.append([*row, time.perf_counter() - start])
print("ROWS" + json.dumps(rows))
"""


def documents(folder: Path) -> list[tuple[str, Any, str]]:
    """Name, parsed document (or None), and why it could not be parsed."""
    from neuraxis.bridges.openapi_client.load import parse
    from neuraxis.errors import ConfigError

    texts: list[tuple[str, bytes]] = []
    index = folder / "openapi" / "index.json"
    for row in json.loads(index.read_text("utf-8")):
        file = folder / "openapi" / Path(row["file"]).name
        texts.append((f"openapi/{file.name}", file.read_bytes()))
    rows = folder / "chatgpt_plugins" / "manifest_and_spec.jsonl"
    for line in rows.read_text("utf-8").splitlines():
        row = json.loads(line)
        texts.append((f"chatgpt_plugins/{row['id']}", row["spec_text"].encode()))
    found: list[tuple[str, Any, str]] = []
    for name, text in texts:
        try:
            found.append((name, parse(text, name), ""))
        except ConfigError as error:
            found.append((name, None, str(error)))
    return found


def ours(given: list[tuple[str, Any, str]]) -> list[list[Any]]:
    """What Neuraxis makes of each document."""
    from neuraxis.bridges.openapi_client.plugin import openapi
    from neuraxis.errors import ConfigError

    rows: list[list[Any]] = []
    for name, tree, why in given:
        start = time.perf_counter()
        sizes: list[int] = []
        try:
            if not why:
                plugin = openapi(tree)
                sizes = [
                    len(json.dumps(command.parameters))
                    for command in plugin.spec.commands
                ]
        except ConfigError as error:
            why = str(error)
        took = time.perf_counter() - start
        rows.append([name, len(sizes), sum(sizes), max(sizes, default=0), why, took])
    return rows


def peer(python: str, given: list[tuple[str, Any, str]]) -> list[list[Any]]:
    """What fastmcp makes of them."""
    lines = "\n".join(json.dumps([name, tree]) for name, tree, _ in given)
    done = subprocess.run(
        [python, "-c", PEER], input=lines, capture_output=True, text=True, check=False
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("ROWS")]
    if not found:
        raise SystemExit(f"fastmcp: {done.stderr[-500:]}")
    return json.loads(found[0][4:])


def show(title: str, rows: list[list[Any]]) -> None:
    """One line for each collection, and the reasons of what did not import."""
    for kind in ("openapi", "chatgpt_plugins"):
        own = [row for row in rows if row[0].startswith(kind)]
        good = [row for row in own if row[1]]
        print(
            f"{title:<10} {kind:<16} {len(good):>3} of {len(own):>3} documents  "
            f"{sum(row[1] for row in good):>5} commands  "
            f"{sum(row[5] for row in own):>6.2f} s  "
            f"schemas {sum(row[2] for row in good) / 1e6:>6.2f} MB, "
            f"largest {max((row[3] for row in good), default=0) / 1e3:>7.1f} kB"
        )
    for row in rows:
        if not row[1]:
            print(f"    not imported: {row[0]}: {' '.join(row[4].split())[:140]}")


def main() -> None:
    parser = argparse.ArgumentParser()
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    parser.add_argument("--peer")
    chosen = parser.parse_args()
    given = documents(chosen.folder)
    show("neuraxis", ours(given))
    python = chosen.peer
    if python is None and importlib.util.find_spec("fastmcp") is not None:
        python = sys.executable
    if python is None:
        print("fastmcp is not installed: pip install fastmcp, or --peer PYTHON")
    else:
        show("fastmcp", peer(python, given))


if __name__ == "__main__":
    main()
