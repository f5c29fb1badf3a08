"""Configuration that a nested session inherits from its parent run (rule D12).

It comes from the command's `Context`: policy, approvals, settings, secrets and the
origins of what the parent's model has read.
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
    workspace_paths,
)
from neuraxis.messages import Call, Message
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Command, Registry
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
    """Configuration that a session inherits unless its arguments replace it."""

    policy: Policy = DEFAULT
    approve: Approve | None = None
    settings: Settings | None = None
    workspace: Path | None = None
    secrets: Secrets = field(default_factory=Secrets)
    outer: ParentRun | None = None
    depth: int = 0

    def files(self, workspace: Path) -> FileHistory | None:
        """Return the parent run's file history for the same workspace."""
        known = None if self.outer is None else self.outer.runtime.gate.files
        return known if known is not None and known.workspace == workspace else None

    def origins(self, workspace: Path, settings: Settings) -> Origins:
        """Return the initial origins: of the workspace's files and of the request.

        The user's own words are those of the outermost request.
        """
        if self.outer is None:
            return prepared(Origins(), self.policy, settings)
        known, label = self.outer.runtime.gate.origins, self.outer.label
        by = workspace_paths(self.outer.runtime.workspace, workspace)
        files = (
            (translate_path(name, by), label) for name, label in known.files.items()
        )
        made = Origins(
            files={name: label for name, label in files if name is not None},
            request=list(known.request),
            # the parent's model may have written what it read into the request
            private=known.private - {self.outer.call_id.partition(".")[0]},
            sent=known.sent,
            handed=label,
        )
        # what the outer model read may have decided which words it hands on
        made.reads(label | known.read)
        return prepared(made, self.policy, settings)


def inherit(parent: Context | None, policy: Policy | None) -> Inherited:
    """Return what a session inherits from the run of its `parent` command.

    Args:
        parent: what the command was given; None: nothing is inherited.
        policy: its own, to which the parent's hosts and patterns are added.

    Raises:
        ConfigError: the context was not given to a command, or too many sessions
            are nested.
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
            "an agent that asks itself would go on for ever"
        )
    if runtime.too_early is not None:
        runtime.too_early()
        raise ConfigError(
            "options.parent: this call is run once the whole reply is there"
        )
    whole = runtime.gate.policy
    if policy is not None:
        whole = replace(
            policy,
            yes_to=(*whole.yes_to, *policy.yes_to),
            allow_hosts=(*whole.allow_hosts, *policy.allow_hosts),
        )
    return Inherited(
        policy=whole,
        approve=None if runtime.gate.approve is None else outer.ask,
        settings=runtime.settings,
        workspace=runtime.workspace,
        secrets=runtime.secrets,
        outer=outer,
        depth=runtime.depth + 1,
    )


def prepared(origins: Origins, policy: Policy, settings: Settings) -> Origins:
    """Take up what policy and settings say of origins."""
    origins.undeclared_outside = policy.undeclared == "outside"
    if settings.get("search.provider") == "documents":  # the user's own
        origins.private_sources = frozenset({"web_search.search"})
    networked = settings.get("sandbox.network") in (True, "true", "1")
    bare = settings.get("sandbox.mode") == "none"
    origins.walls = not networked and not bare
    return origins


def made_of(outer: ParentRun | None, origins: Origins) -> tuple[Json, ...]:
    """Return the origins of a session's requests and history, as JSON."""
    if outer is None:
        return ()
    return to_tell(outer.label.union(origins.read, *origins.results.values()))


def limited(
    config: RunConfig,
    outer: ParentRun | None,
    deps: object,
    wanted: type[Any] | None,
    calls: Sequence[Call] | None = None,
) -> RunConfig:
    """Return the configuration of a run, within its parent's.

    Args:
        config: the session's.
        outer: the run around it.
        deps: what it was given.
        wanted: the class of `deps` that the session names.
        calls: all that will be called; None: any command may be.

    Raises:
        ConfigError: its `deps` are not what the session or a command takes.
    """
    if outer is not None:
        deps = outer.runtime.deps if deps is None else deps
        config = replace(config, budget=outer.left(config.budget))
    check_deps(deps, wanted, _callable(config.registry, calls))
    return config if deps is config.deps else replace(config, deps=deps)


def _callable(
    registry: Registry, calls: Sequence[Call] | None
) -> Iterable[Command | None]:
    if calls is not None:
        return [registry.named(each.plugin, each.command) for each in calls]
    return registry.taking_deps


def started(
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
        origins=made_of(outer, config.origins),
    )
