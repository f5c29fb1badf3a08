"""References of a step become values; the glance at a schema says what it says."""

from __future__ import annotations

import json
from typing import Any, TypedDict

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


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("{{ previous_result }}", "expected integer, got string from"),
        ("{{ results[1]['amount'] }}", ""),
        ("{{ results[1]['note'] }}", "expected integer, got string from"),
        ("{{ results[1]['parts'] }}", "expected integer, got array from"),
        ("{{ results[1]['parts'] | length }}", ""),
        ("{{ results[1]['parts'][0] }}", ""),
        ("{{ results[1] }}", "expected integer, got object from"),
    ],
)
def test_C23_a_type_that_never_fits_is_told_before_anything_runs(
    given: str, problem: str
) -> None:
    """A payment was made, and the step behind it failed."""
    paid: list[int] = []

    @command(effects="once")
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    @command(effects="read")
    def bill() -> Bill:
        """The bill."""
        return {"amount": 3.0, "note": "", "parts": [1]}

    @command(effects="none")
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    plan = [
        {"tool": "bill"},
        {"tool": "bill"},
        {"tool": "pay", "amount": 5},
        {"tool": "add", "a": 1, "b": given},
    ]
    with Session(
        ScriptedModel([json.dumps(plan), "Done."]), plugins=[pay, bill, add]
    ) as session:
        answer = session.run_sync("Pay")
    assert paid == ([] if problem else [5])
    assert [one.message for one in answer.problems if problem in one.message] == (
        [one.message for one in answer.problems]
    )
    assert bool(answer.problems) is bool(problem)


class Bill(TypedDict):
    """A bill."""

    amount: float
    note: str
    parts: list[int]
