"""A dialect's reading of text around a call of the tool `look`."""

from __future__ import annotations

import json

from neuraxis.dialects import find_dialect
from neuraxis.messages import Completion, Reply
from neuraxis.specs import CommandSpec, PluginSpec

MESSAGE = {
    "receiver": {"role": "plugin", "name": "p"},
    "content_type": "command",
    "content": {"command": "look", "param": {"query": "x"}},
}
CALLS = {
    "intents": json.dumps({"tool": "look", "query": "x"}),
    "envelope_v1": json.dumps(MESSAGE),
    "envelope_v2": json.dumps(MESSAGE),
    "native": json.dumps({"name": "look", "arguments": {"query": "x"}}),
}


def read(name: str, text: str) -> Reply:
    """The reply of dialect `name`; CALL stands for a call in its form."""
    dialect = find_dialect(name)
    plugin = PluginSpec(name="p", commands=(CommandSpec(name="look"),))
    names = {"look": ("p", "look")}
    dialect.prompt([plugin], names)
    dialect.native_tools([plugin], names)
    text = text.replace("CALL", CALLS.get(name, ""))
    return dialect.decode(Completion(text=text, finish_reason="stop"), next_id=str)
