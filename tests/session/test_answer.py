"""How a run ended, as JSON."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import polars
import pytest

from neuraxis import NeuraxisError, Session, command
from neuraxis.errors import ModelRefused, NoAnswer
from neuraxis.messages import Call, CallError, Problem, Result, Usage
from neuraxis.session.answer import Answer, StoredAsset, result_json
from neuraxis.testing import ScriptedModel, call

CALL = Call(id="a1", plugin="maps", command="find", arguments={"city": "Bern"})


def test_an_answer_is_told_whole() -> None:
    """Every field, as JSON that has no classes in it."""
    answer = Answer(
        text="Here.",
        outcome="answered",
        calls=(Result(call=CALL, status="done", value={"x": 1}),),
        assets=tuple(StoredAsset(id=id, read=dict) for id in ("a1", "a2")),
        files=("out/plot.png",),
        usage=Usage(input_tokens=7, output_tokens=3, cached_tokens=5),
        usd=0.25,
        error="not stored",
    )
    told = answer.to_json()
    assert json.loads(json.dumps(told)) == told
    assert told == {
        "text": "Here.",
        "outcome": "answered",
        "output": None,
        "calls": [
            {
                "id": "a1",
                "tool": "maps.find",
                "status": "done",
                "value": {"x": 1},
                "asset": None,
                "error": None,
                "warnings": [],
                "seconds": 0.0,
            }
        ],
        "problems": [],
        "assets": ["a1", "a2"],
        "files": ["out/plot.png"],
        "usage": {"input_tokens": 7, "output_tokens": 3},
        "usd": 0.25,
        "error": "not stored",
    }


def test_the_keys_are_there_where_nothing_was_done() -> None:
    """Whoever reads the JSON need not ask whether a key is there."""
    full = Answer(text="x", outcome="failed", files=("a",), error="why").to_json()
    empty = Answer(text="", outcome="budget").to_json()
    assert list(empty) == list(full)
    assert empty["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert (empty["calls"], empty["assets"], empty["error"]) == ([], [], "")


def test_an_object_is_told_by_its_id() -> None:
    """It has no JSON; its asset has the id of its call."""
    told = result_json(Result(call=CALL, status="done", value=object(), stored=True))
    assert (told["value"], told["asset"]) == (None, "a1")
    assert json.dumps(told)


def test_a_failure_is_told_as_the_model_is_told() -> None:
    """Code, text and problems; no exception, no value."""
    error = CallError(
        code="invalid_param",
        message="maps.find.city: expected string, got 5.",
        problems=(Problem(path=("city",), expected="string", got="5"),),
    )
    result = Result(
        call=CALL,
        status="failed",
        error=error,
        exception=ValueError("secret"),
        warnings=("slow",),
        seconds=0.12345678,
    )
    told: dict[str, Any] = result_json(result)
    assert told["error"]["code"] == "invalid_param"
    assert told["error"]["problems"][0]["path"] == ["city"]
    assert (told["status"], told["value"], told["asset"]) == ("failed", None, None)
    assert (told["warnings"], told["seconds"]) == (["slow"], 0.123457)
    assert "secret" not in json.dumps(told)


def test_a_stored_object_is_what_it_is() -> None:
    """A picture, a table, or told to be neither; one that is not there is told."""
    rows = [{"x": 1}, {"x": 2}]
    answer = Answer(
        text="", outcome="answered", assets=(StoredAsset(id="a4", read=lambda: rows),)
    )
    assert answer.asset("a4").value is answer.asset("a4").table is rows
    with pytest.raises(NeuraxisError, match="a4: expected a picture, it is a list"):
        _ = answer.asset("a4").image
    inner = Answer(
        text="", outcome="answered", assets=(StoredAsset(id="a4", read=lambda: 5),)
    )
    with pytest.raises(NeuraxisError, match="a4: expected a table, it is an int"):
        _ = inner.asset("a4").table
    with pytest.raises(NeuraxisError, match=r"a5: this run did not store it.*a4"):
        answer.asset("a5")


class _Refusing:
    """A model whose server knows no such key."""

    name = "refusing"

    async def stream(self, prompt: Any) -> Any:
        raise ModelRefused("HTTP 401: Incorrect API key", status=401)
        yield

    async def close(self) -> None: ...


def test_check_raises_why_there_is_no_answer() -> None:
    """The model's own error, or a sentence; an answer is returned as it is."""
    with Session(cast("Any", _Refusing())) as session:
        failed = session.run_sync("x")
    with pytest.raises(ModelRefused, match="HTTP 401") as raised:
        failed.check()
    assert (failed.outcome, failed.error, raised.value.status) == (
        "failed",
        "HTTP 401: Incorrect API key",
        401,
    )
    for outcome, wanted in (("budget", "took too long"), ("waiting", "approval")):
        error = "it took too long" * (outcome == "budget")
        answer = Answer(text="", outcome=cast("Any", outcome), error=error)
        with pytest.raises(NoAnswer, match=f"not answered .{outcome}.: .*{wanted}"):
            answer.check()
    good = Answer(text="Here.", outcome="answered")
    assert good.check() is good


@dataclass
class Row:
    number: int


@command(effects="read")
def rows(count: int) -> list[Row]:
    """Return rows."""
    return [Row(number) for number in range(count)]


@pytest.mark.parametrize("count", [2, 20_000])
def test_a_value_is_what_the_command_returned_at_every_size(count: int) -> None:
    """A stored list of objects is none of dicts, and the test kit gives the same."""
    reply = f'[{{"tool": "rows", "count": {count}}}]'
    with Session(ScriptedModel([reply, "Done."]), plugins=[rows]) as session:
        (result,) = session.run_sync("go").calls
    assert result.value == [Row(number) for number in range(count)]
    assert call(rows, "rows", {"count": count}).value == result.value


@pytest.mark.parametrize(
    ("name", "meant"), [("content", "text"), ("tool_calls", "calls"), ("txt", "text")]
)
def test_a_name_of_another_library_is_told_with_ours(name: str, meant: str) -> None:
    """As of a run that was not awaited; nothing is made up for other names."""
    answer = Answer(text="Yes.", outcome="answered")
    with pytest.raises(AttributeError, match=rf"no '{name}'. Did you mean {meant}"):
        getattr(answer, name)
    assert not hasattr(answer, "_repr_png_")
    assert copy.deepcopy(answer).text == "Yes."


class _NoLength:
    def __len__(self) -> int:
        raise RuntimeError("gone")


def test_a_stored_object_is_shown_by_kind_and_size() -> None:
    """Its content would fill the screen; what it raises is not raised."""
    shown = [
        (polars.DataFrame({"a": [1, 2]}), "a table of 2 rows and 1 column: a"),
        ("x" * 90_000, "a text of 90,000 characters"),
        (_NoLength(), f"an object of the type {__name__}._NoLength"),
    ]
    for value, told in shown:
        stored = StoredAsset(id="a1", read=lambda value=value: value)
        assert repr(stored) == f"StoredAsset(id='a1', {told})"
    unreadable = StoredAsset(id="a1", read=lambda: len(_NoLength()))
    assert repr(unreadable) == "StoredAsset(id='a1', lost)"


def test_a_field_of_other_libraries_leads_to_what_there_is() -> None:
    """`answer.data` led to `output`, which is None without `output=`."""
    given: Any = Answer(text="Hi.", outcome="answered")
    with pytest.raises(AttributeError, match="Did you mean text"):
        _ = given.final_output
    typed: Any = Answer(text="3", outcome="answered", checked=3)
    with pytest.raises(AttributeError, match="Did you mean output"):
        _ = typed.data


def test_N1_a_shown_picture_gets_another_name_beside_the_users(tmp_path: Path) -> None:
    """As where a program without a journal runs for the second time."""
    image = pytest.importorskip("PIL.Image")

    @command(effects="none")
    def draw(colour: str) -> Any:
        """Draw."""
        return image.new("RGB", (4, 4), colour)

    def shown(colour: str) -> str:
        replies = [
            f'[{{"tool": "draw", "colour": "{colour}"}}]',
            "<|asset://a1/content/response|>",
        ]
        with Session(
            ScriptedModel(replies), plugins=[draw], workspace=tmp_path
        ) as session:
            return session.run_sync("Draw").text

    first, other = shown("red"), shown("blue")
    assert first == "![a1, 4x4](shown/a1.png)"
    assert other.startswith("![a1, 4x4](shown/a1-")
    assert (shown("red"), shown("blue")) == (first, other)
    files = sorted(path.name for path in (tmp_path / "shown").iterdir())
    assert (len(files), files[1]) == (2, "a1.png")
    assert image.open(tmp_path / "shown" / "a1.png").getpixel((0, 0)) == (255, 0, 0)
