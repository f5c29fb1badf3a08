"""Configuration that a nested session inherits from its parent run (rule D12).

It comes from the command's `Context`: policy, approvals, settings, secrets, and the
origins of everything that the parent's model has read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from neuraxis.errors import ConfigError
from neuraxis.events import SessionStarted
from neuraxis.execution.nested import (
    ParentRun,
    translate_path,
    translate_paths,
    workspace_paths,
)
from neuraxis.messages import Call, Message
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Command, Registry
from neuraxis.policy.approvals import Approvals
from neuraxis.policy.gate import Approve
from neuraxis.policy.provenance.labels import to_tell
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.rules import DEFAULT, Policy
from neuraxis.policy.secrets import Secrets
from neuraxis.sandbox.files.history import FileHistory
from neuraxis.session.config import RunConfig
from neuraxis.session.validation import check_deps
from neuraxis.settings import Settings
from neuraxis.specs import Json

MOST_DEPTH = 4
"""Maximum depth of nested sessions; a deeper one is refused."""


class Inherited(Struct, frozen=True, kw_only=True):
    """Configuration of a nested session, where its arguments do not replace it."""

    policy: Policy = DEFAULT
    approve: Approve | None = None
    settings: Settings | None = None
    workspace: Path | None = None
    secrets: Secrets = field(default_factory=Secrets)
    outer: ParentRun | None = None
    depth: int = 0

    def approvals(self) -> Approvals:
        """Return new approvals; refusals are shared with the parent run."""
        outer = self.outer.runtime.gate.approvals.said_no if self.outer else set[str]()
        return Approvals(yes_to=self.policy.yes_to, said_no=outer)

    def files(self, workspace: Path) -> FileHistory | None:
        """Return the parent run's file history for the same workspace."""
        files = None if self.outer is None else self.outer.runtime.gate.files
        return files if files is not None and files.workspace == workspace else None

    def origins(self, workspace: Path, settings: Settings) -> Origins:
        """Return the initial origins: of the workspace's files and of the request.

        The user's own words are those of the outermost request.
        """
        if self.outer is None:
            return with_settings(Origins(), self.policy, settings)
        outer_origins = self.outer.runtime.gate.origins
        paths = workspace_paths(self.outer.runtime.workspace, workspace)
        files = (
            (translate_path(name, paths), label)
            for name, label in outer_origins.files.items()
        )
        origins = Origins(
            files={name: label for name, label in files if name is not None},
            copies={*translate_paths(outer_origins.copies, paths)},
            copied={*translate_paths(outer_origins.copied, paths)},
            request=list(outer_origins.request),
            # the parent's model may have written what it read into the request
            private=outer_origins.private - {self.outer.call_id.partition(".")[0]},
            sent=outer_origins.sent,
        )
        self.outer.hand_on(origins)
        return with_settings(origins, self.policy, settings)


def inherit(parent: Context | None, policy: Policy | None) -> Inherited:
    """Return what a session inherits from the run of its `parent` command.

    Args:
        parent: the command's `Context`; None: nothing is inherited.
        policy: the session's own policy; the parent's hosts and patterns are added.

    Raises:
        ConfigError: the context is no running command's, or too many sessions are
            nested.
    """
    if parent is None:
        return Inherited(policy=policy or DEFAULT)
    outer = parent.outer
    if not isinstance(outer, ParentRun):
        raise ConfigError(
            "options.parent: expected the Context that a running command was given; "
            "write `context: Context` among its parameters and parent=context"
        )
    outer.check()
    runtime = outer.runtime
    if runtime.depth >= MOST_DEPTH:
        raise ConfigError(
            f"options.parent: sessions stand {MOST_DEPTH} deep in each other already; "
            "an agent that asks itself would never end"
        )
    if runtime.too_early is not None:
        runtime.too_early()
        raise ConfigError(
            "options.parent: this call is run once the whole reply is there"
        )
    combined = runtime.gate.policy
    if policy is not None:
        combined = replace(
            policy,
            yes_to=(*combined.yes_to, *policy.yes_to),
            allow_hosts=(*combined.allow_hosts, *policy.allow_hosts),
        )
    return Inherited(
        policy=combined,
        approve=None if runtime.gate.approve is None else outer.ask,
        settings=runtime.settings,
        workspace=runtime.workspace,
        secrets=runtime.secrets,
        outer=outer,
        depth=runtime.depth + 1,
    )


def with_settings(origins: Origins, policy: Policy, settings: Settings) -> Origins:
    """Set what policy and settings say about origins; return them."""
    origins.undeclared_outside = policy.undeclared == "outside"
    if settings.get("search.provider") == "documents":  # the user's own documents
        origins.private_sources = frozenset({"web_search.search"})
    networked = settings.get("sandbox.network") in (True, "true", "1")
    bare = settings.get("sandbox.mode") == "none"
    origins.walls = not networked and not bare
    return origins


def initial_origins(outer: ParentRun | None, origins: Origins) -> tuple[Json, ...]:
    """Return the origins of a session's requests and history, as JSON."""
    if outer is None:
        return ()
    return to_tell(outer.label.union(origins.read, *origins.results.values()))


def within_parent(
    config: RunConfig,
    outer: ParentRun | None,
    deps: object,
    deps_class: type[Any] | None,
    calls: Sequence[Call] | None = None,
) -> RunConfig:
    """Return the configuration of a run, within its parent's budget.

    Args:
        config: the session's configuration.
        outer: the parent run; None: the session is not nested.
        deps: the run's `deps`.
        deps_class: the class of `deps` that the session requires.
        calls: the calls to check; None: the model may call any command.

    Raises:
        ConfigError: `deps` are of a class that the session or a command does not take.
    """
    if outer is not None:
        deps = outer.runtime.deps if deps is None else deps
        config = replace(config, budget=outer.remaining_budget(config.budget))
    check_deps(deps, deps_class, _callable(config.registry, calls))
    return config if deps is config.deps else replace(config, deps=deps)


def _callable(
    registry: Registry, calls: Sequence[Call] | None
) -> Iterable[Command | None]:
    if calls is not None:
        return [registry.named(call.plugin, call.command) for call in calls]
    return registry.taking_deps


def session_started(
    config: RunConfig, outer: ParentRun | None, history: Sequence[Message]
) -> SessionStarted:
    """Return the event with which a session begins."""
    return SessionStarted(
        session=config.session,
        key=config.key,
        model=config.model.name,
        dialect=config.dialect.name,
        plugins=tuple(spec.name for spec in config.registry.specs),
        workspace=str(config.workspace),
        resumed=bool(history),
        origins=initial_origins(outer, config.origins),
    )
