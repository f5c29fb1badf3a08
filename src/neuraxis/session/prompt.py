"""Build the prompt of a turn: the constant part, history, and status.

The constant part is the dialect's own text, and behind it what the program says.

The status (stored assets, remaining budget) stands behind the newest message and is not
stored, so that the history, and with it a server's prompt cache, stays as it was.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.store import AssetStore
from neuraxis.dialects import Dialect
from neuraxis.dialects.instruction_template import own_text
from neuraxis.dialects.native.tool_schema import for_server
from neuraxis.errors import ConfigError
from neuraxis.execution.budget import Budget, Usage
from neuraxis.formatting import describe_given
from neuraxis.messages import Message, Prompt
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Registry
from neuraxis.session.config import RunConfig
from neuraxis.session.typed.output import Output
from neuraxis.specs import Json, PluginSpec

_Text = str | Awaitable[str]
Instructions = str | Callable[[Context], _Text] | Callable[[], _Text] | None
"""A text, or a function that gives one for a run."""
TIGHT = 0.25
"""Fraction of a limit below which the model sees the remaining budget."""


def remaining_budget(budget: Budget, usage: Usage, seconds: float) -> str:
    """Return a sentence on the remaining budget, or "" if plenty remains.

    Args:
        budget: the limits of the run.
        usage: calls and replies so far, with the requested reply.
        seconds: since the run began.
    """
    calls = max(budget.steps - usage.steps, 0)
    replies = budget.model_calls - usage.model_calls + 1
    time = max(budget.seconds - seconds, 0.0)
    tight = (
        calls <= TIGHT * budget.steps
        or replies <= max(TIGHT * budget.model_calls, 2)
        or time < TIGHT * budget.seconds  # never of no limit
    )
    return call_errors.budget_left(calls, replies, time) if tight else ""


def with_status(
    history: Sequence[Message], assets: AssetStore, left: str
) -> Sequence[Message]:
    """Append the asset list (rule B55) and remaining budget to the history."""
    listing = assets.description
    if not listing and not left:
        return history
    text = f"{listing}\n\n{left}" if listing and left else listing or left
    last = history[-1]
    if last.role != "user":
        return [*history, Message(role="user", content=text)]
    longer = replace(last, content=f"{last.content}\n\n{text}")
    return [*history[:-1], longer]


class Prompts:
    """Prompts of a session, whose constant part is built once.

    Args:
        registry: of the session's plugins.
        dialect: writes what stands before everything else.
        instructions: the program's own text, behind the dialect's; a function is asked
            for it at the start of each run.
        template: the user's own, in place of the dialect's text.
        output: the form of the answers.
        shown: patterns of the plugins whose tools the model's provider need not find;
            None: it finds none.
    """

    def __init__(
        self,
        registry: Registry,
        dialect: Dialect,
        instructions: Instructions = None,
        template: str | Path | None = None,
        output: Any = None,
        shown: Sequence[str] | None = None,
    ) -> None:
        self._shown = shown
        self._registry, self._dialect = registry, dialect
        self._written = instructions
        self._takes_context = callable(instructions) and _takes_context(instructions)
        self.output = None if output is None else Output(output)
        self._text = instructions if isinstance(instructions, str) else ""
        self._constant: Prompt | None = None
        if template is not None:
            self._warn_of(template)

    async def begin(self, run: RunConfig) -> None:
        """Take a run's instructions, which count as its user's words.

        Raises:
            ConfigError: the function for them gave no text.
        """
        if callable(self._written):
            context = Context(
                workspace=run.workspace,
                session_id=run.session,
                deps=run.deps,
                settings=run.settings,
            )
            made: Any = self._written
            given = made(context) if self._takes_context else made()
            text: Any = await given if inspect.isawaitable(given) else given
            if not isinstance(text, str):
                raise ConfigError(
                    "instructions: expected a function that returns a string, got "
                    f"{describe_given(text)}"
                )
            if text != self._text:
                self._text, self._constant = text, None
        run.origins.instructions = self._text

    def make(self, messages: Sequence[Message] = ()) -> Prompt:
        """Return the constant part, then `messages`."""
        constant = self._constant
        if constant is None or constant.plugins is not self._registry.specs:
            constant = self._constant = self._build()
        return replace(constant, messages=(*constant.messages, *messages))

    def _build(self) -> Prompt:
        specs, names = self._registry.specs, self._registry.tool_names
        text = self._dialect.prompt(specs, names)
        form = getattr(self._dialect, "form", None)  # not every dialect has one
        if self._text:
            text = f"{text.rstrip()}\n\n{self._text.strip()}\n"
        schema = None
        if self.output is not None:
            schema = for_server(self.output.schema)
            notation = self._dialect.notation(self.output.schema)
            ending = own_text("output.md").replace("{form}", notation)
            text = f"{text.rstrip()}\n\n{ending}"
        is_free = self._dialect.name == "native" or not specs  # it writes no call then
        return Prompt(
            messages=(Message(role="system", content=text),),
            output_schema=schema if is_free else None,
            constant=1,
            stop=self._dialect.stop,
            plugins=specs,
            tool_names=names,
            write=self._dialect.write,
            form=form and partial(form, specs, names),
            native_tools=self._tools(specs, names),
        )

    def _tools(
        self, specs: Sequence[PluginSpec], names: Mapping[str, tuple[str, str]]
    ) -> tuple[Mapping[str, Json], ...]:
        tools = self._dialect.native_tools(specs, names)
        if self._shown is None:
            return tools
        is_shown = [
            any(fnmatchcase(plugin.name, pattern) for pattern in self._shown)
            for plugin in specs
            for _ in plugin.commands
        ]
        return tuple(
            tool if shown else {**tool, "defer_loading": True}
            for tool, shown in zip(tools, is_shown, strict=True)
        )

    def _warn_of(self, template: str | Path) -> None:
        """Warn of a user's template that names none of the tools."""
        prompt = self.make()
        text = prompt.messages[0].content
        if prompt.native_tools or not prompt.plugins:
            return
        if not any(
            tool in text or where[1] in text
            for tool, where in prompt.tool_names.items()
        ):
            warnings.warn(
                f"template {template}: it names none of the tools, so that the model "
                "cannot know them; write them into it, or leave the template out and "
                "say what is your own with instructions=",
                stacklevel=5,
            )


def _takes_context(function: Callable[..., Any]) -> bool:
    """Return whether a function for instructions takes the context, or nothing.

    Raises:
        ConfigError: it takes something else.
    """
    try:
        taken = inspect.signature(function)
    except (TypeError, ValueError):
        return True  # a function in C may have no readable signature
    for given in ((None,), ()):
        try:
            taken.bind(*given)
        except TypeError:
            continue
        return bool(given)
    raise ConfigError(
        "instructions: expected a function of the run's context, or of nothing, such "
        f"as `lambda context: ...`, got one that takes {taken}"
    )
