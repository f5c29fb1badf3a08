"""A user's conversation with a model; `loop.py` has the agent loop."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Generic, Literal, Self, Unpack

from msgspec.structs import replace

from neuraxis.assets.pictures import media_type
from neuraxis.dialects import Dialect
from neuraxis.errors import StorageError
from neuraxis.events import CallStarted
from neuraxis.execution.budget import Budget
from neuraxis.execution.report import report_stored
from neuraxis.journal import Journal, flush, open_journal, release
from neuraxis.messages import Call, Message, Prompt, Result
from neuraxis.models import Model
from neuraxis.planning.plan import OnError, Plan
from neuraxis.policy.provenance.replay import replay
from neuraxis.policy.rules import Policy, check_targets
from neuraxis.policy.unknown_calls import UnknownCalls
from neuraxis.sandbox.files.history import Undone
from neuraxis.session import build, past, validation
from neuraxis.session.answer import Answer, Out
from neuraxis.session.config import RunConfig, continued_config
from neuraxis.session.event_loop import SyncLoop, check_sync_close
from neuraxis.session.event_sink import EventSink
from neuraxis.session.inherit import Inherited, inherit, session_started, within_parent
from neuraxis.session.load_plugins import build_registry, build_shortlist, choose_shown
from neuraxis.session.options import Approver, Options, SessionArguments, as_async
from neuraxis.session.past.call_ids import CallIds, plan_key, session_key
from neuraxis.session.prompt import Instructions, Prompts
from neuraxis.session.run import Run, RunLock, await_all, check_open, run_in_loop
from neuraxis.session.watch import Watch, WatchFailed, guard_watch
from neuraxis.session.workspace import begin_files, read_given, read_item, undo_last
from neuraxis.settings import Settings, check_settings, load
from neuraxis.specs import Json

_JournalArgument = str | Path | Journal | None


class Session(Generic[Out]):
    """Conversation whose history grows from run to run.

    Args:
        model: a name (`local:`, `openai:gpt-x`), a `Model`, or a list of these: if one
            fails, the next is asked.
        plugins: functions, objects, folders, or names (`neuraxis:web_search`).
        instructions: your text beside the dialect's in the prompt, or a function that
            returns it for each run, from the run's `Context`.
        output: the type of answers: a class, a union of classes, or a JSON Schema.
        deps: the class of the object that `run(..., deps=...)` passes to commands.
        dialect: a name, or a `Dialect`.
        id: an id of your own; default: a random, secret one. See also `Session.open`.
        journal: None or "memory", a SQLite file's path, or a `Journal` (left open).
        workspace: the folder that commands may write to; default: the setting
            `workspace`, else `neuraxis-workspace` in the current folder.
        budget: the limits of each run.
        policy: which calls may run; default: see docs/security.md.
        approve: asked if the policy says `ask`; True approves. "later": a run that
            needs an approval ends, and waits for it in the journal. None: no one.
        options: less common options.
        settings: default: from the files and the environment (`settings.load`).

    Raises:
        ConfigError: a name or file does not exist, an argument or setting is invalid,
            or a plugin has mistakes.
        SessionBusy: the session is already open, here or in another process.
        StorageError: the journal cannot be opened.
    """

    _earlier = False
    """Whether `open` creates it, to continue a session in the journal."""

    @validation.named_arguments
    def __init__(
        self,
        model: str | Model | Sequence[str | Model] = "local:",
        *,
        plugins: Iterable[Any] = (),
        instructions: Instructions = None,
        output: type[Out] | Any = None,
        deps: type[Any] | None = None,
        dialect: str | Dialect = "intents",
        id: str | None = None,
        journal: str | Path | Journal | None = None,
        workspace: str | Path | None = None,
        budget: Budget | None = None,
        policy: Policy | None = None,
        approve: Approver = None,
        options: Options | None = None,
        settings: Settings | None = None,
    ) -> None:
        validation.check_arguments(locals())
        options = options or Options()
        budget = budget or Budget()
        inherited = inherit(options.parent, policy)
        self._outer = inherited.outer
        settings = inherited.settings if settings is None else settings
        self.settings = load(Path.cwd()) if settings is None else settings
        check_settings(self.settings)
        self._engine = build.build_engine(self.settings, self._outer)
        self.workspace = build.build_workspace(workspace, inherited, self.settings)
        checks = (inherited.policy.lock, inherited.secrets, options.strict)
        self.registry = build_registry(plugins, self.workspace, *checks)
        if policy is not None:
            check_targets(policy, self.registry.targets)
        self._shortlist = build_shortlist(self.registry, options)
        self.model = build.build_model(model, self.settings, budget)
        self.dialect = build.build_dialect(dialect, options, self.registry)
        shown = build.shown_beside_search(options, self.model, self.dialect)
        texts = (instructions, options.template, output, shown)
        self._prompts = Prompts(self.registry, self.dialect, *texts)
        self.output = self._prompts.output
        self._deps = deps
        self._open_journal(journal, id)
        self._open_stores(inherited, options, journal)
        self.approvals = inherited.approvals()
        self._config = self._make_config(inherited, options, budget, approve)
        if id is not None:
            self._begin(options.reopen)

    def _open_journal(self, journal: _JournalArgument, id: str | None) -> None:
        self.journal = open_journal(journal)
        self.id = id or os.urandom(16).hex()  # it cannot be guessed
        self.journal.claim(self.id, is_new=id is None)
        claimed = (self.journal, self.id, self.journal is not journal)
        self._claim = weakref.finalize(self, release, *claimed)
        self._lock = RunLock()
        self._unknown = UnknownCalls()
        self._is_cut_off = False
        targets = (self._lock, self._outer, self.workspace, self._unknown)
        self._sink = EventSink(self.id, self.journal, *targets)

    def _open_stores(
        self, inherited: Inherited, options: Options, journal: _JournalArgument
    ) -> None:
        """Create the session's history, assets, origins and file history."""
        self.history: list[Message] = []
        self._pending = -1
        """Number of messages after an unhandled reply; -1: there is none."""
        self.assets = build.build_assets(options, self.id)
        self.origins = inherited.origins(self.workspace, self.settings)
        arguments = (self.workspace, options, self.id, self.settings, journal)
        history = inherited.files(self.workspace)
        self.files = history or build.build_files(*arguments, self._sink.emit)
        self.ids = CallIds()
        self._announced = False
        self._shows: list[str] = []
        """Attached pictures and files that the next request shows."""
        self._loop = SyncLoop()

    def _make_config(
        self, inherited: Inherited, options: Options, budget: Budget, approve: Approver
    ) -> RunConfig:
        """Return the configuration of the session's runs."""
        return RunConfig(
            model=self.model,
            dialect=self.dialect,
            registry=self.registry,
            assets=self.assets,
            engine=self._engine,
            policy=inherited.policy,
            budget=budget,
            approve=as_async(approve) or inherited.approve,
            later=build.build_later(approve, options, self._sink),
            prompt_tokens=options.prompt_tokens,
            approval_seconds=options.approval_seconds,
            strict=options.strict,
            on_error=options.on_error,
            raise_failures=options.raise_errors,
            early_start=options.early_start,
            show_results=options.show_results,
            settings=self.settings,
            workspace=self.workspace,
            ids=self.ids,
            key=os.urandom(16).hex(),
            prompt=self._prompts.make,
            output=self._prompts.output,
            origins=self.origins,
            approvals=self.approvals,
            secrets=inherited.secrets,
            depth=inherited.depth,
            session=self.id,
            unknown=self._unknown,
            settled=self._sink.settled if self._sink.is_durable else None,
            files=self.files,
        )

    @classmethod
    def open(cls, id: str, **given: Unpack[SessionArguments]) -> Self:
        """Continue an earlier session.

        Args:
            id: the session's id.
            **given: arguments of `Session`; `journal` is the one that holds it.

        Raises:
            ConfigError: `NoSuchSession`, or an argument is invalid.
            SessionBusy: the session is already open, here or in another process.
            StorageError: the journal cannot be read.
        """
        session = cls.__new__(cls)
        session._earlier = True
        session.__init__(id=id, **given)
        return session

    def _begin(self, reopen: bool) -> None:
        """Restore the session from the journal."""
        entries = self.journal.read(self.id)
        if self._earlier != bool(entries) and not reopen:
            self._claim()
            raise past.resume.wrong_id(self.id, self.journal, exists=bool(entries))
        events = [entry.event for entry in entries]
        key = session_key(events, self._config.key)
        earlier = past.resume.restore_history(events, self.dialect)
        replay(self.origins, events, earlier.waits)
        past.waiting.restore_approvals(self.approvals, events)
        for restored in (self._unknown, self.files, self.ids):
            restored.replay(events)
        self._is_cut_off = earlier.cut_off
        self._config = replace(self._config, summed=earlier.summed, key=key)
        self._pending = earlier.first_unseen
        self.history = past.resume.restore(earlier, self.assets, self.origins)

    def pending(self) -> tuple[past.waiting.Question, ...]:
        """Return the calls that wait for an approval (`approve="later"`)."""
        return past.waiting.pending(self.journal, self.id)

    def approve(
        self, question: str, how: Literal["once", "always"] = "once", /, **changed: Any
    ) -> None:
        """Approve a waiting call; `resume` runs it.

        Args:
            question: the question's id.
            how: "always": approve all that the last of its `offers` names, too.
            **changed: changed arguments of the call; they are checked again.

        Raises:
            ConfigError: `NoOpenQuestion`, an argument is invalid, or the question has
                no offers for "always".
        """
        target = self.journal, self.id, question
        answered = past.waiting.answer(*target, True, arguments=changed, how=how)
        past.waiting.restore_approvals(self.approvals, answered)

    def deny(self, question: str, reason: str = "") -> None:
        """Refuse a waiting call; the model is told the reason."""
        target = self.journal, self.id, question
        answered = past.waiting.answer(*target, False, reason=reason)
        past.waiting.restore_approvals(self.approvals, answered)

    @property
    def unknown_calls(self) -> tuple[CallStarted, ...]:
        """Calls of `once` commands whose outcome is unknown."""
        return self._unknown.all

    def settle(self, call_id: str, happened: bool) -> None:
        """Record whether a call of unknown outcome had its effect.

        Raises:
            ConfigError: there is no such call.
        """
        self._sink.settle(call_id, happened)
        flush(self.journal)
        if self._is_cut_off:  # its result is among those that the model has not seen
            given = self.journal, self.id, self.dialect, self.assets, self.history
            self._pending = past.resume.take_settled(call_id, *given)

    def run(
        self, text: str, *, attach: Iterable[Any] = (), deps: Any = None
    ) -> Run[Out]:
        """Answer one request: `await` it, or `async for` its events.

        Args:
            text: the request.
            attach: paths of files, or objects, for `attach`; a model with vision gets
                the pictures and PDF files, any other a description.
            deps: what commands find as `context.deps`: the user, a connection, ...
        """
        return Run(partial(self.drive, attach=attach, deps=deps), text, self._lock.left)

    def resume(self, *, deps: Any = None) -> Run[Out]:
        """Continue a waiting or interrupted request, without repeating calls."""
        drive = partial(self.drive, deps=deps, is_resumed=True)
        return Run(drive, "what was cut off", self._lock.left)

    def resume_sync(
        self, watch: Watch | None = None, *, deps: Any = None
    ) -> Answer[Out]:
        """Do the same as `resume`, from synchronous code."""
        drive = partial(self.drive, deps=deps, is_resumed=True)
        work = run_in_loop(drive, "resume", watch, self._lock, self.model)
        return self._loop.run(work)

    def run_sync(
        self,
        text: str,
        watch: Watch | None = None,
        *,
        attach: Iterable[Any] = (),
        deps: Any = None,
    ) -> Answer[Out]:
        """Answer one request from synchronous code; `watch` gets the events."""
        drive = partial(self.drive, attach=attach, deps=deps)
        return self._loop.run(run_in_loop(drive, text, watch, self._lock, self.model))

    async def drive(
        self,
        text: str,
        watch: Watch | None = None,
        *,
        attach: Iterable[Any] = (),
        deps: Any = None,
        is_resumed: bool = False,
    ) -> Answer[Out]:
        """Answer one request, as `run` does; `watch` gets the events."""
        from neuraxis.session.loop import converse  # loaded with the first run

        validation.check_request(text, watch, attach, self.history)
        config = within_parent(self._config, self._outer, deps, self._deps)
        self._lock.begin(self.id, watch, is_inside=self._outer is not None)
        try:
            loaded = (self.journal, self.dialect, self.registry, self._shortlist)
            opened = (self.id, self._is_cut_off, *loaded)
            planned = await past.requirements.check(*opened) if is_resumed else ()
            await self._prompts.begin(config)
            self._announce(self._sink.emit)
            request = None if is_resumed else text
            for item in attach:
                self.attach(*await read_item(item))
            earlier = (self._is_cut_off, self._pending, self.id, self.journal)
            stores = (self.dialect, self.assets, self.origins)
            found = past.continued.take_up(request, self.history, *earlier, *stores)
            config = continued_config(config, await found)
            self._is_cut_off, self._pending = True, -1
            begin_files(self.files, self._outer, is_resumed=is_resumed)
            choose_shown(self._shortlist, request or "", self.history, planned)
            shows, self._shows = self._shows, []
            reporting = (self._sink.emit, self._lock.watch is not None, shows)
            work = converse(request, config, self.history, *reporting)
            answer = await (work if self._outer is None else self._outer.hold(work))
            self._is_cut_off = answer.outcome == "waiting"
            await self._sink.end()
            return self._lock.with_write_error(answer)
        except WatchFailed as failed:
            raise failed.seen_by(watch) from None
        finally:
            self._sink.forget()
            self._lock.end()

    def attach(self, value: Any, description: str = "", *, outside: bool = True) -> str:
        """Store an object and return its id for references (rule B61).

        Args:
            value: any object (an array becomes read-only), or the `Path` of a file
                of at most 200 MB: a picture, a table (CSV, TSV, Parquet) or a text is
                stored as such, any other file as its bytes.
            description: shown to the model; default: the file's name.
            outside: whether others may have written it; False: attaching it makes no
                later effect need approval.

        Raises:
            ConfigError: the file's content does not match its suffix.
        """
        validation.check_description(description)
        value, description = read_given(value, description)
        self._announce(self._sink.emit)
        asset_id = self.ids.next()
        if media_type(value):
            self._shows.append(asset_id)
        stored = self.assets.attach(asset_id, value, description)
        self.origins.attached(asset_id, own=not outside)
        report_stored(asset_id, stored, self._sink.emit, own=not outside)
        return asset_id

    async def call(
        self, call: Call, watch: Watch | None = None, *, deps: Any = None
    ) -> Result:
        """Run one call of your own; it is checked like a model's."""
        return (await self.call_all([call], watch, deps=deps))[0]

    def check(
        self, calls: Sequence[Call], params: Mapping[str, Json] | None = None
    ) -> Plan:
        """Return the plan of these calls, with all problems; nothing runs."""
        from neuraxis.session.loop import plan_of

        validation.check_calls(calls)
        return plan_of(calls, self._config, params)

    async def call_all(
        self,
        calls: Sequence[Call],
        watch: Watch | None = None,
        *,
        params: Mapping[str, Json] | None = None,
        on_error: OnError | None = None,
        deps: Any = None,
    ) -> list[Result]:
        """Run a plan of your own; it is checked like a model's.

        Args:
            calls: the steps; a result has the id of its call, which none of the model's
                has, and its value as the journal stores it: as JSON if possible. If one
                is wrong, none runs; each error is its first problem (`check`: all).
            watch: sees every event as it happens.
            params: values for `{{ params['x'] }}` of a saved plan; None: plain text.
            on_error: for this plan; None: the session's.
            deps: see `run`.
        """
        from neuraxis.session.loop import run_calls

        validation.check_calls(calls, watch, on_error)
        config = within_parent(self._config, self._outer, deps, self._deps, calls)
        key = plan_key(config.key, params)
        config = replace(config, on_error=on_error or config.on_error, key=key)
        emit = partial(self._sink.emit, watch=guard_watch(watch))
        try:
            self._announce(emit)
            begin_files(self.files, self._outer)
            work = run_calls(calls, config, emit, params)
            results = await (work if self._outer is None else self._outer.hold(work))
        except WatchFailed as failed:
            raise failed.seen_by(watch) from None
        with suppress(StorageError):  # the next event reports it
            await self._sink.written()
        return results

    def undo(self, *, changed_since: bool = False) -> Undone:
        """Restore the files that the last run changed.

        Args:
            changed_since: also restore files that were changed after the run; if
                False, `approve` decides about these, and without it they stay.
        """
        approve = self._config.approve
        return undo_last(self.files, self.origins, approve, self._loop, changed_since)

    def _announce(self, emit: Watch) -> None:
        check_open(self._claim, self.id)
        if (self._outer and self._outer.hand_on(self.origins)) or not self._announced:
            self._announced = True
            emit(session_started(self._config, self._outer, self.history))

    def prompt(self, messages: Sequence[Message] = ()) -> Prompt:
        """Return the model's prompt: the constant part, then `messages`."""
        return self._prompts.make(messages)

    def _repr_html_(self) -> str:
        from neuraxis.session.html import render_session  # for notebooks only

        return render_session(self.id, self.journal.read(self.id), self.assets)

    def close(self) -> None:
        """Close the session, so that it can be opened elsewhere.

        Postponed while a request is being answered. A plugin whose `close` is an
        `async def` needs `aclose`, or `async with`, in async code.
        """
        if not self._lock.postpone(partial(self._close, self._lock.leave)):
            check_sync_close(self.registry.closes_async)
            self._close(self._loop.run)

    async def aclose(self) -> None:
        """Do the same as `close`, from async code."""
        if not self._lock.postpone(partial(self._close, self._lock.leave)):
            closing: list[Coroutine[Any, Any, Any]] = []
            try:
                self._close(closing.append)
            finally:
                await await_all(reversed(closing))

    def _close(self, wait: Callable[[Coroutine[Any, Any, Any]], object]) -> None:
        self._engine.close()
        try:
            self.registry.close(wait)  # also what plugins' classes hold
        finally:
            self._loop.close()
            self._claim()

    def __enter__(self) -> Self:
        check_sync_close(self.registry.closes_async)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
