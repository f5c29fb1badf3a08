"""The classes of a plugin's own file: their names, and mistakes in them."""

from pathlib import Path

import pytest

from neuraxis import Session
from neuraxis.messages import Result
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.loader import load_plugin
from neuraxis.testing import check_plugin, prompt_of

MANIFEST = """\
name: old maps
info: {{title: Maps, description: Maps of places.}}
commands:
  - command_name: draw
    description: Draw a map.
    effects: read
    response: {{type: {{map: {{type: {name}, description: the map}}}}}}
  - command_name: measure
    description: Measure a map.
    effects: read
    parameter:
      type:
        map: {{type: {name}, description: the map, asset_ref_acceptable: true}}
    response: {{type: {{area: {{type: number}}}}}}
"""
CODE = """
class Map:
    area = 3.0

class Town: ...

def draw():
    return {"map": Map()}

def measure(map):
    return {"area": map.area}
"""


def folder(base: Path, name: str, code: str = CODE) -> Path:
    """A plugin of which two commands take and return that type."""
    path = base / "maps"
    path.mkdir()
    (path / "config.yaml").write_text(MANIFEST.format(name=name), encoding="utf-8")
    (path / "plugin.py").write_text(code, encoding="utf-8")
    return path


def both(path: Path) -> tuple[Result, ...]:
    """Draw a map and measure it."""
    calls = '[{"tool": "draw"}, {"tool": "measure", "map": "{{ PREVIOUS.map }}"}]'
    with Session(model=ScriptedModel([calls, "ok"]), plugins=[path]) as session:
        return tuple(session.run_sync("Measure a map").calls)


def test_a_class_of_the_folder_is_passed_by_reference(tmp_path: Path) -> None:
    """It is the plugin's name and the class; a model reads no other."""
    path = folder(tmp_path, "old_maps.Map")
    assert check_plugin(path) == []
    assert "`map` (old_maps.Map, takes an asset)" in prompt_of(path)
    drawn, measured = both(path)
    assert drawn.warnings == ()
    assert measured.value == {"area": 3.0}


@pytest.mark.parametrize("name", ["Map", "plugin.Map", "maps.plugin.Map"])
def test_another_name_of_the_class_is_told_with_the_right_one(
    tmp_path: Path, name: str
) -> None:
    """`Map` alone is the protocol's mapping (rule D3), so it is a warning only."""
    path = folder(tmp_path, name)
    problems = check_plugin(path)
    assert [text.partition("maps/config.yaml")[2] for text in problems] == [
        f":{line}: warning: the class Map of the plugin's file is written old_maps.Map,"
        f" got {name}"
        for line in (7, 13)
    ]


def test_a_class_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Not of other packages: they need not be installed."""
    problems = check_plugin(folder(tmp_path, "old_maps.Twon"))
    assert "has no class 'Twon'. Did you mean old_maps.Town?" in problems[0]
    (tmp_path / "other").mkdir()
    assert check_plugin(folder(tmp_path / "other", "not_installed.Image")) == []


def test_a_wrong_class_and_a_crash_are_told_without_our_module(tmp_path: Path) -> None:
    """A person and a model know the plugin's name only."""
    code = "import sys\n" + CODE.replace("map.area", "sys.modules[__name__].x")
    path = folder(tmp_path, "old_maps.Town", code)
    assert load_plugin(path).problems == ()
    _, wrong = both(path)
    manifest = MANIFEST.format(name="old_maps.Map")
    (path / "config.yaml").write_text(manifest, encoding="utf-8")
    _, crashed = both(path)
    assert wrong.error is not None
    assert "leads to old_maps.Map, expected old_maps.Town" in wrong.error.message
    assert crashed.error is not None
    assert "module 'old_maps' has no attribute 'x'" in crashed.error.message
