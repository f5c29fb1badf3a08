"""Part D: what follows from the three documents. The rules that no other test names."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from conformance.kit import DIALECTS, call_text, folder, reply_in, talk
from neuraxis import Context, Options, Policy, Rule, Session, command
from neuraxis.dialects import find_dialect
from neuraxis.dialects.native.dialect import safe_name
from neuraxis.events import (
    CallProgress,
    CallStarted,
    MessageSent,
    ModelFinished,
    SessionStarted,
)
from neuraxis.journal import open_journal
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.loader import load_plugin
from neuraxis.plugins.manifest.convert import to_json_schema, to_v2
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.settings import Settings

V1 = """
name: web
info: {title: Web, description: Looks things up.}
commands:
  - command_name: search
    description: Find pages.
    parameters:
      - {name: query, type: string, description: the words, required: true}
      - {name: most, type: int, description: how many, required: false}
    response:
      - {name: urls, type: 'List[str]', description: what was found, optional: false}
"""


def test_D1_one_registry_for_every_dialect() -> None:
    """Plugins of both generations and Python in one session, in each dialect."""

    @command(effects="none")
    def double(number: int) -> int:
        """Twice."""
        return 2 * number

    v1, v2 = parse_manifest(V1)[0], parse_manifest(to_v2(parse_manifest(V1)[0]))[0]
    assert (v1.generation, v2.generation) == ("v1", "v2")
    for dialect in DIALECTS:
        call = Call(id="a1", plugin="double", command="double", arguments={"number": 2})
        reply = reply_in(dialect, [call], {("double", "double"): "double"})
        said = talk([reply, "ok"], [double, "neuraxis:files"], dialect)
        assert said.values == [4]
        specs = [v1, load_plugin(double).spec]
        assert find_dialect(dialect).prompt(specs, {})


def test_D2_v1_becomes_v2_and_json_schema() -> None:
    """The converters; each result is valid by the rules of what it became."""
    spec, _ = parse_manifest(V1)
    again, problems = parse_manifest(to_v2(spec))
    assert (again.generation, problems) == ("v2", ())
    assert again.commands[0].parameters == spec.commands[0].parameters
    (item,) = to_json_schema(spec)["commands"]
    jsonschema_rs.meta.validate(item["parameters"])
    validator = jsonschema_rs.Draft202012Validator(item["parameters"])
    assert validator.is_valid({"query": "x", "most": 1})
    assert not validator.is_valid({"query": "x", "most": "1"})
    assert not validator.is_valid({"most": 1})


def test_D2_native_definitions_are_what_holds() -> None:
    """Names that servers take; the schema is the one that is enforced."""
    spec, _ = parse_manifest(V1.replace("command_name: search", "command_name: a.b/c"))
    (tool,) = find_dialect("native").native_tools([spec], {"a.b/c": ("web", "a.b/c")})
    assert tool["function"]["name"] == safe_name("a.b/c") != "a.b/c"
    assert tool["function"]["parameters"] == spec.commands[0].parameters


COUNT = """
name: count
info: {title: Count, description: Counts.}
commands:
  - command_name: count
    description: Count.
    response:
      type:
        count: {type: int, description: how many}
        note: {type: string, description: a remark, optional: true}
"""
WRONG = [{"count": "many"}, {}, {"count": 1, "more": 2}, [1], None]


@pytest.mark.parametrize("answer", WRONG, ids=repr)
def test_D11_an_answer_that_was_not_declared(tmp_path: Path, answer: Any) -> None:
    """Strict: an error to the model. Lenient: delivered, with a warning."""

    plugin = folder(tmp_path, "count", COUNT, f"def count():\n    return {answer!r}\n")
    call = call_text("count", "count", {})
    strict = talk([call, "ok"], [plugin], options=Options(strict=True))
    assert strict.errors == ["plugin_contract_error"]
    assert "description does not allow" in strict.told[0]
    lenient = talk([call, "ok"], [plugin])
    assert lenient.values == [answer]
    assert lenient.errors == []
    assert "description does not allow" in lenient.answer.calls[0].warnings[0]


@pytest.mark.parametrize("answer", [{"count": 1}, {"count": 1, "note": "x"}], ids=repr)
def test_D11_A27_optional_fields_may_be_absent(tmp_path: Path, answer: Any) -> None:
    """Nothing is said of an answer that is as declared."""
    plugin = folder(tmp_path, "count", COUNT, f"def count():\n    return {answer!r}\n")
    said = talk(
        [call_text("count", "count", {}), "ok"], [plugin], options=Options(strict=True)
    )
    assert said.values == [answer]
    assert said.answer.calls[0].warnings == ()


def test_D12_an_agent_is_a_command_like_any_other() -> None:
    """A session inside a command: its answer is the response, its failure is told."""

    @command(effects="read")
    async def research(question: str) -> dict[str, str]:
        """Ask another agent."""
        inner = Session(
            model=ScriptedModel([call_text("now", "now", {}), f"{question}: noon"]),
            plugins=[now],
            dialect="envelope_v2",
            settings=Settings(),
        )
        return {"answer": (await inner.run(question)).text}

    said = talk([call_text("research", "research", {"question": "When"}), "ok"],
                [research])  # fmt: skip
    assert said.values == [{"answer": "When: noon"}]
    denied = Policy(rules=[Rule(verdict="deny", target="research.*", reason="no")])
    call = call_text("research", "research", {"question": "When"})
    assert talk([call, "ok"], [research], policy=denied).errors == ["denied"]


@command(effects="read")
def now() -> str:
    """The time."""
    return "noon"


def _sync(context: Context) -> str:
    """Tell how far it is, then wait to be stopped."""
    context.progress("half", 0.5)
    stopped = context.cancelled.wait(20)
    STOPPED.append(stopped)
    return "late"


async def _async(context: Context) -> str:
    """Tell how far it is, then wait to be stopped."""
    context.progress("half", 0.5)
    try:
        await asyncio.sleep(20)
    except asyncio.CancelledError:
        STOPPED.append(True)
        raise
    return "late"


STOPPED: list[bool] = []


@pytest.mark.parametrize("function", [_sync, _async], ids=["def", "async def"])
def test_D13_progress_time_limit_and_stop(function: Any) -> None:
    """The same for `def` and `async def`: told, limited, stopped."""
    STOPPED.clear()
    waits = command(name="waits", time_limit=0.2, effects="read")(function)
    started = time.perf_counter()
    said = talk([call_text("waits", "waits", {}), "ok"], [waits])
    assert time.perf_counter() - started < 10
    assert said.errors == ["timeout"]
    told = [event for event in said.events if isinstance(event, CallProgress)]
    assert [(event.message, event.fraction) for event in told] == [("half", 0.5)]
    for _ in range(100):
        if STOPPED:
            break
        threading.Event().wait(0.02)
    assert STOPPED == [True]


def test_D13_both_kinds_run_in_one_plan() -> None:
    """A synchronous and an asynchronous command, one after the other."""

    @command(effects="none")
    async def add(a: int, b: int) -> int:
        """Add."""
        await asyncio.sleep(0)
        return a + b

    @command(effects="none")
    def double(n: int) -> int:
        """Twice."""
        return 2 * n

    text = json.dumps(
        [
            json.loads(call_text("add", "add", {"a": 1, "b": 2})),
            json.loads(call_text("double", "double", {"n": "{{ previous_result }}"})),
        ]
    )
    assert talk([text, "ok"], [add, double]).values == [3, 6]


def test_D13_a_generator_is_its_items() -> None:
    """What a command yields is one answer, a list."""

    @command(effects="read")
    def rows() -> Any:
        """Give rows."""
        yield from range(3)

    assert talk([call_text("rows", "rows", {}), "ok"], [rows]).values == [[0, 1, 2]]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_D14_an_unfinished_call_is_told_when_a_session_goes_on(
    tmp_path: Path, dialect: str
) -> None:
    """It was started and nobody knows how it ended: told, and not run again."""
    ran: list[str] = []

    @command(effects="once")
    def pay(amount: int) -> str:
        """Pay."""
        ran.append(str(amount))
        return "paid"

    file = tmp_path / "sessions.db"
    with closing(open_journal(file)) as journal:
        for event in (
            SessionStarted(
                session="s1", model="m", dialect=dialect, plugins=("pay",), workspace=""
            ),
            MessageSent(sender="user", receiver="model", content="Pay 5"),
            ModelFinished(text="(the call)", finish_reason="stop"),
            CallStarted(
                id="a1",
                plugin="pay",
                command="pay",
                tool="pay",
                arguments={"amount": 5},
            ),
        ):
            journal.append("s1", event, durable=True)
    model = ScriptedModel(["I do not know whether it was paid."])
    with Session.open(
        "s1",
        model=model,
        plugins=[pay],
        dialect=dialect,
        journal=file,
        settings=Settings(),
    ) as session:
        answer = session.run_sync("And?")
    said = "".join(item.content for item in model.prompts[0].messages[1:])
    assert "Pay 5" in said
    assert "outcome_unknown" in said
    assert ran == []
    assert answer.outcome == "answered"
