"""Continue a request that was interrupted, or whose plan waited for approvals."""

from __future__ import annotations

from neuraxis.assets.store import AssetStore
from neuraxis.dialects import Dialect
from neuraxis.journal import Journal
from neuraxis.messages import Message
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.session.past.resume import read_events, restore_history
from neuraxis.session.past.waiting import ContinuedPlan, continued_plan


async def take_up(
    text: str | None,
    history: list[Message],
    is_cut_off: bool,
    pending: int,
    session: str,
    journal: Journal,
    dialect: Dialect,
    assets: AssetStore,
    origins: Origins,
) -> ContinuedPlan | None:
    """Prepare the history for the next run; return its waiting plan.

    Without one, the history tells how the calls of the interrupted plan ended.

    Args:
        text: the new request; None: the interrupted one.
        history: the session's messages; changed in place.
        is_cut_off: whether the last request has no end.
        pending: number of messages after an unhandled reply; -1: there is none.
        session: the session's id.
        journal: the session's journal.
        dialect: the session's dialect.
        assets: gets the results of loops.
        origins: records what the model has seen.
    """
    plan = None
    last = history[-1] if history else None
    # a reply that was read from the journal has no calls yet
    is_open = last is not None and (
        bool(last.calls) or (is_cut_off and last.role == "assistant")
    )
    if is_open or (text is None and pending >= 0):
        events = await read_events(journal, session)
        if text is None:
            plan = continued_plan(events, assets)
        if is_open and plan is None:
            past = restore_history(events, dialect)
            history += past.unseen
            for loop in past.loops:
                assets.keep(*loop)
    if text is None and pending >= 0:
        del history[len(history) - pending :]
    elif plan is None and (is_open or pending >= 0):
        origins.shown(tuple(origins.results))
    return plan
