"""Options of a session that few programs change, and its arguments' types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from msgspec import Struct

from neuraxis.dialects import Dialect
from neuraxis.events import ApprovalAsked
from neuraxis.execution.budget import Budget
from neuraxis.journal import Journal
from neuraxis.models import Model
from neuraxis.planning.plan import OnError
from neuraxis.plugins.context import Context
from neuraxis.policy.gate import Approve
from neuraxis.policy.rules import Policy
from neuraxis.session.prompt import Instructions
from neuraxis.session.visible_results import ShowResults
from neuraxis.settings import Settings

Approver = Approve | Callable[[ApprovalAsked], bool] | Literal["later"] | None
"""Who is asked for approval: a function, now; a person, later; nobody."""


class Options(Struct, frozen=True, kw_only=True):
    """What few sessions change: `Session(options=Options(strict=True))`."""

    template: str | Path | None = None
    """A prompt template of the user's own, in place of the dialect's."""
    asset_folder: str | Path | None = None
    """Where objects are saved for later; None: in memory only."""
    versions_folder: str | Path | None = None
    """Old versions of changed files; None: `versions` beside the journal."""
    strict: bool = False
    """Whether only what the protocol documents say is accepted."""
    on_error: OnError = "fail_fast"
    """What follows a failed step: `fail_fast` skips the rest of its plan, `continue`
    what depends on it, `retry` tries repeatable commands again."""
    early_start: bool = True
    """Whether read-only calls may start while the reply is streaming."""
    show_results: ShowResults = "all"
    """Results that the model is shown: `all`, or `final`, which no later step takes."""
    catalog_limit: int | Literal["provider"] | None = None
    """Characters of command descriptions in a prompt: where the plugins have more, it
    shows those that fit the request. None: all are shown. `provider`: the model's own
    provider finds them (dialect `native`; Anthropic, OpenAI Responses)."""
    always_shown: Sequence[str] = ()
    """Patterns of plugins that every prompt shows, whatever `catalog_limit` is."""
    embed: Callable[[Sequence[str]], Sequence[Sequence[float]]] | None = None
    """Gives vectors of texts, so that `catalog_limit` also finds by meaning."""
    approval_seconds: float = 7 * 24 * 3600.0
    """How long a question of `approve="later"` may be answered; then it is a no."""
    prompt_tokens: int | None = None
    """Tokens that a prompt may have: older turns are shortened to fit, without a loss.
    None: nothing is shortened, since no server tells how much its model takes."""
    reopen: bool = False
    """Whether a session of this `id` that exists already is gone on with."""
    parent: Context | None = None
    """A running command's `Context`: this session is a part of its run (rule D12)."""
    raise_errors: bool = False
    """Whether a command's own exception is raised to the caller, for tests."""


class SessionArguments(TypedDict, total=False):
    """Arguments of `Session` without its `id`, for `Session.open` and `agent`."""

    model: str | Model | Sequence[str | Model]
    plugins: Iterable[Any]
    instructions: Instructions
    output: Any
    deps: type[Any] | None
    dialect: str | Dialect
    journal: str | Path | Journal | None
    workspace: str | Path | None
    budget: Budget | None
    policy: Policy | None
    approve: Approver
    options: Options | None
    settings: Settings | None
