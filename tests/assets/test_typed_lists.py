"""Lists of records: their columns are told, later turns pass them by reference."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import msgspec
import pytest

from neuraxis import Session, command
from neuraxis.assets.describe import BUDGET, line_of, meta_of
from neuraxis.assets.store import AssetStore
from neuraxis.models.scripted import ScriptedModel

DIALECTS = ("intents", "envelope_v2", "native")
ROWS = 5000


@dataclass
class Row:
    """A sale."""

    id: int
    city: str


class Sale(TypedDict):
    """A sale."""

    id: int
    city: str


class Record(msgspec.Struct):
    """A sale."""

    id: int
    city: str


class Pair(NamedTuple):
    """A sale."""

    id: int
    city: str


@command(effects="read")
def load_rows(count: int) -> list[Row]:
    """Load sales."""
    return [Row(n, "Lyon" if n % 2 else "Turin") for n in range(count)]


@command(effects="read")
def load_notes(count: int) -> list[str]:
    """Load texts, not sales."""
    return ["note " * 10] * count


@command(effects="none")
def total(rows: list[Row], city: str) -> int:
    """Count a city's sales."""
    assert all(type(row) is Row for row in rows)
    return sum(row.city == city for row in rows)


@command(effects="none")
def total_of_dicts(rows: list[Sale], city: str) -> int:
    """Count a city's sales."""
    return sum(row["city"] == city for row in rows)


@command(effects="none")
def first_city(row: Row) -> str:
    """The city of one sale."""
    return row.city


PLUGINS = [load_rows, load_notes, total, total_of_dicts, first_city]
URL = "asset://a1/content/response"
OBJECT = {"asset_id": "a1", "field_path": ["content", "response"]}


def written(dialect: str, tool: str, arguments: dict[str, Any]) -> Any:
    """A call as a model of that dialect writes it."""
    if dialect == "native":
        return {"text": "", "tool_calls": [{"name": tool, "arguments": arguments}]}
    if dialect == "intents":
        return json.dumps([{"tool": tool, **arguments}])
    return json.dumps(
        {
            "receiver": {"role": "plugin", "name": tool},
            "content_type": "command",
            "content": {"command": tool, "param": arguments},
        }
    )


def ended(dialect: str) -> str:
    """The last reply of a turn."""
    if dialect != "envelope_v2":
        return "done"
    said = {"receiver": {"role": "user"}, "content_type": "text/plain"}
    return json.dumps({**said, "content": "done"})


def later(
    dialect: str, tool: str, arguments: dict[str, Any], count: int, load: str
) -> Any:
    """The answer of a second request, after one that loaded rows."""
    model = ScriptedModel(
        [
            written(dialect, load, {"count": count}),
            ended(dialect),
            written(dialect, tool, arguments),
            ended(dialect),
        ]
    )
    with Session(model=model, plugins=PLUGINS, dialect=dialect) as session:
        assert session.run_sync("load them").calls[0].status == "done"
        return session.run_sync("count Lyon")


@pytest.mark.parametrize("count", [4, ROWS])
@pytest.mark.parametrize("form", [URL, OBJECT], ids=["url", "object"])
@pytest.mark.parametrize("tool", ["total", "total_of_dicts"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_B42_a_later_request_passes_a_list_by_reference(
    dialect: str, tool: str, form: Any, count: int
) -> None:
    """The command gets the rows in its type, though no model has seen them."""
    arguments = {"rows": form, "city": "Lyon"}
    answer = later(dialect, tool, arguments, count, "load_rows")
    assert answer.problems == ()
    assert [call.value for call in answer.calls] == [count // 2]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_B42_one_row_of_a_stored_list(dialect: str) -> None:
    """A parameter of a class takes a reference to one item."""
    given = {"row": f"{URL}/1"}
    answer = later(dialect, "first_city", given, ROWS, "load_rows")
    assert [call.value for call in answer.calls] == ["Lyon"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_B42_another_type_behind_the_reference_is_refused(dialect: str) -> None:
    """The value is checked before the command runs."""
    given = {"rows": URL, "city": "Lyon"}
    answer = later(dialect, "total", given, ROWS, "load_notes")
    (call,) = answer.calls
    assert (call.status, call.error.code) == ("failed", "invalid_asset_type")
    assert "total.rows: the reference leads to" in call.error.message


@pytest.mark.parametrize("dialect", DIALECTS)
def test_B44_a_text_takes_no_reference(dialect: str) -> None:
    """A scalar stays as it was, unless `asset_refs` names it."""
    given = {"rows": [], "city": f"{URL}/0"}
    answer = later(dialect, "total", given, ROWS, "load_notes")
    assert [problem.code for problem in answer.problems] == ["asset_ref_not_acceptable"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", [Row, dict])
def test_B61_an_attached_list_is_passed_by_reference(dialect: str, kind: Any) -> None:
    """Rows of a class and plain ones alike; the model is told the fields."""
    given = {"rows": "asset://a1/content", "city": "Lyon"}
    model = ScriptedModel([written(dialect, "total", given), ended(dialect)])
    with Session(model=model, plugins=PLUGINS, dialect=dialect) as session:
        assert session.attach([kind(id=n, city="Lyon") for n in range(9)]) == "a1"
        answer = session.run_sync("count Lyon")
    assert [call.value for call in answer.calls] == [9], answer.problems
    prompt = "\n".join(message.content for message in model.prompts[0].messages)
    assert "id: 0, city: Lyon" in prompt


def test_a_value_by_reference_from_an_earlier_turn_is_traced() -> None:
    """What others wrote does not choose recipients, by whatever way it comes."""
    sent: list[list[str]] = []

    @command(effects={"kind": "read", "others_write": True, "public": True})
    def page() -> list[str]:
        """A page that others write."""
        return ["eve@evil.test"]

    @command(effects={"kind": "once", "destructive": False}, trusted_only=["to"])
    def send(to: list[str], text: str) -> bool:
        """Send it."""
        sent.append(to)
        return True

    replies = [
        '[{"tool": "page"}]',
        "read",
        json.dumps([{"tool": "send", "to": URL, "text": "hi"}]),
        json.dumps([{"tool": "send", "to": [f"{URL}/0"], "text": "hi"}]),
        "done",
    ]
    with Session(model=ScriptedModel(replies), plugins=[page, send]) as session:
        session.run_sync("read the page")
        calls = session.run_sync("send it").calls
    assert sent == []
    assert {call.error and call.error.code for call in calls} == {"denied"}


@pytest.mark.parametrize("make", [Row, dict, Record, Pair])
def test_B56_the_first_items_of_a_list_show_their_fields(make: Any) -> None:
    """A model that is to name a column knows which there are."""
    rows = [make(id=n, city="Lyon") for n in range(ROWS)]
    root = {"content": {"command": "load", "response": rows}}
    meta = meta_of("a1", root)
    assert meta["content/response/0"].endswith("'> id: 0, city: Lyon")
    assert meta["content/response/…"].startswith("shown ")
    assert "5,000 items, the first: id: 0, city: Lyon" in str(line_of("a1", root))


def test_B56_names_come_before_values() -> None:
    """Where not all fits, the names are told, in the usual bounds."""
    rows = [{f"column {n}": "word " * 50 for n in range(9)}] * ROWS
    meta = meta_of("a1", {"content": {"command": "load", "response": rows}})
    assert str(meta["content/response/0"]).endswith("column 7, column 8")
    assert len(json.dumps(meta, ensure_ascii=False)) <= BUDGET
    rows = [{f"column {n}": n for n in range(5000)}] * ROWS
    meta = meta_of("a1", {"content": {"command": "load", "response": rows}})
    assert "column 0, column 1, column 2, " in str(meta["content/response/0"])
    assert len(json.dumps(meta, ensure_ascii=False)) <= BUDGET


def test_B56_what_a_line_does_not_show_has_its_own() -> None:
    """An item's lists and objects are told below it, with their paths."""
    rows = [{"id": 1, "picture": b"123"}]
    meta = meta_of("a1", {"content": {"command": "load", "response": rows}})
    assert meta["content/response/0/picture"] == "<class 'bytes'> 3 bytes"


@pytest.mark.parametrize("count", [3, ROWS])
def test_a_result_has_what_the_command_returned(count: int) -> None:
    """The same classes at any size, in `calls` and in `assets`."""

    @command(effects="read")
    def pairs(count: int) -> list[tuple[int, str]]:
        """Pairs."""
        return [(n, "x" * 9) for n in range(count)]

    reply = json.dumps([{"tool": t, "count": count} for t in ("load_rows", "pairs")])
    with Session(
        model=ScriptedModel([reply, "done"]), plugins=[load_rows, pairs]
    ) as session:
        answer = session.run_sync("load them")
    assert [call.stored for call in answer.calls] == [count == ROWS] * 2
    assert [call.value[1] for call in answer.calls] == [Row(1, "Lyon"), (1, "x" * 9)]
    assert [item.value[0] for item in answer.assets] in (
        [],
        [Row(0, "Turin"), (0, "x" * 9)],
    )


def test_a_stored_result_is_apart_from_the_commands_own() -> None:
    """A list that the command changes later stays as it was returned."""
    rows = [Row(n, "Lyon") for n in range(ROWS)]
    store = AssetStore()
    store.keep("a1", "load", rows)
    rows.clear()
    assert len(store.returned("a1", None)) == ROWS
