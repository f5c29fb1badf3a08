"""An event loop in a thread of its own."""

import asyncio
import concurrent.futures
import threading

import pytest

from neuraxis.bridges.mcp_client.background import BackgroundLoop


@pytest.fixture
def loop():
    made = BackgroundLoop("test-background")
    yield made
    made.stop()


def test_work_runs_in_one_thread_that_the_first_work_starts(loop):
    """All connections of a source share it, and a source that is not used has none."""

    async def where():
        return threading.current_thread().name

    names = {thread.name for thread in threading.enumerate()}
    assert "test-background" not in names
    assert {loop.submit(where()).result(5) for _ in range(3)} == {"test-background"}


def test_a_cancelled_future_cancels_its_work(loop):
    """A call that is given up is given up there too."""
    ended, begun = threading.Event(), threading.Event()

    async def wait():
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    future = loop.submit(wait())
    assert begun.wait(5)
    future.cancel()
    assert ended.wait(5)


def test_stopping_cancels_what_runs_and_work_starts_it_again(loop):
    """Nothing is left behind; a source may be opened again."""
    future = loop.submit(asyncio.sleep(60))
    loop.stop()
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(5)
    assert "test-background" not in {each.name for each in threading.enumerate()}
    assert loop.submit(asyncio.sleep(0, "again")).result(5) == "again"
