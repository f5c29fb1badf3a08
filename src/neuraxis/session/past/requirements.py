"""Check that a resumed session has what its plan needs.

A missing command would be reported to the model as the model's mistake, and the plan
and the user's approvals would be lost. So the session is not resumed.
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
from neuraxis.session.past.resume import as_completion, read_events, restore_history
from neuraxis.session.past.waiting import WaitingPlan, last_plan
from neuraxis.session.typed.replies import decode_reply

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
        ConfigError: no request was interrupted, one of these commands is missing, or
            the plan was written in another dialect.
    """
    if not is_cut_off:
        raise ConfigError(
            f"resume: no request of session {session} was cut off, so there is nothing "
            "to continue; send a new request"
        )
    if shortlist is not None:
        shortlist.prepare()  # a plan may search for commands, too
    events = await read_events(journal, session)
    opened = _last_opened(events)
    plan = last_plan(events)
    if plan is None:
        calls = _unread_calls(session, events, opened, dialect)
    else:
        if plan.asked:
            _check_dialect(session, opened, dialect)
        calls = _remaining_calls(plan)
    commands = [(call, registry.named(call.plugin, call.command)) for call in calls]
    missing = [call.target for call, command in commands if command is None]
    listed = {plugin.spec.name for plugin in registry.listed}
    lost_plugins = [name for name in opened.plugins if name not in listed]
    # an unread reply was never checked: an unknown command may be the model's mistake
    if missing and (lost_plugins or plan is not None):
        raise _missing_commands(session, missing, lost_plugins)
    available = [command for _, command in commands if command is not None]
    return [(command.plugin.name, command.spec.name) for command in available]


def _last_opened(events: Sequence[Event | Unknown]) -> SessionStarted:
    """Return the `SessionStarted` event before the model's last reply."""
    latest = opened = SessionStarted(session="", model="", dialect="")
    for event in events:
        if isinstance(event, SessionStarted):
            latest = event
        elif isinstance(event, ModelFinished):
            opened = latest
    return opened


def _remaining_calls(plan: WaitingPlan) -> list[Call]:
    """Return the calls without a known end.

    If the plan waits for an approval, all its calls are planned again.
    """
    return [
        Call(id=call_id, plugin=None, command=str(step["tool"]))
        for call_id, step in plan.steps.items()
        if plan.asked
        or call_id not in plan.ended
        or code_of(plan.ended[call_id]) == "cancelled"
    ]


def _unread_calls(
    session: str,
    events: Sequence[Event | Unknown],
    opened: SessionStarted,
    dialect: Dialect,
) -> Sequence[Call]:
    """Return the calls of the last reply if it was not handled."""
    past = restore_history(events, dialect)
    if not past.pending:
        return ()
    _check_dialect(session, opened, dialect)
    reply = past.messages[-1 - len(past.unseen)]
    return decode_reply(None, dialect, as_completion(reply), CallIds().next).calls


def _check_dialect(session: str, opened: SessionStarted, dialect: Dialect) -> None:
    if opened.dialect not in ("", dialect.name):
        raise ConfigError(
            f"resume: the calls of session {session} were written in the dialect "
            f"{opened.dialect!r}, and it is open with {dialect.name!r}; open it with "
            f"dialect={opened.dialect!r} (--dialect {opened.dialect} on the command "
            f"line). {_DROPS}"
        )


def _missing_commands(
    session: str, missing: list[str], lost_plugins: list[str]
) -> ConfigError:
    tools = ", ".join(dict.fromkeys(missing))
    remedy = (
        f"open the session with the plugins it had: {', '.join(lost_plugins)} "
        "(plugins=[…]; -p SOURCE on the command line)"
        if lost_plugins
        else "its plugins have no such command any more; open the session with a "
        "plugin that has it"
    )
    return ConfigError(
        f"resume: session {session} still has to call {tools}, which no plugin "
        f"provides; {remedy}. {_DROPS}"
    )
