"""`neuraxis doctor`: what is set and cannot be meant so is told before a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from neuraxis.cli.main import cli


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def findings(settings: str = "") -> dict[str, tuple[str, str]]:
    """State and detail of each finding; of several with one name the last."""
    Path("neuraxis.toml").write_text(settings, encoding="utf-8")
    done = CliRunner().invoke(cli, ["doctor", "--json"], standalone_mode=False)
    assert done.exception is None, done.output
    found = json.loads(done.stdout)["findings"]
    broken = any(item["state"] == "broken" for item in found)
    assert done.return_value == (1 if broken else 0)
    return {item["what"]: (item["state"], item["detail"]) for item in found}


@pytest.mark.parametrize(
    ("settings", "what", "told"),
    [
        ('[serch]\nprovider = "ddgs"', "setting", "Did you mean [search]?"),
        ("[models]\ntemperature = 1", "setting", "written [models.NAME]"),
        ("model = x", "setting", "not valid TOML"),
        ('[sandbox]\nmode = "none"', "setting", "may not be set in a project's file"),
        ('model = "locl:"', "model", "Did you mean local:?"),
        ('dialect = "intent"', "dialect", "expected one of intents"),
        ('[search]\nprovider = "gogle"', "GOOGLE", "expected one of google"),
    ],
)
def test_a_mistake_in_a_file_is_told(
    here: Path, settings: str, what: str, told: str
) -> None:
    state, detail = findings(settings)[what]
    assert state == "broken"
    assert told in detail


@pytest.mark.parametrize(
    "settings",
    [
        'plugins = ["serch.py"]\n[serch]\nkey = 1',
        "[mail]\nkey = 1",
        "[my_search]\nkey = 1",
        '[models."gpt-5.1"]\ntemperature = 1',
    ],
)
def test_a_table_that_is_meant_is_not_told(here: Path, settings: str) -> None:
    """One of a plugin's own, though its name is near one of ours."""
    assert "setting" not in findings(settings)


def test_a_misspelt_section_in_a_variable_is_told(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURAXIS_SERCH__PROVIDER", "ddgs")
    assert "NEURAXIS_SERCH__PROVIDER" in findings()["setting"][1]


def test_variables_that_are_no_settings_are_not_told(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`NEURAXIS_SANDBOX_IMAGE` is documented, and looks like `sandbox`."""
    for name in ("SANDBOX_IMAGE", "TRACEBACK", "SANDBOX"):
        monkeypatch.setenv(f"NEURAXIS_{name}", "1")
    assert "setting" not in findings()


def test_the_sandbox_that_is_asked_for_must_be_there(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = "seatbelt" if Path("/proc").exists() else "landlock"
    assert findings()[f"sandbox: {missing}"][0] == "missing"
    monkeypatch.setenv("NEURAXIS_SANDBOX__MODE", missing)
    assert findings()[f"sandbox: {missing}"][0] == "broken"
    monkeypatch.setenv("NEURAXIS_SANDBOX__MODE", "nope")
    state, detail = findings()["sandbox"]
    assert (state, "got 'nope'" in detail) == ("broken", True)


def test_a_search_that_is_set_up_without_its_provider_works(here: Path) -> None:
    """As the command itself finds it."""
    (here / "texts").mkdir()
    state, detail = findings('[search]\nfolder = "texts"')["GOOGLE"]
    assert (state, detail) == ("ok", "provider documents")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ('plugins = ["x"]', 'plugin "x": not a file, a folder or a known plugin.'),
        ('plugins = ["wrong.py"]', "wrong.py:1: error: "),
        ('plugins = ["one.py", "sub/one.py"]', "the plugin name 'one' is taken by"),
        ('plugins = ["mcp:no-such-program-here"]', "no-such-program-here"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_told(
    here: Path, settings: str, told: str
) -> None:
    """Every run fails; and what a plugin prints is no part of the report."""
    code = "from neuraxis import command\nprint(1)\n@command\ndef one() -> None: ...\n"
    (here / "sub").mkdir()
    for name in ("one.py", "sub/one.py"):
        (here / name).write_text(code, encoding="utf-8")
    (here / "wrong.py").write_text("1 +\n", encoding="utf-8")
    assert "plugin" not in findings()
    assert findings('plugins = ["one.py"]')["plugin"] == ("ok", "one.py")
    state, detail = findings(settings)["plugin"]
    assert state == "broken"
    assert told in detail
