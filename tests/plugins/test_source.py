"""Plugin sources that other packages add."""

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from neuraxis import Session
from neuraxis.errors import ConfigError
from neuraxis.plugins import source

CODE = """
from neuraxis.plugins.functions.command import plugin_from
from neuraxis.plugins.source import ReadSource

def right(text):
    def greet(name: str) -> str:
        return name
    return ReadSource(lambda: plugin_from(greet, name=text))

def wrong(text):
    return 5

def fails(text):
    return len(5)

def no_plugins(text):
    return ReadSource(lambda: "plugin")

def opens_badly(text):
    return ReadSource(lambda: {}["key"])

def tells(text):
    found = right(text)
    found.log_problems = lambda: print("told:", text)
    return found

class Half:
    def open_plugins(self, workspace):
        return ()

def half(text):
    return Half()
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Offers each function of `CODE` as a source, and one that is not there."""
    (tmp_path / "their_sources.py").write_text(CODE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(
        source,
        "_installed",
        lambda scheme: [EntryPoint(scheme, f"their_sources:{scheme}", source.GROUP)],
    )
    yield
    sys.modules.pop("their_sources", None)


@pytest.mark.usefixtures("package")
def test_a_package_adds_a_source(tmp_path: Path) -> None:
    """Its function is given the text after the scheme."""
    with Session(plugins=["right:hello"], workspace=tmp_path) as session:
        assert session.registry.find("hello", "hello")


@pytest.mark.usefixtures("package")
def test_a_source_of_a_package_logs_its_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one of ours does, such as an MCP server that it may wrap."""
    Session(plugins=["tells:hello"], workspace=tmp_path).close()
    assert capsys.readouterr().out == "told: hello\n"


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("scheme", "said"),
    [
        ("missing", "AttributeError: .*, when it was imported"),
        ("wrong", "expected it to return an object with open_plugins .*, got 5"),
        ("half", "expected it to return an object with open_plugins"),
        ("fails", "TypeError: .*, when it was given 'x'"),
        ("no_plugins", "to return a list of Plugin"),
        ("opens_badly", "KeyError: 'key', when its plugins were opened"),
    ],
)
def test_a_mistake_of_a_package_names_it(
    tmp_path: Path, scheme: str, said: str
) -> None:
    """And says what to do."""
    with pytest.raises(ConfigError, match=said) as caught:
        Session(plugins=[f"{scheme}:x"], workspace=tmp_path)
    told = str(caught.value)
    assert f"plugin source {scheme!r} of the package their_sources" in told
    assert f'remove the entries that begin with "{scheme}:"' in told
