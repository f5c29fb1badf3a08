"""The four plugins that work with objects, as a person loads them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Session
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.loader import load_plugin
from neuraxis.plugins.registry import Command, Registry
from neuraxis.testing import call

NAMES = ("tables", "images", "plots", "assets")


@pytest.fixture(scope="module")
def registry() -> Registry:
    """All of them, with `files`, whose tools their examples use."""
    return Registry(load_plugin(f"neuraxis:{name}") for name in (*NAMES, "files"))


def _commands(registry: Registry) -> list[Command]:
    return [
        command
        for plugin in registry.plugins
        if plugin.spec.name in NAMES
        for command in plugin.commands.values()
    ]


def test_manifests_have_no_problem(registry: Registry) -> None:
    """Not even a warning."""
    own = [plugin for plugin in registry.plugins if plugin.spec.name in NAMES]
    assert [] == [problem for plugin in own for problem in plugin.problems]


def test_each_command_has_examples_that_are_valid(registry: Registry) -> None:
    """Two at least; each names a tool that is there, and its own parameters only."""
    for command in _commands(registry):
        assert len(command.spec.examples) >= 2, command.spec.name
        for example in command.spec.examples:
            for intent in example.calls:
                holes = [
                    (name,)
                    for name, value in intent.arguments.items()
                    if "asset://" in str(value)
                ]
                assert () == command.parameters.problems(
                    dict(intent.arguments), holes=holes
                ), example.question
    for plugin in registry.plugins:
        assert plugin.spec.examples
        for example in plugin.spec.examples:
            for intent in example.calls:
                assert intent.tool in registry.tool_names


def test_effects(registry: Registry) -> None:
    """What writes is told as such; what computes touches nothing."""
    found = {c.spec.name: c.spec.effects for c in _commands(registry)}
    writing = {name for name, effects in found.items() if effects.destructive}
    reading = {name for name, effects in found.items() if effects.kind == "read"}
    assert {"write_table", "save_image"} == writing
    assert all(found[name].kind == "idempotent" for name in writing)
    assert {"read_table", "open_image", "list_assets"} == reading
    assert not any(effects.open_world for effects in found.values())


def test_B44_references_are_taken_where_objects_go(registry: Registry) -> None:
    """And nowhere else."""
    objects = {"table", "left", "right", "img_data", "cut_polygons", "asset"}
    for command in _commands(registry):
        for name in command.spec.parameter_names:
            assert (name in objects) is command.parameters.takes_reference((name,))


def test_example_outputs_are_what_is_declared(registry: Registry) -> None:
    """Where an answer is JSON, the manifest shows one."""
    for command in _commands(registry):
        assert command.response is not None
        if command.spec.example_output is not None:
            assert command.response.valid(command.spec.example_output)


@pytest.mark.parametrize(
    ("plugin", "command", "arguments", "missing", "extra"),
    [
        ("tables", "table_rows", {"table": [{"a": 1}]}, "polars", "tables"),
        ("tables", "read_table", {"file_path": "t.csv"}, "polars", "tables"),
        ("images", "open_image", {"file_path": "t.png"}, "PIL", "images"),
        (
            "plots",
            "plot_line",
            {"table": [{"a": 1}], "x": "a", "y": "a"},
            "matplotlib",
            "plots",
        ),
    ],
)
def test_a_missing_extra_is_told(
    plugin: str,
    command: str,
    arguments: dict[str, Any],
    missing: str,
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The plugin loads; the call fails with what to install."""
    real = importlib.import_module

    def without(name: str) -> Any:
        if name.partition(".")[0] == missing:
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr(importlib, "import_module", without)
    result = call(f"neuraxis:{plugin}", command, arguments, workspace=tmp_path)
    assert result.status == "failed"
    assert result.error is not None
    assert f"pip install 'neuraxis[{extra}]'" in result.error.message


def test_all_prompts_can_be_written() -> None:
    """Each dialect has words for the object types."""
    for dialect in ("intents", "envelope_v1", "envelope_v2", "native"):
        session = Session(
            model=ScriptedModel([]),
            plugins=[f"neuraxis:{name}" for name in NAMES],
            dialect=dialect,
        )
        prompt = session.prompt()
        assert "asset_grep" in str(prompt.messages) + str(prompt.native_tools)
