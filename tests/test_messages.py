"""The data between a model, the runtime and the commands."""

import gc
import weakref

from neuraxis.messages import Call


class Keeper:
    """An object of the program that keeps the call it was passed in."""

    call: Call


def test_a_call_that_its_own_argument_keeps_is_freed() -> None:
    """A program may pass any object, so the collector must see into a call."""
    keeper = Keeper()
    keeper.call = Call(id="a1", plugin=None, command="c", arguments={"x": keeper})
    is_alive = weakref.ref(keeper)
    del keeper
    gc.collect()
    assert is_alive() is None
