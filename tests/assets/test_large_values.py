"""Large objects through a session: little is said, nothing is lost, nothing is copied.

`benchmarks/large_values.py` measures the same with its time and memory.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from neuraxis import Session, command
from neuraxis.models.scripted import ScriptedModel
from neuraxis.references.asset_ref import AssetRef
from neuraxis.settings import Settings

numpy: Any = pytest.importorskip("numpy")
polars: Any = pytest.importorskip("polars")
pictures: Any = pytest.importorskip("PIL.Image")

MOST = 600
"""Characters that one value may add to the history."""


def _value(kind: str) -> Any:
    match kind:
        case "array":
            return numpy.zeros(6_250_000)
        case "text":
            return "words and words\n" * 1_250_000
        case "table":
            return polars.DataFrame({f"column {n}": range(5000) for n in range(40)})
        case "rows":
            row = {f"field {n}": "some text in it" for n in range(30)}
            return [dict(row) for _ in range(2000)]
        case "nested":
            inside: Any = b"x"
            for n in range(90):
                inside = {f"level {n}": inside, "more": [inside] * 3}
            return inside
        case _:
            return pictures.new("RGB", (1600, 1200))


@pytest.mark.parametrize("dialect", ["intents", "envelope_v1", "envelope_v2", "native"])
@pytest.mark.parametrize(
    "kind", ["array", "text", "table", "rows", "nested", "picture"]
)
def test_B56_little_enters_the_history(kind: str, dialect: str) -> None:
    """The result's message and the description: 600 characters; the object is whole."""
    value = _value(kind)

    @command(effects="read")
    def gives(large: bool) -> Any:
        """Gives it, or nothing."""
        return value if large else None

    def asked(large: bool) -> tuple[int, Session]:
        session = Session(
            model=ScriptedModel([_call(dialect, large), "done"]),
            plugins=[gives],
            dialect=dialect,
            settings=Settings(),
        )
        session.run_sync("go")
        assert isinstance(session.model, ScriptedModel)
        messages = session.model.prompts[1].messages
        return sum(len(message.content) for message in messages), session

    with_value, session = asked(True)
    without, _ = asked(False)
    assert with_value - without <= MOST
    ref = AssetRef(asset_id="a1", field_path=("content", "response"))
    assert _is_kept(session.assets.resolve(ref), value)


def _is_kept(found: Any, value: Any) -> bool:
    """The object itself, or its like where a command could go on changing it."""
    if isinstance(value, dict | list):  # which may be too nested to compare
        return type(found) is type(value) and len(found) == len(value)  # pyright: ignore[reportUnknownArgumentType]
    return found is value or bool(found.equals(value))


def _call(dialect: str, large: bool) -> Any:
    given = {"large": large}
    if dialect == "native":
        return {"tool_calls": [{"name": "gives", "arguments": given}]}
    if dialect == "intents":
        return json.dumps([{"tool": "gives", **given}])
    kind = {"content_type": "command"} if dialect == "envelope_v2" else {}
    return json.dumps(
        {
            "receiver": {"role": "plugin", "name": "gives"},
            **kind,
            "content": {"command": "gives", "param": given},
        }
    )


def test_B43_five_commands_get_the_very_object() -> None:
    """No copy on the way, whichever reference brings it."""
    seen: list[Any] = []

    @command(effects="none")
    def makes() -> Any:
        """Makes an array."""
        return numpy.zeros(1_000_000)

    @command(effects="none")
    def passes(array: numpy.ndarray) -> Any:
        """Passes it on."""
        seen.append(array)
        return {"array": array}

    steps: list[dict[str, Any]] = [
        {"tool": "makes"},
        {"tool": "passes", "array": "{{ previous_result }}"},
        {"tool": "passes", "array": "{{ previous_result['array'] }}"},
        {"tool": "passes", "array": "asset://a3/content/response/array"},
        {"tool": "passes", "array": {"asset_id": "a1", "field_path": RESPONSE}},
        {"tool": "passes", "array": "asset://a1/content/response"},
    ]
    session = Session(
        model=ScriptedModel([json.dumps(steps), "done"]), plugins=[makes, passes]
    )
    answer = session.run_sync("go")
    assert ["done"] * 6 == [result.status for result in answer.calls]
    assert len(seen) == 5
    assert all(array is seen[0] for array in seen)


RESPONSE = ["content", "response"]


def test_large_arguments_are_compared_by_their_reference() -> None:
    """The third call with the same large text is answered from the first two."""
    ran: list[int] = []

    @command(effects="read")
    def reads() -> str:
        """Gives a long text."""
        return "x" * 100_000

    @command(effects="none")
    def measures(text: str) -> int:
        """Its length."""
        ran.append(len(text))
        return len(text)

    first = json.dumps([{"tool": "reads"}, {"tool": "measures", "text": "PREVIOUS"}])
    again = json.dumps([{"tool": "reads"}, {"tool": "measures", "text": "PREVIOUS"}])
    session = Session(
        model=ScriptedModel([first, again, "done"]), plugins=[reads, measures]
    )
    answer = session.run_sync("go")
    assert [100_000, 100_000] == [answer.calls[1].value, answer.calls[3].value]
    assert ran == [100_000, 100_000]


@pytest.mark.parametrize("written", ["asset://a1", "asset://a1/content"])
def test_B54_a_reference_to_the_whole_asset_is_told_the_right_one(written: str) -> None:
    """It is not guessed: the model is told which reference fits."""

    @command(effects="none")
    def makes() -> Any:
        """Makes an array."""
        return numpy.zeros(3)

    @command(effects="none")
    def takes(array: numpy.ndarray) -> int:
        """Takes it."""
        return len(array)

    session = Session(
        model=ScriptedModel(
            [
                json.dumps([{"tool": "makes"}]),
                json.dumps([{"tool": "takes", "array": written}]),
                "done",
            ]
        ),
        plugins=[makes, takes],
    )
    error = session.run_sync("go").calls[1].error
    assert error is not None
    assert error.code == "invalid_asset_type"
    tail = "/response" if written.endswith("content") else "/content/response"
    assert f"did you mean {written}{tail}?" in error.message
