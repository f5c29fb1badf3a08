"""Settings in one order: command line, `NEURAXIS_*`, the project's file, the user's.

`load` reads the two TOML files and the environment into flat dotted keys
(`search.provider`, `openai.base_url`) and remembers where each value came from, so
that `doctor` can show it. Secrets are never stored here: a setting names the
environment variable that holds one (`openai.key_env = "OPENAI_API_KEY"`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import cast

from msgspec import Struct

from neuraxis.errors import ConfigError
from neuraxis.formatting import describe_given, did_you_mean, nearest
from neuraxis.specs import Json

FILE_NAME = "neuraxis.toml"

GUARDED: Mapping[str, str] = {
    "sandbox.*": "it restricts what the project may do",
    "policy.*": "it restricts what the project may do",
    "*.key_env": "it says which key is sent",
    "search.google_url": "it says where a key is sent",
    "files.versions_bytes": "it limits what `undo` can restore",
    "instructions": "the model treats it as your own instructions",
}
"""Patterns of keys that a project's file may not set, and why: others, or a script,
may have written the file."""
INSIDE = ("workspace", "search.folder")
"""Folders that a project's file may only set inside the project."""


_NO_SETTINGS = {
    f"NEURAXIS_{name}"
    for name in ("HOME", "TRACEBACK", "UPDATE_GOLDEN", "SANDBOX", "SANDBOX_IMAGE")
}
"""Variables of this package that are read where they are used."""


class Setting(Struct, frozen=True, kw_only=True):
    """One value and its source: `command line`, a variable, or a file."""

    value: Json
    source: str
    of_project: bool = False
    """Whether it comes from a project's file, which may be untrusted."""
    users: Json = ()
    """The items of a joined list that the user's own file has, too."""


class Settings(Struct, frozen=True, kw_only=True):
    """All settings; a key that was never set is absent."""

    values: Mapping[str, Setting] = {}

    def get(self, key: str, default: Json = None) -> Json:
        """Return the value of a dotted key, or `default`."""
        found = self.values.get(key)
        return default if found is None else found.value

    def is_of_project(self, key: str) -> bool:
        """Check whether a dotted key's value comes from a project's file."""
        found = self.values.get(key)
        return found is not None and found.of_project

    def items_of_project(self, key: str) -> list[Json]:
        """Return the items of a list that only a project's file names."""
        found = self.values.get(key)
        if found is None or not found.of_project:
            return []
        return [item for item in items_of(found.value) if item not in found.users]

    def section(self, prefix: str) -> dict[str, Json]:
        """Return all values below `prefix.`, without the prefix."""
        start = prefix + "."
        return {
            key[len(start) :]: setting.value
            for key, setting in self.values.items()
            if key.startswith(start)
        }

    def override(self, values: Mapping[str, Json], source: str) -> Settings:
        """Return a copy in which `values` (those not None) take precedence.

        Keys and tables may be written as in a file: `models."gpt-4.1".temperature`.

        Raises:
            ConfigError: a quoted key is not valid TOML.
        """
        new: dict[str, Setting] = {}
        plain = Setting(value=None, source=source)
        for key, value in values.items():
            if value is not None:
                tree = {_unquoted(key, source): value}
                _flatten(tree, "", plain, new)
        return Settings(values={**self.values, **new})


def user_dir(kind: str, environ: Mapping[str, str] | None = None) -> Path:
    """Return the user's `config`, `data` or `cache` folder (XDG or NEURAXIS_HOME)."""
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
    """Load settings: user's file, project's file, environment.

    `NEURAXIS_SEARCH__PROVIDER` sets `search.provider`: two underscores are a dot.

    Args:
        project: the folder of the project's file, usually the current one; None: no
            such file is read.
        environ: environment variables; default: those of the process.

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
            whys = (why for part, why in GUARDED.items() if fnmatchcase(key, part))
            if why := next(whys, ""):
                raise ConfigError(
                    f"{file}: {key} may not be set in a project's file, since {why}; "
                    f"{_elsewhere(key, users)}"
                )
            if key == "plugins" and "secret://" in repr(setting.value):
                raise ConfigError(
                    f"{file}: plugins: a project's file may not say where a secret is "
                    f"sent; {_elsewhere(key, users)}"
                )
            if key in INSIDE and not _is_inside(setting.value, project):
                raise ConfigError(
                    f"{file}: {key}: expected a folder inside {project}, got "
                    f"{setting.value!r}; for another one {_elsewhere(key, users)}"
                )
        found = _joined(found, own)
    for name, text in env.items():
        if name.startswith("NEURAXIS_SECRET_"):
            # A secret's value is no setting (neuraxis.policy.secrets reads it).
            continue
        if name.startswith("NEURAXIS_") and name not in _NO_SETTINGS:
            key = name.removeprefix("NEURAXIS_").lower().replace("__", ".")
            found[key] = Setting(value=text, source=f"environment variable {name}")
    return Settings(values=found)


def _joined(
    users: Mapping[str, Setting], own: Mapping[str, Setting]
) -> dict[str, Setting]:
    """Return a project's settings over the user's, and the plugins of both."""
    found = {**users, **own}
    if "plugins" in users and "plugins" in own:
        both = [users["plugins"], own["plugins"]]
        found["plugins"] = Setting(
            value=[item for one in both for item in items_of(one.value)],
            source=" and ".join([one.source for one in both]),
            of_project=True,
            users=items_of(users["plugins"].value),
        )
    return found


def items_of(value: Json) -> list[Json]:
    """Return a list that may be written as one text with commas."""
    if isinstance(value, str):
        return [item for each in value.split(",") if (item := each.strip())]
    return cast("list[Json]", value) if isinstance(value, list) else [value]


def _elsewhere(key: str, users: Path) -> str:
    variable = f"NEURAXIS_{key.upper().replace('.', '__')}"
    return f"set it in {users} or by an environment variable {variable}"


def _is_same(file: Path, users: Path) -> bool:
    """Check whether the project's file is the user's own file."""
    try:
        return file.samefile(users)
    except OSError:
        return False


def _is_inside(value: Json, project: Path) -> bool:
    """Check whether a folder, links resolved, lies in the project."""
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
            getattr(error, "strerror", None) or "it is not UTF-8 text; save it as UTF-8"
        )
        raise ConfigError(f"{file}: cannot be read: {why}") from error
    import tomllib  # Imported on first use: most folders have no such file.

    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{file}: not valid TOML: {error}; write text in quotes, as in "
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
    is_option = prefix.count(".") > 1  # `{}` is a value there, as in a schema
    for key, value in tree.items():
        if isinstance(value, dict) and (value or not is_option):
            _flatten(cast("dict[str, Json]", value), f"{prefix}{key}.", plain, into)
        else:
            into[prefix + key] = Setting(
                value=value, source=plain.source, of_project=plain.of_project
            )


def _unquoted(key: str, source: str) -> str:
    """Return a TOML key without the quotes around its parts."""
    if not {'"', "'"}.intersection(key):
        return key
    import tomllib  # few keys have quotes

    try:
        value = cast("Json", tomllib.loads(f"{key} = 0"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{source}: {key}: not a key of TOML: {error}") from None
    parts: list[str] = []
    while isinstance(value, dict):
        ((part, value),) = cast("dict[str, Json]", value).items()
        parts.append(part)
    return ".".join(parts)


_TEXTS = ("model", "dialect", "workspace", "journal", "instructions")
_TOP = (*_TEXTS, "plugins")
_BY_VARIABLE = "weights"
"""Read only from its environment variable, since it selects an executable."""
_SECTIONS: Mapping[str, Sequence[str]] = {
    "openai": ("base_url", "key_env"),
    "anthropic": ("base_url", "key_env"),
    "gemini": ("base_url", "key_env"),
    "vertex": ("base_url", "key_env", "project", "location"),
    "bedrock": ("base_url", "key_env"),
    "azure": ("base_url", "key_env"),
    "local": ("threads", "fetch", "states_mb", "context", "parallel"),
    "search": (
        "provider", "key_env", "engine", "google_url", "url", "folder", "results",
    ),
    "sandbox": ("mode", "seconds", "memory", "network", "uid", "allow_none"),
    "commands": ("threads",),
    "files": ("file_bytes", "total_bytes", "files", "versions_bytes", "read_bytes"),
    "tables": ("file_bytes", "rows"),
    "images": ("file_bytes", "pixels"),
    "policy": (),
    "models": (),
}  # fmt: skip
"""Known keys of each section; unlisted sections belong to plugins.

An empty section is checked where it is read.
"""
_NUMBERS: Mapping[str, tuple[int, int | None]] = {
    "local.threads": (1, None), "local.context": (1, None),
    "local.parallel": (1, None), "local.states_mb": (0, None),
    "search.results": (1, 50), "sandbox.uid": (0, None),
    "sandbox.seconds": (1, None), "sandbox.memory": (1, None),
    "commands.threads": (1, None),
    "files.file_bytes": (0, None), "files.total_bytes": (0, None),
    "files.files": (0, None), "files.versions_bytes": (0, None),
    "files.read_bytes": (0, None), "tables.file_bytes": (0, None),
    "tables.rows": (0, None), "images.file_bytes": (0, None),
    "images.pixels": (0, None),
}  # fmt: skip
"""Settings that are numbers, with the least and the largest value."""
_MODEL_NUMBERS = (
    "temperature", "top_p", "max_tokens", "seed", "requests_per_minute", "max_retries",
    "retry_seconds", "backoff", "max_wait", "connect_timeout", "first_byte_timeout",
    "stall_timeout", "input_usd", "output_usd", "cached_usd",
)  # fmt: skip
_MODEL_FLAGS = ("parallel_tool_calls", "cache", "vision")
_MODEL_TREES = ("extra", "output_schema")
MODEL_OPTIONS = (
    *_MODEL_NUMBERS, *_MODEL_FLAGS, *_MODEL_TREES,
    "base_url", "key_env", "thinking", "tool_choice", "grammar",
)  # fmt: skip
"""Keys of a table [models.NAME]."""
_FLAGS = ("sandbox.network", "sandbox.allow_none")
_WORDS: Mapping[str, Sequence[str]] = {
    "search.provider": ("google", "searxng", "documents", "ddgs"),
    "sandbox.mode": ("auto", "bubblewrap", "landlock", "seatbelt", "docker", "none"),
}  # fmt: skip
_BOOLEANS = ("true", "false", "1", "0")
_VARIABLE = "environment variable"


def check_settings(settings: Settings) -> None:
    """Validate settings before a run; log variables that look misspelt.

    Raises:
        ConfigError: a key is none of ours, or its value of a wrong kind.
    """
    if found := faults_of(settings):
        raise ConfigError("\n".join(found))
    for slip in faults_of(settings, variables=True):
        _warn_once(slip)


@cache
def _warn_once(text: str) -> None:
    """Log a warning; every session of a process checks its settings."""
    import logging  # few have such a variable

    logging.getLogger(__name__).warning("%s", text)


def faults_of(settings: Settings, *, variables: bool = False) -> list[str]:
    """Return the errors of settings, each as a sentence.

    With `variables` also the names of environment variables that look like a slip;
    other programs may have variables with our prefix, so none of these ends a run.
    The value of a known setting is checked wherever it comes from.
    """
    found: list[str] = []
    for key, setting in settings.values.items():
        if setting.source.startswith(_VARIABLE):
            message = _slip(key) if variables else ""
        else:
            message = _unknown(key)
            # a file may have tables of plugins, whose names are their own
            if not setting.source.endswith(FILE_NAME):
                message = message or _misspelt(key)
        if message := message or _wrong_value(key, setting.value):
            found.append(f"{setting.source}: {message}")
    return found


def _unknown(key: str) -> str:
    head, dot, rest = key.partition(".")
    if head == "secrets":
        name = rest or "NAME"
        return (
            f"{key}: expected no secret in a settings file; put it into the variable "
            f"NEURAXIS_SECRET_{name} or the file {user_dir('config') / head / name}"
        )
    if key == _BY_VARIABLE:
        return f"{key}: no setting of a file; set NEURAXIS_{key.upper()} instead"
    if not dot and head in _SECTIONS:
        return f"{head}: expected a table, written [{head}]"
    if head == "models" and "." not in rest:
        return f"{key}: expected a table for one model, written [models.NAME]"
    if head == "models":
        return unknown_option(key)
    if dot and head in _TOP:
        return f"{key}: expected no table of that name, but {head} = ..."
    if dot and (keys := _SECTIONS.get(head, ())) and rest not in keys:
        close = nearest(rest, keys)[:1]
        hint = did_you_mean([f"{head}.{key}" for key in close])
        listed = ", ".join(keys)
        return f"{key}: there is no such setting.{hint} In [{head}] are: {listed}"
    if not dot and head not in _TOP:
        options = [f"{own}.{one}" for own, keys in _SECTIONS.items() for one in keys]
        meant = [one for one in options if one.replace(".", "_") == key]
        meant = [f"{one} (NEURAXIS_{one.replace('.', '__').upper()})" for one in meant]
        close = meant or nearest(head, (*_TOP, *_SECTIONS, _BY_VARIABLE))
        hint = did_you_mean(close[:1])
        return (
            f"{key}: there is no such setting.{hint} Those without a section are: "
            f"{', '.join(_TOP)}"
        )
    return ""


def _misspelt(key: str) -> str:
    meant, (head, _, rest) = section_meant(key), key.partition(".")
    known = _SECTIONS.get(meant, ())
    close = nearest(rest, known)[:1] or (rest,)
    hint = did_you_mean([f"{meant}.{close[0]}"])
    return f"{key}: there is no section {head!r}.{hint}" if meant else ""


def unknown_option(key: str) -> str:
    """Return the fault of a key of [models.NAME]; empty: none.

    A dot may be the name's own, as in `gpt-4.1`: the last part is the option.
    """
    *parts, last = key.split(".")[1:]
    if last in MODEL_OPTIONS or any(part in _MODEL_TREES for part in parts[1:]):
        return ""
    hint = did_you_mean(nearest(last, MODEL_OPTIONS, 1))
    return f"{key}: unknown option.{hint} Options are: {', '.join(MODEL_OPTIONS)}"


def _slip(key: str) -> str:
    """Report a variable only if a known one has nearly its name."""
    message = _unknown(key)
    return message if "Did you mean" in message else ""


def section_meant(key: str) -> str:
    """Return the section that a plugin's own name probably misspells, or ""."""
    head, dot, _ = key.partition(".")
    is_ours = not dot or head in _SECTIONS or head in _TOP
    close = () if is_ours else nearest(head, _SECTIONS)
    # `my_search` is a separate name, not a misspelling.
    return close[0] if close and abs(len(close[0]) - len(head)) < 2 else ""


def _wrong_value(key: str, value: Json) -> str:
    if key.startswith("models."):
        return wrong_option(key, value)
    if key in _TEXTS and not isinstance(value, str):
        return f"{key}: expected a string in quotes, got {describe_given(value)}"
    if key == "plugins" and not isinstance(value, str):
        items = cast("list[Json]", value) if isinstance(value, list) else [value]
        if wrong := [item for item in items if not isinstance(item, str)]:
            got = describe_given(wrong[0])
            return f"plugins: expected a list of texts in quotes, got {got}"
    expected = ""
    if key in _NUMBERS:
        expected = _no_number(value, *_NUMBERS[key])
    elif key in _FLAGS and value not in (True, False, "true", "false", "1", "0"):
        expected = "true or false"
    elif key in _WORDS and value not in _WORDS[key]:
        expected = f"one of {', '.join(_WORDS[key])}"
    return _unlike(key, expected, value)


def wrong_option(key: str, value: Json) -> str:
    """Return why a value does not fit its key of [models.NAME]."""
    name, _, option = key.rpartition(".")
    if any(f".{tree}." in f"{name}." for tree in _MODEL_TREES):
        return ""
    expected = ""
    if option in _MODEL_TREES:
        expected = f"a table, written [{key}]"
    elif option in _MODEL_NUMBERS:
        expected = _no_number(value, 0, None)
    elif option in _MODEL_FLAGS and str(value).lower() not in _BOOLEANS:
        expected = "true or false"
    return _unlike(key, expected, value)


def _unlike(key: str, expected: str, value: Json) -> str:
    """Return the problem of a value; empty if nothing else is expected."""
    if not expected:
        return ""
    return f"{key}: expected {expected}, got {describe_given(value)}"


def _no_number(value: Json, least: int, most: int | None) -> str:
    """Return which number is expected; empty if the value is one."""
    expected = f"a number from {least}" + (f" to {most}" if most else "")
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return expected
    is_right = math.isfinite(number) and least <= number <= (most or number)
    return "" if is_right else expected
