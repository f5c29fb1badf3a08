"""Independent MCP peers on loopback: servers and clients that others wrote.

`NEURAXIS_MCP_PEERS` is a folder into which npm installed server-everything,
server-filesystem, inspector, conformance and node; `NEURAXIS_FASTMCP` the Python of an
environment with fastmcp. `.ci/run` makes both; without them these tests say so.
"""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from neuraxis import Call, Session
from neuraxis.bridges import mcp
from neuraxis.events import CallProgress
from neuraxis.models.scripted import ScriptedModel

HERE = Path(__file__).parent
PEERS = os.environ.get("NEURAXIS_MCP_PEERS", "")
FASTMCP = os.environ.get("NEURAXIS_FASTMCP", "")
npm = pytest.mark.skipif(not PEERS, reason="NEURAXIS_MCP_PEERS names no folder")
fastmcp = pytest.mark.skipif(not FASTMCP, reason="NEURAXIS_FASTMCP names no Python")
SERVE = ["-m", "neuraxis", "mcp", "serve", "--journal", "memory", "--no-builtin"]
PLUGIN = """
from neuraxis import command

@command(effects="none")
def add(a: int, b: int) -> dict[str, int]:
    "Add two numbers."
    return {"sum": a + b}
"""


def peer(name):
    return str(Path(PEERS) / "node_modules" / ".bin" / name)


def environment():
    node = Path(PEERS) / "node_modules" / "node" / "bin"
    path = f"{node}{os.pathsep}{os.environ['PATH']}" if PEERS else os.environ["PATH"]
    return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}


def opened(tmp_path, source):
    return Session(model=ScriptedModel([]), plugins=[source], workspace=tmp_path / "w")


async def call(session, plugin, command, watch=None, **arguments):
    made = Call(
        id=os.urandom(4).hex(), plugin=plugin, command=command, arguments=arguments
    )
    return await session.call(made, watch)


async def everything(session):
    """What server-everything offers, asked through the session."""
    assert (await call(session, "everything", "echo", message="hi")).value == "Echo: hi"
    wrong = await call(session, "everything", "get-sum", a="x", b=1)
    assert wrong.error.code == "invalid_param"
    image = await call(session, "everything", "get-tiny-image")
    assert image.stored
    structured = await call(
        session, "everything", "get-structured-content", location="Chicago"
    )
    assert set(structured.value) == {"temperature", "conditions", "humidity"}
    links = await call(session, "everything", "get-resource-links", count=2)
    link = links.value[1]["link"]["uri"]
    read = await call(session, "everything", "read_resource", uri=link)
    assert read.value["uri"] == link
    prompts = await call(session, "everything", "list_prompts")
    assert "simple-prompt" in [each["name"] for each in prompts.value["prompts"]]
    prompt = await call(session, "everything", "get_prompt", name="simple-prompt")
    assert prompt.value["messages"][0]["role"] == "user"
    roots = await call(session, "everything", "get-roots-list")
    assert session.workspace.as_uri() in roots.value
    heard = []
    await call(
        session,
        "everything",
        "trigger-long-running-operation",
        heard.append,
        duration=1,
        steps=4,
    )
    assert [e.fraction for e in heard if isinstance(e, CallProgress)][-1] == 1.0


@npm
async def test_server_everything_over_stdio(tmp_path):
    """Tools, pictures, links, resources, prompts, roots and progress."""
    with opened(tmp_path, mcp([peer("mcp-server-everything"), "stdio"])) as session:
        await everything(session)


@npm
async def test_server_everything_over_http(tmp_path):
    """The same over streamable HTTP; a server that comes back is found again."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def start():
        return subprocess.Popen(
            [peer("mcp-server-everything"), "streamableHttp"],
            env={**environment(), "PORT": str(port)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    async def listening():
        for _ in range(200):
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", port)) == 0:
                    return
            await asyncio.sleep(0.1)

    server = start()
    try:
        await listening()
        source = mcp(f"http://127.0.0.1:{port}/mcp", name="everything")
        with opened(tmp_path, source) as session:
            await everything(session)
            server.kill()
            server.wait()
            lost = await call(session, "everything", "echo", message="hi")
            assert lost.status == "failed"
            server = start()
            await listening()
            for _ in range(20):
                again = await call(session, "everything", "echo", message="hi")
                if again.status == "done":
                    break
                await asyncio.sleep(1)
            assert again.value == "Echo: hi"
    finally:
        server.kill()
        server.wait()


@npm
async def test_server_filesystem(tmp_path):
    """Files of the folder that it was given, and no others.

    It is the workspace, which the server asks for and then takes instead.
    """
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "a.txt").write_text("words")
    source = mcp([peer("mcp-server-filesystem"), str(folder)], name="fs")
    with opened(tmp_path, source) as session:
        done = await call(session, "fs", "read_text_file", path=str(folder / "a.txt"))
        assert done.value == {"content": "words"}
        refused = await call(session, "fs", "read_text_file", path="/etc/passwd")
        assert "Access denied" in refused.error.message


@npm
def test_inspector_lists_and_calls_our_tools(tmp_path):
    """`mcp-inspector --cli` as a client of `neuraxis mcp serve`."""
    plugin = tmp_path / "plugin.py"
    plugin.write_text(PLUGIN)

    def inspect(*more):
        done = subprocess.run(
            [
                peer("mcp-inspector"),
                "--cli",
                sys.executable,
                *SERVE,
                "-p",
                str(plugin),
                *more,
            ],
            env=environment(),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=50,
            check=True,
        )
        return json.loads(done.stdout)

    tools = inspect("--method", "tools/list")["tools"]
    assert [tool["name"] for tool in tools] == ["add", "run_plan"]
    said = inspect(
        "--method",
        "tools/call",
        "--tool-name",
        "add",
        "--tool-arg",
        "a=2",
        "--tool-arg",
        "b=3",
    )
    assert said["structuredContent"] == {"sum": 5}


REVISIONS = ("2025-11-25", "2026-07-28")


def required(revision, side):
    """The scenarios that the suite requires of a side for a revision."""
    package = Path(PEERS) / "node_modules/@modelcontextprotocol/conformance"
    text = (package / "requirements" / f"{revision}.yaml").read_text()
    return yaml.safe_load(text)[side]


def conformance(*arguments, seconds=50):
    return subprocess.run(
        [peer("conformance"), *arguments, "--timeout", str(seconds * 1_000)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=seconds + 8,
        check=False,
    )


@npm
@pytest.mark.timeout(300)
@pytest.mark.parametrize("revision", REVISIONS)
def test_client_conformance(revision):
    """Every scenario that the official suite requires of a client."""
    client = f"{sys.executable} {HERE / 'conformance_client.py'}"

    def failed_output(scenario):
        chosen = ("--scenario", scenario, "--spec-version", revision)
        done = conformance("client", "--command", client, *chosen)
        output = done.stdout + done.stderr
        # a scenario of another revision is skipped, with a status of 0
        passed = done.returncode == 0 and "OVERALL: PASSED" in output
        return "" if passed else output[-6_000:]

    scenarios = required(revision, "client")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outputs = zip(scenarios, pool.map(failed_output, scenarios), strict=True)
    # a scenario has time limits of its own, and two run at once: one more try, alone
    failed = {name: failed_output(name) for name, output in outputs if output}
    failed = {name: output for name, output in failed.items() if output}
    assert not failed, "\n\n".join(f"{name}:\n{failed[name]}" for name in failed)
    assert len(scenarios) >= 18


@pytest.fixture(scope="module")
def our_server():
    server = subprocess.Popen(
        [sys.executable, str(HERE / "conformance_server.py")],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.communicate(timeout=20)


@npm
@pytest.mark.parametrize("revision", REVISIONS)
def test_server_conformance(our_server, revision):
    """Every scenario that the official suite requires of a server."""
    done = conformance("server", "--url", our_server, "--requirements", revision)
    _, _, summary = done.stdout.partition("=== SUMMARY ===")
    passed = re.findall(r"^✓ ([\w-]+): \d+ passed, 0 failed", summary, re.MULTILINE)
    assert set(required(revision, "server")) - set(passed) == set(), done.stdout
    assert done.returncode == 0


@fastmcp
async def test_fastmcp_as_a_server(tmp_path):
    """A server that was written with fastmcp, and its types."""
    server = tmp_path / "server.py"
    server.write_text(
        "from fastmcp import FastMCP\n"
        "app = FastMCP('shop')\n"
        "@app.tool\n"
        "def price(name: str, count: int = 1) -> dict[str, float]:\n"
        "    'The price of a thing.'\n"
        "    return {name: 1.5 * count}\n"
        "app.run(show_banner=False)\n"
    )
    with opened(tmp_path, mcp([FASTMCP, str(server)], name="shop")) as session:
        done = await call(session, "shop", "price", name="tea", count=2)
        assert done.value == {"tea": 3.0}
        wrong = await call(session, "shop", "price", name="tea", count="many")
        assert wrong.error.code == "invalid_param"


@fastmcp
def test_fastmcp_as_a_client(tmp_path):
    """fastmcp's client starts `neuraxis mcp serve` and calls a tool."""
    (tmp_path / "plugin.py").write_text(PLUGIN)
    program = tmp_path / "client.py"
    arguments = [*SERVE, "-p", str(tmp_path / "plugin.py")]
    path = os.pathsep.join(sys.path)
    program.write_text(
        "import asyncio\n"
        "from fastmcp import Client\n"
        "from fastmcp.client.transports import StdioTransport\n"
        "async def main():\n"
        f"    way = StdioTransport({sys.executable!r}, {arguments!r},\n"
        f"                         env={{'PYTHONPATH': {path!r}}})\n"
        "    async with Client(way) as client:\n"
        "        print([tool.name for tool in await client.list_tools()])\n"
        "        result = await client.call_tool('add', {'a': 2, 'b': 3})\n"
        "        print(result.structured_content)\n"
        "asyncio.run(main())\n"
    )
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [FASTMCP, str(program)],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.stdout.splitlines() == ["['add', 'run_plan']", "{'sum': 5}"], (
        done.stderr
    )
