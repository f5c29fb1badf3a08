"""The calls of a run as one plan; `test_plan_file` runs what was saved."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.messages import Call, Result
from neuraxis.planning.load import read_plan
from neuraxis.planning.save import external_assets, join_replies, plan_text


def _call(number: str, text: Any = "x", **options: Any) -> Call:
    return Call(
        id=number, plugin=None, command="note", arguments={"text": text}, **options
    )


def _done(call: Call, status: Literal["done", "failed", "skipped"] = "done") -> Result:
    return Result(call=call, status=status)


def _texts(*replies: list[Result]) -> list[Any]:
    return [call.arguments["text"] for call in join_replies(replies)]


# --- joining -----------------------------------------------------------------------


def test_nothing_that_worked_is_nothing() -> None:
    """A failed or skipped step is not saved."""
    assert join_replies([]) == join_replies([[]]) == []
    assert (
        join_replies([[_done(_call("a1"), "failed"), _done(_call("a2"), "skipped")]])
        == []
    )


def test_a_place_is_counted_anew() -> None:
    """Also one that is counted from the end; those of each reply by themselves."""
    first = [
        _done(_call("a1"), "failed"),
        _done(_call("a2")),
        _done(_call("a3", "{{ results[1] }} {{ results[-1].x }}")),
    ]
    second = [_done(_call("a4")), _done(_call("a5", "{{ results[0].a[1] }}"))]
    assert _texts(first, second) == [
        "x",
        "{{ results[0] }} {{ results[0].x }}",
        "x",
        "{{ results[2].a[1] }}",
    ]


def test_a_name_of_two_replies_is_two_names() -> None:
    """Each reference keeps to the one of its reply; a key of that name is no name."""
    first = [
        _done(_call("a1", name="page")),
        _done(_call("a2", "{{ page.page }} page")),
    ]
    second = [
        _done(_call("a3", name="page")),
        _done(_call("a4", "{{ page.page }} page")),
    ]
    calls = join_replies([first, second])
    assert [call.name for call in calls] == ["page", None, "page_2", None]
    assert calls[1].arguments == {"text": "{{ page.page }} page"}
    assert calls[3].arguments == {"text": "{{ page_2.page }} page"}


def test_braces_of_a_reply_that_were_text_are_text_in_the_file() -> None:
    """A plan file would take them for a misspelt name."""
    reply = [_done(_call("a1")), _done(_call("a2", "{{ user }}: {{ results[0] }}"))]
    assert _texts(reply) == ["x", "{{ '{{' }} user }}: {{ results[0] }}"]


def test_what_need_not_change_is_the_same() -> None:
    """Blanks and quotes of the author, too."""
    text = "{{page [ 'urls' ]}} and {{ page|length }}"
    reply = [_done(_call("a1", name="page")), _done(_call("a2", text))]
    assert _texts(reply) == ["x", text]


def test_what_a_literal_step_says_is_left_alone() -> None:
    """Its braces are text."""
    reply = [_done(_call("a1")), _done(_call("a2", "{{ results[0] }}", literal=True))]
    last = join_replies([[_done(_call("a0"))], reply])[-1]
    assert (last.arguments, last.literal) == ({"text": "{{ results[0] }}"}, True)


def test_the_calls_of_the_run_are_not_changed() -> None:
    """They are still told and journaled as they were."""
    call = _call("a2", ["{{ results[0] }}"], for_each=["{{ results[0] }}"])
    join_replies([[_done(_call("a0"))], [_done(_call("a1")), _done(call)]])
    assert call == _call("a2", ["{{ results[0] }}"], for_each=["{{ results[0] }}"])


# --- writing -----------------------------------------------------------------------


def test_an_id_is_written_where_something_refers_to_it() -> None:
    """Elsewhere a plan gives its own; what no step makes is told."""
    calls = [
        _call("a1"),
        _call("a2", "asset://a1/content"),
        _call("a3", {"asset_id": "up1"}, for_each=["asset://up2", "asset://up1"]),
    ]
    text = plan_text(calls)
    assert "id: a1" in text
    assert "id: a2" not in text
    assert sorted(external_assets(calls)) == ["up1", "up2"]
    assert external_assets(calls[:2]) == []


def test_what_is_said_of_the_plan_is_written() -> None:
    """And nothing that is not said."""
    full = read_plan(plan_text([_call("a1")], description="é\n#", on_error="continue"))
    assert (full.description, full.on_error) == ("é\n#", "continue")
    text = plan_text([Call(id="a1", plugin="p", command="c", arguments={})])
    assert text.split() == ["version:", "1", "steps:", "-", "tool:", "p.c"]


@pytest.mark.parametrize(
    "text",
    [
        *[
            "yes",
            "1e3",
            "0x1F",
            "12:30:00",
            "2026-01-31",
            "~",
            "",
            " a ",
            "- a",
            "a: b",
        ],
        *["\x85", "a\u2028b", "\ufeffa", "a\r\nb", "\t", "\x00", "\x7f", "😀", "&a *b"],
        "x" * 200,
        "word " * 60,
    ],
)
def test_no_text_becomes_another(text: str) -> None:
    """YAML has many words for numbers, dates, nothing and line breaks."""
    (call,) = read_plan(plan_text([_call("s1", text, name="own")])).calls
    assert call.arguments == {"text": text}
    assert call.name == "own"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["done", "failed", "skipped"]),
            st.none() | st.sampled_from(["page", "params", "item", "page_2"]),
        ),
        max_size=5,
    ),
    st.lists(
        st.tuples(
            st.just("done"), st.none() | st.sampled_from(["page", "params", "page_2"])
        ),
        max_size=3,
    ),
)
def test_names_are_never_taken_twice(first: list[Any], second: list[Any]) -> None:
    """A reply has a name once; the file has each name once, and none of its own."""
    replies: list[list[Result]] = []
    for drawn in (first, second):
        seen: set[str] = set()
        reply: list[Result] = []
        for number, (status, name) in enumerate(drawn):
            own = name if name not in seen else None
            seen |= {own} if own else set()
            reply.append(_done(_call(f"a{number}", name=own), status))
        replies.append(reply)
    calls = join_replies(replies)
    names = [call.name for call in calls if call.name is not None]
    assert len(set(names)) == len(names)
    assert not {"params", "item"} & set(names)
    worked = [
        result for reply in replies for result in reply if result.status == "done"
    ]
    assert [call.id for call in calls] == [result.call.id for result in worked]
    assert [c.name is None for c in calls] == [r.call.name is None for r in worked]
