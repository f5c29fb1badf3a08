"""Build the parts of a session from its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from neuraxis.assets.store import INLINE_BYTES, AssetStore
from neuraxis.dialects import Dialect, find_dialect
from neuraxis.engines.in_process import InProcess
from neuraxis.engines.threads import limit_threads
from neuraxis.errors import ConfigError
from neuraxis.events import Event
from neuraxis.execution.budget import Budget
from neuraxis.execution.nested import ParentRun
from neuraxis.formatting import file_name
from neuraxis.journal import Journal
from neuraxis.models import Model, find_model, find_models
from neuraxis.plugins.registry import Registry
from neuraxis.policy.deferred_questions import Later
from neuraxis.sandbox.files.history import FileHistory
from neuraxis.sandbox.files.versions import VersionStore, versions_root
from neuraxis.session.event_sink import EventSink
from neuraxis.session.inherit import Inherited
from neuraxis.session.options import Options
from neuraxis.session.workspace import budget_of, is_on_disk
from neuraxis.settings import Settings


def build_workspace(
    workspace: str | Path | None, inherited: Inherited, settings: Settings
) -> Path:
    """Return the folder that commands may write to."""
    folder = workspace or inherited.workspace or settings.get("workspace")
    return Path(folder or "neuraxis-workspace").absolute()


def build_model(
    choice: str | Model | Sequence[str | Model],
    settings: Settings,
    budget: Budget | None,
) -> Model:
    """Return the model, or a model that falls back to others.

    Raises:
        ConfigError: no model has this name, or the budget limits the cost and the
            model's price is not known.
    """
    model = (
        find_model(choice, settings)
        if isinstance(choice, str)
        else find_models(choice, settings)
    )
    if budget is not None and budget.usd is not None:
        from neuraxis.models.prices import require_price  # few have such a limit

        for name in getattr(model, "names", (model.name,)):
            require_price(name, settings)
    return model


def build_engine(settings: Settings, outer: ParentRun | None) -> InProcess:
    """Return what runs the commands; limit their threads, in this process.

    Raises:
        ConfigError: the setting `commands.threads` is no whole number above 0.
    """
    limit_threads(settings.get("commands.threads"))
    return InProcess(nested=outer is not None)


def build_dialect(
    dialect: str | Dialect,
    options: Options,
    registry: Registry,
) -> Dialect:
    """Return the dialect, with the user's prompt template if any."""
    if not isinstance(dialect, str):
        return dialect
    return find_dialect(
        dialect,
        strict=options.strict,
        template=None if options.template is None else Path(options.template),
        parameter_names=registry.parameter_names,
        goes_on=options.on_error == "continue",
    )


def shown_beside_search(
    options: Options, model: Model, dialect: Dialect
) -> Sequence[str] | None:
    """Return the plugins shown to a provider that searches tools; None: all.

    Raises:
        ConfigError: the model's provider cannot search tools.
    """
    if options.catalog_limit != "provider":
        return None
    if dialect.name != "native" or not getattr(model, "finds_tools", False):
        raise ConfigError(
            "options.catalog_limit: 'provider' needs dialect='native' and a model of "
            f"`anthropic:` or `openai-responses:`, got dialect={dialect.name!r} and "
            f"{model.name}; give a number of characters"
        )
    return options.always_shown


def build_later(approve: object, options: Options, sink: EventSink) -> Later | None:
    """Return the state of postponed questions; None: questions do not wait.

    Raises:
        ConfigError: the journal is not on disk.
    """
    if approve != "later" or sink.is_nested:
        return None
    if not sink.is_durable:
        raise ConfigError(
            'approve="later": a question waits in the journal, and there is none on '
            "disk; write journal=PATH"
        )
    return Later(seconds=options.approval_seconds)


def build_assets(options: Options, session: str) -> AssetStore:
    """Return the session's objects, saved where the options name a folder."""
    folder = options.asset_folder
    return AssetStore(
        folder=None if folder is None else Path(folder) / file_name(session),
        inline_bytes=None if options.strict else INLINE_BYTES,  # rule B59
    )


def build_files(
    workspace: Path,
    options: Options,
    session: str,
    settings: Settings,
    journal: str | Path | Journal | None,
    emit: Callable[[Event], None],
) -> FileHistory:
    """Return the workspace's file history and its version store."""
    versions = versions_root(journal, options.asset_folder, options.versions_folder)
    version_store = VersionStore(
        versions, session, budget_of(settings), journaled=is_on_disk(journal)
    )
    return FileHistory(workspace, version_store, emit)
