"""Lock file: the accepted description of each plugin.

It records everything that a model is shown of a plugin and that is enforced. A plugin
whose texts or schemas have changed is refused until a user has reviewed the change: a
description is an instruction to the model, and may come over the network.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec

from neuraxis.errors import ConfigError, ManifestError, ManifestProblem
from neuraxis.formatting import identifier, quote, sha256
from neuraxis.specs import CommandSpec, Json, PluginSpec

FILE_NAME = "neuraxis.lock.json"
VERSION = 2
_EARLIER = re.compile(r"_neuraxis_plugin_\w{0,255}?_[0-9a-f]{12}")
"""Module of a plugin's file in earlier lock files, which held its place."""
_TAKEN = "it has the name of a built-in plugin, which it would stand for"
_SHOWN = ("parameter", "parameters", "response")
Locked = Mapping[str, Mapping[str, Json]]
"""Entries of a lock file by plugin name, each with `digest` and `said`."""


def facts(spec: PluginSpec) -> dict[str, Json]:
    """Return all that a model sees and its calls are checked by."""
    return _plain(
        {
            "name": spec.name,
            "listed": spec.listed,
            "id": spec.id,
            "title": spec.title,
            "description_for_human": spec.description_for_human,
            "description": spec.description,
            "description_for_model": spec.description_for_model,
            "summary": spec.summary,
            "prompt": spec.prompt,
            "examples": [msgspec.to_builtins(example) for example in spec.examples],
            "commands": {command.name: _command(command) for command in spec.commands},
        }
    )


def _command(spec: CommandSpec) -> dict[str, Json]:
    effects: dict[str, Json] = msgspec.to_builtins(spec.effects)
    if not spec.effects.needs_approval:
        del effects["needs_approval"]  # younger than some lock files
    return {
        "description": spec.description,
        "tool_name": spec.tool_name,
        "parameters": spec.parameters,
        "response": spec.response,
        "effects": effects,
        "examples": [msgspec.to_builtins(example) for example in spec.examples],
        "example_output": spec.example_output,
        # Some dialects, also third-party ones, show the manifest's own text.
        "raw": {key: spec.raw[key] for key in _SHOWN if key in spec.raw},
    }


def _plain(value: Json) -> Json:
    return json.loads(json.dumps(value, default=str))


def digest(facts: Json) -> str:
    """Return the sha256 of a plugin's description, independent of key order."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode())


def read_lock(file: Path, *, replacing: Sequence[str] = ()) -> Locked | None:
    """Return the plugins of a lock file; None if missing.

    Entries named in `replacing` will be replaced, so they need not be valid.

    Raises:
        ConfigError: the file is no lock file, or one of a later version.
    """
    try:
        tree: Json = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{file}: cannot be read as a lock file: {error}; move it away and write "
            "it anew with `neuraxis plugins lock`"
        ) from error
    fields = cast("dict[str, Json]", tree) if isinstance(tree, dict) else {}
    plugins: Json = fields.get("plugins")
    is_whole = isinstance(plugins, dict) and all(
        isinstance(item, dict) for item in cast("dict[str, Json]", plugins).values()
    )
    if fields.get("version") != VERSION or not is_whole:
        raise ConfigError(
            f"{file}: expected a lock file of version {VERSION}; remove it and run "
            "`neuraxis plugins lock`"
        )
    locked = cast("dict[str, dict[str, Json]]", plugins)
    for name, entry in locked.items():
        if name not in replacing and digest(entry.get("said")) != entry.get("digest"):
            raise ConfigError(
                f"{file}: the entry of {name!r} does not fit its digest; somebody "
                f"changed it. Run `neuraxis plugins lock --accept {name}`"
            )
    return locked


def write_lock(file: Path, plugins: Locked) -> None:
    """Write the lock file atomically."""
    tree = {"version": VERSION, "plugins": dict(plugins)}
    beside = file.with_name(file.name + ".new")
    text = json.dumps(tree, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, file)


def entry(spec: PluginSpec) -> dict[str, Json]:
    """Return the lock file entry of a plugin."""
    described = facts(spec)
    return {"digest": digest(described), "said": described}


def changes(locked: Mapping[str, Json], spec: PluginSpec) -> list[str]:
    """Describe each change of a plugin since it was accepted."""
    now = entry(spec)
    if locked.get("digest") == now["digest"]:
        return []
    lines: list[str] = []
    before = _with_public_names(locked.get("said"), identifier(spec.name))
    if digest(before) == now["digest"]:
        return []
    _compare(before, now["said"], "", lines)
    # A change of text and schema is reported once, by the schema.
    plain = [line for line in lines if ".raw" not in line.partition(":")[0]]
    return plain or lines


def _with_public_names(facts: Json, plugin: str) -> Json:
    """Return a description in which the plugin's classes have today's names."""
    return json.loads(_EARLIER.sub(plugin, json.dumps(facts)))


def _compare(before: Json, after: Json, where: str, lines: list[str]) -> None:
    if len(lines) >= 20:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("dict[str, Json]", before), cast("dict[str, Json]", after)
        for key in sorted({*old, *new}):
            path = f"{where}.{key}" if where else key
            if key not in old:
                lines.append(f"{path}: new: {quote(new[key])}")
            elif key not in new:
                lines.append(f"{path}: gone: {quote(old[key])}")
            else:
                _compare(old[key], new[key], path, lines)
        return
    if digest(before) != digest(after):  # `==` takes true for 1
        lines.append(f"{where}: was {_differing(before, after)}")


def _differing(before: Json, after: Json) -> str:
    """Return both values from their first difference."""
    if not (isinstance(before, str) and isinstance(after, str)):
        return f"{quote(before)}, is {quote(after)}"
    pairs = enumerate(zip(before, after, strict=False))
    shorter = min(len(before), len(after))
    same = next((index for index, (old, new) in pairs if old != new), shorter)
    start = max(0, same - 20)
    cut = "…" if start else ""
    return f"{quote(cut + before[start:])}, is {quote(cut + after[start:])}"


def check(file: Path, specs: Iterable[PluginSpec]) -> None:
    """Refuse plugins that differ from the lock file, if there is one.

    Raises:
        ManifestError: a plugin has changed or was never accepted; lists the changes.
        ConfigError: the file is no lock file.
    """
    locked = read_lock(file)
    if locked is None:
        return
    problems: list[ManifestProblem] = []
    for spec in specs:
        locked_entry = locked.get(spec.name)
        if locked_entry is None:
            found = f"is not in {file.name}. To accept it"
            problems.append(_problem(spec, found))
            continue
        for line in changes(locked_entry, spec):
            found = (
                f"is not as it was accepted in {file.name}: {line}. If that is right"
            )
            problems.append(_problem(spec, found))
    if problems:
        raise ManifestError(tuple(problems))


def _problem(spec: PluginSpec, found: str) -> ManifestProblem:
    import shlex  # Imported on first use, for the error message only.

    message = (
        f"the plugin {spec.name!r} {found}, run: neuraxis plugins lock "
        # Named by its path: the name alone may not be a configured plugin.
        f"{shlex.quote(spec.source or spec.name)} --accept {shlex.quote(spec.name)}"
    )
    return ManifestProblem(file=spec.source or spec.name, message=message)


def accept(
    locked: Locked | None,
    specs: Sequence[PluginSpec],
    names: Sequence[str],
    *,
    taken: Collection[str] = (),
) -> tuple[dict[str, Mapping[str, Json]], dict[str, list[str]]]:
    """Return the lock file with new plugins and `names`; list other changes.

    A new plugin with a `taken` name is accepted by its name only.
    """
    accepted: dict[str, Mapping[str, Json]] = dict(locked or {})
    refused: dict[str, list[str]] = {}
    for spec in specs:
        locked_entry = accepted.get(spec.name)
        if locked_entry is not None:
            lines = changes(locked_entry, spec)
        else:
            lines = [_TAKEN] if spec.name in taken else []
        if lines and spec.name not in names:
            refused[spec.name] = lines
        else:
            accepted[spec.name] = entry(spec)
    return accepted, refused
