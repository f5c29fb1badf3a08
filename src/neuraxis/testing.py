"""Test helpers for plugin authors: no model, no network.

    def test_it_says_hello():
        assert check_plugin("plugins/hello") == []
        assert call("plugins/hello", "greet", {"person": "Ada"}).status == "done"

`call` runs one command, `check_plugin` reads a plugin as the runtime does,
`prompt_of` and `golden` record what the model sees, `round_trip` is for dialects.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from msgspec.structs import replace

from neuraxis.call_errors import problem_text
from neuraxis.dialects import DIALECTS, Dialect, find_dialect
from neuraxis.dialects.native.dialect import Native
from neuraxis.errors import ConfigError, ManifestError, ManifestProblem
from neuraxis.formatting import quote
from neuraxis.messages import Call, CallError, Completion, Result
from neuraxis.models.scripted import ScriptedModel, ScriptedReply
from neuraxis.planning.build import build
from neuraxis.plugins.functions.source_location import Spot, spot_of
from neuraxis.plugins.loader import as_given, load_plugin, without_code
from neuraxis.plugins.manifest.load import lines_of_commands
from neuraxis.plugins.registry import Plugin, Registry, close_all
from neuraxis.plugins.source import find_source
from neuraxis.policy.rules import Policy
from neuraxis.schema.annotations import marks_of
from neuraxis.session.options import Options
from neuraxis.session.session import Session
from neuraxis.settings import Settings
from neuraxis.specs import CommandSpec, Example, Json, PluginSpec


def _stems(*verbs: str) -> frozenset[str]:
    return frozenset(verb.removesuffix("e") for verb in verbs)


DEEDS = _stems(
    *("send", "notify", "pay", "buy", "donate", "publish", "deploy", "delete"),
    *("remove", "erase", "wipe", "drop", "destroy", "purge", "cancel"),
)
"""Verbs, without a last e, of what cannot be taken back; none is a noun, too."""
OUTWARD = DEEDS | _stems(
    *("mail", "email", "forward", "reply", "invite", "message", "transfer", "purchase"),
    *("order", "refund", "charge", "post", "tweet", "share", "upload", "release"),
)
"""All such verbs, without a last e."""

__all__ = [
    "ScriptedModel",
    "ScriptedReply",
    "call",
    "check_plugin",
    "golden",
    "prompt_of",
    "round_trip",
]

UPDATE = "NEURAXIS_UPDATE_GOLDEN"
"""Set to 1, `golden` writes its files instead of comparing."""


def call(
    plugin: Any,
    command: str,
    arguments: Json = None,
    *,
    workspace: Path | str | None = None,
    policy: Policy | None = None,
    settings: Settings | None = None,
    strict: bool = False,
    deps: Any = None,
) -> Result:
    """Run one command as a model's call: checked, authorised, stored.

    The command may be a `def` or an `async def`. The value is as in `Answer.calls`.

    Args:
        plugin: what a `Session` accepts: a function, an object, a folder, a name.
        command: the command's name, or a tool name.
        arguments: as a model writes them; default: none. An object, such as a data
            frame, is passed by reference, and a `Path` as `Session.attach` reads it.
        workspace: the folder that commands may write to; default: a temporary one.
        policy: default: everything may run.
        settings: default: none, so that no test depends on the machine's.
        strict: an undeclared response is an error.
        deps: what the command finds as `context.deps`, as `Session.run` takes it.
    """
    if not isinstance(cast("Any", command), str):
        raise ConfigError(
            f"call: command: expected the command's name, got {quote(command)}; write "
            "call(plugin, 'NAME', {...})"
        )
    _refuse_running_loop()
    with ExitStack() as stack:
        if workspace is None:
            workspace = stack.enter_context(TemporaryDirectory())
        session = stack.enter_context(
            Session(
                model=ScriptedModel([]),
                plugins=[plugin],
                workspace=workspace,
                policy=policy or Policy(default="allow"),
                settings=settings or Settings(),
                options=Options(strict=strict),
            )
        )
        found = session.registry.plugins[0].spec.name
        known = session.registry.plugins[0].commands
        given: Json = {}
        if arguments is not None:
            given = _with_references(arguments, session)
        asked = Call(
            id=session.ids.new(),
            plugin=found if command in known else None,
            command=command,
            arguments=given,
        )
        result = asyncio.run(_called(session, asked, deps))
        if result.status != "done":
            return result
        return replace(result, value=session.assets.returned(asked.id, result.value))


def _with_references(value: Any, session: Session) -> Json:
    """Return arguments with references to the objects in them."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_with_references(item, session) for item in items]
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        return {key: _with_references(entries[key], session) for key in entries}
    return {"asset_id": session.attach(value), "field_path": ["content"]}


async def _called(session: Session, asked: Call, deps: Any) -> Result:
    async with session:  # the call's connections belong to this loop
        return await session.call(asked, deps=deps)


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ConfigError(
        "call: it cannot be used where an event loop is running, as in Jupyter and in "
        "async functions; there: result = await asyncio.to_thread(call, plugin, ...)"
    )


def check_plugin(source: Any) -> list[str]:
    """Return every error and warning of a plugin; empty if none.

    Checked are its description, its code's agreement with it, its examples (as calls
    that would be checked before they run) and how each dialect shows it. Nothing of
    it is called.
    """
    try:
        with _plugins_of(source) as plugins:
            found = [str(item) for plugin in plugins for item in findings(plugin)]
    except ManifestError as error:
        return [str(problem) for problem in error.problems]
    except ConfigError as error:
        return [str(error)]
    return list(dict.fromkeys(found))


@contextmanager
def _plugins_of(source: Any) -> Generator[Sequence[Plugin], None, None]:
    """Load plugins as a `Session` does; servers run until the block ends."""
    outer = find_source(source)
    if outer is None:
        plugin = load_plugin(source)
        try:
            yield (plugin,)
        finally:
            if plugin.close is not None and plugin is not source:
                close_all([plugin.close], lambda coroutine: coroutine.close())
        return
    try:
        yield outer.open_plugins(Path.cwd())
    finally:
        outer.close_plugins()


def findings(plugin: Plugin) -> list[ManifestProblem]:
    """Return the errors and warnings of a plugin that was loaded."""
    file = plugin.spec.source
    lines = (
        *_undescribed(plugin),
        *_undeclared(plugin),
        *_wrong_examples(plugin),
        *_not_shown(plugin),
    )
    whole = Spot(file, 1 if file.endswith(".py") else 0, "")
    spots = {"": whole, **_spots_of(plugin)} if lines else {}
    found = [*plugin.problems, *without_code(plugin)]
    for name, text in lines:
        spot = spots[name]
        message = f"{name}: {text}" if name else text
        found.append(
            ManifestProblem(
                file=spot.file, line=spot.line, message=message, severity="warning"
            )
        )
    return [*as_given(found, Path(file))]


def _spots_of(plugin: Plugin) -> dict[str, Spot]:
    """Return where commands are described: functions, or lines of a manifest."""
    file, lines = plugin.spec.source, lines_of_commands(plugin.spec)
    return {
        name: Spot(file, lines.get(name, 0), "")
        if item.function is None
        else spot_of(item.function)
        for name, item in plugin.commands.items()
    }


def _wrong_examples(plugin: Plugin) -> Iterator[tuple[str, str]]:
    """Return warnings for examples that would be refused."""
    registry = Registry([plugin])
    for example in plugin.spec.examples:
        yield from (("", text) for text in _wrong_example(example, registry))
    for name, item in plugin.commands.items():
        for example in item.spec.examples:
            yield from ((name, text) for text in _wrong_example(example, registry))
        output = item.spec.example_output
        if output is not None and item.response is not None:
            for problem in item.response.problems(output):
                yield name, f"the example output does not fit: {problem_text(problem)}"


def _not_shown(plugin: Plugin) -> Iterator[tuple[str, str]]:
    registry = Registry([plugin])
    for dialect in DIALECTS:
        text = prompt_of(plugin, dialect)
        for name, item in plugin.commands.items():
            shown_as = registry.tool_name(item) if dialect == "intents" else name
            if plugin.spec.listed and dialect != "native" and shown_as not in text:
                yield name, f"{dialect} does not show it"


def _undescribed(plugin: Plugin) -> Iterator[tuple[str, str]]:
    """Return the loader's warnings for plugins without a manifest."""
    if plugin.spec.generation != "python":
        return
    if not plugin.spec.description_model:
        yield "", "the plugin has no description: a model cannot choose it"
    for name, item in plugin.commands.items():
        if not item.spec.description:
            yield name, "the command has no description"
        nodes: dict[str, Any] = item.spec.parameters.get("properties", {})
        for parameter, node in nodes.items():
            if not node.get("description"):
                yield name, f"the parameter {parameter} has no description"


def _undeclared(plugin: Plugin) -> Iterator[tuple[str, str]]:
    """Name the commands that send, pay or delete without declaring it."""
    for name, item in plugin.commands.items():
        spec = item.spec
        marks = marks_of(spec.parameters)
        if spec.effects.declared or spec.effects.needs_approval:
            continue
        if spec.effects.kind in ("none", "read"):
            words, verbs = [*_words(name)[:1], *_words(spec.description)[:1]], DEEDS
            wrong = (
                f"its effects are {spec.effects.kind!r}, as of one that changes "
                "nothing. Declare the effects once or idempotent"
            )
        elif marks.trusted_only or marks.sends_out or marks.files:
            continue
        else:
            words, verbs = [*_words(name), *_words(spec.description)], OUTWARD
            wrong = (
                "it declares nothing of the kind. Declare trusted_only (whom, where) "
                "or sends_out on a parameter, or effects with destructive and "
                "others_write: see docs/security.md"
            )
        if word := next((word for word in words if _stem(word) in verbs), ""):
            deed = f"the word {word!r} says that it sends, pays, publishes or deletes"
            yield name, f"{deed}, but {wrong}"


def _words(text: str) -> list[str]:
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    return re.findall(r"[a-z]+", apart.lower())


def _stem(word: str) -> str:
    return re.sub("(e|s|es)$", "", word)


def _wrong_example(example: Example, registry: Registry) -> Iterator[str]:
    """Return the error that an example's calls would cause."""
    names = registry.tool_names
    if any(item.tool not in names for item in example.calls):
        return  # A chain with another plugin's tools.
    calls: list[Call] = []
    for number, item in enumerate(example.calls, 1):
        arguments = dict(item.arguments)
        takes_as = "as" in _parameters(registry, item.tool)
        step = None if takes_as else arguments.pop("as", None)
        calls.append(
            Call(
                id=f"example {number}",  # An example may mention the asset a1.
                plugin=None,
                command=item.tool,
                arguments=arguments,
                name=step,
            )
        )
    plan = build(calls, registry.find, known_assets=lambda asset_id: True)
    for error in plan.problems:
        yield f"the example {example.question!r} does not fit: {error.message}"


def _parameters(registry: Registry, tool: str) -> Sequence[str]:
    found = registry.find(None, tool)
    return () if isinstance(found, CallError) else found.spec.parameter_names


def prompt_of(source: Any, dialect: str = "intents", *, strict: bool = False) -> str:
    """Return the prompt text of a plugin in that dialect."""
    with _plugins_of(source) as plugins:
        registry = Registry(plugins)
        return find_dialect(dialect, strict=strict).prompt(
            registry.specs, registry.tool_names
        )


def golden(file: Path | str, text: str) -> None:
    """Compare a text with the content of a golden file.

    With the environment variable `NEURAXIS_UPDATE_GOLDEN=1` the file is written.

    Raises:
        AssertionError: the text differs, or there is no such file.
    """
    path = Path(file)
    if os.environ.get(UPDATE) == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    if not path.is_file():
        raise AssertionError(f"{path} is not there; set {UPDATE}=1 to write it")
    kept = path.read_text(encoding="utf-8")
    if kept != text:
        lines = difflib.unified_diff(
            kept.splitlines(), text.splitlines(), str(path), "now", lineterm=""
        )
        told = "\n".join(lines)
        raise AssertionError(f"{told}\nIf this is right, set {UPDATE}=1 to write it")


def round_trip(dialect: str | Dialect, calls: Sequence[Call]) -> None:
    """Check that encoding and decoding calls in a dialect preserves them.

    Raises:
        AssertionError: they are others, or cannot be read.
    """
    spoken = find_dialect(dialect) if isinstance(dialect, str) else dialect
    if isinstance(spoken, Native):
        _teach(spoken, calls)
        completion = Completion(
            tool_calls=spoken.native_calls(calls), finish_reason="tool_calls"
        )
    else:
        completion = Completion(text=spoken.write(calls))
    ids = iter([item.id for item in calls])
    reply = spoken.decode(completion, next_id=lambda: next(ids, "more"))
    if reply.errors:
        raise AssertionError(f"{spoken.name}: {reply.errors[0].message}")
    wanted, found = _comparable(calls), _comparable(reply.calls)
    if wanted != found:
        raise AssertionError(f"{spoken.name}: wrote {wanted}, read {found}")


def _teach(native: Native, calls: Sequence[Call]) -> None:
    """Prepare the dialect for the tools: servers may require other names."""
    tools = {item.target: (item.plugin or "", item.command) for item in calls}
    specs = [
        PluginSpec(name=plugin, commands=(CommandSpec(name=name),))
        for plugin, name in tools.values()
    ]
    native.native_tools(specs, tools)


def _comparable(calls: Sequence[Call]) -> list[tuple[Any, ...]]:
    return [
        (item.id, item.target, item.arguments, item.name, item.literal)
        for item in calls
    ]
