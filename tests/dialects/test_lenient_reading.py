"""What all lenient readers share: which values belong together, what is said around."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.dialects.lenient_reading import (
    FENCED,
    adjacent,
    open_thought,
    thoughts,
    words_around,
)
from neuraxis.parsing.json_scan import Piece, Value, pieces

WORDS = st.text("abc .", min_size=1, max_size=8).filter(lambda text: text.strip(" ."))


def _values(text: str) -> list[Piece]:
    return [piece for piece in pieces(text) if piece.value is not None]


def _is_ours(value: Value) -> bool:
    return isinstance(value.value, dict)


def _said(text: str, block: list[Piece] | None = None) -> tuple[list[str], list[str]]:
    """What is said around the values of the text, and the notes."""
    notes: dict[str, None] = {}
    found = list(pieces(text))
    taken = _values(text) if block is None else block
    return list(words_around(text, found, taken, _is_ours, notes)), list(notes)


def test_thoughts_are_read_without_their_tags() -> None:
    """In their order."""
    text = 'a<think>one</think>b {"x": 1}<think>two</think>'
    assert [thought.strip() for thought in thoughts(text, list(pieces(text)))] == [
        "one",
        "two",
    ]


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("<think>and on", True),
        ('{"a": 1}<think>', True),
        ("<think>done</think>", False),
        ("<think>done</THINK>", False),
        ("<think>done</think>and on", False),
        ("words", False),
        ("", False),
    ],
)
def test_a_thought_that_nobody_closed_is_told(text: str, is_open: bool) -> None:
    """It may have swallowed the reply."""
    error = open_thought(text, list(pieces(text)))
    assert (error is not None) is is_open
    if error is not None:
        assert error.code == "malformed_reply"


@given(
    st.lists(
        st.lists(st.sampled_from([",", "\n", " ", "\n```\n```json\n"])), max_size=3
    )
)
def test_values_with_nothing_between_belong_together(groups: list[list[str]]) -> None:
    """Fences and commas are nothing; words are something."""
    texts = ["".join(f'{{"a": 1}}{between}' for between in group) for group in groups]
    text = "and then".join(f'{part}{{"a": 1}} ' for part in texts)
    found = adjacent(text, _values(text))
    assert [len(group) for group in found] == [len(group) + 1 for group in groups]


def test_no_value_no_group() -> None:
    """And each is in one group."""
    assert adjacent("words", []) == []
    text = '{"a": 1} so {"a": 2}'
    assert [len(group) for group in adjacent(text, _values(text))] == [1, 1]


@given(WORDS, WORDS, st.booleans())
def test_the_words_around_a_block_are_said(
    before: str, after: str, fenced: bool
) -> None:
    """In two parts, without blanks, fences and the block itself."""
    block = json.dumps({"tool": "x"})
    inner = f"```json\n{block}\n```" if fenced else block
    said, notes = _said(f"{before}\n{inner}\n{after}")
    assert said == [before.strip(), after.strip()]
    assert "text around the block" in notes
    assert (FENCED in notes) is fenced


def test_words_alone_are_said_whole() -> None:
    """Values that are none of ours are part of them; thoughts are not."""
    text = "The list is [1, 2]. <think>hm</think> Good."
    assert _said(text, []) == (["The list is [1, 2].", "Good."], [])


def test_a_block_alone_says_nothing() -> None:
    """And nothing is noted."""
    assert _said('{"tool": "x"}') == ([], [])


def test_the_models_next_question_is_not_said() -> None:
    """It goes on as the prompt did; what it said before that is kept."""
    said, notes = _said('{"tool": "x"}\nDone.\nq: And Bern?\na: {"tool": "y"}')
    assert said == ["Done."]
    assert "a question that the model asked itself" in notes
    said, _ = _said('q: What?\n{"tool": "x"}')
    assert said == ["q: What?"]  # of the one before its block nothing is known


def test_the_label_of_an_answer_is_not_said() -> None:
    """`a:` stands before it in the examples of the prompt."""
    assert _said("a: Hello") == (["Hello"], [])
    assert _said('a:\n{"tool": "x"}')[0] == []
