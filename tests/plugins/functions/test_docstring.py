"""What a docstring says, of the whole and of each name."""

from __future__ import annotations

import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.plugins.functions.docstring import Docstring, read_docstring

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True)
TEXTS = st.from_regex(r"[A-Za-zé(][A-Za-zé ,.()']{0,30}[a-z.]", fullmatch=True)


@pytest.mark.parametrize("text", [None, "", "\n", "  \n  "])
def test_nothing_says_nothing(text: str | None) -> None:
    """As a function without one."""
    assert read_docstring(text) == Docstring()


@given(
    TEXTS,
    st.dictionaries(NAMES, st.lists(TEXTS, min_size=1, max_size=3), max_size=4),
    st.lists(TEXTS, max_size=2),
    st.sampled_from(["    ", "        ", "\t"]),
)
def test_what_is_written_is_read(
    text: str, names: dict[str, list[str]], returns: list[str], margin: str
) -> None:
    """In any margin; what goes on in the next line is joined by a blank."""
    lines = [text, ""]
    if names:
        lines.append("Args:")
    for name, (first, *rest) in names.items():
        lines += [f"    {name}: {first}", *[f"        {line}" for line in rest]]
    if returns:
        lines += ["", "Returns:", *[f"    {line}" for line in returns]]
    written = f"\n{margin}".join(lines)
    assert read_docstring(written) == Docstring(
        text.strip(),
        {name: " ".join(" ".join(parts).split(" ")) for name, parts in names.items()},
        " ".join(returns),
    )


def test_the_forms_of_an_entry() -> None:
    """With a type, with stars, without a text, or with one in the next line."""
    read = read_docstring(
        """Finds.

        Args:
            city (str, optional): its name: in English.
            *more: others.
            **rest: yet others.
            bare:
            later:
                said below

                and further down.
        """
    )
    assert read.names == {
        "city": "its name: in English.",
        "more": "others.",
        "rest": "yet others.",
        "bare": "",
        "later": "said below and further down.",
    }


def test_a_tab_is_as_wide_as_eight_blanks() -> None:
    """Editors mix them."""
    read = read_docstring("A.\n\nArgs:\n\ta: one\n        b: two\n")
    assert read.names == {"a": "one", "b": "two"}


@pytest.mark.parametrize(
    "title", ["Args", "Arguments", "Parameters", "Attributes", "Keyword Args"]
)
def test_names_stand_under_any_of_these(title: str) -> None:
    """Several may follow one another."""
    read = read_docstring(f"A.\n\n{title}:\n    a: one\n\nArgs:\n    b: two\n")
    assert read.names == {"a": "one", "b": "two"}


@pytest.mark.parametrize("title", ["Raises", "Yields", "Example", "Note", "See Also"])
def test_other_sections_are_left_out(title: str) -> None:
    """They say nothing to a model; what follows them is read again."""
    read = read_docstring(
        f"A.\n\n{title}:\n    x: not a name\n\nReturns:\n    A number.\n"
    )
    assert read == Docstring("A.", {}, "A number.")


def test_a_text_keeps_its_shape() -> None:
    """Paragraphs and lists; a line that only ends like a section is text."""
    text = textwrap.dedent(
        """\
        One of:

          - a
          - b

        Units: metric
        For example:
          Args:
            x: y"""
    )
    assert read_docstring(f"Finds.\n\n{text}").text == f"Finds.\n\n{text}"
    assert read_docstring(f"Finds.\n\n{text}").names == {}


NUMPY = """
Sum of a column.

Parameters
----------
table : DataFrame
    Where the
    column is.

Returns
-------
int
    The sum.
"""
SPHINX = """
Sum of a column.

:param table: Where the
    column is.
:returns: The sum.
"""


@pytest.mark.parametrize("text", [NUMPY, SPHINX])
def test_n7_other_styles_are_read(text: str) -> None:
    """NumPy's and Sphinx's, by griffe."""
    read = read_docstring(text)
    assert read.text == "Sum of a column."
    assert read.names == {"table": "Where the column is."}
    assert read.returns == "The sum."


def test_n7_without_griffe_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the text is still there."""
    monkeypatch.setitem(sys.modules, "griffe", None)
    with pytest.warns(UserWarning, match=r"pip install 'neuraxis\[docstrings\]'"):
        assert "Sum of a column" in read_docstring(SPHINX).text
