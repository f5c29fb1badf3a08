"""Select the commands that fit into a prompt.

The model finds the others with `find_commands`; from then on they are shown. Commands
that are not shown cannot be called (rule B4).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from neuraxis.plugins.registry import Command, Plugin, Registry
from neuraxis.plugins.search.index import entry_of
from neuraxis.plugins.search.store import Store
from neuraxis.plugins.search.vectors import CANDIDATES, Embed, Vectors
from neuraxis.specs import CommandSpec, Effects, Json, PluginSpec

PLUGIN, COMMAND = "command_search", "find_commands"
MOST_FOUND = 8
"""Commands that one search returns."""
MOST_CHOSEN = 40
"""Commands that are chosen for one request, where the budget has room for them."""
_SAID = 4
"""Earlier messages of the conversation that a choice looks at."""
Key = tuple[str, str]


class Shortlist:
    """Commands that a prompt shows, within a budget of characters.

    Args:
        registry: gets the plugin `command_search`, and shows the selected commands.
        budget: maximum characters of descriptions and schemas in a prompt.
        always_on: patterns of plugins whose commands are always shown.
        cache: the file that stores the index; None: it is not stored.
        embed: returns vectors for texts, to search by meaning as well as by words.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        budget: int,
        always_on: Sequence[str] = (),
        cache: Path | None = None,
        embed: Embed | None = None,
    ) -> None:
        self._registry = registry
        self._budget = budget
        self._always_on = (*always_on, PLUGIN)
        self._store = Store(cache)
        self._vectors = None if embed is None else Vectors(embed)
        self._sizes: dict[Key, int] = {}
        self._recent: dict[Key, None] = {}
        """Found or chosen, the newest last."""
        self._ready = False

    def choose(
        self, request: str, messages: Sequence[str] = (), planned: Iterable[Key] = ()
    ) -> bool:
        """Show the commands that match a request best; False: all fit.

        Args:
            request: the user's own words.
            messages: the earlier messages, the newest last.
            planned: commands of a resumed plan, shown before all others.
        """
        if not self.prepare():
            return False
        before = " ".join(text[:500] for text in messages[-_SAID:])
        chosen = [*self._search(request, MOST_CHOSEN)]
        if before:
            chosen += self._search(f"{request} {before}", MOST_CHOSEN // 4)
        self._show([*reversed(chosen), *planned])
        return True

    def find(self, query: str) -> list[dict[str, Json]]:
        """Return the commands that fit the words, and show them."""
        keys = self._search(query, MOST_FOUND)
        self._show(reversed(keys))
        return [self._described(self._registry.command(*key)) for key in keys]

    def _described(self, command: Command) -> dict[str, Json]:
        text = " ".join(command.spec.description.split())
        return {
            "tool": self._registry.tool_name(command),
            "description": text if len(text) <= 200 else f"{text[:199]}…",
        }

    def prepare(self) -> bool:
        """Add the search to the registry; False: everything has room."""
        if self._ready:
            return True
        commands = {
            (plugin.spec.name, command.spec.name): command
            for plugin in self._registry.listed
            for command in plugin.commands.values()
        }
        self._sizes = {key: _size(item.spec) for key, item in commands.items()}
        if sum(self._sizes.values()) <= self._budget:
            return False
        if PLUGIN not in {plugin.spec.name for plugin in self._registry.plugins}:
            self._registry.add(_plugin(self))
            self._sizes[PLUGIN, COMMAND] = 300
        entries = [
            entry_of("\n".join(key), item.plugin, item.spec)
            for key, item in commands.items()
        ]
        self._store.update(entries)
        if self._vectors is not None:
            self._vectors.update(entries)
        self._ready = True
        return True

    def _search(self, query: str, most: int) -> list[Key]:
        vectors = self._vectors
        hits = self._store.index.find(query, CANDIDATES if vectors else most)
        if vectors is not None:
            hits = vectors.fused(query, hits, most)
        keys = [tuple(hit.key.split("\n", 1)) for hit in hits]
        return [(key[0], key[1]) for key in keys if len(key) == 2]

    def _show(self, keys: Iterable[Key]) -> None:
        """Show these commands, and earlier ones if they fit."""
        for key in keys:
            self._recent.pop(key, None)
            self._recent[key] = None
        shown = {key for key in self._sizes if self._is_always_on(key[0])}
        room = self._budget - sum(self._sizes[key] for key in shown)
        for key in reversed(list(self._recent)):
            size = self._sizes.get(key, 0)
            if key in shown or size > room:
                continue
            room -= size
            shown.add(key)
        self._recent = {key: None for key in self._recent if key in shown}
        self._registry.show(shown)

    def _is_always_on(self, plugin: str) -> bool:
        return any(fnmatchcase(plugin, pattern) for pattern in self._always_on)


def _size(spec: CommandSpec) -> int:
    schema = json.dumps(dict(spec.parameters), ensure_ascii=False, default=str)
    return len(spec.name) + len(spec.description) + len(schema)


def _plugin(shortlist: Shortlist) -> Plugin:
    """Return the plugin with which a model searches for commands."""
    command = CommandSpec(
        name=COMMAND,
        description=(
            "Find commands by words. Only some of them are listed here; use this "
            "before saying that something cannot be done. What is found can be called "
            "from the next reply on."
        ),
        parameters={
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 2,
                    "maxLength": 500,
                    "description": "what the command is to do, in a few words",
                    "examples": ["convert a currency"],
                }
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        response={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "tool": {"type": "string"},
                    "description": {"type": "string"},
                },
            },
        },
        effects=Effects(
            kind="read", destructive=False, open_world=False, declared=True
        ),
        blocking=False,
    )
    spec = PluginSpec(
        name=PLUGIN,
        title=PLUGIN,
        description="Finds commands that are not listed.",
        commands=(command,),
        generation="python",
        source="neuraxis:search",
    )
    run = Command(plugin=spec, spec=command, run=shortlist.find)
    return Plugin(spec=spec, commands={COMMAND: run})
