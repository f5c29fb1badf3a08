"""Options of a session that few programs change, and its arguments' types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict

from msgspec import Struct

from neuraxis.dialects import Dialect
from neuraxis.engines.threads import THREADS
from neuraxis.events import ApprovalAsked
from neuraxis.execution.budget import Budget
from neuraxis.formatting import Named
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
"""Function that answers questions, "later" (they wait in the journal), or None."""


class Options(Struct, frozen=True, kw_only=True, metaclass=Named):
    """Less common options: `Session(options=Options(strict=True))`."""

    template: str | Path | None = None
    """Your own prompt template instead of the dialect's."""
    asset_folder: str | Path | None = None
    """Folder in which objects are saved; None: in memory only."""
    versions_folder: str | Path | None = None
    """Folder for old versions of changed files; None: `versions` beside the journal."""
    strict: bool = False
    """Whether replies must follow the protocol documents exactly."""
    on_error: OnError = "fail_fast"
    """What a failed step does: `fail_fast` skips the rest of its plan, `continue`
    only what depends on it, `retry` first repeats commands that may run twice."""
    early_start: bool = True
    """Whether read-only calls may start while the reply is streaming."""
    show_results: ShowResults = "all"
    """Results that the model sees: `all`, or `final`: those that no later step uses."""
    catalog_limit: int | Literal["provider"] | None = None
    """Maximum characters of command descriptions in a prompt; if there are more, it
    shows those that match the request. None: all. `provider`: the model's provider
    searches them (dialect `native`; Anthropic, OpenAI Responses)."""
    always_shown: Sequence[str] = ()
    """Patterns of plugins that every prompt shows, whatever `catalog_limit` is."""
    embed: Callable[[Sequence[str]], Sequence[Sequence[float]]] | None = None
    """Returns vectors for texts, so that `catalog_limit` also searches by meaning."""
    approval_seconds: float = 7 * 24 * 3600.0
    """Seconds after which an unanswered question of `approve="later"` is a refusal."""
    prompt_tokens: int | None = None
    """Maximum tokens of a prompt: older turns are shortened, and stay in the journal.
    None: nothing is shortened, since servers do not report their model's limit."""
    reopen: bool = False
    """Whether to continue a session of this `id` if there is one."""
    parent: Context | None = None
    """A running command's `Context`: nests this session in its run (rule D12)."""
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


def as_async(approve: Approver) -> Approve | None:
    """Return `approve` as a coroutine function; plain ones run in threads."""
    if isinstance(approve, str):
        return None
    if approve is None or inspect.iscoroutinefunction(approve):
        return approve

    async def ask(question: ApprovalAsked) -> bool | str:
        # not asyncio's threads: the process would not end while a question is open
        answer: Any = await THREADS.run(partial(approve, question), bounded=False)
        return await answer if inspect.isawaitable(answer) else answer

    return ask
