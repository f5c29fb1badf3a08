"""A plan that waits for a person: questions and answers.

All of it is read from the journal's events, so that the answer may come from another
process, and after a restart. A question stands open until it is answered, lapses, or
the model is told how its plan ended: with the next request of the user's.
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
from neuraxis.policy.later import edited
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


class Question(Struct, frozen=True, kw_only=True):
    """A call that waits for an approval."""

    id: str
    """The call's id, unique within its session."""
    session: str
    """The id of its session."""
    call: Call
    """What would run; its references are shown as what they lead to, long ones cut."""
    reason: str
    """Why it is asked."""
    origins: Mapping[str, str]
    """Where each argument came from, in words."""
    parameters: Json
    """JSON Schema of the arguments, for a form to edit them."""
    expires: float
    """Seconds since 1970; afterwards the answer is no."""
    offers: tuple[str, ...] = ()
    """Wider approvals, in words.

    `"always"` covers files of your own if one ends with "also on your own files".
    """

    lost: tuple[str, ...] = ()
    """What files of yours would lose, in lines to show."""

    @property
    def summary(self) -> str:
        """Return what would run, in one line."""
        given: Json = self.call.arguments
        if self.call.for_each is not None:
            given = {"$for_each": self.call.for_each, "arguments": given}
        return call_errors.summary(self.call.target, given)

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


class Standing(Struct, kw_only=True):
    """The model's last plan, whose results it was not told yet."""

    steps: dict[str, dict[str, Json]] = {}
    """By call id, as `PlanChecked` has them."""
    running: dict[str, CallStarted] = {}
    ended: dict[str, CallFinished] = {}
    asked: dict[str, ApprovalAsked] = {}
    answered: dict[str, ApprovalAnswered] = {}

    def hear(self, event: Event | Unknown) -> None:
        """Take up what happened to a call of the plan."""
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
            case ApprovalAnswered() if event.id in self.asked:
                self.answered[event.id] = event
            case _:
                pass

    def known(self) -> dict[str, Result]:
        """Return the calls that are not run again, with their results.

        A reading call that was cut off is run again; nobody knows how one with an
        effect ended.
        """
        results: dict[str, Result] = {}
        for call_id in self.running | self.ended:
            begun, end = self.running.get(call_id), self.ended.get(call_id)
            reads = begun is not None and begun.effects in ("none", "read")
            is_loop = self.steps.get(call_id, {}).get("for_each") is not None
            if end is not None:
                cut = (reads and code_of(end) == "cancelled") or (
                    is_loop and is_cut_off(end)
                )
            else:
                cut = reads or is_loop
            if not cut:
                call = Call(
                    id=call_id,
                    plugin=None,
                    command=(end or begun).tool,  # type: ignore[union-attr]
                )
                results[call_id] = result_of(call, begun, end)
        return results

    def _call(self, call_id: str) -> Call:
        tool = self.steps[call_id.partition(".")[0]]["tool"]
        return Call(id=call_id, plugin=None, command=str(tool))


def last_plan(events: Iterable[Event | Unknown]) -> Standing | None:
    """Return the last plan whose results the model was not told."""
    standing: Standing | None = None
    is_reply_open = False
    for event in events:
        match event:
            case ModelFinished():
                is_reply_open, standing = True, None
            case PlanChecked(by_program=False) if is_reply_open:
                is_reply_open = False
                if not event.problems:
                    steps = [cast("dict[str, Json]", step) for step in event.steps]
                    standing = Standing(steps={str(one["id"]): one for one in steps})
            case SessionFinished(outcome="waiting" | "cancelled"):
                pass
            case MessageSent(receiver="model") | SessionFinished():
                is_reply_open, standing = False, None
            case _:
                if standing is not None:
                    standing.hear(event)
    return standing


def standing_of(events: Iterable[Event | Unknown]) -> Standing | None:
    """Return the last plan, if a call of it is asked about."""
    standing = last_plan(events)
    return standing if standing is not None and standing.asked else None


def pending(journal: Journal, session: str) -> tuple[Question, ...]:
    """Return the open questions of a session, the oldest first."""
    standing = standing_of(entry.event for entry in journal.read(session))
    if standing is None:
        return ()
    now = time.time()
    return tuple(
        _question(session, asked)
        for call_id, asked in standing.asked.items()
        if call_id not in standing.answered and asked.expires > now
    )


def open_questions(journal: str | Path | Journal) -> tuple[Question, ...]:
    """Return the open questions of all sessions in a journal.

    They may be open elsewhere, and are not changed.

    Args:
        journal: a SQLite file's path, or a `Journal`.

    Raises:
        ConfigError: there is no such file.
        StorageError: the journal cannot be read.
    """
    with opened_journal(journal, "open_questions") as opened:
        may_wait = ("", *_MAY_WAIT)  # some journals tell no state
        infos = [info for info in opened.sessions() if info.state in may_wait]
        return tuple([item for info in infos for item in pending(opened, info.session)])


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
    """Return a session whose state tells whether a question is open."""
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


def _question(session: str, asked: ApprovalAsked) -> Question:
    call = cast("dict[str, Json]", asked.call)
    return Question(
        id=asked.id,
        session=session,
        call=Call(
            id=asked.id,
            plugin=str(call["plugin"]),
            command=str(call["command"]),
            arguments=call["arguments"],
            for_each=call.get("for_each"),
        ),
        reason=asked.reason,
        origins=asked.origins,
        parameters=asked.parameters,
        expires=asked.expires,
        offers=asked.offers,
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
) -> ApprovalAnswered:
    """Record a person's answer; it is on disk on return.

    Raises:
        NoOpenQuestion: there is no such question, it was answered or it expired.
        ConfigError: the arguments do not fit.
        StorageError: the journal cannot be written.
    """
    check_word("how", how, ("once", "always"))
    if not isinstance(cast("Any", reason), str):
        refuse("reason", "a string", reason)
    events = [entry.event for entry in journal.read(session)]
    standing = standing_of(events)
    asked = None if standing is None else standing.asked.get(question)
    if standing is None or asked is None:
        raise _not_open(session, question, events, pending(journal, session))
    if (earlier := standing.answered.get(question)) is not None:
        raise NoOpenQuestion(
            f"question {question} of session {session} was {_verdict(earlier)} "
            "already; resume the session to continue"
        )
    if time.time() > asked.expires:
        raise NoOpenQuestion(
            f"question {question} of session {session} expired; resume the session to "
            "continue without that call"
        )
    call = cast("dict[str, Json]", asked.call)
    target = f"{call['plugin']}.{call['command']}"
    wide = call_errors.offer_calls(target, own=True)
    answered = ApprovalAnswered(
        id=question,
        allowed=allowed,
        digest=asked.digest,
        reason=reason,
        arguments=_checked(asked, arguments, session) if arguments else None,
        always=target if how == "always" else "",
        offer=wide if how == "always" and wide in asked.offers else "",
    )
    journal.append(session, answered, durable=True)
    return answered


def _not_open(
    session: str,
    question: str,
    events: Sequence[Event | Unknown],
    still: Sequence[Question],
) -> NoOpenQuestion:
    """Return the error of answering a question that is not open."""
    asked = answer = None
    for event in events:
        if isinstance(event, ApprovalAsked) and event.id == question:
            asked, answer = event, None
        elif isinstance(event, ApprovalAnswered) and event.id == question:
            answer = event
    if answer is not None:
        message = (
            f"question {question} of session {session} was {_verdict(answer)} already"
        )
    elif asked is not None:
        message = (
            f"question {question} of session {session} is closed: its run has ended"
        )
    else:
        message = f"session {session} has no question {question!r}"
    opened = f"still open: {', '.join(each.id for each in still)}"
    return NoOpenQuestion(
        f"{message}; {opened if still else 'no question is open there'}"
    )


def _verdict(answer: ApprovalAnswered) -> str:
    return "approved" if answer.allowed else "denied"


def _checked(asked: ApprovalAsked, given: Mapping[str, Any], session: str) -> Json:
    """Return edited arguments as JSON; what is no reference is checked now."""
    call = cast("dict[str, Json]", asked.call)
    target = f"{call['plugin']}.{call['command']}"
    where = f"question {asked.id} of session {session}: changed arguments"
    is_json, plain = to_json_value(dict(given))
    written: Json = asked.written
    if not is_json or not isinstance(written, dict):
        raise ConfigError(f"{where}: expected values that have a JSON form")
    schema = Schema(cast("dict[str, Json]", asked.parameters))
    whole, _ = schema.coerce(written | plain)
    holes: list[Place] = [path for path, _ in find_places(whole)]
    problems = schema.problems(whole, holes=holes)
    if problems:
        message = call_errors.invalid_param(target, problems).message
        raise ConfigError(f"{where}: {message}")
    return {name: whole[name] for name in plain}


def restore_yeses(approvals: Approvals, events: Iterable[Event | Unknown]) -> None:
    """Restore the yeses that hold for a whole session."""
    allowed = [e for e in events if isinstance(e, ApprovalAnswered) and e.allowed]
    approvals.widened.update(e.always for e in allowed if e.always)
    approvals.offered.update(e.offer for e in allowed if e.offer)


# --- going on ------------------------------------------------------------------


class GoingOn(Struct, frozen=True, kw_only=True):
    """A plan that waited, for the run that goes on."""

    standing: Standing
    known: Mapping[str, Result]

    def ids(self, unused: CallIds) -> Callable[[], str]:
        """Return the ids of the plan's calls, in their order."""
        # a later version may read more calls in the reply
        return chain(self.standing.steps, iter(unused.next, None)).__next__

    def edited(self, reply: Reply) -> Reply:
        """Return the reply with the arguments that the person changed."""
        calls = tuple(
            replace(call, arguments=edited(self.standing.asked[call.id], answer))
            if (answer := self._change(call.id)) is not None
            else call
            for call in reply.calls
        )
        return replace(reply, calls=calls)

    def noted(self, results: Sequence[Result]) -> list[Result]:
        """Return the results; the model is told what the person changed."""
        return [self._noted(result) for result in results]

    def _noted(self, result: Result) -> Result:
        answer = self._change(result.call.id)
        if answer is None:
            return result
        names = list(cast("dict[str, Json]", answer.arguments))
        note = call_errors.changed_by_person(names)
        return replace(result, warnings=(note, *result.warnings))

    def _change(self, call_id: str) -> ApprovalAnswered | None:
        answer = self.standing.answered.get(call_id)
        return (
            answer
            if answer is not None and answer.allowed and answer.arguments
            else None
        )


def waited_of(events: Iterable[Event | Unknown], assets: AssetStore) -> GoingOn | None:
    """Return the plan that waits, with its results so far."""
    standing = standing_of(events)
    if standing is None:
        return None
    known = standing.known()
    known = {own: with_value(result, assets) for own, result in known.items()}
    return GoingOn(standing=standing, known=known)
