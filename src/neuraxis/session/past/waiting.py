"""A plan that waits for approvals: its questions and their answers.

Everything is read from the journal's events, so that the answer may come from another
process or after a restart. A question is open until it is answered, it expires, or the
user's next request ends its plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.json_view import to_json_value
from neuraxis.assets.store import AssetStore
from neuraxis.errors import ConfigError, NoOpenQuestion
from neuraxis.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallFinished,
    CallStarted,
    Event,
    MessageSent,
    ModelFinished,
    PlanChecked,
    SessionFinished,
    Unknown,
)
from neuraxis.formatting import check_word, refuse
from neuraxis.journal import Journal, SessionInfo, open_journal
from neuraxis.messages import Call, Reply, Result
from neuraxis.messages import Path as Place
from neuraxis.parsing.json_access import as_list
from neuraxis.policy.approvals import Approvals
from neuraxis.references.find import find_places
from neuraxis.schema.schema import Schema
from neuraxis.session.past.call_ids import CallIds
from neuraxis.session.past.recorded import (
    code_of,
    is_cut_off,
    result_of,
    with_value,
)
from neuraxis.specs import Json

_MAY_WAIT = ("waiting", "cancelled", "unfinished")
"""States in which a question may be open."""
_ONLY_ONCE = (
    "'once', since this question has no offers: approve each such call by itself"
)


class Question(Struct, frozen=True, kw_only=True):
    """A call that waits for an approval."""

    id: str
    """The call's id, unique within its session."""
    session: str
    """The id of its session."""
    call: Call
    """The call that would run; references are resolved, and long values cut."""
    reason: str
    """Why the policy asks."""
    origins: Mapping[str, str]
    """Where each argument came from, in words."""
    parameters: Json
    """JSON Schema of the arguments, for a form to edit them."""
    expires: float
    """Unix time after which the call is denied."""
    offers: tuple[str, ...] = ()
    """Wider approvals, in words; `"always"` gives the last, the widest."""

    lost: tuple[str, ...] = ()
    """Contents that your files would lose, in lines to show."""

    @property
    def summary(self) -> str:
        """Return the call in one line."""
        arguments: Json = self.call.arguments
        if self.call.for_each is not None:
            arguments = {"$for_each": self.call.for_each, "arguments": arguments}
        return call_errors.summary(self.call.target, arguments)

    def to_json(self) -> dict[str, Json]:
        """Return the question as JSON, for a form or a web page."""
        call = self.call
        return {
            "session": self.session,
            "id": self.id,
            "plugin": call.plugin,
            "command": call.command,
            "arguments": call.arguments,
            "for_each": call.for_each,
            "summary": self.summary,
            "reason": self.reason,
            "origins": dict(self.origins),
            "parameters": self.parameters,
            "expires": self.expires,
            "offers": list(self.offers),
            "lost": list(self.lost),
        }


class WaitingPlan(Struct, kw_only=True):
    """The model's last plan, whose results the model has not seen yet."""

    steps: dict[str, dict[str, Json]] = {}
    """Steps by call id, as in `PlanChecked`."""
    running: dict[str, CallStarted] = {}
    ended: dict[str, CallFinished] = {}
    asked: dict[str, ApprovalAsked] = {}
    answered: dict[str, ApprovalAnswered] = {}
    changed: dict[str, dict[str, Json]] = {}
    """By call id: the arguments that the user changed, also before it was asked anew.
    """

    def record(self, event: Event | Unknown) -> None:
        """Store an event of one of the plan's calls."""
        if not isinstance(
            event, CallStarted | CallFinished | ApprovalAsked | ApprovalAnswered
        ) or (event.id.partition(".")[0] not in self.steps):
            return
        match event:
            case CallStarted():
                self.running[event.id] = event
            case CallFinished():
                self.ended[event.id] = event
            case ApprovalAsked(expires=expires) if expires:
                self.asked[event.id] = event
                self.answered.pop(event.id, None)  # it was for an earlier question
            case ApprovalAnswered(arguments=arguments) if event.id in self.asked:
                self.answered[event.id] = event
                if isinstance(arguments, dict) and event.allowed:
                    before = self.changed.get(event.id, {})
                    self.changed[event.id] = before | cast("dict[str, Json]", arguments)
            case _:
                pass

    def final_results(self) -> dict[str, Result]:
        """Return the results of the calls that are not run again.

        An interrupted read-only call runs again. An interrupted call with an effect
        does not: its outcome is unknown.
        """
        results: dict[str, Result] = {}
        for call_id, event in (self.running | self.ended).items():
            begun, end = self.running.get(call_id), self.ended.get(call_id)
            reads = begun is not None and begun.effects in ("none", "read")
            is_loop = self.steps.get(call_id, {}).get("for_each") is not None
            if end is not None:
                repeats = (reads and code_of(end) == "cancelled") or (
                    is_loop and is_cut_off(end)
                )
            else:
                repeats = reads or is_loop
            if not repeats:
                call = Call(id=call_id, plugin=None, command=event.tool)
                results[call_id] = result_of(call, begun, end)
        return results


def last_plan(events: Iterable[Event | Unknown]) -> WaitingPlan | None:
    """Return the last plan, unless the model has seen its results."""
    plan: WaitingPlan | None = None
    is_reply_open = False
    for event in events:
        match event:
            case ModelFinished():
                is_reply_open = True
                plan = None
            case PlanChecked(by_program=False) if is_reply_open:
                is_reply_open = False
                if not event.problems:
                    steps = [cast("dict[str, Json]", step) for step in event.steps]
                    plan = WaitingPlan(steps={str(step["id"]): step for step in steps})
            case SessionFinished(outcome="waiting" | "cancelled"):
                pass
            case MessageSent(receiver="model") | SessionFinished():
                is_reply_open = False
                plan = None
            case _:
                if plan is not None:
                    plan.record(event)
    return plan


def asked_plan(events: Iterable[Event | Unknown]) -> WaitingPlan | None:
    """Return the last plan if one of its calls needs approval."""
    plan = last_plan(events)
    return plan if plan is not None and plan.asked else None


def pending(journal: Journal, session: str) -> tuple[Question, ...]:
    """Return the open questions of a session, the oldest first."""
    plan = asked_plan(entry.event for entry in journal.read(session))
    if plan is None:
        return ()
    now = time.time()
    return tuple(
        _question(session, question)
        for call_id, question in plan.asked.items()
        if call_id not in plan.answered and question.expires > now
    )


def open_questions(journal: str | Path | Journal) -> tuple[Question, ...]:
    """Return the open questions of all sessions in a journal.

    The sessions may be open elsewhere; nothing is changed.

    Args:
        journal: a SQLite file's path, or a `Journal`.

    Raises:
        ConfigError: there is no such file.
        StorageError: the journal cannot be read.
    """
    with opened_journal(journal, "open_questions") as opened:
        may_wait = ("", *_MAY_WAIT)  # some journals have no states
        sessions = [
            session for session in opened.sessions() if session.state in may_wait
        ]
        return tuple(
            [item for session in sessions for item in pending(opened, session.session)]
        )


def list_sessions(journal: str | Path | Journal) -> tuple[SessionInfo, ...]:
    """Return all sessions in a journal, the last used first.

    Those whose `state` is `ready`, `cancelled` or `unfinished` are continued by
    `Session.open` and `resume`.

    Args:
        journal: a SQLite file's path, or a `Journal`.

    Raises:
        ConfigError: there is no such file.
        StorageError: the journal cannot be read.
    """
    with opened_journal(journal, "list_sessions") as opened:
        return tuple([_refined(info, opened) for info in opened.sessions()])


def _refined(info: SessionInfo, journal: Journal) -> SessionInfo:
    """Return the session, as `waiting` only if a question is open."""
    if info.state not in _MAY_WAIT:
        return info
    if pending(journal, info.session):
        return replace(info, state="waiting")
    return replace(info, state="ready") if info.state == "waiting" else info


@contextmanager
def opened_journal(journal: str | Path | Journal, what: str) -> Generator[Journal]:
    """Open a journal that exists, and close one of a path.

    Raises:
        ConfigError: there is no such file.
    """
    is_path = isinstance(journal, str | Path)
    if is_path and not Path(journal).exists():
        raise ConfigError(f"{what}: {journal}: there is no such journal")
    opened = open_journal(journal)
    try:
        yield opened
    finally:
        if is_path:
            opened.close()


def _question(session: str, event: ApprovalAsked) -> Question:
    call = cast("dict[str, Json]", event.call)
    return Question(
        id=event.id,
        session=session,
        call=Call(
            id=event.id,
            plugin=str(call["plugin"]),
            command=str(call["command"]),
            arguments=call["arguments"],
            for_each=call.get("for_each"),
        ),
        reason=event.reason,
        origins=event.origins,
        parameters=event.parameters,
        expires=event.expires,
        offers=event.offers,
        lost=tuple(map(str, as_list(call.get("lost")))),
    )


# --- answering -----------------------------------------------------------------


def answer(
    journal: Journal,
    session: str,
    question: str,
    allowed: bool,
    *,
    arguments: Mapping[str, Any] | None = None,
    how: str = "once",
    reason: str = "",
) -> tuple[ApprovalAsked, ApprovalAnswered]:
    """Record the user's answer; return it with its question, on disk.

    Raises:
        NoOpenQuestion: there is no such question, it was answered or it expired.
        ConfigError: the changed arguments are invalid, or "always" has nothing to give.
        StorageError: the journal cannot be written.
    """
    check_word("how", how, ("once", "always"))
    if not isinstance(cast("Any", question), str):
        refuse("question", "the question's id, such as question.id", question)
    if not isinstance(cast("Any", reason), str):
        refuse("reason", "a string", reason)
    events = [entry.event for entry in journal.read(session)]
    plan = asked_plan(events)
    asked_event = None if plan is None else plan.asked.get(question)
    if plan is None or asked_event is None:
        raise _closed_question(session, question, events, pending(journal, session))
    if (earlier := plan.answered.get(question)) is not None:
        raise NoOpenQuestion(
            f"question {question} of session {session} was {_verdict(earlier)} "
            "already; resume the session to continue"
        )
    if time.time() > asked_event.expires:
        raise NoOpenQuestion(
            f"question {question} of session {session} expired; resume the session to "
            "continue without that call"
        )
    if how == "always" and not asked_event.offers:
        refuse(f"question {question} of session {session}: how", _ONLY_ONCE, how)
    answered = ApprovalAnswered(
        id=question,
        allowed=allowed,
        digest=asked_event.digest,
        reason=reason,
        arguments=_check_changes(asked_event, arguments, session)
        if arguments
        else None,
        offer=asked_event.offers[-1] if how == "always" else "",
    )
    journal.append(session, answered, durable=True)
    return asked_event, answered


def _closed_question(
    session: str,
    question: str,
    events: Sequence[Event | Unknown],
    still: Sequence[Question],
) -> NoOpenQuestion:
    """Return the error of answering a question that is not open."""
    asked_event = answer = None
    for event in events:
        if isinstance(event, ApprovalAsked) and event.id == question:
            asked_event = event
            answer = None
        elif isinstance(event, ApprovalAnswered) and event.id == question:
            answer = event
    if answer is not None:
        problem = (
            f"question {question} of session {session} was {_verdict(answer)} already"
        )
    elif asked_event is not None:
        problem = (
            f"question {question} of session {session} is closed: its run has ended"
        )
    else:
        problem = f"session {session} has no question {question!r}"
    others = f"still open: {', '.join(item.id for item in still)}"
    return NoOpenQuestion(
        f"{problem}; {others if still else 'no question is open there'}"
    )


def _verdict(answer: ApprovalAnswered) -> str:
    return "approved" if answer.allowed else "denied"


def _check_changes(
    asked_event: ApprovalAsked, changed: Mapping[str, Any], session: str
) -> Json:
    """Return changed arguments as JSON; all but references are checked now."""
    call = cast("dict[str, Json]", asked_event.call)
    target = f"{call['plugin']}.{call['command']}"
    where = f"question {asked_event.id} of session {session}: changed arguments"
    is_json, values = to_json_value(dict(changed))
    written: Json = asked_event.written
    if not is_json or not isinstance(written, dict):
        raise ConfigError(f"{where}: expected values that have a JSON form")
    schema = Schema(cast("dict[str, Json]", asked_event.parameters))
    arguments, _ = schema.coerce(written | values)
    holes: list[Place] = [path for path, _ in find_places(arguments)]
    problems = schema.problems(arguments, holes=holes)
    if problems:
        message = call_errors.invalid_param(target, problems).message
        raise ConfigError(f"{where}: {message}")
    return {name: arguments[name] for name in values}


def restore_approvals(approvals: Approvals, events: Iterable[Event | Unknown]) -> None:
    """Restore a session's wider approvals and its refusals."""
    asked: dict[str, ApprovalAsked] = {}
    for event in events:
        if isinstance(event, ApprovalAsked):
            asked[event.id] = event
        elif isinstance(event, ApprovalAnswered) and event.id in asked:
            question = asked[event.id]
            approvals.note(question, allowed=event.allowed, wider=event.offer)


# --- continuing ----------------------------------------------------------------


class ContinuedPlan(Struct, frozen=True, kw_only=True):
    """A plan that waited for approvals, for the run that continues it."""

    plan: WaitingPlan
    results: Mapping[str, Result]

    def ids(self, unused: CallIds) -> Callable[[], str]:
        """Return a function that returns the plan's call ids in order."""
        # a later version may decode more calls from the reply
        return chain(self.plan.steps, iter(unused.next, None)).__next__

    def with_changes(self, reply: Reply) -> Reply:
        """Return the reply with the arguments that the user changed."""
        calls: list[Call] = []
        for call in reply.calls:
            written, changed = call.arguments, self.plan.changed.get(call.id)
            if changed and isinstance(written, dict):
                call = replace(call, arguments={**written, **changed})
            calls.append(call)
        return replace(reply, calls=tuple(calls))

    def with_warnings(self, results: Sequence[Result]) -> list[Result]:
        """Return the results with warnings about arguments that the user changed."""
        return [self._with_warning(result) for result in results]

    def _with_warning(self, result: Result) -> Result:
        changed = self.plan.changed.get(result.call.id)
        if not changed:
            return result
        warning = call_errors.changed_by_person(list(changed))
        return replace(result, warnings=(warning, *result.warnings))


def continued_plan(
    events: Iterable[Event | Unknown], assets: AssetStore
) -> ContinuedPlan | None:
    """Return the plan that waits, with its results so far."""
    plan = asked_plan(events)
    if plan is None:
        return None
    results = {
        call_id: with_value(result, assets)
        for call_id, result in plan.final_results().items()
    }
    return ContinuedPlan(plan=plan, results=results)
