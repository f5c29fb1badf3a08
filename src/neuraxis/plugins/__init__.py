"""Plugins: manifests and Python functions in; specs, and commands that run, out."""

from neuraxis.plugins.context import Context
from neuraxis.plugins.function import command, plugin_from
from neuraxis.plugins.loader import builtin_names, load_plugin, load_plugins
from neuraxis.plugins.manifest import load_manifest, parse_manifest
from neuraxis.plugins.registry import Command, Plugin, Registry
from neuraxis.plugins.search import Hit, Index, build_index, search
from neuraxis.plugins.yaml_text import to_yaml

__all__ = [
    "Command",
    "Context",
    "Hit",
    "Index",
    "Plugin",
    "Registry",
    "build_index",
    "builtin_names",
    "command",
    "load_manifest",
    "load_plugin",
    "load_plugins",
    "parse_manifest",
    "plugin_from",
    "search",
    "to_yaml",
]
