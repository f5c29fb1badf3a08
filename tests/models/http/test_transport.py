"""What is made of an answer, without a server; over HTTP: see test_model.py."""

from __future__ import annotations

import pytest

from neuraxis.models.http.answers import MOST_TEXT, body_message, server_error
from neuraxis.models.http.server_hints import refusal
from neuraxis.models.http.transport import without_key

KEY = "sk-proj-0123456789abcdef"


@pytest.mark.parametrize("shown", range(len(KEY) + 1))
def test_a_key_is_not_quoted_where_the_words_are_cut(shown: int) -> None:
    """A server says which key it refused, and its words are cut within the key."""
    before = "x" * (MOST_TEXT - 1 - shown)
    said = without_key(body_message(f"{before}{KEY} is wrong".encode(), ""), KEY)
    assert KEY[:4] not in said
    assert said.startswith(before)
    assert said.endswith("[key]…" if shown >= 4 else "…")


def test_a_text_without_a_key() -> None:
    """Nothing is left out of it."""
    assert without_key("No such model: sk…", KEY) == "No such model: sk…"
    assert without_key("No such model…", "") == "No such model…"
    assert without_key(f"{KEY}, {KEY}?", KEY) == "[key], [key]?"


@pytest.mark.parametrize(
    ("code", "status"), [("429", 429), (503, 503), ("9" * 5000, None), ("0429", None)]
)
def test_a_status_in_an_answer_has_three_digits(code: str | int, status: int) -> None:
    """A word of more digits than Python reads is no status."""
    assert status == server_error({"message": "no", "code": code}).status


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("registry.ollama.ai/library/gemma:2b does not support tools", "intents"),
        ('"auto" tool choice requires --enable-auto-tool-choice', "intents"),
        ("This model doesn't support tool use; tools are not supported", "intents"),
        ("This model's maximum context length is 4096 tokens.", "prompt_tokens"),
        ("the request exceeds the available context size (2048)", "prompt_tokens"),
        ("prompt is too long: 210000 tokens > 200000 maximum", "prompt_tokens"),
        ("Unsupported parameter: temperature", ""),
        ("Invalid schema for function 'x'", ""),
    ],
)
def test_a_refusal_says_what_helps(message: str, hint: str) -> None:
    """A server without tool calls, and a prompt that is too long."""
    told = refusal(message)
    assert hint in told
    assert bool(told) is bool(hint)
