"""References of a step become values; the glance at a schema says what it says."""

from __future__ import annotations

from typing import Any

import pytest

from neuraxis import Session, command
from neuraxis.execution.resolve import _wants_text
from neuraxis.models.scripted import ScriptedModel
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

NODES: dict[str, Json] = {
    "text": {"type": "string"},
    "dated": {"type": "string", "format": "date"},
    "count": {"type": "integer"},
    "either": {"type": ["string", "null"]},
    "union": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "mixed": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    "words": {"enum": ["a", "b"]},
    "numbers": {"enum": [1, 2]},
    "typed": {"type": "string", "enum": ["a"]},
    "shared": {"$ref": "#/$defs/text"},
    "beside": {"$ref": "#/$defs/text", "type": "string"},
    "all": {"type": "string", "allOf": [{"maxLength": 3}]},
    "anything": {},
    "image": {"x-type": "PIL.Image.Image", "not": {}},
}
ROOT: dict[str, Json] = {
    "type": "object",
    "properties": NODES,
    "$defs": {"text": {"type": "string"}},
}


@pytest.mark.parametrize("name", [*NODES, "unknown"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"additionalProperties": {"type": "string"}},
        {"allOf": [{"properties": {"anything": {"type": "string"}}}]},
        {"anyOf": [{"properties": {"anything": {"type": "string"}}}]},
    ],
)
def test_a_glance_says_what_the_schema_says(name: str, more: dict[str, Json]) -> None:
    """Whether a parameter takes nothing but text."""
    schema = Schema({**ROOT, **more})
    assert _wants_text(schema, (name,)) == schema.wants_text((name,))


def _run(links: str, **options: Any) -> list[Any]:
    @command(effects="none", blocking=False)
    def give(what: str) -> Any:
        """Gives something."""
        return {"number": 5, "text": "five", "list": [1, 2], "none": None}[what]

    @command(effects="none", blocking=False)
    def say(text: str) -> str:
        """Says a text."""
        return f"said {text}"

    @command(effects="none", blocking=False)
    def add(number: int) -> int:
        """Adds one."""
        return number + 1

    block = f"<!-- RESPONSE_START -->\n[{links}]\n<!-- RESPONSE_END -->"
    model = ScriptedModel([block, "done"])
    with Session(model=model, plugins=[give, say, add], **options) as session:
        answer = session.run_sync("go")
    return [
        item.value if item.error is None else item.error.code for item in answer.calls
    ]


@pytest.mark.parametrize(
    ("what", "command_and_key", "expected"),
    [
        ("number", "add number", 6),
        ("number", "say text", "said 5"),  # JSON text, since it takes only text
        ("text", "say text", "said five"),
        ("list", "say text", "said [1, 2]"),
        ("none", "say text", "said null"),
        ("text", "add number", "invalid_asset_type"),
        ("list", "add number", "invalid_asset_type"),
    ],
)
def test_a_whole_reference_is_the_value_or_its_text(
    what: str, command_and_key: str, expected: Any
) -> None:
    """Native where the parameter takes it, text where it takes nothing else (C20)."""
    tool, key = command_and_key.split()
    link = f'{{"tool": "{tool}", "{key}": "{{{{ previous_result }}}}"}}'
    found = _run(f'{{"tool": "give", "what": "{what}"}}, {link}')
    assert found[1] == expected


def test_links_with_the_same_values_are_the_same_call() -> None:
    """The third one is answered with the first one's result, and says so."""
    give = '{"tool": "give", "what": "number"}'
    link = '{"tool": "add", "number": "{{ results[0] }}"}'
    found = _run(", ".join([give, link, link, link]))
    assert found == [5, 6, 6, 6]
