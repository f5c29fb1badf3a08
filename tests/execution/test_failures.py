"""C12: an answer may say itself that the call failed."""

from __future__ import annotations

from typing import Any

import pytest

from neuraxis.execution.failures import MOST, declared_failure
from neuraxis.messages import Call
from neuraxis.plugins.registry import Command
from neuraxis.specs import CommandSpec, PluginSpec

CALL = Call(id="a1", plugin="web", command="get")


def _told(said: Any, field: str | None = "success") -> str | None:
    spec = CommandSpec(name="get", failure_field=field)
    made = Command(plugin=PluginSpec(name="web"), spec=spec)
    error = declared_failure(CALL, made, said)
    if error is None:
        return None
    assert (error.code, error.where) == ("failed", "web.get")
    return error.message.removeprefix("web.get failed: ")


@pytest.mark.parametrize(
    "said",
    [
        {"success": True, "error": "none"},
        {"success": None},
        {"success": 0},
        {"success": ""},
        {"success": "false"},
        {"ok": False},
        {},
        [False],
        "success: false",
        False,
        None,
    ],
)
def test_C12_only_a_false_field_is_a_failure(said: Any) -> None:
    """Nothing that is merely empty, absent or of another name."""
    assert _told(said) is None


def test_C12_only_where_the_description_says_so() -> None:
    """Without `failure_field`, `success: false` is an answer as any other."""
    assert _told({"success": False}, field=None) is None
    assert _told({"ok": False}, field="ok") == "it answered ok: false"


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ({"error": "no page"}, "no page"),
        ({"reason": "no page"}, "no page"),
        ({"message": "no page"}, "no page"),
        ({"stderr": "  no page\n"}, "no page"),
        ({"stderr": "d", "message": "c", "reason": "b", "error": "a"}, "a"),
        ({"stderr": "d", "message": "c"}, "c"),
        ({"error": " \n", "message": "c"}, "c"),
        ({"error": {"code": 5}, "message": "c"}, "c"),
        ({"error": None}, "it answered success: false"),
        ({"other": "x"}, "it answered success: false"),
    ],
)
def test_C12_the_reason_is_the_first_text_there_is(rest: Any, why: str) -> None:
    """In the order of the names that commands have for it."""
    assert _told({"success": False, **rest}) == why


def test_C12_a_long_reason_is_told_without_its_middle() -> None:
    """Its beginning, and more of its end: there stands what went wrong."""
    text = "".join(f"{number:06}" for number in range(MOST))
    assert _told({"success": False, "error": text[:MOST]}) == text[:MOST]
    short = _told({"success": False, "error": text})
    assert short is not None
    begin, end = short.split(" … ")
    assert len(begin) + len(end) == MOST
    assert 0 < len(begin) < len(end)
    assert text.startswith(begin)
    assert text.endswith(end)
