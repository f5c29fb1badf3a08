"""Shorten a conversation that does not fit into the prompt.

First older results become references, then the model summarises the older messages.
Both remove much at once, so that the beginning of the prompt, and a server's cache of
it, stays the same for many turns. Nothing is lost: references lead to the results, and
the full text of the summarised messages is an asset.
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
from neuraxis.session.config import RunConfig
from neuraxis.session.past.shortened import SUMMARY_DESCRIPTION, apply_shortening
from neuraxis.session.prompt import with_status
from neuraxis.session.visible_results import ALWAYS_SHOWN_BYTES, load_parts

BYTES = 3
"""Bytes of text per token: four in English, fewer in most other scripts."""
REFERENCES_FRACTION = 0.75
"""Fraction of the limit above which references do not suffice: a summary is made."""
PICTURE_TOKENS = 1500
"""Tokens of a picture, or of a PDF file's page: servers count some 250 to 1600."""
PDF_BYTES = 30
"""Bytes of a PDF file per token."""
SUMMARY_FRACTION = 0.4
"""Fraction of the limit that remains in use after a summary."""
_TURNS = 30
"""Maximum requests in a summary that no model wrote."""


def tokens(messages: Sequence[Message]) -> int:
    """Return the estimated tokens of messages."""
    return sum(_cost(message) for message in messages)


def _cost(message: Message) -> int:
    calls = sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    text_bytes = len(message.content.encode(errors="surrogatepass"))
    return (
        (text_bytes + len(message.carried) + calls) // BYTES + 4 + _parts_cost(message)
    )


def _parts_cost(message: Message) -> int:
    return sum(
        max(PICTURE_TOKENS, len(part.data) // PDF_BYTES) for part in message.parts
    )


async def fitting_prompt(
    config: RunConfig,
    history: list[Message],
    remaining: str,
    runtime: Runtime,
    emit: Callable[[Event], None],
) -> Prompt:
    """Return the prompt of a turn, shortened to fit.

    Args:
        config: the session's configuration.
        history: the messages; shortened in place.
        remaining: the sentence on the run's remaining budget.
        runtime: counts the cost of a summary.
        emit: receives an event for each step.
    """
    await load_parts(history, config.assets)

    def build() -> Prompt:
        return config.prompt(with_status(history, config.assets, remaining))

    prompt, most = build(), config.prompt_tokens
    if most is None or (size := _size(prompt)) <= most:
        return prompt
    requests = _requests(history)
    current = requests[-1] if requests else 0
    size -= _to_references(history, current, size, config, emit)
    if size > REFERENCES_FRACTION * most and current:
        fixed = size - tokens(history)
        cut = _first_kept(history, requests, int(SUMMARY_FRACTION * most) - fixed)
        await _sum_up(history, cut, size, config, runtime, emit)
        size = _size(build())
    if size > most:  # one turn alone is too long
        _to_references(history, len(history) - 1, size, config, emit)
    return build()


def _requests(messages: Sequence[Message]) -> list[int]:
    """Return the indexes of the user's requests.

    Messages before the first marked one are the program's.
    """
    first = next((i for i, item in enumerate(messages) if item.is_request), None)
    return [
        index
        for index, item in enumerate(messages)
        if item.is_request or (item.role == "user" and (first is None or index < first))
    ]


def _size(prompt: Prompt) -> int:
    tools = (
        sum(len(repr(t)) for t in prompt.native_tools if "defer_loading" not in t)
        // BYTES
    )
    return tokens(prompt.messages) + tools


def _first_kept(history: Sequence[Message], turns: Sequence[int], room: int) -> int:
    """Return the index of the first turn that is not summarised."""
    costs = [*accumulate(_cost(message) for message in reversed(history))][::-1]
    return next((index for index in turns if index and costs[index] <= room), turns[-1])


# --- references ----------------------------------------------------------------


def _to_references(
    history: list[Message],
    end: int,
    size: int,
    config: RunConfig,
    emit: Callable[[Event], None],
) -> int:
    """Replace results before `end` with references; return the saved tokens."""
    shorter: list[tuple[int, str]] = []
    saved = 0
    for index, message in enumerate(history[:end]):
        if not (message.results or message.parts):
            continue
        results = [_as_reference(result) for result in message.results]
        answer = config.dialect.answer(results) if results else ()
        content = answer[0].content if len(answer) == 1 else message.content
        words = [call_errors.only_words(part) for part in message.parts]
        content = "\n\n".join([content, *words])
        saving = _cost(message) - _cost(replace(message, content=content, parts=()))
        if saving > 0:
            shorter.append((index, content))
            saved += saving
    if shorter:
        event = HistoryShortened(
            how="references",
            of=len(history),
            messages=tuple([index, content] for index, content in shorter),
            before=size,
            after=size - saved,
        )
        apply_shortening(history, event)
        emit(event)
    return saved


def _as_reference(result: Result) -> Result:
    done = (
        result.status == "done"
        and size_of(result.value, ALWAYS_SHOWN_BYTES) > ALWAYS_SHOWN_BYTES
    )
    return replace(result, stored=True, preview=None) if done else result


# --- a summary -----------------------------------------------------------------


async def _sum_up(
    history: list[Message],
    cut: int,
    size: int,
    config: RunConfig,
    runtime: Runtime,
    emit: Callable[[Event], None],
) -> None:
    """Replace the messages before `cut` with a summary."""
    dropped = history[:cut]
    text, reply = await _summary(dropped, config)
    if reply is not None:
        runtime.usage.tokens += reply.usage
        runtime.usage.usd += await reply_cost(reply, config) or 0.0
    summed, asset = config.summed, config.ids.next()
    stored = config.assets.attach(asset, summed.with_text(dropped), SUMMARY_DESCRIPTION)
    report_stored(asset, stored, emit)
    if summed.asset:
        config.assets.forget(summed.asset)  # the new one has its text, too
    summed.add(dropped, asset)
    label = config.origins.sums_up(asset)
    content = call_errors.summed_up(text, asset)
    content = f"{content}\n\n{history[cut].content}"
    event = HistoryShortened(
        how="summary",
        messages=([cut, content],),
        dropped=cut,
        of=len(history),
        asset=asset,
        before=size,
        after=size - tokens(dropped) + len(content) // BYTES,
        input_tokens=0 if reply is None else reply.usage.input_tokens,
        output_tokens=0 if reply is None else reply.usage.output_tokens,
        origins=to_tell(label),
    )
    apply_shortening(history, event)  # first: what watches `emit` may end the run
    emit(event)


async def _summary(
    dropped: Sequence[Message], config: RunConfig
) -> tuple[str, Completion | None]:
    """Return the model's summary, or else the beginnings of the requests."""
    limit = config.prompt_tokens or 0
    word_limit = max(50, min(400, limit // 40))
    request = Message(role="user", content=call_errors.summary_wanted(word_limit))
    prompt = config.prompt([*dropped, request])
    reply: Completion | None = None
    if not guesses(config.model) and _size(prompt) <= limit:
        try:
            reply = await complete(config.model, prompt)
        except ModelError:
            reply = None  # the next prompt reports it if the model still fails
    if reply is not None:
        decoded = config.dialect.decode(reply, next_id=str)
        text = "\n".join(decoded.texts).strip()
        if text and not decoded.calls and not decoded.errors:
            return text[: word_limit * 10], reply
    requests = [dropped[index].content[:100] for index in _requests(dropped)]
    return "\n".join(["The requests so far:", *requests[-_TURNS:]]), reply
