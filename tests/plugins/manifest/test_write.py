"""Any plugin written as a manifest, and read again."""

from __future__ import annotations

import dataclasses
import enum
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from neuraxis.dialects import find_dialect
from neuraxis.errors import ManifestError
from neuraxis.plugins.functions.command import command, plugin_from
from neuraxis.plugins.loader import builtin_names, load_plugin
from neuraxis.plugins.manifest.convert import to_v2
from neuraxis.plugins.manifest.load import load_manifest, parse_manifest
from neuraxis.plugins.manifest.write import to_yaml
from neuraxis.specs import PluginSpec


def assert_same(spec: PluginSpec) -> str:
    """The spec, written and read, says the same."""
    text = to_yaml(spec)
    again, _ = parse_manifest(text)
    assert (again.name, again.listed) == (spec.name, spec.listed)
    assert again.description == spec.description
    assert again.prompt == spec.prompt
    assert dict(again.config) == dict(spec.config)
    assert again.examples == spec.examples
    for new, old in zip(again.commands, spec.commands, strict=True):
        assert new.name == old.name
        assert new.parameters == old.parameters
        assert new.response == old.response
        assert new.effects == old.effects
        assert new.examples == old.examples
        assert new.example_output == old.example_output
        assert (new.tool_name, new.time_limit, new.blocking, new.failure_field) == (
            old.tool_name,
            old.time_limit,
            old.blocking,
            old.failure_field,
        )
    return text


def test_K12_real_files_of_both_protocols(shared_data: Path) -> None:
    """v1 files become v2; v2 files stay what they are."""
    for file in sorted((shared_data / "concopilot" / "configs").glob("*.yaml")):
        spec, _ = load_manifest(file)
        text = assert_same(spec)
        assert "parameters:" not in text


@pytest.mark.parametrize("name", builtin_names())
def test_what_comes_with_the_package(name: str) -> None:
    """All that a manifest of ours says is kept."""
    assert_same(load_plugin(f"neuraxis:{name}").spec)


class Colour(enum.Enum):
    RED = "red"
    NO = "no"


@dataclasses.dataclass
class Size:
    wide: int
    high: int = 1


@dataclasses.dataclass
class Node:
    name: str
    below: Node | None = None


def test_python_functions() -> None:
    """Hints are said in the words of the notation, without any loss."""

    @command(
        effects={"kind": "idempotent", "destructive": False},
        tool_name="PAINT",
        examples=[{"q": "Paint it", "a": {"what": "it", "colour": "no"}}],
        example_output={"ok": True},
        time_limit=3,
        asset_refs=["what"],
    )
    def paint(
        what: str,
        colour: Colour,
        size: Size,
        sizes: list[Size],
        count: int = 3,
        mode: Literal["a", "b"] | None = None,
        tags: list[str] | None = None,
        table: dict[str, float] | None = None,
        pair: tuple[int, str] = (1, "a"),
    ) -> dict[str, bool]:
        """Paint a thing.

        Args:
            what: the thing.
        """
        return {}

    spec = plugin_from(paint).spec
    text = to_yaml(spec)
    assert "# not said here" not in text
    again = parse_manifest(text)[0].commands[0]
    schema: dict[str, Any] = dict(spec.commands[0].parameters)
    definitions = schema.pop("$defs")
    schema["properties"]["size"] = {**definitions["Size"], "x-asset-ref": True}
    schema["properties"]["sizes"]["items"] = definitions["Size"]
    assert again.parameters == schema
    assert again.response == spec.commands[0].response
    assert again.examples == spec.commands[0].examples
    assert again.effects == spec.commands[0].effects
    assert again.parameters["properties"]["what"]["x-asset-ref"] is True


def test_a_type_that_contains_itself() -> None:
    """It keeps its name where the notation can define it, else it says what is lost."""

    def direct(node: Node) -> None: ...
    def listed(nodes: list[Node]) -> None: ...

    text = to_yaml(plugin_from(direct).spec)
    assert "_type_ref: Node" in text
    assert parse_manifest(text)[0].commands
    text = to_yaml(plugin_from(listed).spec)
    assert "# not said here: listed: the type Node, which contains itself" in text
    assert parse_manifest(text)[0].commands


def test_a_prompt_and_odd_names_survive() -> None:
    """Texts that YAML would read as something else are put in quotes."""
    text = """
name: "007"
as_plugin: false
info: {title: "yes", description: "3.10", prompt: "a: b\\n# no comment\\n"}
commands:
  - command_name: "on"
    description: d
    parameter: {type: {"no": {type: string, description: d, enum: ["yes", "1"]}}}
examples: [{q: Both?, a: [{tool: x, a: 1}, {tool: y}]}]
config: {n: 1}
"""
    assert_same(parse_manifest(text)[0])


def test_an_anchored_type_stays_one() -> None:
    """What was one type in the file is one in what is written."""
    text = """
name: p
info: {description: d}
commands:
  - command_name: c
    description: d
    parameter:
      type:
        a: &box {type: {_type_ref: box, x: {type: int}}, description: d}
        b: *box
"""
    assert_same(parse_manifest(text)[0])


def test_a_yaml_library_without_its_fast_half_will_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PyYAML is built without libyaml on some systems: slower, and the same."""
    text = """
name: p
info: {description: "d: é"}
commands:
  - command_name: go
    description: d
    parameter: {type: {a: {type: int, description: "x\\ny"}}}
"""
    spec, _ = parse_manifest(text)
    usual = find_dialect("envelope_v2").prompt([spec], {})
    monkeypatch.delattr(yaml, "CSafeLoader")
    monkeypatch.delattr(yaml, "CSafeDumper")
    again, problems = parse_manifest(text)
    assert (again, problems) == (spec, ())
    assert parse_manifest(to_yaml(spec))[0].commands[0].parameters
    assert parse_manifest(to_v2(spec))[0].commands[0].parameters
    assert find_dialect("envelope_v2").prompt([spec], {}) == usual
    with pytest.raises(ManifestError, match="levels deep"):
        parse_manifest("[" * 5_000)
