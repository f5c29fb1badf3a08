"""Read the configuration of MCP servers: commands, URLs, JSON files.

It reads other clients' files (`mcpServers`, `servers`, `context_servers`). An entry
that is not understood is reported and does not affect the others.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import urlsplit

import msgspec

from neuraxis.errors import ConfigError
from neuraxis.formatting import describe_given
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.parsing.json_errors import Fault
from neuraxis.parsing.json_scan import read_at
from neuraxis.specs import EffectKind, Json

SECTIONS = ("mcpServers", "servers", "context_servers")
"""Keys under which clients list their servers."""
START_SECONDS = 30.0
"""Seconds for a server to start and list its tools."""
_URL_KEYS = ("url", "serverUrl", "httpUrl", "uri")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")
_TAKEN = re.compile(r"secret://[A-Za-z0-9_]*|\$\{[^{}]*\}")
_INPUT = re.compile(r"\$\{input:([^{}]*)\}")
_NAME = re.compile(r"[^A-Za-z0-9_]+")
_RUNNERS = ("npx", "uvx", "bunx", "pipx", "node", "python", "python3", "uv", "docker")
_APPROVALS = ("alwaysAllow", "autoApprove", "trust")


class OAuth(msgspec.Struct, frozen=True, kw_only=True):
    """OAuth of a server; it has secrets by name only."""

    client_id: str = ""
    client_secret: str = ""
    """`secret://NAME`; with it the client signs in as itself (client credentials)."""
    scope: str = ""
    client_metadata_url: str = ""
    """URL of a page that describes the client, for servers that accept it as an id."""
    issuer: str = ""
    """Authorization server that the client is registered with."""


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How an MCP server is started or reached; has secrets by name."""

    name: str
    command: tuple[str, ...] = ()
    """Program and arguments for stdio; run without a shell."""
    cwd: str | None = None
    env: Mapping[str, str] = {}
    url: str = ""
    """Address for streamable HTTP."""
    headers: Mapping[str, str] = {}
    oauth: OAuth | None = None
    seconds: float = START_SECONDS
    effects: Mapping[str, EffectKind] = {}
    """Effects that the user, not the server, sets: pattern of a command -> effect."""
    takes: str = ""
    """Secret or environment variable that its entry names."""

    @property
    def place(self) -> str:
        """Return the server's place, for messages and the lock file."""
        return self.url or shlex.join(self.command)


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """Servers of a configuration, and its problems."""

    servers: tuple[ServerConfig, ...] = ()
    problems: tuple[str, ...] = ()


def read_servers(
    given: str | Path | Sequence[str] | Mapping[str, Json], name: str = ""
) -> Servers:
    """Return the servers that a text, a file or a mapping names.

    Args:
        given: a command (a text or a list of words), a URL, the path of a JSON file,
            one server's entry, or a mapping with `mcpServers`.
        name: the plugin's name, if it is one server.

    Raises:
        ConfigError: it names no server.
    """
    if isinstance(given, Mapping):
        return _from_mapping(given, "mcp(...)", name)
    if not isinstance(given, str | Path):
        given = shlex.join(given)
    if isinstance(given, Path) or given.strip().endswith((".json", ".jsonc")):
        return _from_file(Path(given).expanduser(), name)
    text = given.strip()
    if text.startswith(("http://", "https://")):
        entry: dict[str, Json] = {"url": text}
    else:
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise ConfigError(
                f"mcp: {describe_given(text)} is no command: {error}"
            ) from None
        if not words:
            raise ConfigError(
                "mcp: expected a command, a URL or the path of a JSON file, got ''"
            )
        entry = {"command": words[0], "args": words[1:]}
    config = _server(name or suggested_name(text), entry, "mcp(...)")
    if isinstance(config, str):
        raise ConfigError(config)
    return Servers(servers=(config,))


def taken_by(source: str) -> str:
    """Return the secret or variable that a source's servers use, if any.

    Args:
        source: the text of any plugin source, such as `mcp:servers.json`.
    """
    scheme, _, rest = source.strip().partition(":")
    try:
        servers = read_servers(rest.strip()).servers if scheme == "mcp" else ()
    except ConfigError:
        return ""  # reported when it is loaded
    return next((server.takes for server in servers if server.takes), "")


def suggested_name(text: str) -> str:
    """Return a plugin name for a command or a URL: `filesystem`, `example_com`."""
    if text.startswith(("http://", "https://")):
        host = _host(text) or "server"
        return _identifier("_".join(host.removeprefix("www.").split(".")))
    words = [word for word in shlex.split(text) if not word.startswith("-")]
    candidates = [word for word in words if word.rpartition("/")[2] not in _RUNNERS]
    word = (candidates or words or ["server"])[0].rstrip("/").rpartition("/")[2]
    word = word.partition("@")[0].removesuffix(".py").removesuffix(".js")
    for affix in ("mcp-server-", "server-", "mcp-"):
        word = word.removeprefix(affix)
    return _identifier(word.removesuffix("-mcp").removesuffix("-server"))


def _identifier(text: str) -> str:
    name = _NAME.sub("_", text).strip("_") or "server"
    return f"mcp_{name}" if name[0].isdigit() else name


def _from_file(path: Path, name: str) -> Servers:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    read = read_at(text, max(text.find("{"), 0))  # editors' files have comments
    if isinstance(read, Fault):
        raise ConfigError(f"{path}: {read.message}")
    tree = read.value
    if not isinstance(tree, dict):
        raise ConfigError(
            f"{path}: expected JSON with the key mcpServers; it is no JSON object"
        )
    return _from_mapping(cast("dict[str, Json]", tree), str(path), name)


def _from_mapping(tree: Mapping[str, Json], place: str, name: str) -> Servers:
    # under `mcp` in the `settings.json` of some editors
    for holder in (tree, as_map(tree.get("mcp"))):
        for key in SECTIONS:
            listed = holder.get(key)
            if isinstance(listed, Mapping):
                entries = cast("Mapping[str, Json]", listed)
                return _read_entries(entries, f"{place}: {key}")
    if "command" not in tree and not any(key in tree for key in _URL_KEYS):
        raise ConfigError(
            f"{place}: expected one of {', '.join(SECTIONS)}, or the command or url of "
            f"one server; got the keys {', '.join(map(str, tree)) or 'none'}"
        )
    guess = _words(tree) or str(next((tree[k] for k in _URL_KEYS if k in tree), ""))
    config = _server(name or suggested_name(guess), tree, place)
    if isinstance(config, str):
        raise ConfigError(config)
    return Servers(servers=(config,), problems=tuple(_ignored(config.name, tree)))


def _words(entry: Mapping[str, Json]) -> str:
    command = entry.get("command")
    words = [str(word) for word in as_list(entry.get("args"))]
    return shlex.join([str(command), *words]) if command else ""


def _read_entries(entries: Mapping[str, Json], place: str) -> Servers:
    servers: dict[str, ServerConfig] = {}
    problems: list[str] = []
    for key, entry in entries.items():
        name = _identifier(str(key))
        if not isinstance(entry, Mapping):
            problems.append(
                f"{place}.{key}: expected an object, got {describe_given(entry)}"
            )
            continue
        fields = cast("Mapping[str, Json]", entry)
        if fields.get("disabled") is True or fields.get("enabled") is False:
            continue
        config = _server(name, fields, f"{place}.{key}")
        if isinstance(config, str):
            problems.append(config)
        elif name in servers:
            problems.append(f"{place}.{key}: the name {name} is taken; rename one")
        else:
            servers[name] = config
            problems += _ignored(name, fields)
    return Servers(servers=tuple(servers.values()), problems=tuple(problems))


def _ignored(name: str, entry: Mapping[str, Json]) -> list[str]:
    return [
        f"{name}: {key} is ignored: approvals are given by your own policy"
        for key in _APPROVALS
        if entry.get(key)
    ]


def _server(name: str, entry: Mapping[str, Json], place: str) -> ServerConfig | str:
    """Return the configuration of one server, or its error."""
    lacking: list[str] = []

    def text(value: Any) -> str:
        return _expanded(str(value), lacking)

    def texts(key: str) -> dict[str, str]:
        given: Json = entry.get(key)
        fields = cast("dict[str, Json]", given) if isinstance(given, dict) else {}
        return {str(name): text(value) for name, value in fields.items()}

    command: Json = entry.get("command")
    args: Json = entry.get("args") or []
    if isinstance(command, Mapping):  # `command: {path, args}` of one editor
        inner = as_map(cast("Json", command))
        command, args = inner.get("path"), inner.get("args") or []
    url = next((entry[key] for key in _URL_KEYS if entry.get(key)), "")
    kind = str(entry.get("type") or entry.get("transport") or "").lower()
    if kind == "sse":
        return f"{place}: the transport sse of 2024 is not supported; use its http one"
    if not isinstance(args, list) or not (url or command):
        return f"{place}: expected command and args (a list), or url"
    effects: Json = entry.get("effects") or {}
    if wrong := wrong_effects(effects):
        return f"{place}: {wrong}"
    config = ServerConfig(
        name=name,
        command=()
        if url
        else (text(command), *(text(word) for word in cast("list[Json]", args))),
        cwd=text(entry["cwd"]) if entry.get("cwd") else None,
        env=texts("env"),
        url=text(url),
        headers={**texts("headers"), **_bearer(entry, text)},
        oauth=_oauth(entry, texts("oauth")),
        effects=cast("dict[str, EffectKind]", effects),
        takes=found[0] if (found := _TAKEN.search(repr(entry))) else "",
    )
    if config.url and not _host(config.url):
        got = describe_given(config.url)
        return f"{place}: url: expected http:// or https:// and a host, got {got}"
    if lacking:
        return f"{place}: not set in the environment: {', '.join(sorted(set(lacking)))}"
    return config


def _host(url: str) -> str:
    """Return the host of a web address; empty: the text is none."""
    try:
        parts = urlsplit(url)
    except ValueError:  # half a bracket
        return ""
    return (parts.hostname or "") if parts.scheme in ("http", "https") else ""


def wrong_effects(given: Any) -> str:
    """Return what is wrong with effects by pattern; empty: nothing."""
    if not isinstance(given, Mapping):
        got = describe_given(given)
        return f'effects: expected {{"PATTERN": EFFECT}} of tools\' names, got {got}'
    kinds = get_args(EffectKind)
    for pattern, kind in cast("Mapping[Any, Any]", given).items():
        if kind not in kinds:
            return (
                f"effects: expected one of {', '.join(kinds)} for {pattern!r}, got "
                f"{describe_given(kind)}"
            )
    return ""


def _expanded(text: str, lacking: list[str]) -> str:
    def value(match: re.Match[str]) -> str:
        variable: str | None = os.environ.get(match[1]) or cast("str | None", match[2])
        if variable is None:
            lacking.append(match[1])
        return variable or ""

    lacking += [f"input {found[1]}" for found in _INPUT.finditer(text)]
    return _VARIABLE.sub(value, text)


def _bearer(entry: Mapping[str, Json], text: Callable[[Any], str]) -> dict[str, str]:
    auth = entry.get("auth") or entry.get("bearer_token")
    return {"Authorization": f"Bearer {text(auth)}"} if isinstance(auth, str) else {}


def _oauth(entry: Mapping[str, Json], fields: Mapping[str, str]) -> OAuth | None:
    given: Json = entry.get("oauth")
    if given is not True and not isinstance(given, dict):
        return None
    return OAuth(
        client_id=fields.get("client_id", fields.get("clientId", "")),
        client_secret=fields.get("client_secret", fields.get("clientSecret", "")),
        scope=fields.get("scope", ""),
        client_metadata_url=fields.get("client_metadata_url", ""),
        issuer=fields.get("issuer", ""),
    )
