"""Markdown as a person sees it (N8)."""

from __future__ import annotations

import io
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.cli.display.markdown import complete_blocks, print_markdown
from neuraxis.cli.display.text import inert


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def _seen(text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    screen = _Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    print_markdown(text)
    return screen.getvalue()


def test_n8_markdown_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pipes, no stars, no number signs; a link has its address beside it."""
    text = "# Sales\n\n| a | b |\n|---|---|\n| 1 | **2** |\n\n[x](https://e.org/y)"
    seen = _seen(text, monkeypatch)
    assert "|" not in seen
    assert "**" not in seen
    assert "#" not in seen
    assert "https://e.org/y" in seen


def test_n8_lines_stay_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models mean their line breaks; what is no Markdown is not touched."""
    plain = "__init__ 2*3*4\n  second\nthird\n"
    assert _seen(plain, monkeypatch) == plain
    seen = _seen("**Sum**\none\ntwo", monkeypatch)
    assert [inert(line).strip() for line in seen.splitlines()] == ["Sum", "one", "two"]


def test_n8_blocks_are_one_blank_line_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a list and a table there were three."""
    blocks = ["Here:", "1. a\n2. b", "| a |\n|---|\n| 1 |", "```\nx\n```", "`y`"]
    screen = _Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    for block in blocks:
        print_markdown(f"{block}\n\n", after=block != blocks[0])
    lines = [inert(line).strip() for line in screen.getvalue().splitlines()]
    assert lines.count("") == 4
    assert "Here:\n\n1 a\n2 b\n\na\n" in "\n".join(lines)
    assert "\n1\n\nx\n\ny" in "\n".join(lines)


def test_n8_words_are_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines end between words."""
    monkeypatch.setenv("COLUMNS", "40")
    words = [f"word{number}" for number in range(40)]
    seen = _seen("**All** " + " ".join(words), monkeypatch)
    assert set(words) <= set(seen.split())


def test_entities_are_inert(monkeypatch: pytest.MonkeyPatch) -> None:
    """What becomes a direction mark in the rendering does not reach the terminal."""
    marks = "\u202e &#8238; &#x2066; &#27;[2J &rlm; &#155;2J"
    seen = _seen(f"# {marks}\n\n| {marks} |\n|---|\n| {marks}b |\n\n`x`", monkeypatch)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", seen)  # the styles of the rendering
    assert "b" in plain
    assert inert(plain) == plain


@given(
    st.text(alphabet="ab \n`#", max_size=60), st.text(alphabet="ab \n`#", max_size=9)
)
def test_complete_blocks_stay(text: str, later: str) -> None:
    """What was shown is never changed by what comes."""
    end = complete_blocks(text)
    assert complete_blocks(text + later) >= end
    assert not text[:end].strip() or text[:end].endswith("\n")


def test_a_table_without_room_goes_on_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers were cut: `12395…`; each part begins with the first column."""
    monkeypatch.setenv("COLUMNS", "80")
    heads = " | ".join(f"amount_{n}" for n in range(10))
    numbers = " | ".join(f"{1239570.5 * (n + 1)}" for n in range(10))
    line = "|---" * 11
    seen = _seen(f"| name | {heads} |\n{line}|\n| north | {numbers} |", monkeypatch)
    assert all(number in seen for number in numbers.split(" | "))
    assert (seen.count("north"), seen.count("amount_")) == (2, 10)
    assert max(map(len, inert(seen).splitlines())) <= 80


def test_other_text_breaks_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal broke the lines of a paragraph inside words."""
    text = "The quick brown fox jumps over the lazy dog. " * 5
    lines = _seen(text, monkeypatch).splitlines()
    assert " ".join(lines).split() == text.split()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    "text",
    [
        "**Use** List<String> for <your-name>",
        "# T\n\n<div>hello <span>world</span></div>",
        "- a\n- <!-- a note -->",
        "**Pictures** ![pic](http://e.org/p.png)",
        "**Sources**\n\n[1]: http://e.org/s",
        "> " * 25 + "deep",
        "".join("  " * depth + f"- item{depth}\n" for depth in range(30)),
    ],
)
def test_no_word_is_left_out(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTML, pictures, references and deep nesting vanished from the answer."""
    seen = inert(_seen(text, monkeypatch))
    words = re.findall(r"[\w<>]*\w[\w<>]*", text)
    assert [word for word in words if word not in seen] == []
