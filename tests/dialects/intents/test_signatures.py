"""What the intents prompt says of parameters and answers: all that is enforced."""

from __future__ import annotations

from neuraxis.dialects.intents.dialect import Intents
from neuraxis.dialects.intents.signatures import form_text, parameter_lines
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.specs import CommandSpec

HEAD = """
name: shop
info: {description: d}
commands:
"""


def shown(commands: str) -> str:
    """The tools' part of the prompt."""
    spec, problems = parse_manifest(HEAD + commands)
    assert [item for item in problems if item.severity == "error"] == []
    names = {item.name: ("shop", item.name) for item in spec.commands}
    prompt = Intents().prompt([spec], names)
    return prompt.split("\n# Tools")[1].split("\n# Passing")[0]


def test_C6_fields_of_objects_in_a_list_are_told() -> None:
    """Descriptions, enums, defaults and limits of the fields inside stand below."""
    assert """Parameters:
- `lines` (list of objects): what is ordered
  - `size` (one of "s", "m"): of the shirt
  - `count` (integer, at least 1, at most 9, optional) Default: 1.
  - `to` (object or null, optional)
    - `city` (string): a city
""" in shown(
        """
  - command_name: order
    description: d
    parameter:
      type:
        lines:
          description: what is ordered
          type:
            - {name: size, type: string, enum: [s, m], description: of the shirt}
            - {name: count, type: int, required: false, default: 1, minimum: 1,
               maximum: 9}
            - name: to
              required: false
              nullable: true
              type: {city: {type: string, description: a city}}
"""
    )


def test_C6_what_says_no_more_than_its_type_stays_on_the_line() -> None:
    """Plain fields need no line of their own, however deep they are."""
    assert "- `at` (object {a: {b: {c: {d: List[{e?: int}]}}}})" in shown(
        """
  - command_name: go
    description: d
    parameter:
      type:
        at:
          type: {a: {type: {b: {type: {c: {type: {d: {type: [{name: e, type: int,
            required: false}]}}}}}}}}
"""
    )


def test_C6_no_value_of_an_enum_is_left_out_silently() -> None:
    """Up to a hundred are shown, also inside of a list; of more it is said how many."""
    values = ", ".join(f"v{index}" for index in range(130))
    text = shown(
        f"""
  - command_name: pick
    description: d
    parameter:
      type:
        few: {{type: "List[string]", items: {{enum: [{values[:178]}]}}}}
        many: {{type: "Dict[str, string]", description: d}}
        some: {{type: [{{name: k, type: string, enum: [{values}]}}]}}
"""
    )
    assert '"v0", "v1", "v2"' in text
    assert '"v35"' in text
    assert '"v99" and 30 more' in text
    assert '"v100"' not in text


def test_B36_types_with_a_name_are_told_once_for_a_plugin() -> None:
    """A parameter of the type `box` says nothing without the type's fields."""
    text = shown(
        """
  - command_name: put
    description: d
    parameter: {type: {boxes: {type: "List[box]", description: where}}}
  - command_name: find
    description: d
    parameter: {type: {near: {type: box}}}
    response:
      type:
        best:
          type:
            _type_ref: box
            x: {type: int, description: from the left}
            inner: {type: "Optional[box]", optional: true}
"""
    )
    assert (
        """- `boxes` (List[box]): where
Types:
- `box` (object)
  - `x` (integer): from the left
  - `inner` (Optional[box], optional)
"""
        in text
    )
    assert text.count("from the left") == 1


def test_limits_are_told_where_they_hold() -> None:
    """A limit that is enforced and not shown costs a round trip."""
    assert (
        "- `code` (string, at most 4 characters, matching ^[A-Z]+$)\n"
        "- `parts` (List[int], at least 1 item, each more than 0)"
        in shown(
            """
  - command_name: go
    description: d
    parameter:
      type:
        code: {type: string, pattern: "^[A-Z]+$", max_length: 4}
        parts: {type: "List[int]", min_items: 1, items: {exclusive_minimum: 0}}
"""
        )
    )


def test_the_number_of_keys_is_a_limit() -> None:
    """It is enforced, whoever wrote the schema: the notation has no word for it."""
    tags = {"type": "object", "minProperties": 1, "maxProperties": 3}
    schema = {"type": "object", "properties": {"tags": tags}}
    lines = parameter_lines(CommandSpec(name="c", parameters=schema))
    assert "at least 1 key, at most 3 keys" in lines[1]


def test_fields_of_an_all_of_are_told() -> None:
    """Those beside it, those of its parts, and the names of the types among these."""
    name = {"type": "string"}
    part = {"properties": {"claws": {"type": "integer"}}, "required": ["claws"]}
    cat = {"allOf": [{"$ref": "#/$defs/Pet"}, part], "properties": {"kind": name}}
    types = {"Pet": {"type": "object", "properties": {"name": name}}, "Cat": cat}
    assert form_text({"$defs": types}).splitlines() == [
        "Types:",
        "- `Pet` (object)",
        "  - `name` (string, optional)",
        "- `Cat` (object with the fields of Pet)",
        "  - `kind` (string, optional)",
        "  - `claws` (integer)",
    ]
    alone = {"pet": {"allOf": [{"$ref": "#/$defs/Cat"}]}}
    assert form_text({"properties": alone}) == "- `pet` (Cat, optional)"
