"""What is wrong with a text, and where: the sentences of a fault."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.parsing.json_errors import (
    Fault,
    broken,
    call_error,
    cut_off,
    end_of,
    place,
)

LINES = st.text(st.sampled_from('ab"é\n\r\t '), max_size=60)


@given(LINES, st.data())
def test_a_place_is_a_line_and_a_column(text: str, data: st.DataObject) -> None:
    """Counted from 1, as an editor does; and what stands there, on one line."""
    position = data.draw(st.integers(0, len(text)))
    told = place(text, position)
    found = re.fullmatch(r"line (\d+), column (\d+), at (.*)", told)
    assert found is not None
    line, column = int(found[1]), int(found[2])
    lines = text.split("\n")
    assert sum(len(part) + 1 for part in lines[: line - 1]) + column - 1 == position
    assert column - 1 <= len(lines[line - 1])
    if position == len(text):
        assert found[3] == "the end of the text"
    else:
        assert json.loads(found[3]) == text[position : position + 20]


def test_a_broken_text_says_where_and_what_was_expected() -> None:
    """The path is kept as it was; the reader goes on changing its own."""
    path: list[str | int] = ["a", 0]
    fault = broken("{}\n x", 4, 'expected ","', path=path).fault
    path.append("b")
    assert fault == Fault(
        code="malformed",
        message='line 2, column 2, at "x": expected ","',
        position=4,
        path=("a", 0),
    )
    assert str(broken("x", 0, "why")) == broken("x", 0, "why").fault.message


def test_a_text_that_is_cut_off_ends_at_its_end() -> None:
    """Whatever was being read."""
    fault = cut_off('{"a": ', "after a colon", path=iter(["a"])).fault
    assert (fault.code, fault.position, fault.path) == ("truncated", 6, ("a",))
    assert fault.message == "the text ends after a colon"


@pytest.mark.parametrize(
    ("fault", "code", "where", "said"),
    [
        (
            cut_off("[1", "inside a number").fault,
            "truncated_reply",
            "",
            "The text ends inside a number. Write it again",
        ),
        (
            broken("[1 2]", 3, 'expected ","', path=(1,)).fault,
            "malformed_reply",
            "[1]",
            'line 1, column 4, at "2]": expected ",". Nothing was run',
        ),
        (
            Fault(
                code="duplicate_key", message="m", position=5, path=("a", 0), key='b"'
            ),
            "duplicate_key",
            "a[0]",
            r'The key "b\"" appears twice in one object at a[0]. Nothing was run',
        ),
    ],
)
def test_the_model_is_told_what_to_do(
    fault: Fault, code: str, where: str, said: str
) -> None:
    """Each kind of fault is an error of its own."""
    error = call_error(fault)
    assert (error.code, error.where) == (code, where)
    assert said in error.message


def test_where_a_match_ends() -> None:
    """At the place, and nowhere else."""
    assert end_of(re.compile("a+"), "baab", 1) == 3
    assert end_of(re.compile("a+"), "baab", 0) == 0
    assert end_of(re.compile("a*"), "baab", 4) == 4
