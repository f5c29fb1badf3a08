"""An agent as a command: the options of a session flow in, a function flows out (D12).

Each call is a conversation of its own, inside of the session that made it: with what is
left of its limits, its policy and approvals, and told to it event by event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, get_args

from neuraxis.errors import CommandError, ConfigError
from neuraxis.execution.budget import Budget
from neuraxis.formatting import did_you_mean, nearest
from neuraxis.plugins.context import Context
from neuraxis.plugins.functions.command import command
from neuraxis.session.session import Session
from neuraxis.session.validation import check_arguments
from neuraxis.specs import EffectKind, Effects

_OWN = frozenset({"within", "id", "_earlier"})
"""What each conversation has of its own."""
_LONGEST = 1e6
"""Seconds of a call whose agent has no time limit of its own."""


def agent(
    name: str, description: str, *, effects: EffectKind = "once", **options: Any
) -> Callable[..., Awaitable[str]]:
    """A command that asks an agent; put it among the plugins of a session.

    Args:
        name: of the command.
        description: for the model that asks: what it can do, and what it must be told.
        effects: the strongest of what its own commands have.
        **options: those of `Session`. What is not said is the asking session's
            (`policy`, `approve`, `settings`, `workspace`); `model`, `plugins` and
            `budget` are the agent's own.

    Raises:
        ConfigError: there is no such option, or it is of a wrong kind.
    """
    kinds = get_args(EffectKind)
    if effects not in kinds:
        raise ConfigError(
            f"agent {name!r}: effects: expected one of {', '.join(kinds)}, got "
            f"{effects!r}"
        )
    defaults: dict[str, Any] = Session.__init__.__kwdefaults__ or {}
    known = sorted(defaults.keys() - _OWN)
    for option in options:
        if option not in known:
            hint = did_you_mean(nearest(option, known)[:1])
            raise ConfigError(
                f"agent {name!r}: there is no option {option!r}.{hint} "
                f"Options are: {', '.join(known)}"
            )
    try:
        check_arguments(defaults | options)
    except ConfigError as error:
        raise ConfigError(f"agent {name!r}: {error}") from None
    options["plugins"] = tuple(options.get("plugins", ()))  # each call has all of them
    budget = options.get("budget") or Budget()

    @command(
        name=name,
        description=description,
        effects=_of_agent(effects),
        asset_refs=["objects"],
        # so that its own limit is told first
        time_limit=min(budget.seconds, _LONGEST) + 1,
    )
    async def ask(
        request: str, context: Context, objects: list[Any] | None = None
    ) -> str:
        """Ask the agent.

        Args:
            request: what it is to do or find out, with all that it must know: it
                sees nothing of this conversation.
            context: what holds the agent.
            objects: references to what it works on: tables, pictures, long texts.
        """
        with Session(within=context, **options) as inside:
            for number, given in enumerate(objects or (), 1):
                inside.attach(given, f"object {number} of the request")
            try:
                answer = await inside.run(request)
            finally:
                if inside.model is not options.get("model"):
                    await inside.model.close()
        if answer.outcome != "answered":
            raise CommandError(f"{name} gave no answer: {answer.error}")
        return answer.text

    return ask


def _of_agent(kind: EffectKind) -> Effects | str:
    """To ask is harmless in itself, also with strangers' words.

    What they may do is decided where it is done: inside.
    """
    if kind in ("none", "read"):
        return kind
    return Effects(kind=kind, destructive=False, open_world=False)
