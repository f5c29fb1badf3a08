"""What stops a call: its own time limit, or the run."""

import threading

from neuraxis.execution.cancellation import CallCancellation, RunCancellation


def test_a_call_hears_the_run_and_not_the_run_the_call() -> None:
    """Set for one call only; set by the run for all of them."""
    run = RunCancellation()
    one, other = CallCancellation(run), CallCancellation(run)
    one.set()
    assert (one.is_set(), other.is_set(), run.stopped) == (True, False, False)
    run.stopped = True
    assert other.is_set()


def test_waiting_for_a_call_that_is_stopped_ends() -> None:
    """In the thread of a command."""
    stopped = CallCancellation(RunCancellation())
    heard: list[bool] = []
    waiting = threading.Thread(target=lambda: heard.append(stopped.wait(30)))
    waiting.start()
    stopped.set()
    waiting.join(30)
    assert heard == [True]
