"""Session: a user's conversation with a model that can call plugins.

The agent loop itself is in `loop.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from neuraxis.assets.store import INLINE_BYTES, AssetStore
from neuraxis.dialects import Dialect, find_dialect
from neuraxis.engines.in_process import InProcess
from neuraxis.engines.threads import limit_threads
from neuraxis.errors import ConfigError, StorageError
from neuraxis.events import (
    NOT_STORED,
    ApprovalAsked,
    CallStarted,
    Event,
    Inside,
    SessionFinished,
    SessionStarted,
)
from neuraxis.execution.budget import Budget
from neuraxis.execution.nested import begins_effect
from neuraxis.execution.report import report_stored
from neuraxis.journal import Journal, flush, leave, open_journal
from neuraxis.messages import Call, CallError, Message, Prompt, Result
from neuraxis.models import Model, find_model, find_models
from neuraxis.planning.plan import OnError, Plan
from neuraxis.plugins.context import Context
from neuraxis.policy.approvals import Approvals
from neuraxis.policy.ask import as_async
from neuraxis.policy.gate import Approve
from neuraxis.policy.rules import Policy
from neuraxis.session.answer import Answer
from neuraxis.session.config import RunConfig
from neuraxis.session.event_loop import SyncLoop
from neuraxis.session.inherit import inherit, made_of
from neuraxis.session.load_plugins import registry_of, shortlist_of
from neuraxis.session.loop import converse, plan_of, run_calls
from neuraxis.session.prompt import constant_prompt, with_messages
from neuraxis.session.resume import history_of
from neuraxis.session.run import Run, RunLock
from neuraxis.session.validation import (
    check_arguments,
    check_calls,
    check_description,
    check_request,
)
from neuraxis.session.visible_results import Tell
from neuraxis.session.watch import Watch, reraise_watch_errors, tee
from neuraxis.settings import Settings, check_settings, load
from neuraxis.specs import Json


class Session:
    """Conversation whose history grows from run to run.

    Args:
        model: a name (`local:`, `openai:gpt-x`, `scripted:replies.yaml`) or a `Model`;
            of a list the next one is asked where the one before it fails.
        plugins: functions, objects, folders, or names (`neuraxis:web_search`).
        dialect: a name, or a `Dialect`.
        workspace: the folder that commands may write to; default: the setting
            `workspace`, else `neuraxis-workspace` in the current folder.
        journal: None or "memory", a path of a SQLite file, or a `Journal` (left open).
        asset_folder: where objects are saved for later; None: in memory only.
        session: the id of an earlier session in the journal, to resume it.
        settings: default: the files and the environment (`settings.load`).
        template: a prompt template of the user's own, for the dialect.
        budget: the limits of each run.
        policy: what may run; default: `policy.DEFAULT`, which refuses what
            untrusted words would do (docs/security.md).
        approve: called where the policy says `ask`, True approves; a plain function
            runs in a thread. None: nobody can approve.
        yes_to: patterns of `plugin.command` that need no approval.
        lock: the lock file of named plugins; default: a `neuraxis.lock.json` here.
        allow_hosts: private addresses that requests may reach, as `host:port`.
        strict: accept exactly what the protocol documents say.
        on_error: what a failed step does to its plan: "fail_fast" skips the rest,
            "continue" only what depends on it, "retry" first tries repeatable
            commands again.
        early_start: whether read-only calls may start while the reply is streaming;
            their results are used only if the whole reply is valid.
        tell: which results of a plan the model is shown: "all", or only the "ends",
            which no later step of it takes; the others by their address.
        prompt_budget: characters of descriptions and schemas that a prompt has room
            for; where the plugins have more, it shows what fits the request, and
            `find_commands`. None: all are shown.
        always_on: patterns of plugins that every prompt shows then.
        within: a command's `Context`: its run becomes the parent run (rule D12).
        on_failure: "raise": a command's own exception is raised (for tests).

    Raises:
        ConfigError: a name or file does not exist, an argument or setting is invalid,
            or a plugin has mistakes.
        StorageError: the journal cannot be opened.
    """

    def __init__(
        self,
        *,
        model: str | Model | Sequence[str | Model] = "local:",
        plugins: Iterable[Any] = (),
        dialect: str | Dialect = "intents",
        workspace: str | Path | None = None,
        journal: str | Path | Journal | None = None,
        asset_folder: str | Path | None = None,
        session: str | None = None,
        settings: Settings | None = None,
        template: str | Path | None = None,
        budget: Budget | None = None,
        policy: Policy | None = None,
        approve: Approve | Callable[[ApprovalAsked], bool] | None = None,
        yes_to: Sequence[str] = (),
        lock: str | Path | None = None,
        allow_hosts: Sequence[str] = (),
        strict: bool = False,
        on_error: OnError = "fail_fast",
        early_start: bool = True,
        tell: Tell = "all",
        prompt_budget: int | None = None,
        always_on: Sequence[str] = (),
        within: Context | None = None,
        on_failure: str = "tell",
    ) -> None:
        check_arguments(locals())
        over = inherit(within)
        settings = over.settings if settings is None else settings
        policy = policy or over.policy
        self._outer = over.outer
        self.settings = load(Path.cwd()) if settings is None else settings
        check_settings(self.settings)
        limit_threads(self.settings.get("commands.threads"))
        self.workspace = Path(
            workspace
            or over.workspace
            or self.settings.get("workspace")
            or "neuraxis-workspace"
        ).absolute()
        self.registry = registry_of(plugins, self.workspace, lock)
        self._shortlist = shortlist_of(self.registry, prompt_budget, always_on)
        self.model = (
            find_model(model, self.settings)
            if isinstance(model, str)
            else find_models(model, self.settings)
        )
        self.dialect = (
            find_dialect(
                dialect,
                strict=strict,
                template=None if template is None else Path(template),
                parameter_names=self._parameter_names,
            )
            if isinstance(dialect, str)
            else dialect
        )
        if budget is not None and budget.usd is not None:
            from neuraxis.models.prices import require_price  # few have such a limit

            for name in getattr(self.model, "names", (self.model.name,)):
                require_price(name, self.settings)
        self.journal = open_journal(journal)
        self._journal_is_own = self.journal is not journal
        self._engine = InProcess(nested=self._outer is not None)
        self.id = session or os.urandom(16).hex()  # it cannot be guessed
        self.assets = AssetStore(
            folder=None if asset_folder is None else Path(asset_folder) / self.id,
            inline_bytes=None if strict else INLINE_BYTES,  # rule B59
        )
        self.history: list[Message] = []
        self.origins = over.origins(self.workspace)
        self.origins.wary = policy.undeclared == "foreign"
        self.approvals = Approvals(yes_to=(*over.yes_to, *yes_to))
        # the id of the next call, and of the asset that its result may become
        self._numbers = count(1)
        self._next_id = map("a{}".format, self._numbers).__next__
        self._announced = False
        self._constant: Prompt | None = None
        self._loop = SyncLoop()
        self._turn = RunLock()
        self._parts = RunConfig(
            model=self.model,
            dialect=self.dialect,
            registry=self.registry,
            assets=self.assets,
            engine=self._engine,
            policy=policy,
            budget=budget or Budget(),
            settings=self.settings,
            workspace=self.workspace,
            next_id=self._next_id,
            prompt=self.prompt,
            allow_hosts=(*over.allow_hosts, *allow_hosts),
            approve=as_async(approve) or over.approve,
            origins=self.origins,
            approvals=self.approvals,
            secrets=over.secrets,
            strict=strict,
            on_error=on_error,
            raise_failures=on_failure == "raise",
            early_start=early_start,
            tell=tell,
            depth=over.depth,
        )
        if session is not None:
            self._resume()

    def _parameter_names(self, tool: str) -> Sequence[str]:
        found = self.registry.find(None, tool)
        return () if isinstance(found, CallError) else found.spec.parameter_names

    def _resume(self) -> None:
        entries = self.journal.read(self.id)
        if not entries:
            raise ConfigError(
                f"session {self.id!r} is not in the journal; "
                "`neuraxis sessions ls` lists those that are"
            )
        events = [entry.event for entry in entries]
        past = history_of(events, self.dialect)
        self.origins.replay(events)
        self.history = list(past.messages)
        for _ in range(past.calls):
            next(self._numbers)
        for call_id, command, value in past.values:
            self.assets.keep(call_id, command, value)
        for asset in past.assets:
            self.assets.restore(asset.id, asset.meta, asset.bytes)

    def run(self, text: str) -> Run:
        """Answer one request: `await` it, or `async for` its events."""
        return Run(self.drive, text, self._turn.left)

    def run_sync(self, text: str, watch: Watch | None = None) -> Answer:
        """Answer one request synchronously; `watch` sees each event."""
        return self._loop.run(self._run_and_close(text, watch))

    async def _run_and_close(self, text: str, watch: Watch | None) -> Answer:
        if self._turn.busy:  # in another thread, whose connections are in use
            return await self.drive(text, watch)
        try:
            return await self.drive(text, watch)
        finally:
            await self.model.close()  # its connections belong to this loop

    @reraise_watch_errors
    async def drive(self, text: str, watch: Watch | None = None) -> Answer:
        """Answer one request; `watch` sees every event as it happens.

        Raises:
            StorageError: the journal could not be written.
            ConfigError: the request is no text, or the session is answering another.
        """
        check_request(text, watch)
        turn = self._turn
        turn.begin(self.id, watch)
        try:
            if not self._announced:
                self._announce()
            if self.history and self.history[-1].calls:
                self._report_the_rest()
            if self._shortlist is not None:
                self._shortlist.choose(text, [item.content for item in self.history])
            parts, live = self._limited(), watch is not None
            work = converse(text, parts, self.history, self._emit, live=live)
            answer = await (work if self._outer is None else self._outer.hold(work))
            if turn.unwritten and not answer.error:
                answer = replace(answer, error=turn.unwritten)
            return answer
        finally:
            turn.end()

    def _limited(self) -> RunConfig:
        """Return the configuration, within the parent run's remaining budget."""
        parts, outer = self._parts, self._outer
        if outer is not None:
            parts = replace(parts, budget=outer.left(parts.budget))
        return parts

    def _report_the_rest(self) -> None:
        """Report results of a cut-off plan to the model."""
        events = [entry.event for entry in self.journal.read(self.id)]
        self.history += history_of(events, self.dialect).untold
        self.origins.told(tuple(self.origins.results))

    def attach(self, value: Any, description: str = "") -> str:
        """Store an object of the user's; return its id for references (B61).

        Args:
            value: any object (an array becomes read-only), or the `Path` of a file
                of at most 200 MB: a picture, a table (CSV, TSV, Parquet) or a text is
                stored as such, any other file as its bytes.
            description: shown to the model; default: the file's name.

        Raises:
            ConfigError: the file's content does not match its suffix.
        """
        check_description(description)
        if isinstance(value, Path):
            description = description or value.name
            # imported here: few sessions attach files, and it would delay a first run
            from neuraxis.assets.attachments import read_attachment

            value = read_attachment(value)
        if not self._announced:
            self._announce()
        asset_id = self._next_id()
        kept = self.assets.attach(asset_id, value, description)
        self.origins.attached(asset_id)
        report_stored(asset_id, kept, self._emit)
        return asset_id

    async def call(self, call: Call, watch: Watch | None = None) -> Result:
        """Run one call that no model wrote; checked like any other."""
        return (await self.call_all([call], watch))[0]

    def check(
        self, calls: Sequence[Call], params: Mapping[str, Json] | None = None
    ) -> Plan:
        """Return the plan of these calls, or all mistakes; nothing runs."""
        check_calls(calls)
        return plan_of(calls, self._parts, params)

    @reraise_watch_errors
    async def call_all(
        self,
        calls: Sequence[Call],
        watch: Watch | None = None,
        *,
        params: Mapping[str, Json] | None = None,
        on_error: OnError | None = None,
    ) -> list[Result]:
        """Run a plan that no model wrote, checked before it runs.

        Args:
            calls: the steps; a result's id is its call's. Where they are wrong none
                runs; each result's error is the first problem (`check` returns all).
            watch: sees every event as it happens.
            params: values of `{{ params['x'] }}`; None: it is plain text.
            on_error: for this plan; None: the session's own.
        """
        check_calls(calls, watch, on_error)
        parts = self._limited()
        if on_error is not None:
            parts = replace(parts, on_error=on_error)
        emit = tee(self._emit, watch)  # `_turn` locks requests only
        if not self._announced:
            self._announce(emit)
        work = run_calls(calls, parts, emit, params)
        results = await (work if self._outer is None else self._outer.hold(work))
        flush(self.journal)
        return results

    def _announce(self, emit: Watch | None = None) -> None:
        self._announced = True
        (emit or self._emit)(
            SessionStarted(
                session=self.id,
                model=self.model.name,
                dialect=self.dialect.name,
                plugins=tuple(spec.name for spec in self.registry.specs),
                workspace=str(self.workspace),
                resumed=bool(self.history),
                origins=made_of(self._outer, self.origins),
            )
        )

    def _emit(self, event: Event) -> None:
        kind = event.__class__
        if kind not in NOT_STORED:
            # a finished call's line need not be flushed at once: without it the
            # outcome is reported as unknown, which is never wrong
            durable = kind is SessionFinished
            if isinstance(event, CallStarted):
                durable = event.effects in ("once", "idempotent")
            elif isinstance(event, Inside):
                durable = begins_effect(event)
            try:
                self.journal.append(self.id, event, durable=durable)
            except StorageError as error:
                if kind is not SessionFinished:
                    raise
                self._turn.unwritten = str(error)  # all is done: no answer is lost
        if self._turn.watch is not None:
            self._turn.watch(event)
        if self._outer is not None:
            self._outer.hear(self.id, self.workspace, event)

    def prompt(self, messages: Sequence[Message] = ()) -> Prompt:
        """Return the model's prompt: the constant part, then `messages`."""
        constant = self._constant
        if constant is None or constant.plugins is not self.registry.specs:
            constant = constant_prompt(self.registry, self.dialect)
            self._constant = constant
        return with_messages(constant, messages)

    def close(self) -> None:
        """Close the journal's file, idle threads and `run_sync`'s loop.

        Postponed while a request is being answered.
        """
        if self._turn.puts_off(self.close):
            return
        self._loop.close()
        self._engine.close()
        self.registry.close()
        leave(self.journal, own=self._journal_is_own)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
