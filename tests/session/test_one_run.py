"""A run costs what it costs, however long the conversation is already."""

from __future__ import annotations

import asyncio
import sys
from types import FrameType
from typing import Any

from benchmark_file import benchmark


def _calls_of_a_run(after: int) -> int:
    """How many functions a run calls, Python's and C's, after so many others."""
    bench: Any = benchmark("one_run")
    count = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    async def main() -> None:
        with bench.session(bench.ONE) as session:
            for _ in range(after):
                await session.run("go")
            sys.setprofile(profile)
            try:
                answer = await session.run("go")
            finally:
                sys.setprofile(None)
        assert answer.text == "done"
        assert [call.value for call in answer.calls] == [{"sum": 3}]

    asyncio.run(main())
    return count


def test_a_run_calls_as_many_functions_after_300_runs_as_after_3() -> None:
    """Nothing goes through the history, the results or the events again."""
    _calls_of_a_run(100)  # what is made when it is used for the first times is made
    few, many = _calls_of_a_run(3), _calls_of_a_run(300)
    assert 100 < few < 1000
    assert abs(few - many) <= 5  # the ids are longer, and the collector may run


def test_the_assets_are_described_once_and_not_in_each_round() -> None:
    """The list that stands behind the newest message is kept until it changes."""
    from neuraxis.assets.store import AssetStore

    store = AssetStore()
    assert store.description == ""
    for number in range(40):
        store.keep(f"a{number}", "look", b"bytes")
    first = store.description
    assert "asset://ID" in first
    assert store.description is first
    assert store.ids[-1] == "a39"
    store.keep("a40", "look", "said inline")
    assert store.description is first
    store.keep("a41", "look", b"more bytes")
    assert '"a41"' in store.description
    assert '"a41"' not in first
    store.forget("a41")
    assert store.description == first
    assert "a41" not in store.ids
    store.attach("a42", b"given", "by the user")
    assert "by the user" in store.description
    store.restore("a43", {"asset_id": "a43", "content": "of old"}, 5)
    assert "of old" in store.description
    aside = store.aside()
    assert aside.description == store.description
    aside.keep("a44", "look", b"apart")
    assert '"a44"' in aside.description
    assert '"a44"' not in store.description


def test_a_prompt_does_not_copy_the_history() -> None:
    """It shows the session's own list, as far as it went then."""
    bench: Any = benchmark("one_run")
    with bench.session(bench.ONE) as session:
        session.run_sync("go")
        prompt = session.prompt(session.history)
        assert prompt.messages[1] is session.history[0]
        assert sys.getsizeof(prompt.messages) < 200
        session.run_sync("go")
        assert len(prompt.messages) == 5
        assert len(session.history) == 8


def test_the_benchmark_measures_what_it_says() -> None:
    """Every line, in a few rounds; the chain asks the model twice."""
    bench: Any = benchmark("one_run")
    found = bench.measured(2, 1)
    assert len(found) == 5 + len(bench.LENGTHS)
    assert all(value > 0 for value in found.values())
    with bench.session(bench.CHAIN) as session:
        answer = session.run_sync("go")
        assert session.model.asked == 2
    assert [call.value for call in answer.calls] == list(range(1, 11))
