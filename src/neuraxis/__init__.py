"""Neuraxis: a runtime between a language model and everything it can call.

Names are imported on first access, so that `import neuraxis` stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuraxis.errors import (
        CommandError,
        ConfigError,
        ModelError,
        NeuraxisError,
        NoAnswer,
        NoOpenQuestion,
        NoSuchSession,
        SessionBusy,
        StorageError,
    )
    from neuraxis.events import Event
    from neuraxis.execution.budget import Budget
    from neuraxis.messages import Call, CallError, Result
    from neuraxis.plugins.context import Context
    from neuraxis.plugins.functions.command import command, plugin_from
    from neuraxis.policy.rules import Policy, Rule
    from neuraxis.prose import Prose
    from neuraxis.references.asset_ref import AssetRef
    from neuraxis.session.agent import agent
    from neuraxis.session.answer import Answer
    from neuraxis.session.batch import run_many
    from neuraxis.session.options import Options
    from neuraxis.session.past.delete import delete_session
    from neuraxis.session.past.waiting import Question, list_sessions, open_questions
    from neuraxis.session.run import Run
    from neuraxis.session.session import Session
    from neuraxis.specs import CommandSpec, Effects, PluginSpec

__version__ = "0.1.0"

_WHERE = {
    "Answer": "neuraxis.session.answer",
    "AssetRef": "neuraxis.references.asset_ref",
    "Budget": "neuraxis.execution.budget",
    "Call": "neuraxis.messages",
    "CallError": "neuraxis.messages",
    "CommandError": "neuraxis.errors",
    "CommandSpec": "neuraxis.specs",
    "ConfigError": "neuraxis.errors",
    "Context": "neuraxis.plugins.context",
    "Effects": "neuraxis.specs",
    "Event": "neuraxis.events",
    "ModelError": "neuraxis.errors",
    "NeuraxisError": "neuraxis.errors",
    "NoAnswer": "neuraxis.errors",
    "NoOpenQuestion": "neuraxis.errors",
    "NoSuchSession": "neuraxis.errors",
    "Options": "neuraxis.session.options",
    "PluginSpec": "neuraxis.specs",
    "Policy": "neuraxis.policy.rules",
    "Prose": "neuraxis.prose",
    "Question": "neuraxis.session.past.waiting",
    "Result": "neuraxis.messages",
    "Rule": "neuraxis.policy.rules",
    "Run": "neuraxis.session.run",
    "Session": "neuraxis.session.session",
    "SessionBusy": "neuraxis.errors",
    "StorageError": "neuraxis.errors",
    "agent": "neuraxis.session.agent",
    "command": "neuraxis.plugins.functions.command",
    "delete_session": "neuraxis.session.past.delete",
    "list_sessions": "neuraxis.session.past.waiting",
    "open_questions": "neuraxis.session.past.waiting",
    "plugin_from": "neuraxis.plugins.functions.command",
    "run_many": "neuraxis.session.batch",
}

__all__ = [
    "Answer",
    "AssetRef",
    "Budget",
    "Call",
    "CallError",
    "CommandError",
    "CommandSpec",
    "ConfigError",
    "Context",
    "Effects",
    "Event",
    "ModelError",
    "NeuraxisError",
    "NoAnswer",
    "NoOpenQuestion",
    "NoSuchSession",
    "Options",
    "PluginSpec",
    "Policy",
    "Prose",
    "Question",
    "Result",
    "Rule",
    "Run",
    "Session",
    "SessionBusy",
    "StorageError",
    "agent",
    "command",
    "delete_session",
    "list_sessions",
    "open_questions",
    "plugin_from",
    "run_many",
]

_ELSEWHERE = {
    "Agent": "write Session(…), or agent(…) for one that another model asks",
    "ModelRetry": "from neuraxis import CommandError",
    "RunContext": "from neuraxis import Context",
    "ScriptedModel": "from neuraxis.testing import ScriptedModel",
    "Settings": "from neuraxis.settings import Settings",
    "function_tool": "write @command, or plugins=[function]",
    "tool": "write @command, or plugins=[function]",
}
"""What people who come from other packages import, and what to write."""


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None and name in _ELSEWHERE:
        raise ImportError(f"neuraxis has no {name!r}: {_ELSEWHERE[name]}")
    if where is None:
        raise AttributeError(f"module 'neuraxis' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(where), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
