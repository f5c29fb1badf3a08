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


@pytest.mark.parametrize("key", ["x", "k", "s", "ollama", "none"])
def test_a_short_key_is_a_dummy(key: str) -> None:
    """Of a local server; words that contain it would become unreadable."""
    said = "Unsupported parameter: 'max_tokens'; is ollama there, or none…"
    assert without_key(said, key) == said


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (
            "<html><head><title>502 Bad Gateway</title></head><h1>x</h1>",
            "502 Bad Gateway",
        ),
        ("<HTML><TITLE lang=en>\n Attention &amp;\nCare </TITLE>", "Attention & Care"),
        ("\u0130<html><title></title><h1 id=a>Too large</h1>", "Too large"),
        ("<html><title>No end", ""),
        ("<html></title><title>", ""),
        ("<html>" + "<title" * 100_000, ""),
    ],
)
def test_a_page_says_its_title(page: str, said: str) -> None:
    """Of an error that a proxy wrote, its title or first heading is told."""
    assert body_message(page.encode(), "text/html; charset=utf-8") == said
    assert body_message(page.encode(), "") == said


@pytest.mark.parametrize(
    ("code", "status"), [("429", 429), (503, 503), ("9" * 5000, None), ("0429", None)]
)
def test_a_status_in_an_answer_has_three_digits(code: str | int, status: int) -> None:
    """A word of more digits than Python reads is no status."""
    assert status == server_error({"message": "no", "code": code}).status


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("No endpoints found that support tool use. To learn more", "intents"),
        ("tools param requires --jinja flag", "intents"),
        ("Unsupported param: tools", "intents"),
        ("`max_tokens` must be less than `4096` of the `context_window`", "lower it"),
        ("too many tokens: max tokens must be less than or equal to 1", "lower it"),
        ("max_tokens is too large: 100000.", "lower it"),
        ("registry.ollama.ai/library/gemma:2b does not support tools", "intents"),
        ('"auto" tool choice requires --enable-auto-tool-choice', "intents"),
        ("Function calling is not enabled for models/gemma-3-27b-it", "intents"),
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


@pytest.mark.parametrize(
    ("key", "said"), [("hunter2", "[key]"), ("x", "x"), ("ollama", "ollama")]
)
def test_a_short_secret_is_hidden_and_a_dummy_word_is_not(key: str, said: str) -> None:
    """A digit makes it a secret; words of local servers stand in many texts."""
    assert without_key(f"invalid key {key}", key) == f"invalid key {said}"
