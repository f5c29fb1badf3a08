"""`mcp(...)`: the tools of MCP servers as plugins of a session.

    Session(plugins=[mcp("npx -y @modelcontextprotocol/server-filesystem .")])

Each server becomes a plugin. A server that cannot be reached, or a tool that cannot be
used, is reported (`problems`, the log, `neuraxis plugins list`) and does not affect the
others.
"""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from neuraxis.bridges.mcp_client.background import BackgroundLoop
from neuraxis.bridges.mcp_client.config import (
    ServerConfig,
    Servers,
    read_servers,
    wrong_effects,
)
from neuraxis.bridges.mcp_client.tools import import_tools
from neuraxis.bridges.untrusted_text import visible
from neuraxis.errors import (
    ConfigError,
    ManifestProblem,
    MissingExtra,
    NeuraxisError,
    warnings_in,
)
from neuraxis.formatting import did_you_mean, nearest
from neuraxis.models import Model, find_model
from neuraxis.plugins.registry import Plugin
from neuraxis.specs import EffectKind, Json, PluginSpec

if TYPE_CHECKING:
    from neuraxis.bridges.mcp_client.connection import Asking, Connection
    from neuraxis.bridges.mcp_client.questions import AnswerQuestion

MOST_INSTRUCTIONS = 4_000
"""Maximum characters shown of a server's instructions."""
_log = logging.getLogger(__name__)


def mcp(
    server: str | Path | Sequence[str] | Mapping[str, Json],
    *,
    name: str = "",
    effects: Mapping[str, EffectKind] | None = None,
    required: bool = False,
    answer: AnswerQuestion | None = None,
    sampling: str | Model | None = None,
    on_sign_in: Callable[[str], Awaitable[str]] | None = None,
) -> McpServers:
    """Return a plugin source for MCP servers, started with the session.

    Args:
        server: a command (`npx some-server`, or a list of words), a URL, the path of
            a JSON file with `mcpServers`, or such a mapping.
        name: of the plugin, where it is one server; default: made from the command.
        effects: what the commands may change, by pattern of their name
            without the plugin's (`{"read_*": "read"}`); default `once`, whatever the
            server claims.
        required: raise where a server cannot be reached, instead of reporting it.
        answer: answers what servers ask; default: the session's `approve`, where a
            yes fills a form with its defaults.
        sampling: the model that servers may ask for a text, after a yes.
        on_sign_in: opens a URL for the person and returns where it led back to.

    Raises:
        ConfigError: it names no server, or `effects` says nothing known.
    """
    servers = read_servers(server, name)
    if effects and (wrong := wrong_effects(effects)):
        raise ConfigError(f"mcp: {wrong}")
    if effects:
        with_effects = tuple(
            msgspec.structs.replace(config, effects={**config.effects, **effects})
            for config in servers.servers
        )
        servers = Servers(servers=with_effects, problems=servers.problems)
    model = find_model(sampling) if isinstance(sampling, str) else sampling
    return McpServers(
        servers,
        text=f"mcp:{server}" if isinstance(server, str | Path) else "",
        required=required,
        answer=answer,
        sampling=model,
        on_sign_in=on_sign_in,
    )


class McpServers:
    """MCP servers of a configuration; a plugin source (`plugins/source.py`)."""

    def __init__(
        self,
        servers: Servers,
        *,
        text: str = "",
        required: bool = False,
        answer: AnswerQuestion | None = None,
        sampling: Model | None = None,
        on_sign_in: Callable[[str], Awaitable[str]] | None = None,
    ) -> None:
        self.servers = servers.servers
        self._given = servers.problems
        self.problems: list[str] = list(servers.problems)
        """Problems of the servers, one sentence each."""
        self._text = text
        self._required = required
        self._asking = (answer, sampling, on_sign_in)
        self._loop = BackgroundLoop("neuraxis-mcp")
        self._connections: list[Connection] = []
        self._plugins: tuple[Plugin, ...] = ()
        self._users = 0
        self._logged = 0
        self._lock = threading.Lock()
        _sources.add(self)
        held = (self._loop, self._connections)
        # the session was not closed: end its servers with it, not with the program
        weakref.finalize(self, _end_in_thread, *held).atexit = False

    def open_plugins(self, workspace: Path) -> Sequence[Plugin]:
        """Start the servers concurrently and return a plugin for each.

        Raises:
            MissingExtra: the SDK is not installed.
            ConfigError: a server is required and cannot be reached.
        """
        with self._lock:
            if not self._users:
                self._plugins = self._started(workspace)
            self._users += 1
            return self._plugins

    def close_plugins(self) -> None:
        """End the servers when the last session that uses them is closed."""
        with self._lock:
            if self._users:
                self._users -= 1
            if not self._users:
                self.end()

    def end(self) -> None:
        """End the servers, whoever uses them."""
        _end(self._loop, self._connections)

    def _started(self, workspace: Path) -> tuple[Plugin, ...]:
        asking, self._logged = _asking(*self._asking), 0
        from neuraxis.bridges.mcp_client.connection import Connection

        self._connections.extend(
            Connection(config, workspace.absolute(), asking) for config in self.servers
        )
        pending = [
            (each, self._loop.submit(self._plugin(each))) for each in self._connections
        ]
        plugins: list[Plugin] = []
        failed: list[str] = []
        for connection, future in pending:
            try:
                plugins.append(future.result())
            except NeuraxisError as error:
                failed.append(str(error))
                plugins.append(self._unreached(connection.config, str(error)))
        if failed and self._required:
            self.end()
            raise ConfigError("mcp: " + "; ".join(failed))
        if plugins:  # the first plugin also reports the common problems
            own_problems = [*self._given] + (
                [] if failed else _unfit(self.servers, plugins)
            )
            warnings = (
                *warnings_in(plugins[0].spec.source, own_problems),
                *plugins[0].problems,
            )
            plugins[0] = msgspec.structs.replace(plugins[0], problems=warnings)
            self.problems = [p.message for each in plugins for p in each.problems]
        return tuple(plugins)

    def log_problems(self) -> None:
        """Log each problem once."""
        first_new, self._logged = self._logged, len(self.problems)
        for problem in self.problems[first_new:]:
            _log.warning("%s", problem)

    async def _plugin(self, connection: Connection) -> Plugin:
        from neuraxis.bridges.mcp_client.commands import extra_specs, plugin_commands
        from neuraxis.bridges.mcp_client.questions import QUESTIONS

        config = connection.config
        definitions = await connection.list_tools()
        client = await connection.client()
        imported = import_tools(definitions, config.name, config.effects)
        taken = {tool.spec.name for tool in imported.tools}
        info = client.server_info
        title = visible((info.title or info.name) if info else "", 100)
        spec = PluginSpec(
            name=config.name,
            title=title or config.name,
            description=_instructions(client.instructions, title),
            generation="python",
            commands=(
                *(tool.spec for tool in imported.tools),
                *extra_specs(config.name, client.server_capabilities, taken),
            ),
            source=self._place(config),
        )
        return Plugin(
            spec=spec,
            commands=plugin_commands(spec, imported, connection, self._loop),
            problems=warnings_in(spec.source, imported.problems),
            questions=QUESTIONS,
        )

    def _unreached(self, config: ServerConfig, reason: str) -> Plugin:
        place = self._place(config)
        spec = PluginSpec(
            name=config.name,
            title=config.name,
            description="An MCP server that could not be reached.",
            generation="python",
            listed=False,
            source=place,
        )
        problem = ManifestProblem(file=place, message=reason)
        return Plugin(spec=spec, commands={}, problems=(problem,))

    def _place(self, config: ServerConfig) -> str:
        return self._text or f"mcp:{config.place}"

    def __repr__(self) -> str:
        return f"mcp({', '.join(config.name for config in self.servers)})"


def _unfit(servers: Sequence[ServerConfig], plugins: Sequence[Plugin]) -> list[str]:
    """Return a sentence for each pattern of `effects` without a command."""
    patterns = dict.fromkeys(pattern for each in servers for pattern in each.effects)
    names = dict.fromkeys(name for plugin in plugins for name in plugin.commands)
    return [
        f"effects: no command has a name like {pattern!r}."
        f"{did_you_mean(nearest(pattern.rpartition('.')[2], names, 1))} A pattern is "
        "of the name alone, without the plugin's"
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in names)
    ]


def _asking(
    answer: AnswerQuestion | None,
    sampling: Model | None,
    on_sign_in: Callable[[str], Awaitable[str]] | None,
) -> Asking:
    try:
        from neuraxis.bridges.mcp_client.connection import Asking
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise MissingExtra("mcp", "mcp", "Connecting to MCP servers") from error
    return Asking(answer, sampling, on_sign_in)


def _instructions(text: str | None, title: str) -> str:
    shown_text = visible(text or "", MOST_INSTRUCTIONS).strip()
    return shown_text or f"Commands of the MCP server {title}."


def _end(loop: BackgroundLoop, connections: list[Connection]) -> None:
    pending = [loop.submit(each.close()) for each in connections]
    connections.clear()
    for future in pending:
        future.result(15)
    loop.stop()


def _end_in_thread(loop: BackgroundLoop, connections: list[Connection]) -> None:
    """End servers from the garbage collector, which must not wait."""
    if connections:
        threading.Thread(target=_end, args=(loop, connections), daemon=True).start()


_sources: weakref.WeakSet[McpServers] = weakref.WeakSet()
"""All instances, whose servers end with the program at the latest."""


@atexit.register
def _close_all() -> None:
    for source in list(_sources):
        source.end()
