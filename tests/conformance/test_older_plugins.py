"""Plugins in the shape that the protocols came from load and run as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.kit import ENVELOPES, call_text, folder, talk
from neuraxis.errors import ManifestError
from neuraxis.plugins.loader import load_plugin

V1 = """
group_id: org.example
artifact_id: search
version: 0.0.1
type: plugin
as_plugin: true
info: {title: Search, description: Finds things.}
commands:
  - command_name: search
    description: Find it.
    parameters:
      - {name: query, type: string, description: words, required: true}
      - {name: most, type: int, description: how many, required: false}
    response:
      - {name: results, type: "List[Object]", description: found, optional: false}
setup: {package: some.package.that.is.not.there}
config: {num_results: 2}
"""
V2 = V1.replace(
    """    parameters:
      - {name: query, type: string, description: words, required: true}
      - {name: most, type: int, description: how many, required: false}
    response:
      - {name: results, type: "List[Object]", description: found, optional: false}
""",
    """    parameter:
      type:
        query: {type: string, description: words}
        most: {type: int, description: how many, required: false}
    response: {type: {results: {type: "List[Object]", description: found}}}
""",
)
CLASS = '''
from typing import Any, Dict


class Answer(dict):
    """A mapping of their own."""


class Finder:
    def __init__(self, config: Dict):
        self.config = config
        self.most = config["config"]["num_results"]
        assert config["info"]["title"] == "Search"
        assert config["_config_info"]["config_file"] == "config.yaml"

    def command(self, command_name: str, param: Any, **kwargs) -> Any:
        if command_name == "search":
            most = param.get("most") or self.most
            return Answer(results=[param["query"]] * most)
        raise ValueError(f"Unknown command: {command_name}.")
'''
BOTH = pytest.mark.parametrize("manifest", [V1, V2], ids=["v1", "v2"])


@BOTH
@pytest.mark.parametrize("dialect", ENVELOPES)
def test_A4_B28_a_class_with_a_command_method_runs(
    tmp_path: Path, manifest: str, dialect: str
) -> None:
    """It is handed the whole manifest, and each call by name with its param."""
    plugin = folder(tmp_path, "search", manifest, CLASS)
    v1 = dialect == "envelope_v1"
    calls = [
        call_text("Search", "search", {"query": "x"}, v1=v1),
        call_text("Search", "search", {"query": "y", "most": 1}, v1=v1),
    ]
    said = talk([*calls, "ok"], [plugin], dialect)
    assert said.errors == []
    assert said.values == [{"results": ["x", "x"]}, {"results": ["y"]}]
    assert json.loads(said.told[0])["content"]["response"] == {"results": ["x", "x"]}


@BOTH
def test_a_package_with_a_constructor_runs(tmp_path: Path, manifest: str) -> None:
    """`__init__.py` with `constructor(config)`, the class in a file beside it."""
    plugin = folder(tmp_path, "search", manifest)
    (plugin / "finder.py").write_text(CLASS)
    (plugin / "__init__.py").write_text(
        "from .finder import Finder\n\n\ndef constructor(config):\n"
        "    return Finder(config)\n\n\n__all__ = ['constructor']\n"
    )
    said = talk([call_text("Search", "search", {"query": "x"}), "ok"], [plugin])
    assert said.values == [{"results": ["x", "x"]}]


def test_what_a_command_raises_is_told(tmp_path: Path) -> None:
    """Its own words, and the run goes on."""
    plugin = folder(tmp_path, "search", V1.replace("command_name: search",
                    "command_name: find"), CLASS)  # fmt: skip
    said = talk([call_text("Search", "find", {"query": "x"}), "ok"], [plugin])
    assert said.errors == ["failed"]
    assert "Unknown command: find." in said.told[0]


def test_a_simple_parameter_arrives_as_itself(tmp_path: Path) -> None:
    """`param` is the value where the manifest says a simple type (K3)."""
    text = V2.partition("    parameter:")[0] + "    parameter: {type: string}\n"
    code = CLASS.replace('config["config"]["num_results"]', "1").replace(
        'Answer(results=[param["query"]] * most)', "param"
    ).replace('param.get("most") or self.most', "1")  # fmt: skip
    plugin = folder(tmp_path, "search", text, code)
    assert talk([call_text("Search", "search", "x"), "ok"], [plugin]).values == ["x"]


def test_an_empty_init_is_no_code(tmp_path: Path) -> None:
    """A package of manifests alone stays without commands that run."""
    plugin = folder(tmp_path, "search", V1)
    (plugin / "__init__.py").write_text("")
    assert load_plugin(plugin).commands["search"].run is None


def test_a_constructor_that_fails_is_told(tmp_path: Path) -> None:
    """With the file, and the line."""
    plugin = folder(tmp_path, "search", V1.replace("num_results", "other"), CLASS)
    with pytest.raises(ManifestError, match=r"plugin\.py.*KeyError"):
        load_plugin(plugin)
