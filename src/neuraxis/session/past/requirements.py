"""Check that a resumed session has what its plan needs.

A command that is not there would be told to the model as a mistake of its own, and what
was planned, and a person's yes, would be lost: the session is not resumed instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from neuraxis.dialects import Dialect
from neuraxis.errors import ConfigError
from neuraxis.events import Event, ModelFinished, SessionStarted, Unknown
from neuraxis.journal import Journal
from neuraxis.messages import Call
from neuraxis.plugins.registry import Registry
from neuraxis.session.past.call_ids import CallIds
from neuraxis.session.past.recorded import code_of
from neuraxis.session.past.resume import completion_of, history_of, read_events
from neuraxis.session.past.waiting import Standing, last_plan
from neuraxis.session.typed.output import decoded

if TYPE_CHECKING:
    from neuraxis.plugins.search.shortlist import Shortlist

_DROPS = (
    "Nothing was changed. A new request drops what was planned, and tells the model so"
)


async def check(
    session: str,
    is_cut_off: bool,
    journal: Journal,
    dialect: Dialect,
    registry: Registry,
    shortlist: Shortlist | None,
) -> list[tuple[str, str]]:
    """Return plugin and name of the commands still to be called.

    Raises:
        ConfigError: no request was cut off, one of these commands is not there,
            or the plan was written in another dialect.
    """
    if not is_cut_off:
        raise ConfigError(
            f"resume: no request of session {session} was cut off, so there is nothing "
            "to continue; send a new request"
        )
    if shortlist is not None:
        shortlist.prepare()  # a plan may search for commands, too
    events = await read_events(journal, session)
    begun = _begun(events)
    standing = last_plan(events)
    if standing is None:
        calls = _unread(session, events, begun, dialect)
    else:
        if standing.asked:
            _check_dialect(session, begun, dialect)
        calls = _left(standing)
    found = [(call, registry.named(call.plugin, call.command)) for call in calls]
    lacking = [call.target for call, command in found if command is None]
    listed = {plugin.spec.name for plugin in registry.listed}
    gone = [name for name in begun.plugins if name not in listed]
    # nobody checked an unread reply: its unknown command may be the model's mistake
    if lacking and (gone or standing is not None):
        raise _not_there(session, lacking, gone)
    there = [command for _, command in found if command is not None]
    return [(command.plugin.name, command.spec.name) for command in there]


def _begun(events: Sequence[Event | Unknown]) -> SessionStarted:
    """Return what the session was opened with when the model replied last."""
    latest = begun = SessionStarted(session="", model="", dialect="")
    for event in events:
        if isinstance(event, SessionStarted):
            latest = event
        elif isinstance(event, ModelFinished):
            begun = latest
    return begun


def _left(standing: Standing) -> list[Call]:
    """Return the calls without a known end.

    A plan that waits is planned again as a whole: all of its calls.
    """
    return [
        Call(id=own, plugin=None, command=str(step["tool"]))
        for own, step in standing.steps.items()
        if standing.asked
        or own not in standing.ended
        or code_of(standing.ended[own]) == "cancelled"
    ]


def _unread(
    session: str,
    events: Sequence[Event | Unknown],
    begun: SessionStarted,
    dialect: Dialect,
) -> Sequence[Call]:
    """Return the calls of a reply that was not looked at."""
    past = history_of(events, dialect)
    if not past.pending:
        return ()
    _check_dialect(session, begun, dialect)
    reply = past.messages[-1 - len(past.untold)]
    return decoded(None, dialect, completion_of(reply), CallIds().next).calls


def _check_dialect(session: str, begun: SessionStarted, dialect: Dialect) -> None:
    if begun.dialect not in ("", dialect.name):
        raise ConfigError(
            f"resume: the calls of session {session} were written in the dialect "
            f"{begun.dialect!r}, and it is open with {dialect.name!r}; open it with "
            f"dialect={begun.dialect!r} (--dialect {begun.dialect} on the command "
            f"line). {_DROPS}"
        )


def _not_there(session: str, lacking: list[str], gone: list[str]) -> ConfigError:
    tools = ", ".join(dict.fromkeys(lacking))
    does = (
        f"open the session with the plugins it had: {', '.join(gone)} (plugins=[…]; "
        "-p SOURCE on the command line)"
        if gone
        else "its plugins have no such command any more; open the session with a "
        "plugin that has it"
    )
    return ConfigError(
        f"resume: session {session} still has to call {tools}, which no plugin "
        f"provides; {does}. {_DROPS}"
    )
