"""Registry: look up the command for a name in a call.

Schemas are compiled when a command is first called.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from inspect import iscoroutine, iscoroutinefunction
from pathlib import Path as File
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.errors import ManifestProblem, error_of
from neuraxis.messages import CallError, Path
from neuraxis.schema.annotations import Annotations, marks_of, trusted_fields
from neuraxis.schema.schema import Schema
from neuraxis.specs import CommandSpec, PluginSpec

BUILTIN = File(__file__).resolve().parent.parent / "builtin"
"""Plugins that come with the package."""
FILE_NAME = "config.yaml"
"""File name of a manifest in its folder."""


class Command:
    """A command that can run: its spec, compiled schemas and code.

    Args:
        plugin: the spec of its plugin.
        spec: its own spec.
        run: its code; None: it has only a description.
        is_async: whether `run` returns a coroutine.
        context_name: the parameter of `run` that takes a `Context`; empty: none does.
        deps: class, or union of classes, of the `Context.deps` that it takes.
        reconcile: returns whether an earlier call, named by its id, had its effect.
        function: the function as its author wrote it, if there is no manifest.
    """

    def __init__(
        self,
        *,
        plugin: PluginSpec,
        spec: CommandSpec,
        run: Callable[..., Any] | None = None,
        is_async: bool = False,
        context_name: str = "",
        deps: Any = object,
        reconcile: Callable[..., Any] | None = None,
        function: Callable[..., Any] | None = None,
    ) -> None:
        self.plugin = plugin
        self.spec = spec
        self.run = run
        self.is_async = is_async
        self.context_name = context_name
        self.deps = deps
        self.reconcile = reconcile
        self.function = function

    @cached_property
    def parameters(self) -> Schema:
        """Schema of the arguments, compiled on first use."""
        return Schema(self.spec.parameters)

    @cached_property
    def response(self) -> Schema | None:
        """Schema of the response, if declared; compiled on first use."""
        declared = self.spec.response
        return None if declared is None else Schema(declared)

    @cached_property
    def marks(self) -> Annotations:
        """The marks of the parameters."""
        return marks_of(self.spec.parameters)

    @cached_property
    def is_builtin(self) -> bool:
        """Whether it comes with the package: undo knows its changes."""
        return File(self.plugin.source).is_relative_to(BUILTIN)

    @cached_property
    def vouched(self) -> tuple[Path, ...]:
        """The fields of the response that the answering system vouches for."""
        return trusted_fields(self.spec.response)

    @cached_property
    def bare(self) -> bool:
        """Whether the arguments are one bare value: `run(value)` (rule K3)."""
        return self.spec.parameters.get("type") != "object"


class Plugin(Struct, frozen=True, kw_only=True):
    """A loaded plugin; its `problems` are warnings only."""

    spec: PluginSpec
    commands: Mapping[str, Command]
    problems: tuple[ManifestProblem, ...] = ()
    close: Callable[[], Any] | None = None
    """Of the object that was made for it; called when the session is closed."""
    questions: tuple[CommandSpec, ...] = ()
    """What it may ask the user while a command runs; policy rules decide on it, too."""


class Registry:
    """Registry of a session's plugins; only listed ones are found (rule B4)."""

    def __init__(self, plugins: Iterable[Plugin] = ()) -> None:
        self._plugins: dict[str, Plugin] = {}
        # Rebuilt at the first look-up after a change.
        self._found: dict[tuple[str | None, str], Command] = {}
        self._all = self._found
        """As `_found`, also with commands that are not shown."""
        self._tools: dict[str, tuple[str, str]] = {}
        self._tool_of: dict[tuple[str, str], str] = {}
        self._specs: tuple[PluginSpec, ...] = ()
        self._taking_deps: Sequence[Command] = ()
        self._stale = True
        self._explicit: dict[str, Command] = {}
        self._shown: frozenset[tuple[str, str]] | None = None
        self._hidden: dict[tuple[str | None, str], str] = {}
        self.closing: Sequence[Callable[[], Any]] = ()
        """Functions that close servers, files and objects of these plugins."""
        for plugin in plugins:
            self.add(plugin)

    @property
    def closes_async(self) -> bool:
        """Whether the `close` of an object must be awaited."""
        return any(map(iscoroutinefunction, self.closing))

    def close(self, wait: Callable[[Coroutine[Any, Any, Any]], object]) -> None:
        """Close servers, files and objects of plugins, even if one raises.

        Args:
            wait: receives the coroutine that an `async def close` returns.
        """
        closing, self.closing = self.closing, ()
        close_all(closing, wait)

    def add(self, plugin: Plugin) -> None:
        """Add a plugin.

        Raises:
            ManifestError: its name, or a tool name it asks for, is taken (rule A14).
        """
        spec = plugin.spec
        where = spec.source or spec.name
        earlier = self._plugins.get(spec.name)
        if earlier is not None:
            raise error_of(
                where,
                f"the plugin name {spec.name!r} is taken by {earlier.spec.source}; "
                f"{_renaming(spec)}",
            )
        requested = [
            command
            for command in (plugin.commands.values() if spec.listed else ())
            if command.spec.tool_name
        ]
        for command in requested:
            name = command.spec.tool_name or ""
            existing = self._explicit.get(name)
            if existing is not None:
                raise error_of(
                    where,
                    f"the tool_name {name!r} of {spec.name}.{command.spec.name} is "
                    f"taken by {existing.plugin.name}.{existing.spec.name} "
                    f"({existing.plugin.source}); give one of them another tool_name",
                )
            self._explicit[name] = command
        self._plugins[spec.name] = plugin
        self._stale = True

    def show(self, commands: Iterable[tuple[str, str]] | None) -> None:
        """Show the model only these commands; None: all.

        The others cannot be called (rule B4), but their names stay reserved.
        """
        shown = None if commands is None else frozenset(commands)
        if shown != self._shown:
            self._shown = shown
            self._stale = True

    def command(self, plugin: str, name: str) -> Command:
        """Return a command, shown or not.

        Raises:
            KeyError: the command does not exist.
        """
        return self._plugins[plugin].commands[name]

    def named(self, plugin: str | None, command: str) -> Command | None:
        """Return the command that `find` would, even if it is not shown."""
        self._refresh()
        return self._all.get((plugin and plugin.strip(), command.strip()))

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """All plugins, listed or not, in the order they were added."""
        return tuple(self._plugins.values())

    @property
    def targets(self) -> dict[str, CommandSpec]:
        """Each command and question of all plugins, by `plugin.command`."""
        return {
            f"{plugin.spec.name}.{spec.name}": spec
            for plugin in self._plugins.values()
            for spec in (*plugin.questions, *(c.spec for c in plugin.commands.values()))
        }

    @property
    def listed(self) -> tuple[Plugin, ...]:
        """The plugins that a model is shown and may call (B4, B14)."""
        return tuple(item for item in self._plugins.values() if item.spec.listed)

    @property
    def specs(self) -> tuple[PluginSpec, ...]:
        """Specs of the listed plugins; same tuple until one is added."""
        self._refresh()
        return self._specs

    @property
    def taking_deps(self) -> Sequence[Command]:
        """The listed commands that take the `deps` of a run."""
        self._refresh()
        return self._taking_deps

    @property
    def tool_names(self) -> Mapping[str, tuple[str, str]]:
        """Tool name of the intent dialect -> plugin and command."""
        self._refresh()
        return MappingProxyType(self._tools)

    def tool_name(self, command: Command) -> str:
        """Return the tool name that identifies plugin and command."""
        self._refresh()
        key = (command.plugin.name, command.spec.name)
        return self._tool_of.get(key) or f"{key[0]}.{key[1]}"

    def tool(self, name: str) -> Command | None:
        """Return a command by its tool name, without looking for similar names."""
        self._refresh()
        found = self._found.get((None, name))
        return self._found.get((None, name.strip())) if found is None else found

    def parameter_names(self, tool: str) -> Sequence[str]:
        """Return the names of a tool's parameters; none for an unknown tool."""
        command = self.tool(tool)
        return () if command is None else command.spec.parameter_names

    def find(self, plugin: str | None, command: str) -> Command | CallError:
        """Find a command by its names, or return the model's error.

        Names match exactly, except for spaces around them (rule A16). Without a plugin,
        `command` is a tool name or `plugin.command`.
        """
        if self._stale:
            self._refresh()
        found = self._found.get((plugin, command))
        return found if found is not None else self._miss(plugin, command)

    def _miss(self, plugin: str | None, command: str) -> Command | CallError:
        command = command.strip()
        if plugin is None:
            found = self._found.get((None, command))
            if found is not None:
                return found
            if (tool := self._hidden.get((None, command))) is not None:
                return call_errors.not_shown(tool)
            names = {t: (own[1], ".".join(own)) for t, own in self._tools.items()}
            return call_errors.unknown_command(command, names)
        plugin = plugin.strip()
        if (tool := self._hidden.get((plugin, command))) is not None:
            return call_errors.not_shown(tool)
        found = self._found.get((plugin, command))
        if found is not None:
            return found
        owner = self._plugins.get(plugin)
        if owner is None or not owner.spec.listed:
            return call_errors.unknown_plugin(
                plugin, [spec.name for spec in self.specs]
            )
        names = {
            own: (self._tool_of.get((plugin, own), own),) for own in owner.commands
        }
        return call_errors.unknown_command(command, names, plugin)

    def _refresh(self) -> None:
        if not self._stale:
            return
        commands = [
            command for plugin in self.listed for command in plugin.commands.values()
        ]
        times: dict[str, int] = {}
        for command in commands:
            if command.spec.tool_name is None:  # otherwise it uses no plain name
                times[command.spec.name] = times.get(command.spec.name, 0) + 1
        commands_by_name: dict[tuple[str | None, str], Command] = {}
        tools: dict[str, tuple[str, str]] = {}
        for command in commands:
            plain = command.spec.name
            key = (command.plugin.name, plain)
            full = f"{key[0]}.{key[1]}"
            tool_name = command.spec.tool_name
            free = times.get(plain) == 1 and plain not in self._explicit
            tool = tool_name or (plain if free else full)
            # `a` + `b.c` and `a.b` + `c` have the same full name.
            while tool_name is None and (tool in tools or tool in self._explicit):
                tool += "_"
            tools[tool] = key
            commands_by_name[key] = command
            commands_by_name.setdefault((None, full), command)
        for tool, key in tools.items():
            commands_by_name[None, tool] = commands_by_name[key]
        self._tool_of = {key: tool for tool, key in tools.items()}
        self._specs = tuple([plugin.spec for plugin in self.listed])
        self._taking_deps = [item for item in commands if item.deps is not object]
        self._hidden = {}
        self._all = commands_by_name
        if self._shown is not None:
            commands_by_name, tools = self._narrowed(
                commands_by_name, tools, self._shown
            )
        self._found, self._tools = commands_by_name, tools
        self._stale = False

    def _narrowed(
        self,
        commands_by_name: dict[tuple[str | None, str], Command],
        tools: dict[str, tuple[str, str]],
        shown: frozenset[tuple[str, str]],
    ) -> tuple[dict[tuple[str | None, str], Command], dict[str, tuple[str, str]]]:
        """Return the index of the commands that are shown."""
        visible: dict[tuple[str | None, str], Command] = {}
        for key, command in commands_by_name.items():
            name = (command.plugin.name, command.spec.name)
            if name in shown:
                visible[key] = command
            else:
                self._hidden[key] = self._tool_of.get(name) or ".".join(name)
        specs: list[PluginSpec] = []
        for spec in self._specs:
            shown_commands = tuple(
                [item for item in spec.commands if (spec.name, item.name) in shown]
            )
            if shown_commands:
                is_whole = len(shown_commands) == len(spec.commands)
                specs.append(spec if is_whole else _part_of(spec, shown_commands))
        self._specs = tuple(specs)
        return visible, {tool: key for tool, key in tools.items() if key in shown}


def _part_of(spec: PluginSpec, commands: tuple[CommandSpec, ...]) -> PluginSpec:
    """Return the plugin with some of its commands only."""
    names = {command.name for command in commands}
    raw, listed = spec.raw, spec.raw.get("commands")
    if isinstance(listed, list):
        entries = cast("list[Mapping[str, Any]]", listed)
        shown = [item for item in entries if item.get("command_name") in names]
        raw = {**raw, "commands": shown}
    examples = tuple(
        example
        for example in spec.examples
        if {call.tool.rpartition(".")[2] for call in example.calls} <= names
    )
    return replace(spec, commands=commands, raw=raw, examples=examples)


def _renaming(spec: PluginSpec) -> str:
    if spec.source.startswith(("openapi:", "mcp:")):
        return "give one of them another with name="
    if spec.generation == "python":
        return (
            "write @command(name=...) above one of two functions; give one of two "
            "objects, classes or modules another name: plugin_from(OBJECT, name=...)"
        )
    return "write another `name:` in one of them, or config.name where that is set"


def close_all(
    closing: Sequence[Callable[[], Any]],
    wait: Callable[[Coroutine[Any, Any, Any]], object],
) -> None:
    """Call all `close` functions in turn, even if one raises.

    Args:
        closing: the `close` functions.
        wait: receives the coroutine that an `async def close` returns.
    """
    with ExitStack() as after:
        for close in reversed(closing):  # a stack runs the last first
            after.callback(_close, close, wait)


def _close(
    close: Callable[[], Any], wait: Callable[[Coroutine[Any, Any, Any]], object]
) -> None:
    result = close()
    if iscoroutine(result):
        wait(result)
