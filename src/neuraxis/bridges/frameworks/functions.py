"""OpenAI function definitions, as JSON or in a file, as a plugin."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, cast

from neuraxis.bridges.frameworks.incoming import EffectsOf, Tool, plugin_of
from neuraxis.errors import ConfigError
from neuraxis.parsing.json_access import as_map
from neuraxis.plugins.registry import Plugin
from neuraxis.specs import Json

Dispatch = Callable[[str, dict[str, Any]], Any]
"""Runs the function of a name with these arguments."""


def from_openai(
    source: str | Path | Sequence[Mapping[str, Json]],
    run: Mapping[str, Callable[..., Any]] | Dispatch | None = None,
    *,
    name: str = "functions",
    effects: EffectsOf = "once",
) -> Plugin:
    """Return the plugin of function definitions for OpenAI-compatible servers.

    Args:
        source: the definitions, or a JSON file with them: those of chat completions,
            of the Responses API, or bare `{name, description, parameters}`.
        run: the functions by name, or one that takes name and arguments; None: there
            is a description but no code.
        name: the plugin's name.
        effects: what the functions may change.

    Raises:
        ConfigError: the file is not JSON, or a definition has no name.
    """
    place, definitions = _read(source)
    return plugin_of(
        name,
        [_tool(item, run, place) for item in definitions],
        source=place,
        effects=effects,
    )


def _read(source: Any) -> tuple[str, list[Json]]:
    if not isinstance(source, str | Path):
        return "functions", list(source)
    try:
        tree: Json = json.loads(Path(source).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: cannot be read as JSON: {error}") from None
    if isinstance(tree, dict):
        document = cast("dict[str, Json]", tree)
        tree = document.get("tools") or document.get("functions") or [document]
    if not isinstance(tree, list):
        raise ConfigError(f"{source}: expected a list of function definitions")
    return str(source), cast("list[Json]", tree)


def _tool(item: Json, run: Any, place: str) -> Tool:
    fields = as_map(item)
    function = as_map(fields.get("function", fields))
    name: Json = function.get("name")
    if not isinstance(name, str):
        excerpt = f"{item!r}"[:120]
        raise ConfigError(f"{place}: expected a function with a name, got {excerpt}")
    code: Any = None
    if isinstance(run, Mapping):
        code = cast("Mapping[str, Any]", run).get(name)
    elif run is not None:
        code = partial(_dispatched, run, name)
    awaited: Any = code if isinstance(run, Mapping) else run
    return Tool(
        name=name,
        description=str(function.get("description") or ""),
        parameters=as_map(function.get("parameters")),
        run=code,
        is_async=iscoroutinefunction(awaited),
    )


def _dispatched(run: Dispatch, name: str, /, **arguments: Any) -> Any:
    return run(name, arguments)
