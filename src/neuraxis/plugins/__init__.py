"""Plugins: load manifests and Python functions as commands that run.

Names are imported on first access: a session of Python functions never imports YAML.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuraxis.plugins.context import Context
    from neuraxis.plugins.functions.command import command, plugin_from
    from neuraxis.plugins.loader import builtin_names, load_plugin, load_plugins
    from neuraxis.plugins.manifest.load import load_manifest, parse_manifest
    from neuraxis.plugins.manifest.write import to_yaml
    from neuraxis.plugins.registry import Command, Plugin, Registry

_WHERE = {
    "Command": "neuraxis.plugins.registry",
    "Context": "neuraxis.plugins.context",
    "Plugin": "neuraxis.plugins.registry",
    "Registry": "neuraxis.plugins.registry",
    "builtin_names": "neuraxis.plugins.loader",
    "command": "neuraxis.plugins.functions.command",
    "load_manifest": "neuraxis.plugins.manifest.load",
    "load_plugin": "neuraxis.plugins.loader",
    "load_plugins": "neuraxis.plugins.loader",
    "parse_manifest": "neuraxis.plugins.manifest.load",
    "plugin_from": "neuraxis.plugins.functions.command",
    "to_yaml": "neuraxis.plugins.manifest.write",
}

__all__ = [
    "Command",
    "Context",
    "Plugin",
    "Registry",
    "builtin_names",
    "command",
    "load_manifest",
    "load_plugin",
    "load_plugins",
    "parse_manifest",
    "plugin_from",
    "to_yaml",
]


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'neuraxis.plugins' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(where), name)
    return value
