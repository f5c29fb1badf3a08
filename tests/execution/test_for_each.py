"""One call for each item of a list: bounded, checked first, failures kept."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Answer, CommandError, Options, Session, command
from neuraxis.events import CallFinished, CallStarted, Event, MessageSent
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import EVERYTHING

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    RAN.clear()


@command(effects="read")
def search(query: str) -> dict[str, list[str]]:
    """Finds pages."""
    return {"urls": [f"http://{query}/{n}" for n in range(4)]}


@command(effects="read")
def many() -> list[int]:
    """Many numbers."""
    return list(range(30))


@command(effects="read")
async def fetch(url: str, times: int = 1) -> dict[str, str]:
    """Fetches a page."""
    RAN.append(url)
    await asyncio.sleep(0)
    if "/2" in url:
        raise RuntimeError("gone")
    return {"output": url.upper() * times}


@command(effects="once")
def note(text: str) -> str:
    """Writes a note down."""
    RAN.append(text)
    if text == "bad":
        raise RuntimeError("no pen")
    return f"noted {text}"


@command(effects="none")
def shape(text: str) -> object:
    """An object that cannot be said."""
    return Opaque(text)


@command(effects="none", asset_refs=["thing"])
def look(thing: object) -> str:
    """What the object holds."""
    return thing.text if isinstance(thing, Opaque) else "nothing"


class Opaque:
    """No JSON."""

    def __init__(self, text: str) -> None:
        self.text = text


PLUGINS = [search, many, fetch, note, shape, look]


def run(*intents: dict[str, Any], **options: Any) -> tuple[Answer, list[Event]]:
    events: list[Event] = []
    model = ScriptedModel([json.dumps(list(intents)), "ok"])
    options = {"policy": EVERYTHING, **options}
    with Session(model=model, plugins=PLUGINS, **options) as session:
        return session.run_sync("go", events.append), events


def told(events: list[Event]) -> str:
    return next(
        event.content
        for event in events
        if isinstance(event, MessageSent) and event.sender == "system"
    )


def test_N3_each_item_of_an_earlier_list() -> None:
    """The answers as a list, in the order of the items, for the next step to use."""
    answer, events = run(
        {"tool": "search", "query": "x"},
        {
            "tool": "fetch",
            "$for_each": "{{ previous_result['urls'][:2] }}",
            "url": "{{ item }}",
            "times": 2,
            "as": "pages",
        },
        {"tool": "note", "text": "{{ pages | map('output') | join(' ') }}"},
    )
    assert [result.status for result in answer.calls] == ["done"] * 3
    assert answer.calls[1].value == [
        {"output": "HTTP://X/0HTTP://X/0"},
        {"output": "HTTP://X/1HTTP://X/1"},
    ]
    assert RAN[-1] == "HTTP://X/0HTTP://X/0 HTTP://X/1HTTP://X/1"
    parts = [event for event in events if isinstance(event, CallStarted)]
    assert [(event.id, event.part_of) for event in parts] == [
        ("a1", ""),
        ("a2", ""),
        ("a2.0", "a2"),
        ("a2.1", "a2"),
        ("a3", ""),
    ]


def test_N3_a_list_in_the_call_and_fields_of_items() -> None:
    """The list may be written out; items may be objects; other steps be used too."""
    answer, _ = run(
        {"tool": "search", "query": "x"},
        {
            "tool": "note",
            "$for_each": [{"n": "one"}, {"n": "two"}],
            "text": "{{ item['n'] }} of {{ previous_result.urls | length }}",
        },
    )
    assert answer.calls[1].value == ["noted one of 4", "noted two of 4"]
    assert RAN == ["one of 4", "two of 4"]


@pytest.mark.parametrize(
    "items", ['["a", "b"]', " {{ results[0].urls[:2] }}\n"], ids=["json", "blanks"]
)
def test_a_list_may_be_written_as_text(items: str) -> None:
    """As models write arguments, too: nothing else can be meant by it."""
    answer, _ = run(
        {"tool": "search", "query": "x"},
        {"tool": "note", "$for_each": items, "text": "{{ item }}"},
    )
    assert answer.calls[1].status == "done"
    assert len(RAN) == 2


def test_what_is_no_list_is_told_with_its_keys() -> None:
    """The list that was meant is most often one of them."""
    _, events = run(
        {"tool": "search", "query": "x"},
        {"tool": "note", "$for_each": "{{ previous_result }}", "text": "{{ item }}"},
    )
    assert "expected a list, got an object with the keys urls." in told(events)


def test_what_an_item_does_not_have_is_a_sentence() -> None:
    """It ends before the next one begins."""
    _, events = run(
        {"tool": "search", "query": "x"},
        {"tool": "note", "$for_each": [{"n": 1}], "text": "{{ item.x }}"},
    )
    assert "with the keys n. Nothing was run." in told(events)


def test_N3_no_items_no_calls() -> None:
    """An empty list is an empty answer."""
    answer, _ = run({"tool": "note", "$for_each": [], "text": "{{ item }}"})
    assert (answer.calls[0].status, answer.calls[0].value) == ("done", [])
    assert RAN == []


def test_N3_a_failed_item_fails_the_step_and_all_items_are_told() -> None:
    """fail_fast: what came before is kept, the effects behind it do not happen."""
    answer, events = run(
        {"tool": "note", "$for_each": ["a", "bad", "c"], "text": "{{ item }}"},
        {"tool": "note", "text": "never"},
    )
    first, second = answer.calls
    assert (first.status, second.status) == ("failed", "skipped")
    assert [entry["status"] for entry in first.value] == ["done", "failed", "skipped"]
    assert first.value[0] == {"index": 0, "status": "done", "response": "noted a"}
    assert "no pen" in first.value[1]["error"]["message"]
    assert first.error is not None
    assert "1 of 3 items" in first.error.message
    assert RAN == ["a", "bad"]
    assert "noted a" in told(events)


@command(effects={"kind": "read", "open_world": True})
async def price(name: str) -> int:
    """Prices: of the third, only after the others are known."""
    for _ in range(20 if name == "kiwi" else 0):
        await asyncio.sleep(0)
    if name == "kiwi":
        raise CommandError("no price for kiwi")
    return len(name)


@pytest.mark.parametrize("early", [True, False])
def test_an_item_that_ran_behind_a_failed_one_has_one_end(
    early: bool, tmp_path: Path
) -> None:
    """Skipped, in the events, the answer, for the model and when it is resumed."""
    intents: list[dict[str, Any]] = [
        {"tool": "price", "$for_each": ["fig", "kiwi", "plum"], "name": "{{ item }}"},
        {"tool": "price", "name": "apple"},
    ]
    events: list[Event] = []
    model = ScriptedModel([json.dumps(intents), "ok"])
    with Session(
        model,
        id="s",
        journal=tmp_path / "j.db",
        plugins=[price],
        options=Options(early_start=early),
    ) as session:
        answer = session.run_sync("go", events.append)
    ends = [event for event in events if isinstance(event, CallFinished)]
    assert {event.id: event.status for event in ends} == {
        "a1.0": "done",
        "a1.1": "failed",
        "a1.2": "skipped",
        "a1": "failed",
        "a2": "skipped",
    }
    assert len(ends) == 5
    assert [event.value for event in ends if event.status == "skipped"] == [None, None]
    item, last = answer.calls[0].value[2], answer.calls[1]
    assert last.error is not None
    assert last.error.message == "price was skipped, because price (a1) failed."
    assert item == {
        "index": 2,
        "status": "skipped",
        "error": {
            "code": "skipped",
            "message": "price was skipped, because price (a1.1) failed.",
            "where": "price",
        },
    }
    assert told(events).count("(a1.1) failed") == 1
    with Session.open(
        "s", journal=tmp_path / "j.db", model=ScriptedModel(["x"]), plugins=[price]
    ) as session:
        known = [message.content for message in session.history]
        assert any("because price (a1) failed" in content for content in known)
        assert "a2" not in session.origins.results


def test_N3_continue_leaves_failed_items_out_and_says_so() -> None:
    """The rest goes on with what worked; each failure is a warning."""
    answer, events = run(
        {"tool": "search", "query": "x"},
        {
            "tool": "fetch",
            "$for_each": "{{ previous_result['urls'] }}",
            "url": "{{ item }}",
        },
        {"tool": "note", "text": "{{ previous_result | length }}"},
        options=Options(on_error="continue"),
    )
    assert [result.status for result in answer.calls] == ["done"] * 3
    assert RAN[-1] == "3"
    assert answer.calls[1].warnings[0].startswith("1 of 4 items failed")
    assert "item 2: fetch failed: RuntimeError: gone" in answer.calls[1].warnings[1]
    assert "item 2" in told(events)


def test_N3_continue_with_no_item_that_worked_fails() -> None:
    """A list of nothing is no answer."""
    answer, _ = run(
        {"tool": "note", "$for_each": ["bad"], "text": "{{ item }}"},
        options=Options(on_error="continue"),
    )
    assert answer.calls[0].status == "failed"


@pytest.mark.parametrize(
    ("intent", "said"),
    [
        ({"$for_each": "{{ results[0] }} x"}, "without text around"),
        ({"$for_each": "no list"}, "a list"),
        ({"$for_each": "{{ results[7] }}"}, "results[7]"),
        ({"$for_each": list(range(21))}, "at most 20 items"),
        ({"$for_each": [1], "$max_items": 2_000}, "1 to 1000"),
        ({"$for_each": "{{ results[0].urls.x }}"}, "no field"),
        ({"$for_each": "{{ results[0].urls }}", "url": "{{ item.x }}"}, "string"),
        ({"$for_each": ["a"], "as": "item"}, "item"),
    ],
)
def test_N3_a_wrong_loop_is_told_before_anything_runs(
    intent: dict[str, Any], said: str
) -> None:
    """References, sizes and fields of items are checked with the plan."""
    wrong = {"tool": "fetch", "url": "{{ item }}", **intent}
    answer, events = run({"tool": "search", "query": "x"}, wrong)
    assert answer.calls == ()
    assert said in told(events)


def test_N3_too_many_items_are_refused_and_never_cut() -> None:
    """More than max_items: nothing is run, and the message says what to write."""
    loop = {"tool": "note", "$for_each": "{{ results[0] }}", "text": "{{ item }}"}
    answer, events = run({"tool": "many"}, loop)
    assert answer.calls[1].status == "failed"
    assert RAN == []
    assert "30 items" in told(events)
    answer, _ = run({"tool": "many"}, {**loop, "$max_items": 30})
    assert answer.calls[1].status == "done"
    assert len(RAN) == 30


def test_N3_all_items_are_checked_before_the_first_is_run() -> None:
    """An item that does not fit keeps the others' effects from happening."""
    loop = {"tool": "note", "$for_each": ["a", {"b": 1}], "text": "{{ item.b }}"}
    answer, events = run(loop)
    assert answer.calls[0].status == "failed"
    assert RAN == []
    assert "item 0" in told(events)


def test_N3_objects_pass_through_a_loop() -> None:
    """What cannot be said is kept once, and its parts can be referred to."""
    answer, events = run(
        {"tool": "shape", "$for_each": ["a", "b"], "text": "{{ item }}"},
        {"tool": "look", "$for_each": "{{ results[0] }}", "thing": "{{ item }}"},
        {"tool": "look", "thing": "asset://a1/content/response/1"},
    )
    assert [result.status for result in answer.calls] == ["done"] * 3
    assert answer.calls[0].stored
    assert [asset.id for asset in answer.assets] == ["a1"]
    assert answer.calls[1].value == ["a", "b"]
    assert answer.calls[2].value == "b"
    ends = {e.id: e.value for e in events if isinstance(e, CallFinished)}
    assert ends["a1.0"] is None


def test_N3_reads_overlap_eight_at_a_time() -> None:
    """And effects do not overlap at all."""
    running = most = 0

    async def busy(n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1
        return n

    for kind, expected in (("read", 8), ("idempotent", 1)):
        most = 0
        tool = command(effects=kind)(busy)
        loop = {"tool": "busy", "$for_each": list(range(20)), "n": "{{ item }}"}
        model = ScriptedModel([json.dumps([loop]), "ok"])
        answer = Session(model=model, plugins=[tool]).run_sync("go")
        assert answer.calls[0].value == list(range(20))
        assert most == expected


def test_item_is_a_word_of_ours_in_a_loop_only() -> None:
    """A Vue template stays as it is."""
    run({"tool": "note", "text": "<li>{{ item.name }}</li>"})
    assert RAN == ["<li>{{ item.name }}</li>"]


def test_a_parameter_may_have_the_name_of_our_key() -> None:
    """`$$for_each` is the parameter `$for_each`; written and read the same."""
    from neuraxis.dialects import find_dialect
    from neuraxis.messages import Call, Completion

    dialect = find_dialect("intents")
    given = Call(
        id="a1",
        plugin=None,
        command="t",
        arguments={"$for_each": 1, "$max_items": 2},
        for_each="{{ results[0] }}",
        max_items=5,
    )
    text = dialect.write([given])
    (read,) = dialect.decode(Completion(text=text), next_id=lambda: "a1").calls
    assert read == given


def test_item_values_are_never_read_for_references() -> None:
    """C24: what a list holds is data, whatever it looks like."""

    @command(effects="read")
    def hostile() -> list[str]:
        """Texts that look like references."""
        return ["{{ results[0] }}", "asset://a1/content", "PREVIOUS"]

    loop = {"tool": "note", "$for_each": "{{ results[0] }}", "text": "{{ item }}"}
    model = ScriptedModel([json.dumps([{"tool": "hostile"}, loop]), "ok"])
    Session(model=model, plugins=[hostile, note], policy=EVERYTHING).run_sync("go")
    assert RAN == ["{{ results[0] }}", "asset://a1/content", "PREVIOUS"]


def test_decision_8_a_loop_that_was_cut_off_is_told_as_unknown_once() -> None:
    """A crash between two items: the step is unknown, its items are part of it."""
    from neuraxis.dialects import find_dialect
    from neuraxis.session.past.resume import restore_history

    def started(own: str, part_of: str = "") -> CallStarted:
        return CallStarted(
            id=own, plugin="p", command="c", tool="c", arguments={}, part_of=part_of
        )

    ended = CallFinished(
        id="a1.0", plugin="p", command="c", tool="c", status="done", part_of="a1"
    )
    events = [started("a1"), started("a1.0", "a1"), ended, started("a1.1", "a1")]
    past = restore_history(events, find_dialect("intents"))
    (message,) = past.messages
    assert message.content.count("not known how it ended") == 1
    assert past.values == ()


def test_equal_items_are_each_done() -> None:
    """Who asks for four dice wants four; the guard is for a model that goes round."""

    @command(effects="once")
    def roll() -> int:
        """Rolls a die."""
        RAN.append("roll")
        return len(RAN)

    session = Session(
        model=ScriptedModel(
            [json.dumps([{"tool": "roll", "$for_each": ["a", "a", "b", "b"]}]), "ok"]
        ),
        plugins=[roll],
        policy=EVERYTHING,
    )
    answer = session.run_sync("go")
    assert answer.calls[0].value == [1, 2, 3, 4]
    assert answer.calls[0].warnings == ()


def test_items_that_cannot_be_looked_at_fail_the_step() -> None:
    """An object whose own code raises ends no run, one of a list neither."""

    class Strange:
        @property
        def model_dump(self) -> int:
            raise ZeroDivisionError("no dump")

    @command(effects="none")
    def strange() -> object:
        """Gives what cannot be looked at."""
        return Strange()

    asked = json.dumps([{"tool": "strange", "$for_each": [1, 2]}])
    session = Session(
        model=ScriptedModel([asked, "ok"]), plugins=[strange], policy=EVERYTHING
    )
    answer = session.run_sync("go")
    assert answer.outcome == "answered"
    error = answer.calls[0].error
    assert error is not None
    assert "no dump" in error.message
