"""JSON Schemas of other programs, of any draft."""

import json
from pathlib import Path

import pytest

from neuraxis.bridges.imported_schema import SchemaRefused, import_schema
from neuraxis.schema.schema import Schema

SUITE = Path(__file__).parents[3] / "shared" / "data" / "json_schema_suite"


def test_our_own_words_are_taken_out_but_not_names():
    """A server may not mark a place as one for secrets; a property may be named so."""
    schema, wrong = import_schema(
        {
            "properties": {
                "x-secret-ok": {
                    "type": "string",
                    "x-secret-ok": True,
                    "x-trusted": True,
                },
            },
            "x-type": "os.System",
            "default": {"x-kept": 1},
        }
    )
    assert not wrong
    assert schema["properties"] == {"x-secret-ok": {"type": "string"}}
    assert "x-type" not in schema
    assert schema["default"] == {"x-kept": 1}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (5, "an object"),
        ({"type": "array"}, 'expected "type": "object"'),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "strin"),
        ({"$ref": "https://example.com/x.json"}, "example.com"),
    ],
)
def test_what_cannot_be_enforced_is_refused(given, words):
    """Also a reference to another place: nothing is fetched."""
    with pytest.raises(SchemaRefused, match=words):
        import_schema(given)


@pytest.mark.parametrize("name", ["q\x1b[2J", "\u202eto", "to\n", "a\u200bb", "\x9b"])
@pytest.mark.parametrize(
    "place",
    [
        lambda name: {"properties": {name: {}}},
        lambda name: {"properties": {"a": {"items": {"properties": {name: {}}}}}},
        lambda name: {"$defs": {"a": {"properties": {name: {}}}}},
        lambda name: {"anyOf": [{"required": [name]}]},
    ],
)
def test_a_name_that_forges_lines_or_hides_is_refused(name, place):
    """It would stand in the prompt and in the questions; elsewhere it is data."""
    with pytest.raises(SchemaRefused, match="invisible characters in the name"):
        import_schema({"type": "object", **place(name)})
    assert import_schema({"default": place(name), "enum": [place(name)]})[1] == ""


def test_a_schema_too_deep_is_refused():
    """A server cannot exhaust the stack."""
    schema = {"type": "object"}
    for _ in range(1_000):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(SchemaRefused, match="too deep"):
        import_schema(schema)


@pytest.mark.parametrize(
    "twice",
    [
        lambda ref: {"allOf": [ref, ref]},
        lambda ref: {"anyOf": [{"oneOf": [ref]}, ref]},
        lambda ref: {"if": ref, "then": {"not": ref}},
        lambda ref: {"dependentSchemas": {"a": ref, "b": ref}},
    ],
)
def test_definitions_that_each_use_the_next_twice_are_refused(twice):
    """Each level doubled the time of a call's check: 14 seconds with 29 of them."""

    def chain(levels):
        named = {f"n{k}": twice({"$ref": f"#/$defs/n{k + 1}"}) for k in range(levels)}
        named[f"n{levels}"] = {"type": "string"}
        return {"properties": {"q": {"$ref": "#/$defs/n0"}}, "$defs": named}

    with pytest.raises(SchemaRefused, match="refer to each other too often"):
        import_schema(chain(29))
    schema, _ = import_schema(chain(8))
    assert Schema(schema).problems({"q": 5}) is not None


def test_definitions_that_many_properties_share_are_accepted():
    """A tree of nodes, and a type of a hundred forms in a hundred properties."""
    forms = {f"f{k}": {"type": "object", "required": [f"f{k}"]} for k in range(100)}
    refs = [{"$ref": f"#/$defs/{name}"} for name in forms]
    forms["any"] = {"anyOf": [*refs, {"items": {"$ref": "#/$defs/any"}}]}
    properties = {f"p{k}": {"$ref": "#/$defs/any"} for k in range(100)}
    given = {"type": "object", "properties": properties, "$defs": forms}
    assert import_schema(given)[1] == ""


def test_invisible_characters_leave_descriptions_only():
    """A constant with such characters stays as it is: it is enforced."""
    schema, _ = import_schema(
        {
            "type": "object",
            "properties": {"a": {"const": "\x1b[0m", "description": "x\x1b[31my"}},
        }
    )
    assert schema["properties"]["a"] == {"const": "\x1b[0m", "description": "xy"}


@pytest.mark.parametrize(
    ("draft", "good", "bad"),
    [
        ("http://json-schema.org/draft-04/schema#", [1], [0]),
        ("https://json-schema.org/draft/2020-12/schema", [1], [True]),
    ],
)
def test_each_draft_means_what_it_says(draft, good, bad):
    """`exclusiveMinimum` is a flag in draft 4 and a number later."""
    limit = {"exclusiveMinimum": True, "minimum": 0}
    if "2020" in draft:
        limit = {"exclusiveMinimum": 0}
    schema, wrong = import_schema(
        {
            "$schema": draft,
            "type": "object",
            "properties": {"a": {"items": {"type": "number", **limit}}},
        }
    )
    assert not wrong
    assert Schema(schema).valid({"a": good})
    assert not Schema(schema).valid({"a": bad})


def test_the_verdicts_of_the_official_suite_stay():
    """Draft 7 of JSON-Schema-Test-Suite: imported schemas decide as the suite says."""
    file = SUITE / "draft7.jsonl"
    if not file.is_file():
        pytest.skip("shared/data/json_schema_suite is not here")
    other, checked, refused = [], 0, []
    for line in file.read_text(encoding="utf-8").splitlines():
        group = json.loads(line)
        given = group["schema"]
        if not isinstance(given, dict):
            continue
        draft = {"$schema": "http://json-schema.org/draft-07/schema#", **given}
        try:
            schema, _ = import_schema(draft, parameters=False)
        except SchemaRefused:
            refused.append(group["description"])
            continue
        for test in group["tests"]:
            checked += 1
            if Schema(schema).valid(test["data"]) != test["valid"]:
                other.append((group["description"], test["description"]))
    assert checked > 800
    assert other == []
    # they refer to other documents, which are never fetched
    assert len(refused) <= 20, refused
