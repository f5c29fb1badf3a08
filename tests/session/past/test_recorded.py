"""Results of calls as the journal recorded them."""

from __future__ import annotations

import pytest

from neuraxis.events import CallStarted
from neuraxis.messages import Call
from neuraxis.session.past.recorded import result_of


@pytest.mark.parametrize(
    ("effects", "told"),
    [
        ("read", "call it again"),
        ("none", "call it again"),
        ("once", "Check what it did"),
        ("idempotent", "Check what it did"),
    ],
)
def test_a_call_that_was_cut_off_says_whether_it_may_be_made_again(
    effects: str, told: str
) -> None:
    """One that changes nothing needs no check."""
    call = Call(id="a1", plugin="p", command="c", arguments={})
    begun = CallStarted(
        id="a1", plugin="p", command="c", tool="c", arguments={}, effects=effects
    )
    error = result_of(call, begun, None).error
    assert error is not None
    assert error.code == "outcome_unknown"
    assert told in error.message
