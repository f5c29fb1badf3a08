"""Build the prompt of a turn: the constant part, history, and status.

The constant part is the dialect's instructions and, after them, the program's own.

The status (stored assets, remaining budget) follows the newest message and is not
stored, so that the history, and with it a server's prompt cache, does not change.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.store import AssetStore
from neuraxis.dialects import Dialect
from neuraxis.errors import ConfigError
from neuraxis.execution.budget import Budget, Usage
from neuraxis.formatting import describe_given
from neuraxis.messages import Message, Prompt
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Registry
from neuraxis.session.config import RunConfig
from neuraxis.specs import Json, PluginSpec

if TYPE_CHECKING:  # loaded by the sessions whose answers have a type
    from neuraxis.session.typed.output import Output

_Text = str | Awaitable[str]
Instructions = str | Callable[[Context], _Text] | Callable[[], _Text] | None
"""A text, or a function that returns one for a run."""
TIGHT = 0.25
"""Fraction of a limit below which the model sees the remaining budget."""


def remaining_budget(budget: Budget, usage: Usage, seconds: float) -> str:
    """Return a sentence on the remaining budget, or "" if plenty remains.

    Args:
        budget: the limits of the run.
        usage: calls and replies so far, with the requested reply.
        seconds: since the run began.
    """
    calls = budget.steps - usage.steps
    replies = budget.model_calls - usage.model_calls + 1
    time = budget.seconds - seconds
    tight = (
        calls <= TIGHT * budget.steps
        or replies <= 2
        or replies <= TIGHT * budget.model_calls
        or time < TIGHT * budget.seconds  # never true without a limit
    )
    if not tight:
        return ""
    return call_errors.budget_left(max(calls, 0), replies, max(time, 0.0))


def with_status(
    history: Sequence[Message], assets: AssetStore, remaining: str
) -> Sequence[Message]:
    """Append the asset list (rule B55) and remaining budget to the history."""
    asset_list = assets.description
    if not asset_list and not remaining:
        return history
    text = (
        f"{asset_list}\n\n{remaining}"
        if asset_list and remaining
        else asset_list or remaining
    )
    last = history[-1]
    if last.role != "user":
        return [*history, Message(role="user", content=text)]
    extended = replace(last, content=f"{last.content}\n\n{text}")
    return [*history[:-1], extended]


class Prompts:
    """Prompts of a session, whose constant part is built once.

    Args:
        registry: holds the session's plugins.
        dialect: writes the instructions at the beginning of a prompt.
        instructions: the program's own text after them; a function is called at the
            start of each run.
        template: the user's own template, in place of the dialect's.
        output: the type of the answers.
        shown: patterns of the plugins that a provider's tool search always shows;
            None: the provider does not search.
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
        self._instructions = instructions
        self._takes_context = callable(instructions) and _takes_context(instructions)
        self.output: Output | None = None
        if output is not None:
            from neuraxis.session.typed.output import Output

            self.output = Output(output)
        self._text = instructions if isinstance(instructions, str) else ""
        self._constant: Prompt | None = None
        if template is not None:
            self._warn_without_tools(template)

    async def begin(self, run: RunConfig) -> None:
        """Set a run's instructions, which count as the user's own words.

        Raises:
            ConfigError: the function for them returned no text.
        """
        if callable(self._instructions):
            context = Context(
                workspace=run.workspace,
                session_id=run.session,
                deps=run.deps,
                settings=run.settings,
            )
            function: Any = self._instructions
            returned = function(context) if self._takes_context else function()
            text: Any = await returned if inspect.isawaitable(returned) else returned
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
        call_form = getattr(self._dialect, "form", None)  # not every dialect has one
        if self._text:
            text = f"{text.rstrip()}\n\n{self._text.strip()}\n"
        schema = None
        if self.output is not None:
            # few sessions have a typed answer
            from neuraxis.dialects.instruction_template import own_text
            from neuraxis.dialects.native.tool_schema import for_server

            schema = for_server(self.output.schema)
            notation = self._dialect.notation(self.output.schema)
            output_text = own_text("output.md").replace("{form}", notation)
            text = f"{text.rstrip()}\n\n{output_text}"
        is_free = self._dialect.name == "native" or not specs  # it writes no call then
        return Prompt(
            messages=(Message(role="system", content=text),),
            output_schema=schema if is_free else None,
            constant=1,
            stop=self._dialect.stop,
            plugins=specs,
            tool_names=names,
            write=self._dialect.write,
            form=call_form and partial(call_form, specs, names),
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

    def _warn_without_tools(self, template: str | Path) -> None:
        """Warn about a user's template that names none of the tools."""
        prompt = self.make()
        text = prompt.messages[0].content
        if prompt.native_tools or not prompt.plugins:
            return
        if not any(
            tool in text or target[1] in text
            for tool, target in prompt.tool_names.items()
        ):
            warnings.warn(
                f"template {template}: it names none of the tools, so that the model "
                "cannot know them; write them into it, or leave the template out and "
                "say what is your own with instructions=",
                stacklevel=5,
            )


def _takes_context(function: Callable[..., Any]) -> bool:
    """Return whether a function for instructions takes the context or no argument.

    Raises:
        ConfigError: it takes other arguments.
    """
    # few sessions have such a function
    from neuraxis.plugins.functions.deferred_annotations import signature_of

    try:
        parameters = signature_of(function)
    except (TypeError, ValueError):
        return True  # a function in C may have no readable signature
    for arguments in ((None,), ()):
        try:
            parameters.bind(*arguments)
        except TypeError:
            continue
        return bool(arguments)
    raise ConfigError(
        "instructions: expected a function of the run's context, or of nothing, such "
        f"as `lambda context: ...`, got one that takes {parameters}"
    )
