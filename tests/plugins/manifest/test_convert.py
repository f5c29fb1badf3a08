"""v1 to v2 without loss, any plugin to JSON Schema, Python to YAML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from click.testing import CliRunner

from neuraxis.cli.plugins import plugins as cli
from neuraxis.plugins.functions.command import command
from neuraxis.plugins.loader import builtin_names, load_plugin
from neuraxis.plugins.manifest.convert import DIALECT, to_json_schema, to_v2
from neuraxis.plugins.manifest.load import load_manifest, parse_manifest
from neuraxis.specs import PluginSpec

V1 = """
group_id: org.example
version: 0.0.1
name: 007 # an agent
info:
  title: T
  description: d
  prompt_file_path: /etc/passwd
commands:
  - command_name: act
    description: d
    parameters:
      - {name: "on", type: string, description: d, enum: [yes, no], required: true}
      - name: box
        type: {_type_ref: box, x: {type: int, description: d}}
        description: d
        required: false
      - {name: more, type: "List[box]", description: d, example: [{x: 1}]}
    response:
      - {name: result, type: box, description: d, optional: true}
    effects: read
  - command_name: rest
    description: nothing to give
    parameters:
      # none
setup: {package: some.where}
licenses: [{name: L, url: u}]
config: {id: a, key: [1, {b: c}]}
"""


def _read(spec: PluginSpec) -> list[Any]:
    return [
        (item.name, item.description, item.parameters, item.response, item.effects)
        for item in spec.commands
    ]


def assert_lossless(text: str, folder: Path | None = None) -> None:
    """All that the file says is in what it becomes, and nothing else."""
    spec, _ = parse_manifest(text, folder=folder)
    written = to_v2(spec)
    again, _ = parse_manifest(written, folder=folder)
    assert (again.name, again.listed, again.id) == (spec.name, spec.listed, spec.id)
    assert (again.prompt, again.description) == (spec.prompt, spec.description)
    assert dict(again.config) == dict(spec.config)
    assert _read(again) == _read(spec)
    before, after = dict(spec.raw), yaml.safe_load(written)
    commands, converted = before.pop("commands"), after.pop("commands")
    if spec.generation == "v1":
        before["info"] = {
            key: value
            for key, value in before.get("info", {}).items()
            if key != "prompt_file_path"
        }
        after.setdefault("info", {})
    assert after == before
    for old, new in zip(commands, converted, strict=True):
        assert "parameters" not in new
        rest = {"parameters", "parameter", "response"}
        assert {key: new[key] for key in new if key not in rest} == {
            key: old[key] for key in old if key not in rest
        }
        for field in old.get("parameters") or ():
            kept = new["parameter"]["type"][field["name"]]
            assert {"name": field["name"], **kept} == field
    # a second time nothing changes
    assert to_v2(again) == written or spec.generation == "v1"
    assert yaml.safe_load(to_v2(again)) == yaml.safe_load(written)


def test_D2_K1_v1_becomes_v2_without_loss(tmp_path: Path) -> None:
    """Every key stays; only the two lists become mappings."""
    assert_lossless(V1, tmp_path)
    spec, _ = parse_manifest(V1)
    again, problems = parse_manifest(to_v2(spec))
    assert again.generation == "v2"
    assert again.name == "007"
    assert [problem for problem in problems if problem.severity == "error"] == []


def test_K5_a_path_that_v1_ignores_is_not_handed_to_v2() -> None:
    """v2 would read the file; v1 never did."""
    assert "passwd" not in to_v2(parse_manifest(V1)[0])


def test_D2_every_real_file(shared_data: Path) -> None:
    """All of both generations."""
    files = sorted((shared_data / "concopilot" / "configs").glob("*.yaml"))
    assert len(files) == 15
    for file in files:
        assert_lossless(file.read_text(encoding="utf-8"))
        schemas = to_json_schema(load_manifest(file)[0])
        _check(schemas)


def _check(document: dict[str, Any]) -> None:
    for item in document["commands"]:
        for schema in (item["parameters"], item["response"]):
            if schema is not None:
                assert schema["$schema"] == DIALECT
                jsonschema_rs.meta.validate(schema)


@pytest.mark.parametrize("name", builtin_names())
def test_D2_our_own_plugins_as_json_schema(name: str) -> None:
    """Valid schemas, the ones that are enforced."""
    spec = load_plugin(f"neuraxis:{name}").spec
    document = to_json_schema(spec)
    _check(document)
    for item, found in zip(spec.commands, document["commands"], strict=True):
        assert {"$schema": DIALECT, **item.parameters} == found["parameters"]


CODE = '''
from neuraxis import command

@command(effects="none")
def add(a: int, b: int = 1) -> dict[str, int]:
    """Add two numbers.

    Args:
        a: the first.
    """
    return {"sum": a + b}
'''


def test_convert_on_the_command_line(tmp_path: Path) -> None:
    """A v1 file to v2 and JSON Schema, a Python file to YAML; no code is run."""
    file = tmp_path / "old.yaml"
    file.write_text(V1)
    (tmp_path / "plugin.py").write_text("raise SystemExit('run')")
    run = CliRunner().invoke
    v2 = run(cli, ["convert", str(file), "--to", "v2"], standalone_mode=False)
    assert (v2.exception, v2.return_value) == (None, 0)
    assert parse_manifest(v2.stdout)[0].generation == "v2"
    schema = run(cli, ["convert", str(file), "--to", "json-schema"])
    assert '"$schema"' in schema.stdout
    code = tmp_path / "sums.py"
    code.write_text(CODE)
    text = run(cli, ["convert", str(code), "--to", "yaml"]).stdout
    spec, problems = parse_manifest(text)
    assert (spec.name, [item.name for item in spec.commands]) == ("sums", ["add"])
    assert spec.commands[0].required == ("a",)
    assert all(problem.severity == "warning" for problem in problems)
    named = run(cli, ["convert", "neuraxis:files", "--to", "yaml"])
    assert parse_manifest(named.stdout)[0].name == "files"


def test_a_python_plugin_becomes_v2() -> None:
    """What its hints say is said in the notation."""

    @command
    def add(a: int) -> int:
        """Add."""
        return a

    spec = load_plugin(add).spec
    again, _ = parse_manifest(to_v2(spec))
    assert again.commands[0].parameters == spec.commands[0].parameters


def test_a_python_file_is_a_plugin(tmp_path: Path) -> None:
    """Its marked functions are the commands, its name the plugin's."""
    code = tmp_path / "sums.py"
    code.write_text(CODE)
    for source in (code, str(code)):
        plugin = load_plugin(source)
        assert plugin.spec.name == "sums"
        run = plugin.commands["add"].run
        assert run is not None
        assert run(a=1) == {"sum": 2}


def test_D2_K1_hundreds_of_functions(shared_data: Path) -> None:
    """Written as v1, converted, they are what their v2 form is."""
    lines = (shared_data / "bfcl" / "functions.jsonl").read_text("utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    forms = [(row["dsl_v1"], row["dsl_v2"]) for row in found[::4] if row["dsl_v1"]]
    assert len(forms) > 150
    for number, (old, new) in enumerate(forms):
        spec, _ = parse_manifest(_manifest(old), file=str(number))
        assert spec.generation == "v1"
        again, _ = parse_manifest(to_v2(spec))
        direct, _ = parse_manifest(_manifest(new))
        assert again.generation == "v2"
        assert again.commands[0].parameters == spec.commands[0].parameters
        assert again.commands[0].parameters == direct.commands[0].parameters


def _manifest(command: dict[str, Any]) -> str:
    tree = {"name": "p", "info": {"description": "d"}, "commands": [command]}
    return json.dumps(tree)  # JSON is YAML
