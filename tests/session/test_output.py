"""Typed answers: the last word is checked, mended by telling, and an object."""

from __future__ import annotations

import dataclasses
import datetime
import json
from typing import Annotated, Any, TypedDict

import msgspec
import pydantic
import pytest

from conformance.kit import DIALECTS, reply_in
from neuraxis import (
    Call,
    ConfigError,
    NoAnswer,
    Prose,
    Session,
    agent,
    command,
)
from neuraxis.events import Event, OutputChunk
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings


class Invoice(pydantic.BaseModel):
    """An invoice.

    Args:
        number: as printed.
    """

    number: str
    total: float = pydantic.Field(gt=0, description="in euros")
    due: datetime.date

    @pydantic.field_validator("number")
    @classmethod
    def _is_ours(cls, number: str) -> str:
        if not number.startswith("R"):
            raise ValueError("ours begin with R")
        return number


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Draft(pydantic.BaseModel):
    text: str


class Final(pydantic.BaseModel):
    text: str
    pages: int = 0


class Person(TypedDict):
    name: str


class Receipt(msgspec.Struct, frozen=True):
    shop: str
    amount: Annotated[float, msgspec.Meta(ge=0)] = 0.0


class Approve(msgspec.Struct, tag="approve"):
    order: int


class Refuse(msgspec.Struct, tag="refuse"):
    order: int


class Parcel(msgspec.Struct, rename="camel", tag_field="kind", tag=3):
    """A parcel."""

    order_number: Annotated[float, msgspec.Meta(ge=0)]
    house: str = msgspec.field(name="where", default="")
    inner: Parcel | None = None


class Row(msgspec.Struct, array_like=True):
    order: int


@dataclasses.dataclass
class Table:
    rows: list[Row]


GOOD = '{"number": "R7", "total": 12.5, "due": "2026-01-31"}'
INVOICE = Invoice(number="R7", total=12.5, due=datetime.date(2026, 1, 31))


@command(effects="read")
def total_of(number: str) -> float:
    """Total of an invoice."""
    return 12.5


def _session(*replies: Any, **given: Any) -> Session[Any]:
    given = {"settings": Settings(), **given}
    return Session(ScriptedModel([*replies]), **given)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "written",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Here it is:\n```json\n{GOOD}\n```\nAnything else?",
    ],
)
def test_the_last_word_becomes_the_object(dialect: str, written: str) -> None:
    """In each dialect, with a fence or words around it; the text is its JSON."""
    with _session(written, dialect=dialect, output=Invoice) as session:
        answer = session.run_sync("read it")
    assert (answer.outcome, answer.output) == ("answered", INVOICE)
    assert json.loads(answer.text) == json.loads(GOOD)


@pytest.mark.parametrize(
    ("wanted", "written", "made"),
    [
        (Point, '{"x": 1}', Point(1)),
        (Point, '{"x": "1", "y": 2.0}', Point(1, 2)),
        (Person, '{"name": "Ada"}', {"name": "Ada"}),
        (Receipt, '{"shop": "A", "amount": 2}', Receipt("A", 2.0)),
        (Approve | Refuse, '{"type": "refuse", "order": 7}', Refuse(7)),
        (Approve, '{"type": "approve", "order": 7}', Approve(7)),
        (
            Parcel,
            '{"kind": 3, "orderNumber": 7, "where": "A", "inner": {"kind": 3, '
            '"orderNumber": 8}}',
            Parcel(7.0, "A", Parcel(8.0)),
        ),
        (list[Point], '{"value": [{"x": 1}]}', [Point(1)]),
        (list[Point], '[{"x": 1}, {"x": 2}]', [Point(1), Point(2)]),
        (Point | Receipt, '{"value": {"shop": "A"}}', Receipt("A")),
        (Point | Receipt, '{"x": 3}', Point(3)),
        (Draft | Final, '{"text": "a", "pages": 3}', Final(text="a", pages=3)),
        (Draft | Final, '{"text": "a"}', Draft(text="a")),
        (Point | str, "I cannot see one.", "I cannot see one."),
        (int, "42", 42),
        (int | bool | None, "```json\n5\n```", 5),
        (int | bool | None, "```\ntrue\n```", True),
        (int | bool | None, "```json\nnull\n```", None),
        (Point | str, "```python\nprint(5)\n```", "```python\nprint(5)\n```"),
        ({"type": "object", "required": ["a"]}, '{"a": [1]}', {"a": [1]}),
        ({"enum": ["yes", "no"]}, '{"value": "no"}', "no"),
    ],
)
def test_what_may_be_asked_for(wanted: Any, written: str, made: Any) -> None:
    """Classes, unions and lists of them, JSON Schema."""
    with _session(written, output=wanted) as session:
        answer = session.run_sync("go")
    assert (answer.outcome, answer.error) == ("answered", "")
    assert answer.output == made
    assert type(answer.output) is type(made)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            '{"number": "R7", "total": -1, "due": "2026-01-31"}',
            "answer.total: exp",
        ),
        ('{"number": "R7", "total": 1}', "due"),
        ('{"number": "7", "total": 1, "due": "2026-01-31"}', "ours begin with R"),
        ("It is R7.", "found no JSON"),
        ('{"number": "R7"} or {"number": "R8"}', "found several JSON values in"),
    ],
)
def test_what_is_wrong_is_told_and_mended(wrong: str, told: str) -> None:
    """Also what the class's own checks say."""
    with _session(wrong, GOOD, output=Invoice) as session:
        answer = session.run_sync("go")
    assert (answer.output, len(answer.problems)) == (INVOICE, 1)
    assert (answer.problems[0].code, told in answer.problems[0].message) == (
        "invalid_output",
        True,
    )


def test_it_is_mended_at_most_twice() -> None:
    """Then the run failed, the last word is there, and `output` says why not."""
    with _session("a", "b", "c", GOOD, output=Invoice) as session:
        answer = session.run_sync("go")
        assert (answer.outcome, answer.text) == ("failed", "c")
        assert [item.code for item in answer.problems] == ["invalid_output"] * 3
        with pytest.raises(
            NoAnswer, match=r"did not match `output`.*no JSON"
        ) as raised:
            _ = answer.output
        assert "Write the whole" not in str(raised.value)  # the model is told that
        assert session.run_sync("again").output == INVOICE


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tools_come_before_the_answer(dialect: str) -> None:
    """The form is told in the dialect's notation, behind the tools."""
    call = Call(id="", plugin="total_of", command="total_of", arguments={"number": "1"})
    reply = reply_in(dialect, [call], {("total_of", "total_of"): "total_of"})
    given = {"plugins": [total_of], "dialect": dialect, "output": Invoice}
    with _session(reply, GOOD, **given) as session:
        prompt = session.prompt()
        answer = session.run_sync("go")
    text = prompt.messages[0].content
    assert "# Your answer" in text.rpartition("total_of")[2] or dialect == "native"
    assert ("in euros" in text, "\n- `total` (number" in text) == (
        True,
        not dialect.startswith("envelope"),
    )
    assert (prompt.output_schema is not None) == (dialect == "native")
    assert answer.calls[0].value == 12.5
    assert answer.output == INVOICE


def test_without_tools_the_server_is_given_the_schema() -> None:
    """As nothing but the answer can be written."""
    with _session(output=list[Point]) as session:
        schema = session.prompt().output_schema
    assert schema is not None
    assert schema["required"] == ["value"]


def test_a_form_with_the_key_of_a_call_is_no_call() -> None:
    """JSON of exactly the form is the answer."""

    @dataclasses.dataclass
    class Choice:
        tool: str
        price: int

    with _session(
        '{"tool": "total_of", "price": 3}', plugins=[total_of], output=Choice
    ) as session:
        assert session.run_sync("go").output == Choice("total_of", 3)


async def test_it_streams_in_parts() -> None:
    """The fields so far; the last one may be cut."""
    long = {"number": "R7", "total": 1.5, "due": "2026-01-31"}
    text = json.dumps(long)
    seen: list[Event] = []
    model = ScriptedModel([text], chunk_size=5)
    with Session(model, output=Invoice, settings=Settings()) as session:
        run = session.run("go")
        async for event in run:
            seen.append(event)
    parts = [event.value for event in seen if isinstance(event, OutputChunk)]
    assert len(parts) > 1
    assert all(set(part) <= set(long) for part in parts)
    assert parts[0]["number"].startswith("R")
    assert run.answer is not None
    assert run.answer.output.total == 1.5


def test_another_process_goes_on_with_the_form(tmp_path: Any) -> None:
    """A later session is given the same `output`."""
    journal = tmp_path / "j.db"
    with _session("x", GOOD, output=Invoice, journal=journal) as first:
        first.run_sync("go")
    given: dict[str, Any] = {"output": Invoice, "journal": journal}
    with Session.open(first.id, model=ScriptedModel([GOOD]), **given) as later:
        said = [item.content for item in later.history]
        assert any("found no JSON" in item for item in said)
        assert later.run_sync("again").output == INVOICE


def test_an_agent_returns_it() -> None:
    """The command's result is the object, and its form is what the model is told."""
    asks = agent(
        "asks", "Asks.", model=ScriptedModel([GOOD]), output=Invoice, effects="read"
    )
    replies = ('[{"tool": "asks", "request": "who?"}]', "ok")
    with _session(*replies, plugins=[asks]) as session:
        assert "`due` (date)" in session.prompt().messages[0].content
        answer = session.run_sync("go")
    assert answer.calls[0].error is None
    assert answer.calls[0].value == INVOICE


@pytest.mark.parametrize("wrong", [3, "Invoice", Point(1), complex, {"type": "nmber"}])
def test_what_is_no_form_is_told(wrong: Any) -> None:
    """When the session is made."""
    with pytest.raises(ConfigError, match="output: "):
        _session(output=wrong)


def test_a_tagged_union_without_a_tag_is_no_answer() -> None:
    """Else the first class would be taken for the other."""
    with _session(*['{"order": 7}'] * 3, output=Approve | Refuse) as session:
        assert session.run_sync("refuse order 7").outcome == "failed"


def test_a_struct_without_field_names_is_refused_at_once() -> None:
    """A model writes the fields by their names."""

    with pytest.raises(ConfigError, match=r"output: .*Row has array_like=True"):
        _session(output=Row)
    with pytest.raises(ConfigError, match=r"Table.rows: .*Row has array_like=True"):
        _session(output=Table)


def test_null_is_an_answer_where_the_type_allows_it() -> None:
    """Bare, as models write it; elsewhere it is refused."""
    with _session("null", output=Invoice | None) as session:
        answer = session.run_sync("go")
    assert (answer.outcome, answer.output) == ("answered", None)
    assert not answer.problems
    with _session("```json\nnull\n```", output=Invoice | None) as session:
        assert session.run_sync("go").outcome == "answered"
    with _session("null", "null", "null", output=Invoice) as session:
        assert session.run_sync("go").outcome == "failed"


@pytest.mark.parametrize("text", ["42", "null", "[1]", "true"])
def test_a_text_that_reads_like_json_is_a_text_where_one_is_allowed(text: str) -> None:
    """`City | str` refused them; an object with a wrong key stays an error."""
    kind: Any = Place | str
    with Session(ScriptedModel([text]), output=kind) as session:
        assert session.run_sync("Which?").output == text
    with Session(ScriptedModel(['{"nme": "Rome"}'] * 3), output=kind) as session:
        assert session.run_sync("Which?").outcome == "failed"


@dataclasses.dataclass
class Place:
    """A place."""

    name: str


@pytest.mark.parametrize("kind", [str, "Place | str"])
def test_a_typed_answer_that_is_a_text_is_said_once_and_without_quotes(
    kind: Any,
) -> None:
    """It was JSON, so that `Prose` said the words and then their JSON."""
    prose, said = Prose(), list[str]()
    wanted: Any = Place | str if isinstance(kind, str) else kind
    model = ScriptedModel([{"chunks": ["There is ", "none."]}])
    with Session(model, output=wanted) as session:
        answer = session.run_sync("Which?", watch=lambda e: said.append(prose(e)))
    assert (answer.text, answer.output) == ("There is none.", "There is none.")
    assert "".join(said) == "There is none."


@pytest.mark.parametrize("size", [20, 400, 5_000])
def test_the_last_event_has_the_whole_answer(size: int) -> None:
    """A page that shows the answer as it comes is complete at the end."""
    seen: list[Event] = []
    text = json.dumps({"title": "T", "body": "abcd " * size, "n": 7})
    schema = {
        "type": "object",
        "properties": {
            "title": {"type": "string"}, "body": {"type": "string"},
            "n": {"type": "integer"},
        },
    }  # fmt: skip
    with Session(ScriptedModel([text], chunk_size=4), output=schema) as session:
        session.run_sync("x", watch=seen.append)
    parts = [event.value for event in seen if isinstance(event, OutputChunk)]
    assert parts[-1] == json.loads(text)
