"""Shorten a conversation whose prompt has no room for it.

Older results give way to their references first, then the older half to a summary that
the model makes. Both take away much at once, so that the beginning of the prompt, and
a server's cache of it, stays for many turns. Nothing is lost: results are found by
their ids, and the text that was summed up is an object of the session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.describe import size_of
from neuraxis.errors import ModelError
from neuraxis.events import Event, HistoryShortened
from neuraxis.execution.report import report_stored
from neuraxis.execution.runtime import Runtime
from neuraxis.messages import Completion, Message, Prompt, Result
from neuraxis.models import complete, guesses
from neuraxis.policy.provenance.labels import to_tell
from neuraxis.session.ask_model import reply_cost
from neuraxis.session.config import RunConfig, RunState
from neuraxis.session.past.shortened import SUMMED_UP, shorten
from neuraxis.session.prompt import with_status
from neuraxis.session.visible_results import LITTLE, fill_in

BYTES = 3
"""Of text that count as a token: of English four are, of most other scripts fewer."""
ENOUGH = 0.75
"""Part of the room that the references must leave in use at most; else a summary."""
PICTURE = 1500
"""Tokens of a picture, or of a PDF file's page: servers count some 250 to 1600."""
PDF_BYTES = 30
"""Of a PDF file that count as a token."""
KEPT = 0.4
"""Part of the room that stays in use where a summary is made."""
_TURNS = 30
"""Maximum requests that a summary names which no model made."""


def tokens(messages: Sequence[Message]) -> int:
    """Return the estimated tokens of messages."""
    return sum(_cost(message) for message in messages)


def _cost(message: Message) -> int:
    calls = sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    size = len(message.content.encode(errors="surrogatepass"))
    return (size + len(message.carried) + calls) // BYTES + 4 + _of_parts(message)


def _of_parts(message: Message) -> int:
    return sum(max(PICTURE, len(part.data) // PDF_BYTES) for part in message.parts)


async def fitting_prompt(
    config: RunConfig,
    history: list[Message],
    left: str,
    state: RunState,
    runtime: Runtime,
    emit: Callable[[Event], None],
) -> Prompt:
    """Return the prompt of a turn, shortened to fit.

    Args:
        config: the session's configuration.
        history: the messages; shortened in place.
        left: what is told of the run's remaining budget.
        state: counts the tokens of a summary.
        runtime: counts its cost.
        emit: told of each step.
    """
    await fill_in(history, config.assets)

    def made() -> Prompt:
        return config.prompt(with_status(history, config.assets, left))

    prompt, most = made(), config.prompt_tokens
    if most is None or (size := _size(prompt)) <= most:
        return prompt
    turns = [here for here, item in enumerate(history) if item.is_request]
    this = turns[-1] if turns else 0
    size -= _to_references(history, this, size, config, emit)
    if size > ENOUGH * most and this:
        fixed = size - tokens(history)
        cut = _cut(history, turns, int(KEPT * most) - fixed)
        await _sum_up(history, cut, size, config, state, runtime, emit)
        size = _size(made())
    if size > most:  # one turn alone is too long
        _to_references(history, len(history) - 1, size, config, emit)
    return made()


def _size(prompt: Prompt) -> int:
    tools = (
        sum(len(repr(t)) for t in prompt.native_tools if "defer_loading" not in t)
        // BYTES
    )
    return tokens(prompt.messages) + tools


def _cut(history: Sequence[Message], turns: Sequence[int], room: int) -> int:
    """Return the first turn that is kept."""
    behind = [*accumulate(_cost(message) for message in reversed(history))][::-1]
    return next((here for here in turns if here and behind[here] <= room), turns[-1])


# --- references ----------------------------------------------------------------


def _to_references(
    history: list[Message],
    end: int,
    size: int,
    config: RunConfig,
    emit: Callable[[Event], None],
) -> int:
    """Replace the results before `end` by their references; return what is saved."""
    shorter: list[tuple[int, str]] = []
    saved = 0
    for here, message in enumerate(history[:end]):
        if not (message.results or message.parts):
            continue
        results = [_referred(result) for result in message.results]
        answer = config.dialect.answer(results) if results else ()
        content = answer[0].content if len(answer) == 1 else message.content
        words = [call_errors.only_words(part) for part in message.parts]
        content = "\n\n".join([content, *words])
        less = _cost(message) - _cost(replace(message, content=content, parts=()))
        if less > 0:
            shorter.append((here, content))
            saved += less
    if shorter:
        event = HistoryShortened(
            how="references",
            messages=tuple([here, content] for here, content in shorter),
            before=size,
            after=size - saved,
        )
        emit(event)
        shorten(history, event)
    return saved


def _referred(result: Result) -> Result:
    done = result.status == "done" and size_of(result.value, LITTLE) > LITTLE
    return replace(result, stored=True) if done else result


# --- a summary -----------------------------------------------------------------


async def _sum_up(
    history: list[Message],
    cut: int,
    size: int,
    config: RunConfig,
    state: RunState,
    runtime: Runtime,
    emit: Callable[[Event], None],
) -> None:
    """Put a summary in the place of the messages before `cut`."""
    dropped = history[:cut]
    text, reply = await _summary(dropped, config)
    if reply is not None:
        state.usage += reply.usage
        runtime.usage.usd += await reply_cost(reply, config) or 0.0
    summed = config.summed
    previous, asset = summed.asset, config.ids.next()
    summed.add(dropped, asset)
    kept = config.assets.attach(asset, summed.text, SUMMED_UP)
    report_stored(asset, kept, emit)
    if previous:
        config.assets.forget(previous)  # the new one has its text, too
    label = config.origins.sums_up(asset)
    content = call_errors.summed_up(text, asset)
    content = f"{content}\n\n{history[cut].content}"
    event = HistoryShortened(
        how="summary",
        messages=([cut, content],),
        dropped=cut,
        asset=asset,
        before=size,
        after=size - tokens(dropped) + len(content) // BYTES,
        input_tokens=0 if reply is None else reply.usage.input_tokens,
        output_tokens=0 if reply is None else reply.usage.output_tokens,
        origins=to_tell(label),
    )
    emit(event)
    shorten(history, event)


async def _summary(
    dropped: Sequence[Message], config: RunConfig
) -> tuple[str, Completion | None]:
    """Return the model's summary; without one, the beginnings of the requests."""
    most = config.prompt_tokens or 0
    words = max(50, min(400, most // 40))
    asked = Message(role="user", content=call_errors.summary_wanted(words))
    prompt = config.prompt([*dropped, asked])
    reply: Completion | None = None
    if not guesses(config.model) and _size(prompt) <= most:
        try:
            reply = await complete(config.model, prompt)
        except ModelError:
            reply = None  # the run goes on, and tells of it if it lasts
    if reply is not None:
        decoded = config.dialect.decode(reply, next_id=str)
        text = "\n".join(decoded.texts).strip()
        if text and not decoded.calls and not decoded.errors:
            return text[: words * 10], reply
    requests = [item.content[:100] for item in dropped if item.is_request][-_TURNS:]
    return "\n".join(["The requests so far:", *requests]), reply
