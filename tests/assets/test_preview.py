"""A short result with one value that JSON cannot hold is shown beside its reference."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pytest

from neuraxis import Options, Session, command
from neuraxis.assets.describe import meta_of
from neuraxis.assets.preview import CHARACTERS, preview
from neuraxis.assets.rows import rows_of
from neuraxis.models.scripted import ScriptedModel

pandas: Any = pytest.importorskip("pandas")
pydantic: Any = pytest.importorskip("pydantic")


@dataclass
class Report:
    """What a program returns."""

    total: float
    note: str


class Broken:
    """An object whose fields cannot be read."""

    _fields = ("text",)

    @property
    def text(self) -> str:
        raise OSError("closed")


def _told(value: Any, **options: Any) -> dict[str, Any]:
    """Return the result of a command as the model reads it."""

    def gives() -> Any:
        """Gives it."""
        return value

    model = ScriptedModel([{"tool_calls": [{"name": "gives", "arguments": {}}]}, "ok"])
    session = Session(
        model, plugins=[gives], dialect="native", options=Options(**options)
    )
    assert session.run_sync("go").outcome == "answered"
    messages = [item for item in model.prompts[1].messages if item.role == "tool"]
    return json.loads(messages[-1].content.partition("\n")[0])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"mean": float("nan"), "n": [1, 2]}, {"mean": "nan", "n": [1, 2]}),
        (
            {"sum": Decimal("12.50"), "on": date(2026, 1, 2), "pdf": b"%PDF"},
            {"sum": "12.50", "on": "2026-01-02", "pdf": "<class 'bytes'> 4 bytes"},
        ),
        (Report(float("inf"), "hello"), {"total": "inf", "note": "hello"}),
        ({1: "open", 2: "closed"}, {"1": "open", "2": "closed"}),
        (
            pandas.DataFrame({"city": ["Bern", "Rome"], "n": [1, None]}),
            [{"city": "Bern", "n": 1.0}, {"city": "Rome", "n": "nan"}],
        ),
        ([{"at": 1, "x": float("nan")}] * 3, [{"at": 1, "x": "nan"}] * 3),
    ],
)
def test_one_value_hides_no_others(value: Any, shown: Any) -> None:
    """The model saw only types, or `shown 2 of 5`; nobody was warned."""
    told = _told(value)
    assert told["response"] == {"asset_id": "a1"}
    assert told["preview"] == shown


def test_B58_the_strict_profile_has_none() -> None:
    """There the whole answer is an asset, as the document says."""
    assert "preview" not in _told({"mean": float("nan")}, strict=True)


@pytest.mark.parametrize(
    "value",
    [
        [float("nan")] * CHARACTERS,
        {"text": "x" * CHARACTERS, "raw": b"x"},
        pandas.DataFrame({"n": range(21)}),
        b"bytes alone",
        float("nan"),
    ],
)
def test_what_is_long_is_described_as_before(value: Any) -> None:
    """A part of it would be taken for the whole."""
    assert preview(value) is None


def test_what_holds_the_same_again_and_again_ends() -> None:
    """Lists in lists, a list in itself, and an object that raises."""
    endless: list[Any] = [b"x"]
    for _ in range(40):
        endless = [endless] * 40
    itself: list[Any] = []
    itself.append(itself)
    assert preview(endless) is None
    assert preview(itself) is None
    assert preview([Broken(), b"x"]) == [
        f"<class '{__name__}.Broken'>",
        "<class 'bytes'> 1 byte",
    ]


def test_an_excluded_field_stays_out() -> None:
    """`Field(exclude=True)` was told in the description of an asset."""

    class Doc(pydantic.BaseModel):
        """A document with a note of its author's."""

        title: str
        note: str = pydantic.Field(exclude=True)
        data: bytes

    model = ScriptedModel(['[{"tool": "docs"}]', "ok"])

    @command(effects="read")
    def docs() -> Any:
        """The documents."""
        return [Doc(title="A", note="FIRED SOON", data=b"x")]

    Session(model, plugins=[docs]).run_sync("go")
    texts = "\n".join(item.content for item in model.prompts[1].messages)
    assert "title" in texts
    assert "FIRED" not in texts
    assert "note" not in texts


def test_a_secret_in_a_table_is_hidden(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Objects are not scrubbed, their previews are."""
    monkeypatch.setenv("NEURAXIS_SECRET_TOKEN", "s3cr3t-value")

    @command(effects="read", secret_ok=["token"])
    def accounts(token: str) -> Any:
        """The accounts."""
        return pandas.DataFrame({"key": [token]})

    calls = [{"tool": "accounts", "token": "secret://TOKEN"}]
    model = ScriptedModel([json.dumps(calls), "ok"])
    Session(model, plugins=[accounts], workspace=tmp_path).run_sync("go")
    texts = "\n".join(item.content for item in model.prompts[1].messages)
    assert '"preview":[{"key":"secret://TOKEN"}]' in texts
    assert "s3cr3t" not in texts


@dataclass
class Account:
    """A field, and what is none."""

    KEY: ClassVar[str] = "sk-live"
    user: str
    total: float


class Login(pydantic.BaseModel):
    """A password that its serializer hides."""

    user: str
    password: str
    rate: float

    @pydantic.field_serializer("password")
    def _hidden(self, value: str) -> str:
        return "***"


class Row:
    """As a record of a database, whose fields are read when they are asked for."""

    _fields = ("user", "password_hash")

    def __getattr__(self, name: str) -> str:
        raise AssertionError(f"{name} was read")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Account("u", float("nan")), {"user": "u", "total": "nan"}),
        (
            Login(user="u", password="hunter2", rate=float("nan")),
            {"user": "u", "password": "***", "rate": "nan"},
        ),
        ({"row": Row(), "n": 1}, {"row": f"<class '{__name__}.Row'>", "n": 1}),
        ({"price": Decimal("NaN")}, {"price": "NaN"}),
        ({1: "one", "1": "text"}, None),
        ([Path("x" * 200)] * 120 + [float("nan")], None),
        ([Decimal("1" * 5000), float("nan")], None),
    ],
)
def test_what_json_would_show_is_shown(value: Any, shown: Any) -> None:
    """Withheld fields were told, others lost, and the limit did not hold."""
    assert preview(value) == shown


def test_columns_of_one_name_are_not_mixed_up() -> None:
    """One stood in the place of the other."""
    arrow: Any = pytest.importorskip("pyarrow")
    twice = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    assert preview(twice) is None
    table = arrow.table([[1], [2], ["x"]], names=["a", "a", "b"])
    assert preview(table) is None
    assert rows_of(table) == (["a", "a", "b"], [(1, 2, "x")], 1)


def test_a_hidden_field_is_in_no_description() -> None:
    """The first item of a list told it."""
    meta = meta_of(
        "a1",
        {"content": {"response": [Login(user="u", password="hunter2", rate=1)] * 3}},
    )
    assert "hunter2" not in str(meta)
    assert "user: u" in str(meta)
