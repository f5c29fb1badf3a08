"""How a run ended, as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from neuraxis import NeuraxisError
from neuraxis.messages import Call, CallError, Problem, Result, Usage
from neuraxis.session.answer import Answer, StoredAsset, as_json, result_json

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
    told = as_json(answer)
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
    full = as_json(Answer(text="x", outcome="failed", files=("a",), error="why"))
    empty = as_json(Answer(text="", outcome="budget"))
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
    with pytest.raises(NeuraxisError, match=r"a5: this run did not store it.*a4"):
        answer.asset("a5")
