"""Load a plugin from a function, class, folder, file or name.

The code of a folder is its `plugin.py`: functions named like the commands, a class
`Plugin` with such methods, or an object with `command(name, param)`. A plugin in the
shape that the protocols came from runs unchanged: a class with `command`, created by
`constructor(config)` or found alone, in `plugin.py` or `__init__.py`, receives the
whole manifest. Nothing that a manifest names is ever imported.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, get_args

from msgspec.structs import replace

from neuraxis.errors import ConfigError, ManifestError, ManifestProblem, error_of
from neuraxis.formatting import did_you_mean, nearest, quote
from neuraxis.plugins.command_code import holder_of, is_bare
from neuraxis.plugins.functions.caller import Caller, caller_of
from neuraxis.plugins.functions.command import plugin_from
from neuraxis.plugins.functions.hint_kinds import UNREADABLE, NoType
from neuraxis.plugins.functions.hints import understand
from neuraxis.plugins.functions.instances import FillsSecrets, close_of
from neuraxis.plugins.functions.source_location import spot_of
from neuraxis.plugins.manifest.defaults import fill_defaults
from neuraxis.plugins.registry import BUILTIN, FILE_NAME, Command, Plugin
from neuraxis.plugins.source import BUILTIN_PREFIX, is_builtin
from neuraxis.plugins.source_files import import_file, raised
from neuraxis.specs import CommandSpec, PluginSpec

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

CODE_NAMES = ("plugin.py", "__init__.py")
GROUP = "neuraxis.plugins"


def load_plugin(
    source: Any, *, strict: bool = False, secrets: FillsSecrets | None = None
) -> Plugin:
    """Load the plugin that `source` is or names.

    Args:
        source: a function, class, instance, module or `Plugin`; a folder with a
            `config.yaml`; a manifest of another name, which has no code; a `.py` file
            with functions marked by `@command`; `neuraxis:` and the name of a plugin
            that comes with the package; or the name of an entry point of the group
            `neuraxis.plugins`.
        strict: whether one invalid command makes the whole manifest invalid.
        secrets: fills in the secrets in a constructor's arguments; None: they keep
            their names.

    Raises:
        ManifestError: the description or the code has mistakes; it lists all.
        ConfigError: nothing has that name.
    """
    if isinstance(source, Path):
        return _from_path(source, strict, secrets)
    if not isinstance(source, str):
        return plugin_from(source)
    name = source.strip()
    if is_builtin(name):
        return _builtin(name.removeprefix(BUILTIN_PREFIX))
    path = _place(name)
    if path is not None:
        return _from_path(path, strict, secrets)
    points = {point.name: point for point in installed()}
    if name in points:
        return _entry_point(points[name], secrets)
    if name and _exists(name):
        short = (Path(name).expanduser() / "config.yml").is_file()
        raise ConfigError(
            f"{name}: expected a folder with a {FILE_NAME}, a manifest, or a .py file"
            + f"; its config.yml must be named {FILE_NAME}" * short
        )
    names = [*points, *(f"neuraxis:{folder}" for folder in builtin_names())]
    builtin_name = f"neuraxis:{name}"
    close = (
        (builtin_name,)
        if builtin_name in names
        else nearest(name, (*names, *_similar_paths(name)))
    ) or tuple(f"neuraxis:{one}" for one in nearest(name, builtin_names()))
    hint = did_you_mean(close)
    if not close and name.isidentifier():
        hint = f" In Python a function goes without quotes: plugins=[{name}]."
    listed = ", ".join(names) or "none"
    raise ConfigError(
        f"plugin {quote(name)}: not a file, a folder or a known plugin."
        f"{hint} Known plugins: {listed}"
    )


def _place(name: str) -> Path | None:
    """Return the folder, manifest or file of a text; None otherwise."""
    try:
        path = Path(name).expanduser()
        is_file = path.suffix in (".py", ".yaml", ".yml") and path.is_file()
        is_ours = path.name == FILE_NAME or (path / FILE_NAME).is_file()
    # The path is too long, or the user of `~name` does not exist.
    except (OSError, RuntimeError):
        return None
    return path if is_file or is_ours else None


def _similar_paths(name: str) -> list[str]:
    """Return similar files near the path, for the error message."""
    path = Path(name)
    try:
        siblings = sorted(path.expanduser().parent.iterdir())[:1000]
    except (OSError, RuntimeError):
        return []
    folder = "" if path.parent == Path() else f"{path.parent}/"
    return [folder + item.name for item in siblings if _place(str(item)) is not None]


def _exists(name: str) -> bool:
    try:
        return Path(name).expanduser().exists()
    except (OSError, RuntimeError):
        return False


def without_code(plugin: Plugin) -> tuple[ManifestProblem, ...]:
    """Return the errors of a folder's commands without code.

    A manifest of another name than config.yaml is a description only, and a plugin
    that is not listed is no plugin of a model.
    """
    missing = [name for name, item in plugin.commands.items() if item.run is None]
    if not missing or not plugin.spec.listed:
        return ()
    source = Path(plugin.spec.source)
    if source.name != FILE_NAME:
        return ()
    # Imported on first use: a session of Python functions needs no YAML.
    from neuraxis.plugins.manifest.load import lines_of_commands

    lines = lines_of_commands(plugin.spec)
    return tuple(
        _problem(
            source,
            f"{name}: there is no code for this command; write it in {CODE_NAMES[0]} "
            "beside this file",
            lines.get(name, 0),
        )
        for name in missing
    )


def check_code(plugin: Plugin) -> None:
    """Refuse a folder without code.

    Raises:
        ManifestError: its commands could be shown, and would fail when called.
    """
    if problems := without_code(plugin):
        raise ManifestError(problems)


def load_plugins(
    sources: Iterable[Any],
) -> tuple[list[Plugin], list[ManifestError]]:
    """Load plugins; return those that load and the errors of others."""
    plugins: list[Plugin] = []
    errors: list[ManifestError] = []
    for source in sources:
        try:
            plugins.append(load_plugin(source))
        except ManifestError as error:
            errors.append(error)
        except ConfigError as error:
            errors.append(error_of(str(source), str(error)))
    return plugins, errors


def builtin_names() -> tuple[str, ...]:
    """Return the names of the plugins that come with the package."""
    return tuple(sorted(file.parent.name for file in BUILTIN.glob(f"*/{FILE_NAME}")))


def installed() -> tuple[EntryPoint, ...]:
    """Return the plugins of installed packages, without importing them."""
    # Imported on first use: slow and seldom needed.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


def _builtin(name: str) -> Plugin:
    names = builtin_names()
    if name not in names:
        close = nearest(name, names, 1)
        hint = did_you_mean([f"neuraxis:{folder}" for folder in close])
        raise ConfigError(
            f"plugin 'neuraxis:{name}': no plugin of that name comes with the package."
            f"{hint} Those that do: {', '.join(names) or 'none'}"
        )
    return _from_folder(BUILTIN / name)


def _entry_point(point: EntryPoint, secrets: FillsSecrets | None) -> Plugin:
    where = f"entry point {point.name} ({point.value})"
    try:
        value = point.load()
    except (Exception, SystemExit) as error:
        raise error_of(where, raised(error)) from error
    if isinstance(value, str):
        return _from_folder(Path(value), secrets=secrets)
    return load_plugin(value, secrets=secrets)


def _from_path(path: Path, strict: bool, secrets: FillsSecrets | None) -> Plugin:
    if path.suffix == ".py" and path.is_file():
        module = import_file(path, path.stem)
        try:
            plugin = plugin_from(module, name=path.stem)
        except ManifestError as error:
            raise ManifestError(as_given(error.problems, path)) from error
        spec = replace(plugin.spec, source=str(path))
        for command in plugin.commands.values():
            command.plugin = spec
        return replace(plugin, spec=spec, problems=as_given(plugin.problems, path))
    return _from_folder(path, strict, secrets)


def as_given(
    problems: Iterable[ManifestProblem], code: Path
) -> tuple[ManifestProblem, ...]:
    """Return problems with the file as the user named it."""
    file = str(code.absolute())
    return tuple(
        replace(problem, file=str(code)) if problem.file == file else problem
        for problem in problems
    )


def _from_folder(
    path: Path, strict: bool = False, secrets: FillsSecrets | None = None
) -> Plugin:
    # Imported on first use: a session of Python functions needs no YAML.
    from neuraxis.plugins.manifest.class_names import misnamed
    from neuraxis.plugins.manifest.load import load_manifest

    spec, problems = load_manifest(path, strict=strict)
    folder = path if path.is_dir() else path.parent
    # Beside a manifest of another name there may be others: the code is ambiguous.
    names = CODE_NAMES if path.is_dir() or path.name == FILE_NAME else ()
    code = next((file for name in names if (file := folder / name).is_file()), None)
    module = None if code is None else import_file(code, spec.name)
    if code is None or module is None or is_bare(code, module):
        commands = {
            item.name: Command(plugin=spec, spec=item) for item in spec.commands
        }
        return Plugin(spec=spec, commands=commands, problems=problems)
    try:
        holder = holder_of(spec, module, code, secrets)
        commands, warnings = _commands(spec, holder, module, code)
    except ManifestError as error:
        # An unused key may explain why code and description disagree.
        all_problems = (*problems, *as_given(error.problems, code))
        raise ManifestError(all_problems) from error
    problems = (*problems, *as_given(warnings, code), *misnamed(spec, module))
    close = None if holder is module else close_of(holder, commands)
    return Plugin(spec=spec, commands=commands, problems=problems, close=close)


def _commands(
    spec: PluginSpec, holder: Any, module: ModuleType, code: Path
) -> tuple[dict[str, Command], list[ManifestProblem]]:
    """Return the commands and the warnings about them."""
    names = {item.name for item in spec.commands}
    reconcile = None if "reconcile" in names else getattr(holder, "reconcile", None)
    general = getattr(holder, "command", None) if "command" not in names else None
    commands: dict[str, Command] = {}
    problems: list[ManifestProblem] = []
    for item in spec.commands:
        function = getattr(holder, re.sub(r"\W", "_", item.name), None)
        if callable(function) and not isinstance(function, type):
            command, wrong = _named(spec, item, function, code)
            problems += wrong
        elif callable(general) and getattr(general, "__module__", "") != (
            # `from neuraxis import command` also has an attribute `command`.
            plugin_from.__module__
        ):
            command = _dispatched(spec, item, general)
        else:
            kind = "method of Plugin" if holder is not module else "function"
            message = f"there is no {kind} for the command {item.name!r}"
            message += _suggest_function(re.sub(r"\W", "_", item.name), holder, module)
            problems.append(_problem(code, message))
            continue
        if callable(reconcile):
            command.reconcile = reconcile
        commands[item.name] = command
    if any(problem.severity == "error" for problem in problems):
        raise ManifestError(tuple(problems))
    return commands, problems


def _suggest_function(name: str, holder: Any, module: ModuleType) -> str:
    """Suggest the function that the author may have meant."""
    for key, value in vars(module).items():
        if isinstance(value, type) and callable(getattr(value, name, None)):
            return f"; the class {key} has it: a plugin's class must be named Plugin"
    functions = [
        key
        for key in dir(holder)
        if not key.startswith("_") and inspect.isroutine(getattr(holder, key, None))
    ]
    close = nearest(name, functions)
    return f"; there is {close[0]}: both must have one name" if close else ""


def _dispatched(
    spec: PluginSpec, item: CommandSpec, general: Callable[..., Any]
) -> Command:
    """Return a command of an object with `command(command_name, param)`."""
    caller = caller_of(general)

    def run(**param: Any) -> Any:
        return general(item.name, param)

    takes_value = item.parameters.get("type") != "object"
    return Command(
        plugin=spec,
        spec=item,
        run=fill_defaults(
            partial(general, item.name) if takes_value else run, item.parameters
        ),
        is_async=caller.is_async,
    )


def _named(
    spec: PluginSpec, item: CommandSpec, function: Callable[..., Any], code: Path
) -> tuple[Command, list[ManifestProblem]]:
    """Return the command's function; its parameters must match the manifest."""
    caller = caller_of(function)
    _check_hints(function, caller)
    if item.parameters.get("type") != "object":
        whole = item.parameters
        is_filled = "default" in whole or "x-optional" not in whole
        missing = () if is_filled else caller.required[:1]
        problems = [_omissible(code, function, name) for name in missing]
        return _command(spec, item, caller, caller.run), problems
    renamed = _renamed(item, caller)
    names_given = {renamed.get(name, name) for name in item.parameter_names}
    plain = getattr(getattr(function, "__func__", None), "__code__", None)
    first = plain.co_varnames[: plain.co_argcount][:1] if plain is not None else ()
    problems = [
        _problem(
            code,
            f"{function.__name__}() takes no parameter {name!r}"
            + "; its first parameter must be self" * ((name,) == first),
        )
        for name in sorted(names_given - set(caller.hints))
        if not caller.open
    ]
    problems += [
        _problem(
            code,
            f"{function.__name__}() needs {name!r}, which the manifest does not have"
            + "; annotate it `context: Context`" * (name == "context"),
        )
        for name in caller.required
        if name not in names_given
    ]
    missing = [
        name
        for name in item.parameter_names
        if name not in item.defaults
        and name not in item.parameters.get("required", ())
        and renamed.get(name, name) in caller.required
    ]
    problems += [_omissible(code, function, name) for name in missing]
    run = _renaming(caller.run, renamed) if renamed else caller.run
    return _command(spec, item, caller, run), problems


def _omissible(code: Path, function: Any, name: str) -> ManifestProblem:
    message = (
        f"{function.__name__}() needs {name!r}, which the manifest makes optional; "
        "give it a default here or there, or leave required: false out"
    )
    return _problem(code, message, severity="warning")


def _check_hints(function: Callable[..., Any], caller: Caller) -> None:
    """Refuse `dict[str]`; other invalid hints are harmless beside a manifest."""
    for name, hint in caller.hints.items():
        if not get_args(hint):
            continue
        try:
            understand(hint)
        except NoType as error:
            if get_args(error.hint):
                from neuraxis.plugins.functions.hint_errors import (
                    fault,  # Imported for error messages only.
                )

                raise fault(spot_of(function), name, hint, error) from error
        except UNREADABLE:
            continue  # The manifest describes the parameters.


def _command(
    spec: PluginSpec, item: CommandSpec, caller: Caller, run: Callable[..., Any]
) -> Command:
    return Command(
        plugin=spec,
        spec=item,
        run=fill_defaults(run, item.parameters),
        is_async=caller.is_async,
        context_name=caller.context_name,
        deps=caller.deps,
    )


def _renamed(item: CommandSpec, caller: Caller) -> dict[str, str]:
    """Map `user-id` to `user_id` where the function has that parameter."""
    changes = {
        name: re.sub(r"\W", "_", name)
        for name in item.parameter_names
        if name not in caller.hints
    }
    return {name: new for name, new in changes.items() if new in caller.hints}


def _renaming(
    run: Callable[..., Any], renamed: Mapping[str, str]
) -> Callable[..., Any]:
    def call(**arguments: Any) -> Any:
        return run(**{renamed.get(name, name): arguments[name] for name in arguments})

    return call


def _problem(
    code: Path,
    message: str,
    line: int = 0,
    severity: Literal["error", "warning"] = "error",
) -> ManifestProblem:
    return ManifestProblem(
        file=str(code), line=line, message=message, severity=severity
    )
