"""`neuraxis doctor` says what there is as the plugins will find it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from neuraxis.cli.doctor import doctor


def _findings(**environ: str) -> dict[str, Any]:
    done = CliRunner().invoke(doctor, ["--json"], env=environ)
    return {item["what"]: item for item in json.loads(done.output)["findings"]}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEURAXIS_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("environ", "state", "provider"),
    [
        ({}, "missing", "no provider: set"),
        ({"NEURAXIS_SEARCH__FOLDER": "notes"}, "ok", "provider documents"),
        ({"NEURAXIS_SEARCH__URL": "https://s.example"}, "ok", "provider searxng"),
        ({"NEURAXIS_SEARCH__PROVIDER": "ddgs"}, "ok", "provider ddgs"),
        (
            {"NEURAXIS_SEARCH__ENGINE": "e", "GOOGLE_API_KEY": "k"},
            "ok",
            "provider google",
        ),
    ],
)
def test_the_provider_that_a_search_would_take(
    environ: dict[str, str], state: str, provider: str
) -> None:
    """Also one that is not named, but has what it needs."""
    found = _findings(**environ)["GOOGLE"]
    assert found["state"] == state
    assert found["detail"].startswith(provider)


def test_every_extra_of_a_plugin_is_looked_for() -> None:
    """What is missing is told with the line that installs it."""
    found = _findings()
    for package in ("trafilatura", "ddgs", "polars", "PIL", "matplotlib", "xllamacpp"):
        here = found[package]["state"] == "ok"
        assert here or "pip install 'neuraxis[" in found[package]["detail"]
