"""Restore a conversation from the journal's events, to resume a session.

If the run was interrupted in the middle of a plan, the results that the model has not
seen are reported now: an ended call as it ended, a call that started and never finished
as unknown (decision 5, rule D14), the others as not started. None of them runs again,
and the model is asked to check before it repeats a call with an unknown outcome.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial
from typing import cast

from msgspec import Struct, field
from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.store import AssetStore
from neuraxis.dialects import Dialect
from neuraxis.engines.threads import THREADS
from neuraxis.errors import ConfigError, NoSuchSession
from neuraxis.events import (
    AssetStored,
    CallFinished,
    CallStarted,
    Event,
    HistoryShortened,
    MessageSent,
    ModelFinished,
    PlanChecked,
    RunUndone,
    SessionFinished,
    Unknown,
)
from neuraxis.journal import Journal
from neuraxis.messages import (
    Call,
    Completion,
    FinishReason,
    Message,
    NativeCall,
    Result,
)
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.session.past.recorded import LoopItems, is_cut_off, result_of
from neuraxis.session.past.shortened import (
    SUMMARY_DESCRIPTION,
    Summary,
    apply_shortening,
)
from neuraxis.session.past.waiting import asked_plan
from neuraxis.session.visible_results import with_parts
from neuraxis.specs import Json


class Past(Struct, frozen=True, kw_only=True):
    """Restored state of an earlier session."""

    messages: tuple[Message, ...] = ()
    unseen: tuple[Message, ...] = ()
    """Last messages: results that the model had not seen before the interruption."""
    values: tuple[tuple[str, str, Json], ...] = ()
    """Call id, command and value of inline results, for references."""
    loops: tuple[tuple[str, str, Json], ...] = ()
    """The same of interrupted loops: the outcomes of their items."""
    assets: tuple[AssetStored, ...] = ()
    summed: Summary = field(default_factory=Summary)
    cut_off: bool = False
    """Whether the last request has no end."""
    waits: tuple[str, ...] = ()
    """Ids of the calls in the plan that waits for approvals."""
    pending: bool = False
    """Whether its last reply was not read yet, or waits; it is before `unseen`."""

    @property
    def first_unseen(self) -> int:
        """Number of messages behind the pending reply; -1: there is none."""
        return len(self.unseen) if self.pending else -1


def restore_history(events: Sequence[Event | Unknown], dialect: Dialect) -> Past:
    """Return the conversation that these events recorded."""
    conversation = _Conversation(dialect=dialect)
    values: dict[str, tuple[str, str, Json]] = {}
    assets: list[AssetStored] = []
    earlier = ""
    for event in events:
        conversation.apply(event)
        match event:
            case CallFinished():
                values.pop(event.id, None)  # a loop that waited ends again
                if event.status == "skipped":
                    assets = [asset for asset in assets if asset.id != event.id]
                elif event.status == "failed" and event.value is None:
                    pass  # it has no answer that could be referred to
                elif event.asset is None and not event.part_of:
                    values[event.id] = (event.id, event.command, event.value)
            case AssetStored(meta=dict(), bytes=int()):
                assets.append(event)
            case HistoryShortened(asset=str(summary)) if summary:
                # its text is built again from the messages
                assets = [
                    asset for asset in assets if asset.id not in (summary, earlier)
                ]
                earlier = summary
            case RunUndone():
                conversation.undone += event.files
            case _:
                pass
    seen = len(conversation.messages)
    conversation.report_unseen()
    plan = asked_plan(events)
    return Past(
        messages=tuple(conversation.messages),
        unseen=tuple(conversation.messages[seen:]),
        values=tuple(values.values()),
        loops=tuple(conversation.loops),
        assets=tuple(assets),
        summed=conversation.summed,
        cut_off=conversation.cut_off,
        waits=() if plan is None else tuple(plan.steps),
        pending=conversation.cut_off
        and (conversation.is_reply_open or plan is not None),
    )


class _Conversation(Struct, kw_only=True):
    """Conversation so far, and the results that the model has not seen."""

    dialect: Dialect
    messages: list[Message] = []
    summed: Summary = field(default_factory=Summary)
    cut_off: bool = False
    """Whether a request began and did not end."""
    is_reply_open: bool = False
    """Whether the last reply was not handled."""
    _steps: dict[str, str] = {}
    """Tools of the model's plan without a reported result, by call id."""
    _running: dict[str, CallStarted] = {}
    _ended: dict[str, CallFinished] = {}
    _items: dict[str, LoopItems] = {}
    """Loops of the plan, by call id."""
    loops: list[tuple[str, str, Json]] = []
    """Call id, command and items of the loops that were reported as interrupted."""
    undone: list[str] = []
    """Files that were undone since the last request."""
    _native: deque[NativeCall] = field(default_factory=deque[NativeCall])
    """Unanswered native tool calls; a server requires an answer for each."""

    def apply(self, event: Event | Unknown) -> None:
        """Apply one event."""
        match event:
            case MessageSent(sender="user"):
                self._add_request(event)
            case MessageSent(sender="system", receiver="model"):
                self.is_reply_open = False
                results = self._told()
                self._answer(event.content, tuple(results), event.assets)
            case HistoryShortened():
                self.report_unseen()  # the history had these results
                dropped = apply_shortening(self.messages, event)
                if event.asset:
                    self.summed.add(dropped, event.asset)
            case ModelFinished():
                self.report_unseen()  # the prompt of this reply had these results
                self.is_reply_open = True
                calls = _native_calls(event.tool_calls)
                self._native = deque(calls)
                self.messages.append(
                    Message(
                        role="assistant",
                        content=event.text,
                        tool_calls=calls,
                        carried=event.carried,
                        finish_reason=cast("FinishReason", event.finish_reason),
                    )
                )
            case PlanChecked(by_program=False) if self.is_reply_open:
                self.is_reply_open = False
                steps = () if event.problems else event.steps
                self._steps = dict(_tool(step) for step in steps)
            case CallStarted() | CallFinished() if event.part_of:
                self._items.setdefault(event.part_of, LoopItems()).record(event)
            case CallStarted():
                self._running[event.id] = event
                if event.items is not None:
                    self._items.setdefault(event.id, LoopItems()).record(event)
            case CallFinished():
                self._running.pop(event.id, None)
                if event.id in self._steps:
                    self._ended[event.id] = event
            case SessionFinished():
                self.cut_off = event.outcome in ("cancelled", "waiting")
                self.is_reply_open = self.is_reply_open and self.cut_off
            case _:
                pass

    def _add_request(self, event: MessageSent) -> None:
        self.report_unseen()
        self.cut_off = True
        self.is_reply_open = False
        note = call_errors.files_undone(self.undone)
        self.undone.clear()
        text = self.dialect.request(f"{note}{event.content}")
        message = Message(role="user", content=text, is_request=True)
        self.messages.append(replace(message, assets=event.assets))

    def _told(self) -> list[Result]:
        """Take out the results that a message tells the model."""
        results = [self._result(*step) for step in self._steps.items()]
        if self._native:  # a message for each
            results = results[:1]
        for result in results:
            del self._steps[result.call.id]
            self._running.pop(result.call.id, None)
        if not self._native:
            self._ended.clear()
            self._items.clear()
        return results

    def _answer(
        self,
        content: str,
        results: tuple[Result, ...] = (),
        assets: tuple[str, ...] = (),
    ) -> None:
        message = Message(role="user", content=content, results=results, assets=assets)
        if self._native:
            tool_call_id = self._native.popleft().id
            message = replace(message, role="tool", tool_call_id=tool_call_id)
        self.messages.append(message)

    def report_unseen(self) -> None:
        """Append the results that the model has not seen."""
        tools = self._steps | {
            event.id: event.tool
            for event in self._running.values()
            if event.id not in self._steps
        }
        results = [self._result(call_id, tool) for call_id, tool in tools.items()]
        self._steps.clear()
        self._running.clear()
        self._ended.clear()
        self._items.clear()
        while self._native:
            native = self._native[0].name
            result = results.pop(0) if results else self._result("", native)
            for message in self.dialect.answer([result]):
                self._answer(message.content, (result,))
        if results:
            for message in self.dialect.answer(results):
                self._answer(message.content, tuple(results))

    def _result(self, call_id: str, tool: str) -> Result:
        call = Call(id=call_id, plugin=None, command=tool)
        end, loop = self._ended.get(call_id), self._items.get(call_id)
        if loop is None or not is_cut_off(end):
            return result_of(call, self._running.get(call_id), end)
        result = loop.cut_off(call)
        self.loops.append((call_id, result.command or tool, result.value))
        return result


def _tool(step: Json) -> tuple[str, str]:
    fields = cast("dict[str, Json]", step) if isinstance(step, dict) else {}
    return str(fields.get("id")), str(fields.get("tool"))


def _native_calls(calls: Sequence[Json]) -> tuple[NativeCall, ...]:
    return tuple(
        NativeCall(
            id=str(call.get("id")),
            name=str(call.get("name")),
            arguments=str(call.get("arguments")),
        )
        for item in calls
        if isinstance(item, dict) and (call := cast("dict[str, Json]", item))
    )


def as_completion(reply: Message) -> Completion:
    """Return a reply in the history as the model wrote it."""
    return Completion(
        text=reply.content,
        finish_reason=reply.finish_reason,
        tool_calls=reply.tool_calls,
        carried=reply.carried,
    )


def last_finish(events: Iterable[Event | Unknown]) -> SessionFinished | None:
    """Return the end of the last request, if it has one."""
    end: SessionFinished | None = None
    for event in events:
        if isinstance(event, SessionFinished):
            end = event
        elif isinstance(event, MessageSent) and event.sender == "user":
            end = None
    return end


def last_request(events: Iterable[Event | Unknown]) -> str | None:
    """Return the user's last message; None: there is none."""
    found: str | None = None
    for event in events:
        if isinstance(event, MessageSent) and event.sender == "user":
            found = event.content
    return found


def restore(past: Past, assets: AssetStore, origins: Origins) -> list[Message]:
    """Restore the values and assets; return the messages with their pictures."""
    for call_id, command, value in past.values:
        assets.keep(call_id, command, value)
    for asset in past.assets:
        assets.restore(asset.id, cast("dict[str, Json]", asset.meta), asset.bytes)
    for loop in past.loops:
        assets.keep(*loop)
    if past.summed.asset:
        assets.attach(past.summed.asset, past.summed.text, SUMMARY_DESCRIPTION)
        origins.sums_up(past.summed.asset)
    return with_parts(past.messages, assets)


def take_settled(
    call_id: str,
    journal: Journal,
    session: str,
    dialect: Dialect,
    assets: AssetStore,
    history: list[Message],
) -> int:
    """Take a settled call's result into the history; return `first_unseen`."""
    past = restore_history([entry.event for entry in journal.read(session)], dialect)
    for value in past.values:
        if value[0] == call_id:
            assets.keep(*value)
    history[:] = with_parts(past.messages, assets)
    return past.first_unseen


async def read_events(journal: Journal, session: str) -> list[Event | Unknown]:
    """Read a session's events, in a thread."""
    entries = await THREADS.run(partial(journal.read, session))
    return [entry.event for entry in entries]


def wrong_id(session: str, journal: Journal, *, exists: bool) -> ConfigError:
    """Return the error for an id that exists, or that does not."""
    if exists:
        return ConfigError(
            f"session {session!r} is in the journal already; "
            f"Session.open({session!r}, journal=…) continues it"
        )
    path = getattr(journal, "path", None)  # of one in memory there is none
    file, named = (f" {path.absolute()}", f" --journal {path}") if path else ("", "")
    return NoSuchSession(
        f"session {session!r} is not in the journal{file}; `neuraxis sessions list"
        f"{named}` lists those that are, and Session(id=…) begins one"
    )
