"""Characters that a server cut in two."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.parsing.surrogates import Pairs, whole_pairs

HALVES = st.text(
    st.sampled_from("a\ud83d\ude00\ud800\udc00\ufeff\U0001f600"), max_size=12
)


def _units(text: str) -> list[str]:
    """The text as servers see it that count in UTF-16."""
    data = text.encode("utf-16-le", "surrogatepass")
    return [
        data[at : at + 2].decode("utf-16-le", "surrogatepass")
        for at in range(0, len(data), 2)
    ]


@given(st.text(), st.data())
def test_a_text_cut_anywhere_is_whole_again(text: str, data: st.DataObject) -> None:
    """Also between the halves of a character; empty pieces change nothing."""
    units = _units(text)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(units)), max_size=6)))
    pairs = Pairs()
    joined = "".join(
        pairs.join("".join(units[start:end]))
        for start, end in zip([0, *cuts], [*cuts, len(units)], strict=True)
    )
    assert joined + pairs.rest() == text


@given(st.lists(HALVES, max_size=6))
def test_what_comes_out_can_be_sent(pieces: list[str]) -> None:
    """Whatever comes in; and it is what the whole would be."""
    pairs = Pairs()
    joined = [pairs.join(piece) for piece in pieces]
    joined.append(pairs.rest())
    for part in joined:
        part.encode("utf-8")
    assert "".join(joined) == whole_pairs("".join(pieces))


@given(HALVES)
def test_one_sign_for_each_half_that_is_alone(text: str) -> None:
    """Nothing around it is lost."""
    whole = whole_pairs(text)
    assert whole_pairs(whole) == whole
    alone = [unit for unit in whole if unit == "\ufffd"]
    kept = [char for char in whole if char != "\ufffd"]
    assert len(_units("".join(kept))) + len(alone) == len(_units(text))


@given(st.text())
def test_a_whole_text_is_the_same(text: str) -> None:
    """Not another one that is equal."""
    assert whole_pairs(text) is text


def test_a_half_is_held_back_until_its_other_half() -> None:
    """A piece that is one half says nothing yet."""
    pairs = Pairs()
    assert pairs.join("a\ud83d") == "a"
    assert pairs.join("") == ""
    assert pairs.join("\ude00b") == "😀b"
    assert pairs.rest() == ""


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (["\ud83d"], ["", "\ufffd"]),
        (["\ude00"], ["\ufffd", ""]),
        (["\ud83d", "\ud83d", "\ude00"], ["", "\ufffd", "😀", ""]),
        (["\ud83d", "x"], ["", "\ufffdx", ""]),
        (["\ufeff\ud83d", "\ude00"], ["\ufeff", "😀", ""]),
    ],
)
def test_a_half_without_another(pieces: list[str], said: list[str]) -> None:
    """The sign for what is not known, where the half stood."""
    pairs = Pairs()
    assert [*[pairs.join(piece) for piece in pieces], pairs.rest()] == said
