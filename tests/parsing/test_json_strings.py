"""One string of a text; `test_json_text` reads whole texts."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.parsing.json_errors import Broken
from neuraxis.parsing.json_strings import (
    CLOSING,
    UNESCAPED_QUOTES,
    key_follows,
    read_string,
    whole,
)


def _read(
    text: str, start: int = 0, brackets: Sequence[str] = "{", *, is_key: bool = False
) -> tuple[str, int, list[str]]:
    notes: list[str] = []
    value, end = read_string(
        text, start, open_brackets=brackets, is_key=is_key, note=notes.append
    )
    return value, end, notes


BEHIND = {
    "{": ["}", ' , "k": 1}', ',\n "k" : 1}', ",}", "} and more", ""],
    "[": ["]", ', "x"]', ", 1]", ", {}]", ",]", "\n] and more", ""],
    "": ["", " and more", "\n```"],
}


@given(st.text(), st.booleans(), st.data())
def test_a_json_string_is_read_as_json_says(
    value: str, is_ascii: bool, data: st.DataObject
) -> None:
    """Wherever it stands, whatever follows it there; nothing is noted."""
    around = data.draw(st.sampled_from(sorted(BEHIND)))
    behind = data.draw(st.sampled_from(BEHIND[around]))
    written = json.dumps(value, ensure_ascii=is_ascii)
    text = f"?{written}{behind}"
    assert _read(text, 1, around) == (value, 1 + len(written), [])


@given(st.text(), st.booleans())
def test_a_key_is_read_as_json_says(value: str, is_ascii: bool) -> None:
    """A colon follows it."""
    written = json.dumps(value, ensure_ascii=is_ascii)
    assert _read(f"{written} : 1}}", is_key=True) == (value, len(written), [])


@pytest.mark.parametrize("opening", sorted(CLOSING))
@given(value=st.text("abé ,:.\n", max_size=12))
def test_other_quotes_end_as_they_began(opening: str, value: str) -> None:
    """Noted, but for the quotes of JSON; so is a line break."""
    text = f"{opening}{value}{CLOSING[opening]}}}"
    read, end, notes = _read(text)
    assert (read, end) == (value, len(text) - 1)
    expected = {"'": "quotes other than double quotes"}.get(opening, "smart quotes")
    assert (expected in notes) is (opening != '"')
    assert ("line breaks or tabs inside a string" in notes) is ("\n" in value)


@given(st.text("ab", max_size=3), st.text("ab", min_size=1, max_size=5))
def test_a_quoted_word_inside_a_string_is_kept(before: str, word: str) -> None:
    """Where no other reading is possible."""
    text = f'"x{before} "{word}" end"}}'
    value = f'x{before} "{word}" end'
    assert _read(text) == (value, len(text) - 1, [UNESCAPED_QUOTES])


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('"He said "yes" to me"', 'He said "yes" to me'),
        ('"print("a", "b")"', 'print("a", "b")'),
        ('"print(" x ", 1)"', 'print(" x ", 1)'),
        ('"x = "a" + "b""', 'x = "a" + "b"'),
        ('"f("a" + y + "b")"', 'f("a" + y + "b")'),
        ('"a 5" pipe, 7" wide"', 'a 5" pipe, 7" wide'),
        ('"von „Wort" und mehr"', 'von „Wort" und mehr'),
        ("'it's the users' own'", "it's the users' own"),
        ("'rock 'n' roll'", "rock 'n' roll"),
        # concatenations, and quotes that were lost
        ('"report-" + date + ".txt"', None),
        ('"Total: " + str(x) + " EUR"', None),
        ('"(" + x + ")"', None),
        ("'report-' + date + '.txt'", None),
        ('"x" * 3', None),
        ('"x".join(["a"])', None),
        ('"He said "yes"', None),
        # triple quotes
        ('"""x = {"a": 1}\nprint(x)\n"""', 'x = {"a": 1}\nprint(x)\n'),
        ("'''x = {'a': 1}\\n'''", "x = {'a': 1}\n"),
        ('"""say \\"x\\" \\d"""', 'say "x" \\d'),
        ('""""""', ""),
        ('"""a""" + b', None),
        ('"""\\x41"""', None),
    ],
)
def test_quotes_inside_a_string_pair_or_are_told(
    written: str, value: str | None
) -> None:
    """What is put together by a program, or lost a quote, is no such string."""
    for text in (f"{written}}}", f'{written}, "k": 1}}'):
        if value is not None:
            assert _read(text)[:2] == (value, len(written))
            continue
        with pytest.raises(Broken) as told:
            _read(text)
        assert told.value.fault.code == "malformed"


@pytest.mark.parametrize("text", ['"""a', '"""a"', "'''a''", '"""a\\"""'])
def test_a_triple_quoted_string_needs_its_end(text: str) -> None:
    """Nothing is completed."""
    with pytest.raises(Broken) as told:
        _read(text)
    assert told.value.fault.code == "truncated"


@pytest.mark.parametrize(
    ("text", "brackets"),
    [
        ('"a" "b"}', "{"),
        ('"a "b", "c"]', "["),
        ('"x" + "y"}', "{"),
        ('""x"}', "{"),
        ('"a, b: "c"}', "{"),
        ('"a": 1}', "{"),
    ],
)
def test_what_could_end_in_two_places_is_refused(text: str, brackets: str) -> None:
    """A string that ends at the wrong place changes the call."""
    with pytest.raises(Broken) as told:
        _read(text, 0, brackets)
    assert told.value.fault.code == "malformed"


@pytest.mark.parametrize(
    ("text", "brackets", "place", "lost"),
    [
        ('"Rome"]', "[{", "column 7", "}"),
        ('"Rome"\n]\n<!-- RESPONSE_END -->', "[{", "line 2, column 1", "}"),
        ('"a"}', "{[", "column 4", "]"),
        ('"b"}]', "[{{", "column 5", "}"),
    ],
)
def test_a_bracket_that_is_missing_behind_a_string_is_named(
    text: str, brackets: str, place: str, lost: str
) -> None:
    """It is no quote inside a string that is not escaped."""
    with pytest.raises(Broken, match=f'{place}, .*expected "{lost}" before this'):
        _read(text, 0, brackets)


@given(st.text(max_size=8).filter(str.strip), st.data())
def test_a_string_that_is_cut_off_is_none(value: str, data: st.DataObject) -> None:
    """However much of it is there."""
    written = json.dumps(value)
    text = written[: data.draw(st.integers(1, len(written) - 1))]
    with pytest.raises(Broken) as told:
        _read(text)
    assert told.value.fault.code == "truncated"
    assert told.value.fault.position == len(text)


@pytest.mark.parametrize(
    ("text", "value", "note"),
    [
        (r'"it\'s"}', "it's", "an escaped single quote"),
        (r"'it\'s'}", "it's", "an escaped single quote"),
        (r'"C:\dir \x"}', r"C:\dir \x", "a backslash that begins no JSON escape"),
        (r'"\u00zz"}', r"\u00zz", "a backslash that begins no JSON escape"),
        ('"\\ud83d\\ude00\t"}', "😀\t", "line breaks or tabs inside a string"),
    ],
)
def test_escapes_of_other_languages_are_noted(text: str, value: str, note: str) -> None:
    """What JSON does not know stays as it is written."""
    read, end, notes = _read(text)
    assert (read, end) == (value, len(text) - 1)
    assert note in notes


def test_a_key_needs_its_colon() -> None:
    """A key with quotes in it could be two things."""
    for text in ('"a" 1}', '"a "b": 1}'):
        with pytest.raises(Broken, match='expected ":" after the key'):
            _read(text, is_key=True)


@pytest.mark.parametrize("text", ['"\\ud800"}', '"\udc00"}', "'\\ud83d'}"])
def test_half_a_character_is_refused(text: str) -> None:
    """No file and no socket takes it."""
    with pytest.raises(Broken, match="half of a character"):
        _read(text)
    assert whole("", 0, "é😀") == "é😀"


@pytest.mark.parametrize(
    ("text", "follows"),
    [
        ('"a": 1', True),
        ("'a' :", True),
        ("“a”: 1", True),
        (r'"a\"b": 1', True),
        ('"a" 1', False),
        ('"a\nb": 1', False),
        ("a: 1", False),
        ("", False),
    ],
)
def test_a_member_that_follows_is_seen(text: str, follows: bool) -> None:
    """A comma is missing before it."""
    assert key_follows(text, 0) is follows
    assert key_follows(f"  {text}", 2) is follows
