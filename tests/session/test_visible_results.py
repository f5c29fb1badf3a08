"""Which results of a plan the model is shown (rule C25)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.kit import DIALECTS, reply_in
from neuraxis import ConfigError, Options, Session, command
from neuraxis.messages import Call, Result
from neuraxis.models.scripted import ScriptedModel
from neuraxis.planning.plan import Plan, Step
from neuraxis.plugins.registry import Command
from neuraxis.session.visible_results import visible_results
from neuraxis.settings import Settings

PAGE = "A page of the web, with many words. " * 40
TOOLS = {("page", "page"): "page", ("size", "size"): "size"}


@command(effects="read")
def page(url: str) -> str:
    """A page of the web."""
    return PAGE


@command(effects="none", asset_refs=["text"])
def size(text: str) -> int:
    """How long a text is."""
    return len(text)


def _calls(text: str = "asset://a1/content/response") -> list[Call]:
    return [
        Call(id="a1", plugin="page", command="page", arguments={"url": "x"}),
        Call(id="a2", plugin="size", command="size", arguments={"text": text}),
    ]


def _session(replies: list[Any], dialect: str = "intents", **more: Any) -> Session:
    given: dict[str, Any] = {
        "model": ScriptedModel(replies),
        "plugins": [page, size],
        "dialect": dialect,
        "settings": Settings(),
    }
    given |= more
    earlier = given.pop("earlier", None)
    return Session(**given) if earlier is None else Session.open(earlier, **given)


def _read(session: Session) -> str:
    """What stands in the history of the session."""
    return "".join(message.content for message in session.history)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("show", ["all", "final"])
def test_C25_what_a_later_step_takes_is_told_by_its_address(
    dialect: str, show: Any
) -> None:
    """The person and the next step have it all the same."""
    with _session(
        [reply_in(dialect, _calls(), TOOLS), "ok"],
        dialect,
        options=Options(show_results=show),
    ) as it:
        answer = it.run_sync("How long is the page?")
    assert [result.value for result in answer.calls] == [PAGE, len(PAGE)]
    assert (PAGE[:60] in _read(it)) == (show == "all")
    assert str(len(PAGE)) in _read(it)
    assert "a1" in _read(it)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_C25_what_was_not_shown_can_be_used_later(dialect: str, tmp_path: Path) -> None:
    """In the next request, and after a resume."""
    later = [Call(id="a3", plugin="size", command="size",
                  arguments=_calls()[1].arguments)]  # fmt: skip
    first = [reply_in(dialect, _calls(), TOOLS), "ok"]
    again = [reply_in(dialect, later, TOOLS), "ok"]
    journal = tmp_path / "journal.db"
    with _session(
        [*first, *again],
        dialect,
        options=Options(show_results="final"),
        journal=journal,
    ) as it:
        it.run_sync("How long?")
        assert [one.value for one in it.run_sync("Again").calls] == [len(PAGE)]
        told = _read(it)
    with _session(
        again,
        dialect,
        options=Options(show_results="final"),
        journal=journal,
        earlier=it.id,
    ) as it:
        assert _read(it) == told
        assert [one.value for one in it.run_sync("Again").calls] == [len(PAGE)]


def _result(call_id: str, value: Any = "x" * 999, **more: Any) -> Result:
    call = Call(id=call_id, plugin="p", command="c")
    return Result(**({"call": call, "status": "done", "value": value} | more))


def _step(call_id: str, *depends: str) -> Step:
    found: Any = Command
    call = Call(id=call_id, plugin="p", command="c")
    return Step(call=call, command=found, arguments={}, depends=frozenset(depends))


def test_only_what_was_taken_is_left_out() -> None:
    """Not what is little, went wrong, has a warning, or whose taker did not run."""
    steps = (
        _step("a1"), _step("a2"), _step("a3"), _step("a4"), _step("a5"),
        _step("b1", "a1"), _step("b2", "a2", "a3", "a4"), _step("b3", "a5"),
    )  # fmt: skip
    results = [
        _result("a1"),
        _result("a2", {"number": 7}),
        _result("a3", warnings=("look",)),
        _result("a4", stored=True),
        _result("a5"),
        _result("b1"),
        _result("b2"),
        _result("b3", None, status="skipped"),
    ]
    told = visible_results(Plan(steps=steps), results, "ends")
    assert [one.call.id for one in told if one.stored] == ["a1", "a4"]
    assert [one.value for one in told] == [one.value for one in results]
    assert visible_results(Plan(steps=steps), results, "all") is results


def test_an_unknown_word_is_refused() -> None:
    """It says which there are."""
    with pytest.raises(ConfigError, match="show_results: expected one of all, final"):
        _session([], options=Options(show_results="last"))


@pytest.mark.parametrize("show", ["all", "final"])
def test_C25_the_preview_of_what_was_taken_is_not_shown(show: Any) -> None:
    """It is the value itself, if JSON could hold nearly all of it."""

    @command(effects="read")
    def figures() -> Any:
        """The figures."""
        return {"note": "A figure of the week. " * 20, "mean": float("nan")}

    @command(effects="none")
    def count(values: Any) -> int:
        """How many there are."""
        return len(values)

    calls = (
        '[{"tool": "figures"}, {"tool": "count", "values": "{{ previous_result }}"}]'
    )
    given = [figures, count]
    with _session(
        [calls, "ok"], plugins=given, options=Options(show_results=show)
    ) as it:
        assert it.run_sync("How many?").calls[1].value == 2
        assert ("A figure of the week." in _read(it)) == (show == "all")
