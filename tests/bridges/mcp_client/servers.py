"""The hostile server, and calls of it."""

import sys
import time
from pathlib import Path

from neuraxis import Call, Session
from neuraxis.bridges import mcp
from neuraxis.models.scripted import ScriptedModel

SERVER = Path(__file__).parents[1] / "hostile_server.py"


def hostile(mode, **options):
    return mcp(
        {"command": sys.executable, "args": [str(SERVER), mode]},
        name="hostile",
        **options,
    )


def opened(tmp_path, *plugins, **options):
    return Session(
        model=ScriptedModel([]), plugins=plugins, workspace=tmp_path / "w", **options
    )


async def say(session, watch=None, command="say", **arguments):
    call = Call(
        id=f"c{time.monotonic_ns()}",
        plugin="hostile",
        command=command,
        arguments=arguments or {"text": "hello"},
    )
    return await session.call(call, watch)
