"""Run a batch of requests, each in its own session.

Answers are in the journals of the rows' sessions, so that an interrupted batch
continues when it is run again. Rows are read only when there is room to run them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sized
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.errors import ConfigError, ModelError, NeuraxisError
from neuraxis.events import Event
from neuraxis.formatting import refuse
from neuraxis.models.accumulate import close_model
from neuraxis.session.answer import Answer
from neuraxis.session.past.resume import last_finish, last_request, read_events
from neuraxis.session.session import Session

T = TypeVar("T")


class Done(Struct, Generic[T], frozen=True, kw_only=True, repr_omit_defaults=True):
    """One ended row of a batch."""

    row: T
    session: str
    """Id of its session; empty if none could be made."""
    answer: Answer
    earlier: bool = False
    """Whether an earlier batch answered it: `answer` comes from the journal."""
    count: int = 0
    """Rows that have ended, with this one."""
    total: int | None = None
    """Number of all rows; None: not known beforehand."""
    exception: Exception | None = None
    """Exception that the row raised; `answer.error` describes it."""


async def run_many(
    make: Callable[[T], Session],
    rows: Iterable[T],
    *,
    request: Callable[[T], str] | None = None,
    deps: Callable[[T], Any] | None = None,
    at_once: int = 20,
) -> AsyncIterator[Done[T]]:
    """Answer many requests; yield each row as it ends.

    Whatever a row raises, in `make`, `request`, `deps` or its run, is the failure of
    that row alone.

    You can run a batch again if each row's session has its own id, a journal on disk
    and `Options(reopen=True)`: answered rows are not asked again, interrupted ones
    continue, and failed ones are tried once more.

    Args:
        make: creates the session of a row, which is closed when the row has ended.
        rows: the rows, taken when there is room for another.
        request: returns the request of a row; None: the row is the request.
        deps: returns what the row's commands find as `context.deps`.
        at_once: maximum rows that run at the same time.

    Raises:
        ConfigError: `make` is not a function, or `at_once` is not a whole number of at
            least 1.
    """
    _check(make, at_once)
    total = len(rows) if isinstance(rows, Sized) else None
    numbered = enumerate(rows, 1)
    models, count = Counter[int](), 0
    running: set[asyncio.Task[Done[T]]] = set()
    broken: Exception | None = None
    try:
        while True:
            while broken is None and len(running) < at_once:
                try:
                    next_row = next(numbered, None)
                except Exception as raised:  # noqa: BLE001 - raised below
                    broken = raised  # after the rows read so far have ended
                    break
                if next_row is None:
                    break
                work = _run_row(make, *next_row, request, deps, models)
                running.add(asyncio.create_task(work))
            if not running:
                break
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in [task for task in running if task.done()]:
                count += 1
                item = replace(task.result(), count=count, total=total)
                running.discard(task)
                yield item
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    if broken is not None:
        raise broken


def _check(make: Any, at_once: Any) -> None:
    if not callable(make):
        refuse("make", "a function that returns the Session of a row", make)
    if not isinstance(at_once, int) or at_once < 1:
        refuse("at_once", "a whole number, 1 or above", at_once)


async def _run_row(
    make: Callable[[T], Session],
    number: int,
    row: T,
    request: Callable[[T], str] | None,
    deps: Callable[[T], Any] | None,
    models: Counter[int],
) -> Done[T]:
    session_id = ""
    answer = None
    earlier = False
    try:
        text: Any = row if request is None else request(row)
        if not isinstance(text, str):
            refuse("request", "a string, which `request=` returns for each row", text)
        row_deps = None if deps is None else deps(row)
        session = make(row)
        if not isinstance(cast("Any", session), Session):
            refuse("make", "a function that returns a Session", session)
        session_id = session.id
        async with session:
            model_id = id(session.model)
            models[model_id] += 1
            try:
                answer, earlier = await _answer(session, text, row_deps)
            finally:
                models[model_id] -= 1
                if not models[model_id]:  # else another row uses its connections
                    await close_model(session.model)
            return Done(row=row, session=session_id, answer=answer, earlier=earlier)
    except Exception as error:  # noqa: BLE001 - it is reported with the row
        # the repr of other objects may say nothing: `<Row object at 0x7f…>`
        name = f"{row!r:.60}" if isinstance(row, str | int) else f"number {number}"
        message = f"run_many: row {name}: {_describe_error(error)}"
        if answer is None:
            failure = error if isinstance(error, ModelError) else None
            answer = Answer(text="", outcome="failed", error=message, failure=failure)
        else:  # only closing failed
            answer = replace(answer, error=answer.error or message)
        return Done(row=row, session=session_id, answer=answer, exception=error)


def _describe_error(error: Exception) -> str:
    """Return an error's text, with its class unless it is ours."""
    kind = "" if isinstance(error, NeuraxisError) else type(error).__name__
    return ": ".join(filter(None, (kind, str(error)))) or type(error).__name__


async def _answer(session: Session, text: str, deps: Any) -> tuple[Answer, bool]:
    events = await read_events(session.journal, session.id) if session.history else []
    end = last_finish(events)
    if events and (earlier := last_request(events)) not in (None, text):
        raise ConfigError(
            f"session {session.id!r} answers another request: {earlier!r:.60}; give "
            "each row a session with an id of its own, and a new id if its text changes"
        )
    if end is not None and end.outcome == "answered":
        read = None if session.output is None else session.output.read(end.text)
        checked = read[0] if isinstance(read, tuple) else None
        return Answer(
            text=end.text, outcome=end.outcome, files=end.files, checked=checked
        ), True
    if events and (end is None or end.outcome in ("waiting", "cancelled")):
        return await session.resume(deps=deps).drive(_ignore), False
    return await session.run(text, deps=deps).drive(_ignore), False


def _ignore(event: Event) -> None:
    """Ignore an event: a notebook shows no status for each row."""
