"""Plugin sources on the command line: load them, add one to settings."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuraxis.errors import ConfigError, ManifestError, ManifestProblem

FILE_NAME = "neuraxis.toml"
_LIST = re.compile(r"^plugins[ \t]*=[ \t]*\[", re.MULTILINE)
_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


def load_all(sources: Sequence[str]) -> tuple[list[Any], list[ManifestError]]:
    """Return the plugins of all sources, and the errors of others.

    MCP servers are started, asked and ended.
    """
    from neuraxis.plugins.loader import load_plugins
    from neuraxis.plugins.source import find_source

    plugins: list[Any] = []
    errors: list[ManifestError] = []
    for text in sources:
        try:
            source = find_source(text)
        except ConfigError as error:
            errors.append(_error(text, str(error)))
            continue
        if source is None:
            loaded, wrong = load_plugins([text])
            plugins += loaded
            errors += wrong
            continue
        try:
            found = source.open_plugins(Path.cwd())
        finally:
            source.close_plugins()
        for plugin in found:
            if plugin.spec.listed:
                plugins.append(plugin)
            else:
                errors.append(ManifestError(plugin.problems))
    return plugins, errors


def _error(where: str, text: str) -> ManifestError:
    return ManifestError((ManifestProblem(file=where, line=0, message=text),))


def add_to_settings(source: str, folder: Path | None = None) -> Path:
    """Add a source to `plugins` of the folder's `neuraxis.toml`; its rest stays.

    Raises:
        ConfigError: the file is no TOML, or writes its list in another way.
    """
    file = (folder or Path.cwd()) / FILE_NAME
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: {error}") from None
    listed: Any = tree.get("plugins", [])
    if source in listed:
        return file
    written = json.dumps(source, ensure_ascii=False)
    found = _LIST.search(text)
    if found is not None:
        comma = ", " if listed else ""
        new = f"{text[: found.end()]}{written}{comma}{text[found.end() :]}"
    elif "plugins" in tree:
        raise ConfigError(f"{file}: plugins: expected a list; add {written} to it")
    else:
        table = _TABLE.search(text)  # keys of no table stand before all tables
        at = table.start() if table else len(text)
        before = text[:at]
        gap = "" if not before or before.endswith("\n") else "\n"
        new = f"{before}{gap}plugins = [{written}]\n{text[at:]}"
    if tomllib.loads(new).get("plugins") != [source, *listed]:
        raise ConfigError(f"{file}: plugins: add {written} to it by hand")
    file.write_text(new, encoding="utf-8")
    return file
