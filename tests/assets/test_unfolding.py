"""Values that hold the same parts many times: kept and named, never written out.

A page of 459 characters of YAML with aliases held the event loop up for 14 seconds and,
with more aliases, kept a thread busy without end.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Answer, Session, command
from neuraxis.assets.serialize import CannotBeSaved, save
from neuraxis.assets.store import AssetStore
from neuraxis.assets.unfolding import unfolds
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.secrets import Secrets

ANSWER = "asset://a1/content/response"
_LONG = ["x" * 1_000_000] * 2_000


def _aliases(levels: int = 60) -> list[Any]:
    """What `yaml.safe_load` makes of `x1: &x1 [*x0, *x0]` and so on."""
    value: list[Any] = ["lol"]
    for _ in range(levels):
        value = [value, value]
    return value


@command(effects="read")
def load() -> object:
    """Return a page's YAML."""
    return _aliases()


@command(effects="read")
def load_list() -> list[Any]:
    """Return a page's YAML as a list."""
    return _aliases()


@command(effects="read")
def load_long() -> object:
    """Return one text many times."""
    return _LONG


@command(effects="read")
def count(x: list[Any]) -> int:
    """Count the items."""
    return len(x)


@command(effects={"kind": "once", "destructive": True}, trusted_only=["x"])
def delete(x: list[Any]) -> int:
    """Delete the items."""
    return len(x)


def _run(*calls: dict[str, Any], end: str = "done", **options: Any) -> Answer:
    replies = [json.dumps([call]) for call in calls]
    plugins = [load, load_list, load_long, count, delete]
    model = ScriptedModel([*replies, end])
    with Session(model, plugins=plugins, **options) as session:
        return session.run_sync("go")


def test_what_unfolds_and_what_is_only_large() -> None:
    """Shared parts count, not the size; a value that holds itself has no end."""
    holds_itself: list[Any] = []
    holds_itself += [holds_itself, holds_itself]
    laughs: Any = {"a": "lol"}
    for _ in range(9):
        laughs = {str(n): laughs for n in range(9)}
    assert all(map(unfolds, [_aliases(22), _aliases(), holds_itself, laughs, _LONG]))
    chain: list[Any] = []
    chain.append(chain)
    row = {"a": 1, "b": "x" * 50}
    large: list[Any] = [
        list(range(1_500_000)), [row] * 400_000, [dict(row) for _ in range(400_000)],
        ["x" * 200_000_000], _aliases(15), chain, "x", None, {},
    ]  # fmt: skip
    assert not any(map(unfolds, large))


def test_a_page_with_aliases_is_passed_in_parts_only(tmp_path: Path) -> None:
    """The whole is refused with a way out; it is named in the answer."""
    answer = _run(
        {"tool": "load"},
        {"tool": "count", "x": ANSWER},
        {"tool": "count", "x": ANSWER + "/0" * 46},
        end=f"It is <|{ANSWER}|>",
        workspace=tmp_path,
        journal=tmp_path / "j.db",
    )
    assert [call.status for call in answer.calls] == ["done", "failed", "done"]
    assert answer.calls[1].error is not None
    assert answer.calls[1].error.code == "invalid_asset_type"
    assert "such as a part of it" in answer.calls[1].error.message
    assert answer.text == "It is <class 'list'>"
    assert answer.assets[0].value[0][0]


def test_a_declared_response_with_aliases_is_not_checked(tmp_path: Path) -> None:
    """It was, without end; the result says so, and it is kept."""
    result = _run({"tool": "load_list"}, workspace=tmp_path).calls[0]
    assert result.status == "done"
    assert "holds the same parts again and again" in result.warnings[0]


def test_one_text_many_times_is_passed_in_parts_only(tmp_path: Path) -> None:
    """The policy, and a question, made 2 GB of it in the event loop."""
    answer = _run(
        {"tool": "load_long"},
        {"tool": "delete", "x": ANSWER},
        workspace=tmp_path,
        approve=lambda asked: True,
    )
    assert answer.calls[1].error is not None
    assert answer.calls[1].error.code == "invalid_asset_type"


def test_a_long_list_is_not_written_for_the_policy(tmp_path: Path) -> None:
    """Every list from outside was made a text, to compare it with file names."""

    class Watched(str):
        def __repr__(self) -> str:
            raise AssertionError("it was written")

    @command(effects={"kind": "read", "others_write": True})
    def read() -> object:
        """Return a list with an object."""
        return [Watched("x"), object()]

    replies = [{"tool": "read"}, {"tool": "count", "x": ANSWER}]
    model = ScriptedModel([*(json.dumps([call]) for call in replies), "done"])
    with Session(model, plugins=[read, count], workspace=tmp_path) as session:
        answer = session.run_sync("go")
    assert answer.calls[1].value == 2, answer.calls[1].error


def test_what_unfolds_is_saved_in_no_file(tmp_path: Path) -> None:
    """The file would have no end; the object lives as long as the process."""
    for value in (_aliases(), _LONG):
        with pytest.raises(CannotBeSaved):
            save({"content": value}, tmp_path / "a")
    assert AssetStore(inline_bytes=None).keep("a1", "c", _LONG).stored
    store = AssetStore(folder=tmp_path)
    assert store.keep("a1", "c", _aliases()).stored
    assert store.root("a1")["content"]["response"][0]


def test_secrets_are_hidden_in_shared_parts() -> None:
    """Each is looked into once."""
    secrets = Secrets(environ={"NEURAXIS_SECRET_TOKEN": "s3cr3t-value-of-it"})
    secrets.value("TOKEN")
    value: Any = ["s3cr3t-value-of-it"]
    for _ in range(60):
        value = [value, (value,)]
    started = time.process_time()
    shown = secrets.scrub(value)
    for _ in range(60):
        assert shown[0] is shown[1][0]
        shown = shown[0]
    assert shown == ["secret://TOKEN"]
    assert time.process_time() - started < 1
