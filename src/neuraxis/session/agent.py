"""Turn session options into a command that asks an agent (rule D12).

Each call is a conversation of its own in a nested session: it has the remaining limits
of the session that made the call, its policy and approvals, and reports its events to
it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Unpack, cast, get_args

from msgspec.structs import replace

from neuraxis.errors import CommandError, ConfigError
from neuraxis.execution.budget import Budget
from neuraxis.execution.nested import ParentRun
from neuraxis.models.accumulate import close_model
from neuraxis.plugins.context import Context
from neuraxis.plugins.functions.command import command
from neuraxis.plugins.functions.validate import is_name
from neuraxis.session.answer import reason_unanswered
from neuraxis.session.options import Options, SessionArguments
from neuraxis.session.session import Session
from neuraxis.session.typed.output import Output
from neuraxis.session.validation import check_arguments, no_argument
from neuraxis.specs import EffectKind, Effects

_LONGEST = 1e6
"""Time limit, in seconds, of calls to an agent without its own."""


def agent(
    name: str,
    description: str,
    *,
    effects: EffectKind = "once",
    **given: Unpack[SessionArguments],
) -> Callable[..., Awaitable[Any]]:
    """Return a command that asks an agent, for a session's plugins.

    Args:
        name: the command's name.
        description: tells the asking model what the agent can do and must be told.
        effects: the strongest effect of the agent's own commands.
        **given: arguments of `Session`. If unset, `model`, `policy`, `approve`,
            `settings` and `workspace` are those of the asking session; `plugins` and
            `budget` are the agent's own.

    Raises:
        ConfigError: an argument does not exist, or has a wrong type.
    """
    _check_options(name, effects, cast("dict[str, Any]", given))
    given["plugins"] = tuple(given.get("plugins", ()))  # each call has all of them
    budget, output = given.get("budget") or Budget(), given.get("output")
    options = given.get("options") or Options()

    async def ask(
        request: str, context: Context, objects: list[Any] | None = None
    ) -> Any:
        """Ask the agent.

        Args:
            request: what it is to do or find out, with all that it must know: it
                sees nothing of this conversation.
            context: what holds the agent.
            objects: references to what it works on: tables, pictures, long texts.
        """
        arguments = given | SessionArguments(options=replace(options, parent=context))
        if isinstance(context.outer, ParentRun) and context.outer.runtime.model:
            arguments.setdefault("model", context.outer.runtime.model)
        async with Session(**arguments) as session:
            _check_effects(name, effects, session)
            for number, item in enumerate(objects or (), 1):
                session.attach(item, f"object {number} of the request")
            try:
                answer = await session.run(request)
            finally:
                if session.model is not arguments.get("model"):
                    await close_model(session.model)
        if answer.outcome != "answered":
            raise CommandError(f"{name} did not answer: {reason_unanswered(answer)}")
        return answer.text if output is None else answer.output

    ask.__annotations__["return"] = str if output is None else Output(output).hint
    return command(
        name=name,
        description=description,
        effects=_asking_effects(effects),
        # one more second, so that the agent's own limit is reported first
        time_limit=min(budget.seconds, _LONGEST) + 1,
    )(ask)


def _asking_effects(kind: EffectKind) -> Effects | EffectKind:
    """Return the effects of asking an agent, which is harmless in itself.

    That holds also with untrusted words: the nested session's policy decides on the
    effects of the agent's own commands.
    """
    if kind in ("none", "read"):
        return kind
    return Effects(kind=kind, destructive=False, open_world=False, asks_inside=True)


def _check_effects(name: str, effects: EffectKind, session: Session) -> None:
    """Refuse an agent whose commands do more than it declares.

    Raises:
        ConfigError: they do; two calls would run at once, or one again.
    """
    kinds = get_args(EffectKind)
    for plugin in session.registry.plugins:
        for own, found in plugin.commands.items():
            kind = found.spec.effects.kind
            if kinds.index(kind) > max(kinds.index(effects), kinds.index("read")):
                raise ConfigError(
                    f"agent {name!r}: its command {own!r} has effects={kind!r}, and "
                    f"the agent declares {effects!r}; write agent(…, effects={kind!r})"
                )


def _check_options(name: str, effects: EffectKind, given: dict[str, Any]) -> None:
    if not is_name(name):
        raise ConfigError(f"agent: name: expected a name on one line, got {name!r:.80}")
    kinds = get_args(EffectKind)
    if effects not in kinds:
        raise ConfigError(
            f"agent {name!r}: effects: expected one of {', '.join(kinds)}, got "
            f"{effects!r}"
        )
    known = SessionArguments.__annotations__
    for option in given:
        if option not in known:
            raise ConfigError(f"agent {name!r}: {no_argument(option, known)}")
    try:
        check_arguments(given)
    except ConfigError as error:
        raise ConfigError(f"agent {name!r}: {error}") from None
