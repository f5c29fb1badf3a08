"""What stops a run: cheap to make, and heard by whoever waits for it."""

import threading

from neuraxis.execution.cancellation import Linked, Stopped, Unheard


def test_stopped_is_an_event_that_stays_set() -> None:
    """Set once; to clear it changes nothing."""
    stopped = Stopped()
    assert not stopped.is_set()
    assert not stopped.wait(0.001)
    stopped.set()
    stopped.clear()
    assert stopped.is_set()
    assert stopped.wait()
    assert Linked(stopped).is_set()
    assert Unheard(stopped).is_set()


def test_all_who_wait_hear_it() -> None:
    """Threads that began to wait before, and one that does afterwards."""
    stopped = Stopped()
    ready = threading.Barrier(5)
    heard: list[bool] = []

    def wait() -> None:
        ready.wait()
        heard.append(stopped.wait(30))

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    ready.wait()
    stopped.set()
    for thread in threads:
        thread.join(30)
    assert heard == [True] * 4
    assert stopped.wait(30)
