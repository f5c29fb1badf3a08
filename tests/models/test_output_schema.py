"""The schema of an answer reaches each kind of server as its structured output."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from neuraxis.messages import Message, Prompt
from neuraxis.models.http.settings import Options

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
PLACES = {
    "openai": ("response_format", "json_schema", "schema"),
    "openai_responses": ("text", "format", "schema"),
    "anthropic": ("output_config", "format", "schema"),
    "gemini": ("generationConfig", "responseJsonSchema"),
}


@pytest.mark.parametrize("wire", PLACES)
def test_the_prompts_schema_goes_before_the_settings(wire: str) -> None:
    """And where the prompt has none, the settings' own is sent."""
    module: Any = importlib.import_module(f"neuraxis.models.{wire}.request")
    said = (Message(role="user", content="hi"),)
    options = Options(output_schema={"type": "object"})

    def sent(prompt: Prompt) -> Any:
        given = (prompt, options) if wire == "gemini" else (prompt, "m", options)
        found: Any = module.request_body(*given)
        for key in PLACES[wire]:
            found = found[key]
        return found

    assert sent(Prompt(messages=said, output_schema=SCHEMA)) == SCHEMA
    assert sent(Prompt(messages=said)) == {"type": "object"}
