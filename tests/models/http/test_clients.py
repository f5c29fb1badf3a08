"""Connections of a model that several loops and threads ask."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings

import httpx2

from neuraxis.models.http.clients import Clients


def test_each_loop_has_its_own_client() -> None:
    """At the same time; closing that of the one leaves the other's."""
    clients = Clients(httpx2.AsyncClient)
    seen: list[httpx2.AsyncClient] = []
    met, closed = threading.Barrier(2), threading.Event()

    async def first() -> None:
        seen.append(await clients.current())
        await asyncio.to_thread(met.wait, 10)
        await clients.close()
        assert seen[0].is_closed
        closed.set()
        await clients.close()
        assert await clients.current() is not seen[0]

    async def second() -> None:
        mine = await clients.current()
        await asyncio.to_thread(met.wait, 10)
        await asyncio.to_thread(closed.wait, 10)
        assert mine is not seen[0]
        assert not mine.is_closed
        assert await clients.current() is mine

    thread = threading.Thread(target=asyncio.run, args=(first(),))
    thread.start()
    asyncio.run(second())
    thread.join()
    assert not clients._entries


def test_a_client_is_closed_with_its_loop() -> None:
    """`asyncio.run` for each request: nobody else would close it."""
    clients = Clients(httpx2.AsyncClient)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        seen = [asyncio.run(clients.current()) for _ in range(3)]
        gc.collect()
    assert [client.is_closed for client in seen] == [True] * 3
    assert not clients._entries
    assert not told


def test_a_loop_that_was_just_closed_is_forgotten() -> None:
    """By somebody who does not end what the loop had."""
    clients = Clients(httpx2.AsyncClient)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(clients.current())
    loop.close()
    asyncio.run(clients.current())
    assert not clients._entries
