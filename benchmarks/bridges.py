"""Calls over MCP, in and out, and documents imported, beside fastmcp and the MCP SDK.

    python benchmarks/bridges.py --peer PYTHON [FOLDER] [--calls 300] [--rounds 5]

PYTHON has fastmcp. In: one server, written with the SDK, is called by each client. Out:
one client, that of the SDK, calls each server. All over stdio, in programs of their
own, in a shuffled order; the figure is the median of a round, the least of all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import openapi_import

TOOL = """
def add(a: int, b: int) -> dict[str, int]:
    "Add two numbers."
    return {"sum": a + b}
"""
SERVERS = {
    "MCP SDK": "from mcp.server import MCPServer\n"
    "app = MCPServer('s')\n" + TOOL + "app.tool()(add)\napp.run()\n",
    "fastmcp": "from fastmcp import FastMCP\n"
    "app = FastMCP('s')\n" + TOOL + "app.tool(add)\napp.run(show_banner=False)\n",
    "neuraxis": "from neuraxis import command\n"
    + TOOL.replace("def add", "@command(effects='none')\ndef add"),
}
TIMED = """
import asyncio, json, statistics, sys, time
count, server = int(sys.argv[1]), json.loads(sys.argv[2])
async def timed(call):
    for _ in range(20):
        await call()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        await call()
        times.append(time.perf_counter() - start)
    print(statistics.median(times) * 1e6)
"""
CLIENTS = {
    "MCP SDK": """
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
async def main():
    way = stdio_client(StdioServerParameters(command=server[0], args=server[1:]))
    async with Client(way) as client:
        async def call():
            done = await client.call_tool("add", {"a": 2, "b": 3})
            assert done.structured_content == {"sum": 5}, done
        await timed(call)
asyncio.run(main())
""",
    "fastmcp": """
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
async def main():
    async with Client(StdioTransport(server[0], server[1:])) as client:
        async def call():
            done = await client.call_tool("add", {"a": 2, "b": 3})
            assert done.structured_content == {"sum": 5}, done
        await timed(call)
asyncio.run(main())
""",
    "neuraxis": """
import tempfile
from neuraxis import Call, Policy, Session
from neuraxis.bridges import mcp
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import EVERYTHING
numbers = iter(range(10**9))
async def main():
    source = mcp(server, name="peer")
    place = tempfile.mkdtemp()
    with Session(model=ScriptedModel([]), plugins=[source], policy=EVERYTHING,
                 workspace=place) as session:
        async def call():
            made = Call(id=f"c{next(numbers)}", plugin="peer", command="add",
                        arguments={"a": 2, "b": 3})
            done = await session.call(made)
            assert done.value == {"sum": 5}, done
        await timed(call)
asyncio.run(main())
""",
}


def calls(peer: str, count: int, rounds: int, folder: Path) -> None:
    """Print what one call costs, in and out."""
    environment = {**os.environ, "FASTMCP_LOG_LEVEL": "ERROR"}
    pythons = {"MCP SDK": sys.executable, "fastmcp": peer, "neuraxis": sys.executable}
    servers: dict[str, list[str]] = {}
    for name, text in SERVERS.items():
        file = folder / f"{name.split()[-1].lower()}_tool.py"
        file.write_text(text)
        servers[name] = [pythons[name], str(file)]
    serve = ["-m", "neuraxis", "mcp", "serve", "--journal", "memory", "--no-builtin"]
    plugin = ["-w", str(folder / "w"), "-p", servers["neuraxis"][1]]
    servers["neuraxis"] = [sys.executable, *serve, *plugin]
    pairs = [("in", name, name, "MCP SDK") for name in CLIENTS]
    pairs += [("out", name, "MCP SDK", name) for name in SERVERS]
    least: dict[tuple[str, str], float] = {}
    for _ in range(rounds):
        for way, name, client, server in random.sample(pairs, len(pairs)):
            script = TIMED + CLIENTS[client]
            told = [pythons[client], "-c", script, str(count)]
            clean = dict(environment)
            if client == "fastmcp":  # its environment is its own
                clean.pop("PYTHONPATH", None)
            else:
                clean["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
            done = subprocess.run(
                [*told, json.dumps(servers[server])],
                env=clean,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise SystemExit(f"{way} {name}: {done.stderr[-2000:]}")
            took = float(done.stdout.split()[-1])
            least[way, name] = min(took, least.get((way, name), took))
    for way, said in (("in", "client of one server"), ("out", "server of one client")):
        print(f"{way}: a call, {said}")
        for name in CLIENTS:
            ratio = least[way, name] / least[way, "MCP SDK"]
            print(f"    {name:<10} {least[way, name]:>7.0f} µs  {ratio:>5.2f} x SDK")


def main() -> None:
    parser = argparse.ArgumentParser()
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        calls(chosen.peer, chosen.calls, chosen.rounds, Path(place))
    given = openapi_import.documents(chosen.folder)
    openapi_import.show("neuraxis", openapi_import.ours(given))
    openapi_import.show("fastmcp", openapi_import.peer(chosen.peer, given))


if __name__ == "__main__":
    main()
