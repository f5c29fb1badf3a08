"""A reply of plain words is read the short way, as the long way reads it."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from neuraxis.dialects.intents.decode import read_reply, read_strictly
from neuraxis.dialects.strict_first import read_answer
from neuraxis.messages import Reply

WORDS = st.lists(
    st.sampled_from(
        (
            "done", "tool", '"tool"', "a", "q", "# Evaluate this", "(", ")", "}", "]",
            ">", "</think>", "<think>", ":", "a:", "{", "[", "`", "```", "|", "｜",
            "to=functions.x", "name", "arguments", "\n", "\n\n", "\t", "\x1c", "\u2028",
            "é", "\\u007b", "-->", "<!-- RESP", "TOOL_CALLS", "'", '"', "\\", "1.",
        )
    ),
    max_size=12,
).map(" ".join)  # fmt: skip


@settings(max_examples=3000, deadline=None)
@given(st.one_of(WORDS, st.text(max_size=40)))
@example("")
@example("  \n ")
@example("Done.")
def test_both_ways_say_the_same(text: str) -> None:
    """Also of a strict reading; what is more than words is left to the long way."""
    said = read_answer(text)
    if said is None:
        return
    assert read_reply(text, next_id=str) == Reply(texts=said)
    assert read_strictly(text, next_id=str) == Reply(texts=said)


def test_words_are_words() -> None:
    """Else the comparison above would compare nothing."""
    assert read_answer(" The sum is 3 (three), as asked. \n") == (
        "The sum is 3 (three), as asked.",
    )
    assert read_answer(" \n") == ()
    for more in ("see: this", "a < b", "f{x}", "[1]", "`x`", "é", "x" * 20_001):
        assert read_answer(more) is None
