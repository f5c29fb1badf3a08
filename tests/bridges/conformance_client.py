"""The client that the official conformance suite starts: a session with one MCP server.

Run as `python conformance_client.py URL`; the scenario stands in the environment.
"""

import asyncio
import json
import logging
import os
import sys
import tempfile
from pathlib import Path

import httpx2

from neuraxis import Call, Session
from neuraxis.bridges import mcp
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import EVERYTHING

SAMPLES = {"integer": 5, "number": 5, "string": "text", "boolean": True}


def sample(schema):
    """The smallest arguments that a schema takes."""
    properties = schema.get("properties", {})
    return {
        name: SAMPLES.get(properties.get(name, {}).get("type"), "text")
        for name in schema.get("required", properties)
    }


async def sign_in(url):
    """A browser that says yes at once."""
    async with httpx2.AsyncClient() as browser:
        answer = await browser.get(url)
    return answer.headers["location"]


def configured(url, given):
    """The server's configuration, as a person would write it for this scenario."""
    server = {"url": url}
    if os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith("auth/"):
        os.environ["NEURAXIS_SECRET_CLIENT"] = given.get("client_secret", "unused")
        server["oauth"] = {
            "client_id": given.get("client_id", ""),
            "client_secret": "secret://CLIENT" if "client_secret" in given else "",
            "client_metadata_url": "https://conformance-test.local/client-metadata.json",
        }
    return server


async def main(url):
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    browser = None if "client-credentials" in scenario else sign_in
    source = mcp(
        configured(url, given), name="peer", answer=lambda _: True, on_sign_in=browser
    )
    workspace = Path(tempfile.mkdtemp())
    os.environ["XDG_DATA_HOME"] = str(workspace / "data")
    session = await asyncio.to_thread(
        Session,
        model=ScriptedModel([]),
        plugins=[source],
        workspace=workspace / "w",
        policy=EVERYTHING,
    )
    with session:
        (plugin,) = session.registry.plugins
        print(plugin.spec.name, list(plugin.commands), source.problems)
        wanted = [
            (call["name"], call.get("arguments", {}))
            for call in given.get("toolCalls", [])
        ] or [(spec.name, sample(spec.parameters)) for spec in plugin.spec.commands]
        for number, (name, arguments) in enumerate(wanted):
            call = Call(
                id=f"c{number}", plugin="peer", command=name, arguments=arguments
            )
            result = await session.call(call)
            print(name, result.status, str(result.value)[:200], result.error)
        return 0 if plugin.spec.listed else 1


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    sys.exit(asyncio.run(main(sys.argv[-1])))
