"""The instruction text of the native dialect: plugins in, a short text out."""

from __future__ import annotations

from collections.abc import Sequence

from neuraxis.dialects.template import PLUGINS, own_text
from neuraxis.specs import PluginSpec


def prompt_text(plugins: Sequence[PluginSpec]) -> str:
    """Our own words, and what the authors of the plugins have to say."""
    before, _, after = own_text("native.md").partition(PLUGINS)
    notes = [
        f"About {plugin.name}:\n{plugin.prompt.strip()}"
        for plugin in plugins
        if plugin.prompt
    ]
    said = "\n\n".join(notes)
    return f"{before}{said}{after}".strip() + "\n"
