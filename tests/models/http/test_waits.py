"""How long a server asks to wait; over HTTP: see test_exchange.py."""

from __future__ import annotations

import pytest

from neuraxis.models.http.waits import wait_in_words


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Limit 7000, Used 0. Please try again in 2.5s. Visit https://x.y", 2.5),
        ("(TPD): Limit 100000. Please try again in 7m12.5s.", 432.5),
        ("Please try again in 1h2m3s.", 3723),
        ("Please try again in 86ms.", 0.086),
        ("Please retry after 2 seconds.", 2),
        ("Please retry after 1 second.", 1),
        ("You exceeded your quota. Please retry in 2.2s.", 2.2),
        ("Try again in 1 minute, 5 seconds", 65),
        ('{"retryDelay": "13s"}', 13),
        ("please wait a moment and try again", None),
        ("try again in 5 stages", None),
        ("try again in 2024", None),
        ("", None),
    ],
)
def test_a_wait_in_words(text: str, seconds: float | None) -> None:
    """As OpenAI, Groq, Azure and Google write it."""
    found = wait_in_words(text)
    assert found == (None if seconds is None else pytest.approx(seconds))


def test_letters_that_only_look_like_a_unit_are_none() -> None:
    """With its case ignored, the long s was an s, and a KeyError."""
    assert wait_in_words("try again in 5\u017f") is None
