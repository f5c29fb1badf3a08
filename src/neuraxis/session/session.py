"""Session: a user's conversation with a model that can call plugins.

The agent loop itself is in `loop.py`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from neuraxis.assets.store import INLINE_BYTES, AssetStore
from neuraxis.call_errors import had_no_effect, to_json
from neuraxis.dialects import Dialect, find_dialect
from neuraxis.engines.in_process import InProcess
from neuraxis.engines.threads import THREADS, limit_threads
from neuraxis.errors import ConfigError, StorageError
from neuraxis.events import ApprovalAsked, CallStarted, SessionStarted
from neuraxis.execution.budget import Budget
from neuraxis.execution.report import report_stored
from neuraxis.journal import Journal, flush, open_journal
from neuraxis.messages import Call, CallError, Message, Prompt, Result
from neuraxis.models import Model, find_model, find_models
from neuraxis.planning.plan import OnError, Plan
from neuraxis.plugins.context import Context
from neuraxis.policy.approvals import Approvals
from neuraxis.policy.ask import as_async
from neuraxis.policy.gate import Approve
from neuraxis.policy.rules import Policy
from neuraxis.policy.unknown_calls import UnknownCalls, settlement
from neuraxis.sandbox.files.history import FileHistory, Undone
from neuraxis.sandbox.files.versions import VersionStore
from neuraxis.session.answer import Answer
from neuraxis.session.config import RunConfig
from neuraxis.session.event_loop import SyncLoop
from neuraxis.session.event_sink import EventSink
from neuraxis.session.files import (
    budget_of,
    is_on_disk,
    make_workspace,
    undo_last,
    versions_root,
)
from neuraxis.session.inherit import inherit, made_of
from neuraxis.session.load_plugins import registry_of, shortlist_of
from neuraxis.session.loop import converse, plan_of, run_calls
from neuraxis.session.prompt import constant_prompt, with_messages
from neuraxis.session.resume import history_of
from neuraxis.session.run import Drive, Run, RunLock
from neuraxis.session.validation import (
    check_arguments,
    check_calls,
    check_description,
    check_request,
)
from neuraxis.session.visible_results import Tell
from neuraxis.session.watch import Watch, guard_watch, reraise_watch_errors
from neuraxis.settings import Settings, check_settings, load
from neuraxis.specs import Json


def _release(journal: Journal, session: str) -> None:
    """Close a session in its journal; what cannot be written is held back further."""
    with suppress(StorageError):
        journal.release(session)


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
        id: of this session, a text of one's own; default: one that nobody can guess.
            `Session.open` goes on with an earlier one.
        versions_folder: where old versions of files are stored for `undo`; default:
            `versions` beside the journal's file, else in memory.
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
        StorageError: the journal cannot be opened, or the session is open already.
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
        id: str | None = None,
        versions_folder: str | Path | None = None,
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
        _earlier: bool = False,
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
        self.id = id or os.urandom(16).hex()  # it cannot be guessed
        self.journal.claim(self.id)
        self._claim = weakref.finalize(self, _release, self.journal, self.id)
        self.assets = AssetStore(
            folder=None if asset_folder is None else Path(asset_folder) / self.id,
            inline_bytes=None if strict else INLINE_BYTES,  # rule B59
        )
        self.history: list[Message] = []
        self._pending = -1
        """How many messages stand behind a reply that nobody looked at; -1: none is."""
        self.origins = over.origins(self.workspace)
        self.origins.wary = policy.undeclared == "foreign"
        self.files = over.files(self.workspace) or FileHistory(
            self.workspace,
            VersionStore(
                versions_root(journal, asset_folder, versions_folder),
                self.id,
                budget_of(self.settings),
                journaled=is_on_disk(journal),
            ),
            lambda event: self._sink.emit(event),
            self.origins.words,
        )
        self.approvals = Approvals(yes_to=(*over.yes_to, *yes_to))
        # the id of the next call, and of the asset that its result may become
        self._numbers = count(1)
        self._next_id = map("a{}".format, self._numbers).__next__
        self._announced = False
        self._constant: Prompt | None = None
        self._loop = SyncLoop()
        self._turn = RunLock()
        self._unknown = UnknownCalls()
        self._is_cut_off = False
        self._sink = EventSink(
            self.id, self.journal, self._turn, self._outer, self.workspace,
            self._unknown,
        )  # fmt: skip
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
            session=self.id,
            unknown=self._unknown,
            settled=self._sink.settled if self._sink.is_durable else None,
            files=self.files,
        )
        if id is not None:
            self._begin(_earlier)

    def _parameter_names(self, tool: str) -> Sequence[str]:
        found = self.registry.find(None, tool)
        return () if isinstance(found, CallError) else found.spec.parameter_names

    @classmethod
    def open(cls, id: str, **options: Any) -> Session:
        """Go on with an earlier session.

        Args:
            id: the session's.
            **options: those of `Session`; `journal` names the one that holds it.

        Raises:
            ConfigError: the journal holds no such session, or an option is wrong.
            StorageError: the session is open already, or the journal cannot be read.
        """
        return cls(id=id, _earlier=True, **options)

    def _begin(self, earlier: bool) -> None:
        """Take up what the journal holds of the session; a new one has nothing."""
        entries = self.journal.read(self.id)
        if earlier != bool(entries):
            self._claim()
            self._leave_journal()
            raise ConfigError(
                f"session {self.id!r} is in the journal already; "
                f"Session.open({self.id!r}, journal=…) goes on with it"
                if entries
                else f"session {self.id!r} is not in the journal; "
                "`neuraxis sessions ls` lists those that are, and Session(id=…) "
                "begins one"
            )
        events = [entry.event for entry in entries]
        past = history_of(events, self.dialect)
        self.origins.replay(events)
        for event in events:
            self._unknown.hear(event)
        self._unknown.cut_off()
        self._is_cut_off = past.cut_off
        self.files.replay(events)
        self.history = list(past.messages)
        if past.pending:
            self._pending = len(past.untold)
        for _ in range(past.calls):
            next(self._numbers)
        for call_id, command, value in past.values:
            self.assets.keep(call_id, command, value)
        for asset in past.assets:
            self.assets.restore(asset.id, asset.meta, asset.bytes)

    @property
    def unknown_calls(self) -> tuple[CallStarted, ...]:
        """The calls of `once` commands of which nobody knows how they ended."""
        return self._unknown.all

    def settle(self, call_id: str, happened: bool) -> None:
        """Say of a call with an unknown outcome whether it had its effect.

        Raises:
            ConfigError: there is no such call.
        """
        call = self._unknown.get(call_id)
        if call is None:
            listed = ", ".join(item.id for item in self._unknown.all) or "none"
            raise ConfigError(
                f"settle: expected a call whose outcome is unknown ({listed}), got "
                f"{call_id!r}"
            )
        error = to_json(had_no_effect(call.tool))
        self._sink.emit(settlement(call, happened, "the user", error))
        flush(self.journal)

    def run(self, text: str) -> Run:
        """Answer one request: `await` it, or `async for` its events."""
        return Run(self.drive, text, self._turn.left)

    def resume(self) -> Run:
        """End the request that was cut off: `await` it, or `async for` its events.

        The model is told what became of its calls; none of them is run again.
        """
        return Run(self._drive_resumed, "what was cut off", self._turn.left)

    def resume_sync(self, watch: Watch | None = None) -> Answer:
        """As `resume`, from code that is not async."""
        return self._loop.run(self._run_and_close(self._drive_resumed, "", watch))

    def run_sync(self, text: str, watch: Watch | None = None) -> Answer:
        """Answer one request from code that is not async; `watch` sees each event."""
        return self._loop.run(self._run_and_close(self.drive, text, watch))

    async def _run_and_close(
        self, drive: Drive, text: str, watch: Watch | None
    ) -> Answer:
        if self._turn.busy:  # in another thread, whose connections are in use
            return await drive(text, watch)
        try:
            return await drive(text, watch)
        finally:
            await self.model.close()  # its connections belong to this loop

    @reraise_watch_errors
    async def drive(self, text: str, watch: Watch | None = None) -> Answer:
        """Answer one request; `watch` sees every event as it happens.

        Args:
            text: the request.
            watch: sees an event once it is on disk, where that is promised.

        Raises:
            StorageError: the journal could not be written.
            ConfigError: the request is no text, or the session is answering another.
        """
        check_request(text, watch)
        return await self._drive(text, watch)

    @reraise_watch_errors
    async def _drive_resumed(self, text: str, watch: Watch | None = None) -> Answer:
        check_request(text, watch)
        return await self._drive(None, watch)

    async def _drive(self, text: str | None, watch: Watch | None) -> Answer:
        turn = self._turn
        turn.begin(self.id, watch)
        try:
            if text is None and not self._is_cut_off:
                raise ConfigError(
                    f"resume: no request of session {self.id} was cut off; run(…) "
                    "answers another"
                )
            if not self._announced:
                self._announce()
            if self.history and self.history[-1].calls:
                await self._report_the_rest()
            elif text is None and self._pending >= 0:
                del self.history[len(self.history) - self._pending :]
            self._is_cut_off, self._pending = True, -1
            self._begin_files()
            if self._shortlist is not None:
                said = [item.content for item in self.history]
                self._shortlist.choose(text or "", said)
            parts, live = self._limited(), watch is not None
            work = converse(text, parts, self.history, self._sink.emit, live=live)
            answer = await (work if self._outer is None else self._outer.hold(work))
            await self._sink.end()
            self._is_cut_off = False
            if turn.unwritten and not answer.error:
                answer = replace(answer, error=turn.unwritten)
            return answer
        finally:
            self._sink.forget()
            turn.end()

    def _limited(self) -> RunConfig:
        """Return the configuration, within the parent run's remaining budget."""
        parts, outer = self._parts, self._outer
        if outer is not None:
            parts = replace(parts, budget=outer.left(parts.budget))
        return parts

    async def _report_the_rest(self) -> None:
        """Report the results of a plan that was cut off to the model."""
        entries = await THREADS.run(partial(self.journal.read, self.id))
        events = [entry.event for entry in entries]
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
        report_stored(asset_id, kept, self._sink.emit)
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
        # `_turn` is that of a request
        emit = partial(self._sink.emit, watch=guard_watch(watch))
        if not self._announced:
            self._announce(emit)
        self._begin_files()
        work = run_calls(calls, parts, emit, params)
        results = await (work if self._outer is None else self._outer.hold(work))
        with suppress(StorageError):  # it is told with the next event
            await self._sink.settled()
        return results

    def undo(self, *, changed_since: bool = False) -> Undone:
        """Bring back the files as they were before the last run that changed any.

        Args:
            changed_since: restore also what somebody changed after the run; without
                it the person whom `approve` asks decides, and else it is left.
        """
        return undo_last(self.files, self._parts.approve, self._loop, changed_since)

    def _begin_files(self) -> None:
        """Make the workspace, and begin a run whose changes `undo` takes back."""
        make_workspace(self.workspace)
        if self._outer is None:  # a run inside is a part of the one around it
            self.files.begin()

    def _announce(self, emit: Watch | None = None) -> None:
        self._announced = True
        (emit or self._sink.emit)(
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

    def prompt(self, messages: Sequence[Message] = ()) -> Prompt:
        """Return the model's prompt: the constant part, then `messages`."""
        constant = self._constant
        if constant is None or constant.plugins is not self.registry.specs:
            constant = constant_prompt(self.registry, self.dialect)
            self._constant = constant
        return with_messages(constant, messages)

    def close(self) -> None:
        """Close the session: another may go on with it, here or elsewhere.

        Postponed while a request is being answered.
        """
        if self._turn.puts_off(self.close):
            return
        self._loop.close()
        self._engine.close()
        self.registry.close()
        self._claim()
        self._leave_journal()

    def _leave_journal(self) -> None:
        if self._journal_is_own:
            self.journal.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
