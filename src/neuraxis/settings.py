"""Settings in one order: command line, `NEURAXIS_*`, the project's file, the user's.

`load` reads the two TOML files and the environment into flat dotted keys
(`search.provider`, `openai.base_url`) and remembers where each value came from, so
that `doctor` can show it. Secrets are never stored here: a setting names the
environment variable that holds one (`openai.key_env = "OPENAI_API_KEY"`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import cast

from neuraxis.errors import ConfigError
from neuraxis.later import dataclass
from neuraxis.specs import Json

FILE_NAME = "neuraxis.toml"

GUARDS = ("sandbox", "policy", "secrets")
"""What a project's file may not set: it may come from anybody, or be written by a
script, and these hold back what such a one may do."""
GUARDED = ("search.key_env", "search.google_url")
"""Nor these: which variable's value is sent, and where to."""
INSIDE = ("workspace", "search.folder")
"""Folders that a project's file may only set to one of the project's own."""


_NO_SETTINGS = {
    f"NEURAXIS_{name}"
    for name in ("HOME", "TRACEBACK", "UPDATE_GOLDEN", "SANDBOX", "SANDBOX_IMAGE")
}
"""Variables of ours that are read where they are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value and where it came from: `command line`, a variable, or a file."""

    value: Json
    source: str
    of_project: bool = False
    """Whether it stands in a project's file, which may come from anybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings; a key that was never set is absent."""

    values: Mapping[str, Setting] = field(default_factory=dict[str, Setting])

    def get(self, key: str, default: Json = None) -> Json:
        """The value of a dotted key, or `default`."""
        found = self.values.get(key)
        return default if found is None else found.value

    def is_of_project(self, key: str) -> bool:
        """Whether the value of a dotted key stands in a project's file."""
        found = self.values.get(key)
        return found is not None and found.of_project

    def section(self, prefix: str) -> dict[str, Json]:
        """All values below `prefix.`, with the prefix taken off."""
        start = prefix + "."
        return {
            key[len(start) :]: setting.value
            for key, setting in self.values.items()
            if key.startswith(start)
        }

    def override(self, values: Mapping[str, Json], source: str) -> Settings:
        """A copy in which `values` (those that are not None) win."""
        new = {
            key: Setting(value=value, source=source)
            for key, value in values.items()
            if value is not None
        }
        return Settings(values={**self.values, **new})


def user_dir(kind: str, environ: Mapping[str, str] | None = None) -> Path:
    """The user's folder for `config`, `data` or `cache` (XDG; NEURAXIS_HOME wins)."""
    env = os.environ if environ is None else environ
    if home := env.get("NEURAXIS_HOME"):
        return Path(home) / kind
    variable, fallback = {
        "config": ("XDG_CONFIG_HOME", ".config"),
        "data": ("XDG_DATA_HOME", ".local/share"),
        "cache": ("XDG_CACHE_HOME", ".cache"),
    }[kind]
    base = env.get(variable)
    root = Path(base) if base else Path(env.get("HOME", "~")).expanduser() / fallback
    return root / "neuraxis"


def load(
    project: Path | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Settings of the user's file, then the project's, then the environment.

    `NEURAXIS_SEARCH__PROVIDER` sets `search.provider`: two underscores are a dot.

    Args:
        project: the folder of the project's file, usually the current one; None: no
            such file is read.
        environ: default: the process' own.

    Raises:
        ConfigError: a file is not TOML, cannot be read, or the project's file sets
            what it may not.
    """
    env = os.environ if environ is None else environ
    users = user_dir("config", env) / FILE_NAME
    found = _read(users)
    if project is not None and not _is_same(project / FILE_NAME, users):
        file = project / FILE_NAME
        own = _read(file, of_project=True)
        for key, setting in own.items():
            if key in GUARDED or key.partition(".")[0] in GUARDS:
                raise ConfigError(
                    f"{file}: {key} may not be set in a project's file, since it holds "
                    f"back what the project may do; {_elsewhere(key, users)}"
                )
            if key in INSIDE and not _is_inside(setting.value, project):
                raise ConfigError(
                    f"{file}: {key}: expected a folder inside of {project}, got "
                    f"{setting.value!r}; for another one {_elsewhere(key, users)}"
                )
        found.update(own)
    for name, text in env.items():
        if name.startswith("NEURAXIS_SECRET_"):
            continue  # a secret's value is no setting (neuraxis.secrets reads it)
        if name.startswith("NEURAXIS_") and name not in _NO_SETTINGS:
            key = name.removeprefix("NEURAXIS_").lower().replace("__", ".")
            found[key] = Setting(value=text, source=f"environment variable {name}")
    return Settings(values=found)


def _elsewhere(key: str, users: Path) -> str:
    variable = f"NEURAXIS_{key.upper().replace('.', '__')}"
    return f"set it in {users} or by an environment variable {variable}"


def _is_same(file: Path, users: Path) -> bool:
    """Whether the project's file is the user's own: they stand in its folder."""
    try:
        return file.samefile(users)
    except OSError:
        return False


def _is_inside(value: Json, project: Path) -> bool:
    """Whether a folder, links followed, is the project's or one in it."""
    if not isinstance(value, str) or value.startswith("~"):
        return False
    try:
        return (project / value).resolve().is_relative_to(project.resolve())
    except (OSError, ValueError, RuntimeError):
        return False


def _read(file: Path, *, of_project: bool = False) -> dict[str, Setting]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        why = (
            getattr(error, "strerror", None) or "it is no UTF-8 text; save it as UTF-8"
        )
        raise ConfigError(f"{file}: cannot be read: {why}") from error
    import tomllib  # most folders have no such file

    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{file}: not valid TOML: {error}; a text stands in quotes, as in "
            'model = "local:"'
        ) from error
    except RecursionError:
        raise ConfigError(f"{file}: nested too deep for settings") from None
    flat: dict[str, Setting] = {}
    plain = Setting(value=None, source=str(file), of_project=of_project)
    _flatten(tree, "", plain, flat)
    return flat


def _flatten(
    tree: Mapping[str, Json], prefix: str, plain: Setting, into: dict[str, Setting]
) -> None:
    for key, value in tree.items():
        if isinstance(value, dict):
            _flatten(cast("dict[str, Json]", value), f"{prefix}{key}.", plain, into)
        else:
            into[prefix + key] = Setting(
                value=value, source=plain.source, of_project=plain.of_project
            )
