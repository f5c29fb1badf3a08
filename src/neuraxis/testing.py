"""Test doubles and checks for people who write plugins: no model, no network.

from neuraxis.testing import call, ScriptedModel
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from neuraxis.messages import Call, Result
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy import Policy
from neuraxis.session import Session
from neuraxis.settings import Settings
from neuraxis.specs import Json

__all__ = ["ScriptedModel", "call"]


def call(
    plugin: Any,
    command: str,
    arguments: Json = None,
    *,
    workspace: Path | str = ".",
    policy: Policy | None = None,
    settings: Settings | None = None,
) -> Result:
    """Run one command of a plugin as a model's call would: checked, decided, kept.

    Args:
        plugin: what a `Session` takes: a function, an object, a folder, a name.
        command: the command's name, or a tool name.
        arguments: as a model writes them; default: none.
        workspace: the folder that commands may write to.
        policy: default: everything may run.
        settings: default: none, so that no test depends on the machine's.
    """
    with Session(
        model=ScriptedModel([]),
        plugins=[plugin],
        workspace=workspace,
        policy=policy,
        settings=settings or Settings(),
    ) as session:
        found = session.registry.plugins[0].spec.name
        known = session.registry.plugins[0].commands
        asked = Call(
            id="a1",
            plugin=found if command in known else None,
            command=command,
            arguments={} if arguments is None else arguments,
        )
        return asyncio.run(session.call(asked))
