"""Shared command line options, and the session made from them."""

from __future__ import annotations

import fnmatch
import json
import logging
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from neuraxis.cli.display.text import echo
from neuraxis.cli.standard_output import kept_for_answers
from neuraxis.dialects import DIALECTS
from neuraxis.errors import ConfigError
from neuraxis.formatting import did_you_mean, nearest, quote, why_unusable
from neuraxis.specs import Json

if TYPE_CHECKING:
    from neuraxis.journal import Journal
    from neuraxis.planning.plan import OnError
    from neuraxis.policy.gate import Approve
    from neuraxis.session.options import Options
    from neuraxis.session.session import Session
    from neuraxis.session.visible_results import ShowResults
    from neuraxis.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

BUILTIN = ("web_search", "files", "fetch_url", "python_file", "assets")
"""Default plugins of a run."""


class Choices(Struct, frozen=True, kw_only=True):
    """The user's choices on the command line; None: not set."""

    model: str | None = None
    base_url: str | None = None
    dialect: str | None = None
    instructions: str | None = None
    output: str | None = None
    workspace: str | None = None
    plugin: tuple[str, ...] = ()
    no_builtin: bool = False
    template: str | None = None
    journal: str | None = None
    allow_host: tuple[str, ...] = ()
    strict: bool = False
    no_early_start: bool = False
    max_calls: int | None = None
    max_seconds: float | None = None
    yes_to: tuple[str, ...] = ()
    later: bool = False
    on_error: OnError | None = None
    show_results: ShowResults = "all"


_OPTIONS: Mapping[str, Callable[[Any], Any]] = {
    "model": click.option(
        "-m",
        "--model",
        help="The model: local:, openai:NAME, http://HOST/v1#NAME or scripted:FILE.",
    ),
    "base_url": click.option(
        "--base-url", help="The address of an OpenAI-compatible server."
    ),
    "dialect": click.option(
        "--dialect",
        type=click.Choice(DIALECTS),
        help="The format in which the model writes calls.",
    ),
    "instructions": click.option(
        "--instructions",
        help="Your instructions for the model, or @FILE to read them from a file.",
    ),
    "output": click.option(
        "--output",
        type=click.Path(),
        help="A file with the JSON Schema that the answer must fit.",
    ),
    "workspace": click.option(
        "-w",
        "--workspace",
        type=click.Path(),
        help="The folder that commands may write to.",
    ),
    "plugin": click.option(
        "-p",
        "--plugin",
        multiple=True,
        type=click.Path(),
        metavar="PLUGIN",
        help="A plugin's folder, .py file or name; can be given several times.",
    ),
    "no_builtin": click.option(
        "--no-builtin", is_flag=True, help="Leave out the built-in plugins."
    ),
    "template": click.option(
        "--template", type=click.Path(), help="A file with your own prompt template."
    ),
    "journal": click.option(
        "--journal",
        type=click.Path(),
        help='Where sessions are recorded: a SQLite file, or "memory".',
    ),
    "allow_host": click.option(
        "--allow-host",
        multiple=True,
        help="A private address that requests may reach: HOST:PORT, or HOST for the "
        "ports 80, 443, 8080 and 8443 only.",
    ),
    "strict": click.option(
        "--strict", is_flag=True, help="Accept only the exact form of the protocol."
    ),
    "no_early_start": click.option(
        "--no-early-start",
        is_flag=True,
        help="Start no call before the model's reply is complete.",
    ),
    "max_calls": click.option(
        "--max-calls",
        type=click.IntRange(1),
        help="Maximum calls in one run; default: 100.",
    ),
    "max_seconds": click.option(
        "--max-seconds",
        type=click.FloatRange(0.1),
        help="Maximum seconds for one run; default: 600.",
    ),
    "yes_to": click.option(
        "--yes-to",
        multiple=True,
        help="Run PLUGIN.COMMAND without asking; also a pattern, such as files.*.",
    ),
    "later": click.option(
        "--later",
        is_flag=True,
        help="Let calls that need approval wait for `neuraxis sessions approve`.",
    ),
    "on_error": click.option(
        "--on-error",
        type=click.Choice(("fail_fast", "continue", "retry")),
        help="What happens to a plan when a step fails; default: fail_fast.",
    ),
    "show_results": click.option(
        "--show-results",
        type=click.Choice(("all", "final")),
        default="all",
        help="Which results of a plan the model sees; final: only those that no "
        "later step uses. Default: all.",
    ),
}
journal_option = click.option(
    "--journal", type=click.Path(), help="Where sessions are recorded: a SQLite file."
)
"""The option of commands that read sessions."""
CALLS = (
    "plugin", "no_builtin", "strict", "workspace", "journal", "allow_host", "yes_to",
)  # fmt: skip
"""Options of commands that run calls without a model."""
PLANS = (*CALLS, "max_calls", "max_seconds", "on_error")
"""Options of commands on plans, `check` included: one line fits all."""


def session_options(*names: str) -> Callable[[F], F]:
    """Add the options that configure a session; by default all.

    A command has only options with an effect there: an ignored option misleads, and
    it hides a parameter of that name from `call`.
    """

    def add(command: F) -> F:
        for name in reversed([*_OPTIONS]):
            if not names or name in names:
                command = _OPTIONS[name](command)
        return command

    return add


def keep_earlier_name(group: click.Group, name: str, command: click.Command) -> None:
    """Keep an earlier version's name of a command, without showing it."""
    alias = copy(command)
    alias.hidden = True
    group.add_command(alias, name)


def settings_of(choices: Choices) -> Settings:
    """Return all settings; the command line takes precedence.

    Raises:
        ConfigError: a file of settings has mistakes.
    """
    from neuraxis.settings import check_settings, load

    written = load(Path.cwd())
    check_settings(written)
    return written.override(
        {
            "model": choices.model,
            "openai.base_url": choices.base_url,
            "dialect": choices.dialect,
            "instructions": choices.instructions,
            "workspace": choices.workspace,
            "journal": choices.journal,
        },
        "command line",
    )


def journal_path(settings: Settings) -> str:
    """Return the journal's path: the setting, else the user's data folder."""
    from neuraxis.settings import user_dir

    setting = settings.get("journal")
    if not setting:
        return str(user_dir("data") / "journal.db")
    return "memory" if setting == "memory" else str(Path(str(setting)).expanduser())


def asset_folder(settings: Settings) -> Path | None:
    """Return the asset folder next to the journal; None: in memory."""
    path = journal_path(settings)
    return None if path == "memory" else Path(path).parent / "assets"


def versions_folder(settings: Settings) -> Path | None:
    """Return the folder of old versions if the journal has none.

    With it, commands still know which files they wrote before.
    """
    from neuraxis.settings import user_dir

    if journal_path(settings) != "memory":
        return None
    return user_dir("data") / "versions"


def instructions_of(settings: Settings) -> str | None:
    """Return the setting `instructions`, or the content of its `@FILE`.

    Raises:
        ConfigError: the file cannot be read.
    """
    instructions = settings.get("instructions")
    text = "" if instructions is None else str(instructions)
    if not text.startswith("@"):
        return text or None
    return read_file(text[1:], "instructions: ")


def read_file(file: str | Path, before: str = "", after: str = "") -> str:
    """Return the text of a file that the user named.

    Args:
        file: its path.
        before: the option that named it, such as `--output `, for the error.
        after: the end of the error message.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = why_unusable(error)
        raise ConfigError(f"{before}{file}: cannot be read: {reason}{after}") from error


def pairs_of(texts: Iterable[str], option: str = "") -> list[tuple[str, str]]:
    """Return the name and the value of each NAME=VALUE.

    Args:
        texts: the typed texts.
        option: their option, such as `--set `, for the error.

    Raises:
        ConfigError: one has no `=`.
    """
    pairs: list[tuple[str, str]] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"{option}{text}: expected NAME=VALUE")
        pairs.append((name.strip(), value))
    return pairs


def to_load(name: str, given: Sequence[str]) -> str:
    """Return advice to name a plugin with -p, unless -p did.

    Args:
        name: the plugin or tool that was not found; its file may be here, or it comes
            with the package.
        given: the plugins of -p.
    """
    from neuraxis.plugins.loader import builtin_names

    if name in builtin_names():
        return f" It comes with the package: add -p neuraxis:{name}"
    paths = [path for path in (f"{name}.py", name) if name and Path(path).exists()]
    if given and not paths:
        return ""
    return (
        f" A plugin of your own is given with -p, such as -p {[*paths, 'FILE.py'][0]}"
    )


def _schema_in(file: str | None) -> Json:
    """Return the JSON Schema in a file."""
    if file is None:
        return None
    try:
        return json.loads(read_file(file, "--output "))
    except ValueError as error:
        raise ConfigError(f"--output {file}: expected a JSON Schema: {error}") from None


def plugin_sources(choices: Choices, settings: Settings) -> list[str]:
    """Return the built-in plugins and the named ones.

    Raises:
        ConfigError: a project's file names a server that takes a secret.
    """
    from neuraxis.bridges.mcp_client.config import taken_by
    from neuraxis.settings import FILE_NAME, items_of, user_dir

    sources = list(choices.plugin)
    for item in settings.items_of_project("plugins"):
        if item not in sources and (secret := taken_by(str(item))):
            raise ConfigError(
                f"{settings.values['plugins'].source}: plugins: {item}: expected a "
                f"server that takes no secret and no variable, got {secret}; a "
                "project's file may not say where these are sent: name it, with its "
                f"full path, in {user_dir('config') / FILE_NAME}, or give --plugin"
            )
    sources += [str(item) for item in items_of(settings.get("plugins", []))]
    builtin = [] if choices.no_builtin else [f"neuraxis:{name}" for name in BUILTIN]
    return list(dict.fromkeys([*builtin, *sources]))


def make_session(
    choices: Choices,
    *,
    resume: str | None = None,
    reopen: str | None = None,
    journal: Journal | None = None,
    approve: Approve | None = None,
    model: Any = None,
) -> Session:
    """Create the session that the command line describes.

    Raises:
        ConfigError: a named file, plugin or model does not exist.
    """
    from neuraxis.cli.approve import ask_on_terminal, is_somebody_there
    from neuraxis.execution.budget import Budget
    from neuraxis.policy.rules import policy_from
    from neuraxis.session.options import SessionArguments
    from neuraxis.session.session import Session

    settings = settings_of(choices)
    policy = policy_from(settings.section("policy"))
    approve = approve or (ask_on_terminal if is_somebody_there() else None)
    if choices.template:
        read_file(choices.template, "--template ")
    arguments = SessionArguments(
        model=model or str(settings.get("model") or "local:"),
        plugins=plugin_sources(choices, settings),
        instructions=instructions_of(settings),
        output=_schema_in(choices.output),
        dialect=str(settings.get("dialect") or "intents"),
        workspace=None if choices.workspace is None else Path(choices.workspace),
        journal=journal or journal_path(settings),
        settings=settings,
        budget=Budget(
            steps=choices.max_calls or Budget().steps,
            seconds=choices.max_seconds or Budget().seconds,
        ),
        policy=replace(
            policy,
            yes_to=(*policy.yes_to, *choices.yes_to),
            allow_hosts=(*policy.allow_hosts, *choices.allow_host),
        ),
        approve="later" if choices.later else approve,
        options=_uncommon(choices, settings, reopen=reopen is not None),
    )
    told_here = choices.yes_to if reopen is None else ()
    with _warnings_as_lines(), kept_for_answers(), _without_log_of(told_here):
        try:
            if resume is None:
                session = Session(id=reopen, **arguments)
            else:
                session = Session.open(resume, **arguments)
        except ConfigError as error:
            raise _with_source(error, settings, choices) from None
    _warn_of_unused(told_here, session)
    return session


def _with_source(
    error: ConfigError, settings: Settings, choices: Choices
) -> ConfigError:
    """Name the option, file or variable that the session refused."""
    from neuraxis.settings import items_of

    message = str(error)
    for pattern in choices.yes_to:
        if message.startswith(begins := _in_policy(pattern)):
            return ConfigError(f"--yes-to {pattern}{message.removeprefix(begins)}")
    for key, begins in (("dialect", "dialect:"), ("model", "model ")):
        setting = settings.values.get(key)
        from_line = setting is None or setting.source == "command line"
        if message.startswith(begins) and setting and not from_line:
            return ConfigError(f"{setting.source}: {message}")
    for item in map(str, items_of(settings.get("plugins", []))):
        begun = message.startswith((f"plugin {quote(item)}:", f"plugin {item!r}:"))
        if begun and item not in choices.plugin:
            return ConfigError(f"{settings.values['plugins'].source}: {message}")
    return error


def _uncommon(choices: Choices, settings: Settings, *, reopen: bool) -> Options:
    """Return the session's less common options."""
    from neuraxis.session.options import Options

    return Options(
        reopen=reopen,
        template=choices.template,
        asset_folder=asset_folder(settings),
        versions_folder=versions_folder(settings),
        strict=choices.strict,
        early_start=not choices.no_early_start,
        on_error=choices.on_error or "fail_fast",
        show_results=choices.show_results,
    )


def _warn_of_unused(patterns: Sequence[str], session: Session) -> None:
    """Warn of each `--yes-to` that matches no command.

    It is no error: it may be meant for the plugins of an agent inside a command. A
    batch, which reopens sessions, would repeat it for each row.
    """
    tools = session.registry.tool_names
    targets = [*session.registry.targets]
    for pattern in patterns:
        if not fnmatch.filter(targets, pattern):
            named = [".".join(tools[pattern])] if pattern in tools else []
            named += [one for one in targets if one.endswith(f".{pattern}")]
            close = did_you_mean(
                [*dict.fromkeys(named)] or nearest(pattern, targets)[:1]
            )
            echo(
                f"neuraxis: --yes-to {pattern}: it matches no command here.{close}",
                err=True,
            )


def _in_policy(pattern: str) -> str:
    """Return the beginning of the policy's messages about a `--yes-to`."""
    return f"policy.yes_to: {quote(pattern)}"


@contextmanager
def _without_log_of(yes_to: Sequence[str]) -> Generator[None]:
    """Leave out the policy's log messages about an option."""
    beginnings = tuple(map(_in_policy, yes_to))
    log = logging.getLogger("neuraxis.policy")

    def is_other(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith(beginnings)

    log.addFilter(is_other)
    try:
        yield
    finally:
        log.removeFilter(is_other)


@contextmanager
def _warnings_as_lines() -> Generator[None]:
    """Write warnings as lines of the command line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        echo(f"neuraxis: {warning.message}", err=True)
