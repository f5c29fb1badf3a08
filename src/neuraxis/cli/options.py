"""Options that several commands share, and a session made from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from neuraxis.errors import ConfigError
from neuraxis.later import dataclass
from neuraxis.specs import Json

if TYPE_CHECKING:
    from neuraxis.plan import OnError
    from neuraxis.runtime import Approve
    from neuraxis.session import Session
    from neuraxis.settings import Settings
    from neuraxis.telling import Tell

F = TypeVar("F", bound=Callable[..., Any])

BUILTIN = ("web_search", "files", "fetch_url", "python_file", "assets")
"""The plugins of every run that does not say otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the person chose on the command line; None: not said."""

    model: str | None = None
    base_url: str | None = None
    dialect: str | None = None
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
    on_error: OnError | None = None
    tell: Tell = "all"


def session_options(command: F) -> F:
    """The options of `run`, `chat`, `prompt` and `call`."""
    for option in reversed(
        (
            click.option("-m", "--model", help="local:, openai:NAME, URL#NAME, …"),
            click.option("--base-url", help="Of an OpenAI-compatible server."),
            click.option("--dialect", help="How calls are written: intents, …"),
            click.option(
                "-w", "--workspace", help="The folder that commands may write to."
            ),
            click.option(
                "-p",
                "--plugin",
                multiple=True,
                help="A plugin's folder or name; may be given several times.",
            ),
            click.option(
                "--no-builtin", is_flag=True, help="Leave out the built-in plugins."
            ),
            click.option("--template", help="Your own prompt template (a file)."),
            click.option("--journal", help='A SQLite file, or "memory".'),
            click.option(
                "--allow-host",
                multiple=True,
                help="An inside address that requests may reach: HOST:PORT.",
            ),
            click.option(
                "--strict", is_flag=True, help="Take only what the protocol says."
            ),
            click.option(
                "--no-early-start",
                is_flag=True,
                help="Start nothing while the model is still writing.",
            ),
            click.option("--max-calls", type=click.IntRange(1), help="Of one run."),
            click.option(
                "--max-seconds", type=click.FloatRange(0.1), help="Of one run."
            ),
            click.option(
                "--yes-to",
                multiple=True,
                help="Do not ask about these: a pattern of PLUGIN.COMMAND.",
            ),
            click.option(
                "--on-error",
                type=click.Choice(("fail_fast", "continue", "retry")),
                help="What a failed step does to its plan; default: fail_fast.",
            ),
            click.option(
                "--tell",
                type=click.Choice(("all", "ends")),
                default="all",
                help="Results of a plan that the model is shown: ends, only those "
                "that no later step takes.",
            ),
        )
    ):
        command = option(command)
    return command


def settings_of(choices: Choices) -> Settings:
    """All settings, those of the command line first.

    Raises:
        ConfigError: a file of settings has mistakes.
    """
    from neuraxis.arguments import check_settings
    from neuraxis.settings import load

    written = load(Path.cwd())
    check_settings(written)
    return written.override(
        {
            "model": choices.model,
            "openai.base_url": choices.base_url,
            "dialect": choices.dialect,
            "workspace": choices.workspace,
            "journal": choices.journal,
        },
        "command line",
    )


def journal_path(settings: Settings) -> str:
    """Where the journal is: the setting, else the user's data folder."""
    from neuraxis.settings import user_dir

    named = settings.get("journal")
    return str(named) if named else str(user_dir("data") / "journal.db")


def asset_folder(settings: Settings) -> Path | None:
    """Where objects are saved: beside the journal; nowhere for one in memory."""
    path = journal_path(settings)
    return None if path == "memory" else Path(path).parent / "assets"


def plugin_sources(choices: Choices, settings: Settings) -> list[str]:
    """The built-in plugins and those that were named."""
    named = list(choices.plugin)
    listed = settings.get("plugins")
    if isinstance(listed, list):
        named += [str(item) for item in cast("list[Json]", listed)]
    elif isinstance(listed, str):
        named += [item for item in listed.split(",") if item]
    builtin = [] if choices.no_builtin else [f"neuraxis:{name}" for name in BUILTIN]
    return list(dict.fromkeys([*builtin, *named]))


def make_session(
    choices: Choices,
    *,
    resume: str | None = None,
    approve: Approve | None = None,
    model: Any = None,
    plugins: Sequence[str] | None = None,
) -> Session:
    """A session as the command line asks for it.

    Raises:
        ConfigError: something named does not exist.
    """
    from neuraxis.cli.asking import ask_on_terminal, is_somebody_there
    from neuraxis.policy import policy_from
    from neuraxis.runtime import Budget
    from neuraxis.session import Session

    settings = settings_of(choices)
    rules = settings.section("policy")
    always: Json = rules.get("yes_to") or []
    yes_to = always.split(",") if isinstance(always, str) else list(always)
    if approve is None and is_somebody_there():
        approve = ask_on_terminal
    if choices.template and not Path(choices.template).is_file():
        raise ConfigError(f"--template {choices.template}: there is no such file")
    standard = Budget()
    return Session(
        model=model or str(settings.get("model") or "local:"),
        plugins=plugin_sources(choices, settings) if plugins is None else plugins,
        dialect=str(settings.get("dialect") or "intents"),
        workspace=None if choices.workspace is None else Path(choices.workspace),
        journal=journal_path(settings),
        asset_folder=asset_folder(settings),
        session=resume,
        settings=settings,
        template=choices.template,
        budget=Budget(
            steps=choices.max_calls or standard.steps,
            seconds=choices.max_seconds or standard.seconds,
        ),
        policy=policy_from(rules),
        approve=approve,
        yes_to=(*(str(pattern) for pattern in yes_to), *choices.yes_to),
        allow_hosts=choices.allow_host,
        strict=choices.strict,
        early_start=not choices.no_early_start,
        on_error=choices.on_error or "fail_fast",
        tell=choices.tell,
    )


def latest_session(journal: str) -> str:
    """The id of the session that was used last.

    Raises:
        ConfigError: the journal holds none.
    """
    from neuraxis.journal import open_journal

    opened = open_journal(journal)
    try:
        known = opened.sessions()
    finally:
        opened.close()
    if not known:
        raise ConfigError(f"the journal {journal} holds no session to continue")
    return known[0].session
