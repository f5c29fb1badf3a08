"""The short ways of reading look twice at what may mean more than it says."""

from __future__ import annotations

from itertools import count

import pytest

from neuraxis.dialects.intents.decode import END, START
from neuraxis.dialects.well_formed import DEEPEST, plain_arguments, quick_calls

MEANS_MORE = {
    "an escape": r'{"tool": "t", "a": "\u007b"}',
    "a key of ours": '{"tool": "t", "a": {"$literal": 1}}',
    "a reference": '{"tool": "t", "a": "{{ x }}"}',
    "an address": '{"tool": "t", "a": "asset://a1"}',
    "an asset": '{"tool": "t", "a": {"asset_id": "a1"}}',
    "the bare word": '{"tool": "t", "a": "PREVIOUS"}',
    "more than ASCII": '{"tool": "t", "a": "é"}',
    "many levels": '{"tool": "t", "a": ' + "[" * DEEPEST + "]" * DEEPEST + "}",
    "a whole fraction": '{"tool": "t", "a": 3.0}',
    "a key twice": '{"tool": "t", "a": 1, "a": 2}',
}


def _block(intent: str) -> str:
    return f"{START}\n[{intent}]\n{END}"


@pytest.mark.parametrize("intent", MEANS_MORE.values(), ids=MEANS_MORE)
def test_what_may_mean_more_is_not_read_the_short_way(intent: str) -> None:
    """In a block no call says what it was read from, and native arguments are left."""
    calls = quick_calls(_block(intent), START, END, map(str, count()).__next__)
    assert [call.read for call in calls or ()] in ([], [None])
    assert plain_arguments(intent) is None


def test_what_is_plain_is() -> None:
    """The control: the same without any of it."""
    intent = '{"tool": "t", "a": [1, 2.5, "b"]}'
    calls = quick_calls(_block(intent), START, END, map(str, count()).__next__)
    assert calls is not None
    assert calls[0].read == ({"a": [1, 2.5, "b"]}, intent)
    assert plain_arguments(intent) == {"tool": "t", "a": [1, 2.5, "b"]}
