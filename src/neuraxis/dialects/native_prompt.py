"""The instruction text of the native dialect: plugins in, a short text out."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from neuraxis.dialects.template import PLUGINS
from neuraxis.specs import PluginSpec


def prompt_text(plugins: Sequence[PluginSpec]) -> str:
    """Our own words, and what the authors of the plugins have to say."""
    file = files("neuraxis.dialects") / "prompts" / "native.md"
    before, _, after = file.read_text(encoding="utf-8").partition(PLUGINS)
    notes = [
        f"About {plugin.name}:\n{plugin.prompt.strip()}"
        for plugin in plugins
        if plugin.prompt
    ]
    said = "\n\n".join(notes)
    return f"{before}{said}{after}".strip() + "\n"
