"""What a server says of its errors, however it says it; over HTTP: see answers.yaml."""

from __future__ import annotations

import json

import pytest

from neuraxis.models.http.answers import MOST_TEXT, ServerError, body_message
from neuraxis.models.openai.stream import Frames
from neuraxis.specs import Json


def nested(levels: int, inside: Json) -> Json:
    for _ in range(levels):
        inside = [inside]
    return inside


def test_where_the_mistake_is() -> None:
    """FastAPI says a path, which is as short and as plain as all that is quoted."""
    fault = {"loc": ["body", 0, "stop"], "msg": "Extra inputs"}
    assert body_message(json.dumps(fault).encode(), "") == "body.0.stop: Extra inputs"
    for loc in ([], None, {}, [None, {"a": 1}], 1.5):
        raw = json.dumps({**fault, "loc": loc}).encode()
        assert body_message(raw, "") == "Extra inputs"
    raw = json.dumps({**fault, "loc": ["\x1b[2J\n", "y" * 5000]}).encode()
    said = body_message(raw, "")
    assert (said[:6], len(said)) == ("[2J .y", MOST_TEXT)
    assert said.isprintable()


@pytest.mark.parametrize("levels", [30, 900])
def test_an_error_in_the_deep(levels: int) -> None:
    """It is not looked for without end; that there is one is told all the same."""
    error = nested(levels, "no")
    assert body_message(json.dumps({"error": error}).encode(), "") == ""
    with pytest.raises(ServerError, match="reports an error"):
        Frames().frame({"error": error})
    with pytest.raises(ServerError, match="it says: no"):
        Frames().frame({"error": nested(5, "no")})
