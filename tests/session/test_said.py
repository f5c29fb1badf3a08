"""A prompt's messages: read like a tuple, and as they were when it was made."""

from neuraxis import Session
from neuraxis.messages import Message
from neuraxis.models.scripted import ScriptedModel
from neuraxis.session.prompt import Said


def said(*texts: str) -> tuple[Message, ...]:
    return tuple(Message(role="user", content=text) for text in texts)


def test_it_is_read_like_a_tuple() -> None:
    """Length, places from both ends, slices, equality, hash."""
    told = Said(list(said("b", "c", "d")), before=said("a"), behind=said("e"))
    whole = said("a", "b", "c", "d", "e")
    assert tuple(told) == whole
    assert len(told) == 5
    assert told == whole
    assert whole == told
    assert told != whole[1:]
    assert told != list(whole)
    assert hash(told) == hash(whole)
    assert repr(told) == repr(whole)
    assert list(reversed(told)) == list(reversed(whole))
    for place in range(-5, 5):
        assert told[place] is not None
        assert told[place] == whole[place]
    for start in range(-6, 7):
        for stop in range(-6, 7):
            assert told[start:stop] == whole[start:stop]
    assert told[::-2] == whole[::-2]
    for outside in (5, -6):
        try:
            told[outside]
        except IndexError:
            continue
        raise AssertionError(outside)


def test_later_messages_are_not_in_it() -> None:
    """The list that it shows grows; it does not."""
    messages = list(said("a", "b"))
    told = Said(messages)
    cut = Said(messages, count=1, behind=said("B"))
    messages += said("c")
    assert told == said("a", "b")
    assert cut == said("a", "B")
    assert told.after(said("0")) == said("0", "a", "b")
    assert cut.after(said("0")) == said("0", "a", "B")


def test_each_prompt_of_a_run_keeps_what_was_said_then() -> None:
    """Three runs; every prompt still says what its model was shown."""
    model = ScriptedModel(["one", "two", "three"])
    with Session(model=model) as session:
        for text in ("a", "b", "c"):
            session.run_sync(text)
    told = [[message.content for message in p.messages[1:]] for p in model.prompts]
    first, second, third = (f"q: {text}\na: " for text in "abc")
    assert told == [
        [first],
        [first, "one", second],
        [first, "one", second, "two", third],
    ]
