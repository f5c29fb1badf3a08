"""A rate limit that sessions share: who waits, and for how long."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator

import pytest

from models.http_server import Server, answer, hello, serving, stream
from neuraxis.messages import Message, Prompt
from neuraxis.models import complete
from neuraxis.models.http.model import limit_of
from neuraxis.models.http.settings import Endpoint, Options
from neuraxis.models.openai.model import OpenAIModel
from neuraxis.models.rate_limits import RateLimit

PROMPT = Prompt(messages=(Message(role="user", content="Hi."),))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


def test_places_within_a_minute() -> None:
    """The n-th request behind the limit waits until the minute of an earlier one."""
    clock = [0.0]
    limit = RateLimit(2, now=lambda: clock[0])
    assert [limit.reserve() for _ in range(5)] == [0, 0, 60, 60, 120]
    clock[0] = 200.0
    assert limit.reserve() == 0


def test_a_pause_is_for_all() -> None:
    """Who has sat it out already does not wait twice."""
    clock = [0.0]
    limit = RateLimit(None, now=lambda: clock[0])
    limit.pause(5)
    limit.pause(3)
    assert (limit.reserve(), limit.reserve(waited=True)) == (5, 0)


def test_who_shares_a_limit() -> None:
    """The same server, key, model and limit; it is gone with its last user."""
    here = Endpoint(url="http://x/v1", key_env="K")
    one = limit_of(here, "m", Options(requests_per_minute=5))
    assert limit_of(here, "m", Options(requests_per_minute=5)) is one
    assert limit_of(here, "other", Options(requests_per_minute=5)) is not one
    assert limit_of(Endpoint(url="http://y/v1"), "m", Options()) is not one
    one.pause(1000)
    del one
    gc.collect()
    again = limit_of(here, "m", Options(requests_per_minute=5))
    assert again.reserve() == 0


async def test_sessions_wait_and_none_fails(server: Server) -> None:
    """One is refused for a while; the others wait instead of asking in vain."""
    server.answers(answer(b"{}", 429, retry_after="1"), stream(hello()))
    options = Options(max_retries=1)
    models = [OpenAIModel("m", server=server.url, options=options) for _ in range(4)]
    first = asyncio.create_task(complete(models[0], PROMPT))
    await asyncio.sleep(0.1)
    assert len(server.requests) == 1
    started = time.monotonic()
    others = [complete(model, PROMPT) for model in models[1:]]
    done = await asyncio.gather(first, *others)
    assert [one.text for one in done] == ["Hello"] * 4
    assert time.monotonic() - started > 0.3
    assert len(server.requests) == 5
    for model in models:
        await model.close()


async def test_a_long_wait_is_noted(server: Server) -> None:
    """The journal says why nothing happened for so long."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    options = Options(requests_per_minute=1)
    url = server.answers(stream(hello()))
    model = OpenAIModel("m", server=url, options=options, sleep=sleep)
    notes: list[str] = []
    for _ in range(2):
        await complete(model, PROMPT, lambda chunk: notes.append(chunk.note))
    await model.close()
    assert len(slept) == 1
    assert 59 < slept[0] <= 60
    assert [note for note in notes if note] == [
        "waits 60 s for the rate limit that sessions share"
    ]
