"""A model that writes 40 tokens a second, with and without early start (decision 7).

    python benchmarks/early_start.py

It writes a plan of three fetches of 500 ms, which look only, and a step that sums them
up. Told is when the plan has ended, counted from the model's first token, beside the
time the model took for its text. Expected: early start ends before the text plus one
fetch; without it the fetches begin when the text has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

from neuraxis import Options, Session, command
from neuraxis.dialects import DIALECTS
from neuraxis.dialects.native.dialect import Native
from neuraxis.events import CallFinished, Event, ModelFinished, ModelStarted
from neuraxis.messages import Call, Chunk, NativeCall, Prompt, ToolCallDelta
from neuraxis.policy.rules import EVERYTHING
from neuraxis.settings import Settings

TOKENS_A_SECOND = 40
CHARACTERS = 4
"""Of a token, on average."""
FETCH = 0.5
SITES = ("https://example.org/a", "https://example.org/b", "https://example.org/c")


@command(effects="read")
async def fetch(url: str) -> str:
    """Fetches a page.

    Args:
        url: where it is.
    """
    await asyncio.sleep(FETCH)
    return f"the page {url}"


@command(effects="none", blocking=False)
def summary(first: str, second: str, third: str) -> str:
    """Sums pages up.

    Args:
        first: a page.
        second: another.
        third: the last.
    """
    return " / ".join((first, second, third))


class Slow:
    """A model that writes one reply at 40 tokens a second, then says it is done."""

    name = "slow"

    def __init__(self) -> None:
        self.text = ""
        self.calls: Sequence[NativeCall] = ()
        self._asked = 0

    async def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
        self._asked += 1
        if self._asked > 1:
            yield Chunk(text="Done.", finish_reason="stop")
            return
        pieces = [Chunk(text=part) for part in _cut(self.text)]
        for index, call in enumerate(self.calls):
            head = ToolCallDelta(index=index, id=call.id, name=call.name)
            pieces.append(Chunk(tool_calls=(head,)))
            pieces += [
                Chunk(tool_calls=(ToolCallDelta(index=index, arguments=part),))
                for part in _cut(call.arguments)
            ]
        began = time.perf_counter()
        for number, piece in enumerate(pieces, 1):
            due = began + number / TOKENS_A_SECOND
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            yield piece
        yield Chunk(finish_reason="tool_calls" if self.calls else "stop")

    async def close(self) -> None:
        pass


def _cut(text: str) -> list[str]:
    return [text[at : at + CHARACTERS] for at in range(0, len(text), CHARACTERS)]


def _plan(session: Session) -> list[Call]:
    plugin = session.registry.specs
    where = {spec.commands[0].name: spec.name for spec in plugin}
    steps = [("fetch", {"url": url}, None) for url in SITES]
    words = ("first", "second", "third")
    refs = {word: f"{{{{ results[{at}] }}}}" for at, word in enumerate(words)}
    native = session.dialect.name in ("intents", "native")
    return [
        Call(
            id="",
            plugin=None if native else where[name],
            command=name,
            arguments=arguments,
        )
        for name, arguments, _ in (*steps, ("summary", refs, None))
    ]


def measure(dialect: str, *, early: bool) -> tuple[float, float, int]:
    """Seconds of the model's text and until the plan ended; the tokens written."""
    model = Slow()
    session = Session(
        model=model,
        plugins=[fetch, summary],
        dialect=dialect,
        policy=EVERYTHING,
        settings=Settings(),
        options=Options(early_start=early),
    )
    session.prompt()
    calls = _plan(session)
    if isinstance(session.dialect, Native):
        model.calls = session.dialect.native_calls(calls)
        tokens = sum(len(_cut(call.arguments)) + 1 for call in model.calls)
    else:
        model.text = session.dialect.write(calls)
        tokens = len(_cut(model.text))
    at: dict[type[Event], float] = {}

    def watch(event: Event) -> None:
        if isinstance(event, ModelStarted | ModelFinished):
            at.setdefault(type(event), time.perf_counter())
        elif isinstance(event, CallFinished):
            at[CallFinished] = time.perf_counter()

    with session:
        answer = session.run_sync("go", watch)
    assert [result.status for result in answer.calls] == ["done"] * 4, answer
    assert answer.calls[3].value == " / ".join(f"the page {url}" for url in SITES)
    began = at[ModelStarted]
    return at[ModelFinished] - began, at[CallFinished] - began, tokens


def main() -> None:
    print(
        f"{TOKENS_A_SECOND} tokens a second, three fetches of {FETCH * 1000:.0f} ms\n"
    )
    print("dialect       tokens    text    plan: off      on    text + one fetch")
    for dialect in DIALECTS:
        text, off, tokens = measure(dialect, early=False)
        again, on, _ = measure(dialect, early=True)
        verdict = "ends before it" if on < again + FETCH else "TOO LATE"
        print(
            f"{dialect:<12} {tokens:>7} {text:>6.2f} s {off:>9.2f} s {on:>6.2f} s "
            f"{again + FETCH:>10.2f} s  {verdict}"
        )


if __name__ == "__main__":
    main()
