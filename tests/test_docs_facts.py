"""What the documentation lists is what there is: names, options, defaults, files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from msgspec import structs

from neuraxis import Answer, Budget, Context, events
from neuraxis import settings as settings_module
from neuraxis.cli.main import cli
from neuraxis.execution.runtime import Runtime
from neuraxis.models.http.settings import Options, options_for
from neuraxis.plugins import effects_and_examples
from neuraxis.policy.rules import policy_from
from neuraxis.sandbox.http.urls import USUAL_PORTS
from neuraxis.settings import load

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING")),
    *sorted(DOCS.glob("*.md")),
]
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _rows(name: str, heading: str) -> list[list[str]]:
    """The cells of the first table from a heading, or from the table's head, on."""
    _, found, below = _text(name).partition(f"\n{heading}")
    assert found, f"{name} has no {heading!r}"
    table = re.search(r"^\|.*?(?=\n\n|\Z)", found + below, re.MULTILINE | re.DOTALL)
    assert table
    rows = [line.strip().strip("|").split(" | ") for line in table[0].splitlines()]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def _code(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


# --- the index, the files ------------------------------------------------------


def test_the_readme_lists_every_page() -> None:
    """Who looks for something finds the page of it."""
    readme = _text("README.md")
    named = [page.name for page in DOCS.glob("*.md")]
    assert [name for name in named if f"(docs/{name})" not in readme] == []


def test_the_architecture_names_every_room() -> None:
    """Modules and packages of the first level, each in the list of rooms."""
    rooms = set(re.findall(r"\w+", _text("ARCHITECTURE.md").partition("## Rooms")[2]))
    there = {path.stem for path in (ROOT / "src" / "neuraxis").iterdir()}
    missing = {name for name in there - rooms if not name.startswith(("_", "py"))}
    assert not missing, f"put {missing} into the rooms of ARCHITECTURE.md"


@pytest.mark.parametrize("name", ["docs/security.md", "docs/settings.md"])
def test_tests_and_modules_that_are_named_are_there(name: str) -> None:
    """A promise whose test is gone is none."""
    text = _text(name)
    known = {
        found
        for file in (ROOT / "tests").rglob("test_*.py")
        for found in re.findall(r"def (test_\w+)", file.read_text(encoding="utf-8"))
    }
    for word in re.findall(r"`(test_\w+)`", text):
        assert word in known, f"{name} names {word}"
    for path in re.findall(r"`((?:tests|sandbox|plugins)/[\w./]*)`", text):
        near = (ROOT / path, ROOT / "src" / "neuraxis" / path)
        assert any(place.exists() for place in near), f"{name} names {path}"


# --- the command line ----------------------------------------------------------


def _lines(page: Path) -> Iterator[list[str]]:
    """The words of each `neuraxis …` in a page."""
    text = page.read_text(encoding="utf-8")
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    code = "\n".join(fenced) + "\n" + "\n".join(re.findall(r"`([^`\n]+)`", text))
    indented = re.findall(r"^ {4}(neuraxis .*)$", text, re.MULTILINE)
    for line in (*code.splitlines(), *indented):
        if found := re.search(r"(?:^|/bin/| {2,})neuraxis ([a-z].*)", line):
            yield re.sub(r'"[^"]*"', "X", found[1]).split()


@pages
def test_commands_and_options_are_there(page: Path) -> None:
    """Each command line of the documentation could be typed."""
    for words in _lines(page):
        command: click.Command = cli
        rest = list(words)
        while isinstance(command, click.Group) and rest:
            name = rest.pop(0)
            assert name in command.commands, f"{page.name}: neuraxis {' '.join(words)}"
            command = command.commands[name]
        known = {word for option in command.params for word in option.opts}
        if command.name == "call":
            continue  # takes the parameters of what is called
        for word in rest:
            if word.startswith("-"):
                assert word.partition("=")[0] in known, f"{page.name}: {words}"


def test_the_readme_lists_every_command() -> None:
    """Of a group also what it has."""
    listed = _rows("README.md", "## The command line")
    rows = {_code(row[0])[0].split()[0]: row[0] for row in listed}
    for name, command in cli.commands.items():
        assert name in rows
        for inner, one in getattr(command, "commands", {}).items():
            is_told = re.search(rf"\b{inner}\b", rows[name])
            assert one.hidden or is_told, f"{name} {inner}"


# --- settings ------------------------------------------------------------------


def test_every_setting_has_its_line() -> None:
    """What may stand in a file is told, and nothing else."""
    told: set[str] = set()
    for row in _rows("docs/settings.md", "| key | what | default |"):
        section = ""
        for key in _code(row[0]):
            head, dot, _ = key.rpartition(".")
            section = head if dot else section
            told.add(key if dot or not section else f"{section}.{key}")
    known = set(settings_module._TOP)
    for section, keys in settings_module._SECTIONS.items():
        known |= {f"{section}.{key}" for key in keys}
    known |= {f"models.NAME.{key}" for key in settings_module.MODEL_OPTIONS}
    policy = ("allow_hosts", "default", "rules", "yes_to", "undeclared")
    known |= {f"policy.{key}" for key in policy}
    known.discard("search.google_url")  # for tests of ours; only that it is guarded
    assert told == known
    of_plugins = [
        key for key in told if key.startswith(("files.", "tables.", "images."))
    ]
    source = "\n".join(
        file.read_text(encoding="utf-8")
        for room in ("builtin", "session")
        for file in (ROOT / "src" / "neuraxis" / room).rglob("*.py")
    )
    assert [key for key in of_plugins if f'"{key}"' not in source] == []


def test_defaults_of_a_models_options() -> None:
    """The line of settings.md, from the data class."""
    usual = Options()
    text = _text("docs/settings.md")
    assert (
        f"{usual.connect_timeout:g} s, {usual.first_byte_timeout:g} s, "
        f"{usual.stall_timeout:g} s |"
    ) in text
    assert (
        f"{usual.max_retries}, {usual.retry_seconds:g} s, {usual.backoff:g} s, "
        f"{usual.max_wait:g} s |"
    ) in text


@pages
def test_settings_in_examples_are_right(page: Path, tmp_path: Path) -> None:
    """Each TOML block can be read, and each of settings is one without faults."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        tree = tomllib.loads(block)
        if "project" in tree:
            continue
        (tmp_path / "config").mkdir(exist_ok=True)
        (tmp_path / "config" / "neuraxis.toml").write_text(block, encoding="utf-8")
        settings = load(None, {"NEURAXIS_HOME": str(tmp_path)})
        assert settings_module.faults_of(settings) == []
        policy_from(settings.section("policy"))
        for name in tree.get("models", {}):
            options_for(name, settings)


# --- sessions ------------------------------------------------------------------


def test_the_limits_and_their_defaults() -> None:
    """Each field of `Budget` with the number that it has."""
    listed = _rows("docs/sessions.md", "| of one run")
    rows = {_code(row[0])[0]: row[1] for row in listed}
    usual = Budget()
    told = {name: getattr(usual, name) for name in Budget.__slots__}
    for name in ("usd", "tokens"):
        assert told.pop(name) is None
        assert rows.pop(name) == "none"
    assert rows == {name: f"{limit:g}" for name, limit in told.items()}
    limit = {item.name: item.default for item in structs.fields(Runtime)}["time_limit"]
    told = " ".join(_text("docs/sessions.md").split())
    assert f"{limit:g} seconds, unless it sets" in told


def test_every_event_is_in_the_table() -> None:
    """With its name on the wire and its class; those that are not stored say so."""
    told: dict[str, str] = {}
    for row in _rows("docs/sessions.md", "| `type` in JSON"):
        told.update(zip(_code(row[0]), _code(row[1]), strict=True))
        stored = "not stored" not in row[2]
        assert stored != any(cls.__name__ in row[1] for cls in events.NOT_STORED)
    assert told == {name: cls.__name__ for name, cls in events.NAMES.items()}


def test_every_field_of_an_answer_is_told() -> None:
    """In the table of sessions.md."""
    told = [
        name
        for row in _rows("docs/sessions.md", "| attribute | meaning |")
        for name in _code(row[0])
    ]
    fields = {"output", *Answer.__struct_fields__} - {"checked"}
    assert sorted(told) == sorted(fields)


# --- plugins -------------------------------------------------------------------


def test_the_tables_of_commands() -> None:
    """What a built-in plugin offers, by the names a model uses."""

    def commands(plugin: str) -> list[str]:
        file = ROOT / "src" / "neuraxis" / "builtin" / plugin / "config.yaml"
        listed = yaml.safe_load(file.read_text(encoding="utf-8"))["commands"]
        return [item.get("tool_name") or item["command_name"] for item in listed]

    for row in _rows("docs/assets.md", "| plugin | extra | commands |"):
        plugin = _code(row[0])[0].removeprefix("neuraxis:")
        assert plugin == "assets" or _code(row[2]) == commands(plugin)
    looking = _rows("docs/assets.md", "| command | shows |")
    assert [_code(row[0])[0] for row in looking] == commands("assets")
    for row in _rows("docs/tool-intents.md", "| tool | plugin | gives |"):
        tool, plugin = _code(row[0])[0].partition("(")[0], _code(row[1])[0]
        assert tool in commands(plugin.removeprefix("neuraxis:"))


def test_what_a_context_has() -> None:
    """All that a command may use; `outer` is for sessions inside, `files` for ours."""
    told = {
        re.split(r"\W", word)[0]
        for row in _rows("docs/plugins.md", "| of the context | what |")
        for word in _code(row[0])
    }
    told |= {"wrote"}
    assert told == set(Context.__slots__) - {"outer", "files"}


def test_the_words_of_effects() -> None:
    """Those of plugins.md and plans.md are the ones that are taken."""
    for name in ("docs/plugins.md", "docs/plans.md"):
        text = _text(name)
        assert [
            kind for kind in effects_and_examples.KINDS if f"`{kind}`" not in text
        ] == []


# --- dependencies --------------------------------------------------------------


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=;]", requirement)[0].strip()


def test_every_dependency_has_its_reason() -> None:
    """Those of the core, and of each extra, by the names of pyproject.toml."""
    project = tomllib.loads(_text("pyproject.toml"))["project"]
    core = [row[0] for row in _rows("docs/dependencies.md", "| package | why")]
    assert core == [_name(item) for item in project["dependencies"]]
    extras = {
        _code(row[0])[0]: row[1]
        for row in _rows("docs/dependencies.md", "| extra | packages | for |")
    }
    assert list(extras) == list(project["optional-dependencies"])
    for extra, listed in project["optional-dependencies"].items():
        for item in map(_name, listed):
            assert item == "neuraxis" or item in extras[extra], f"{extra}: {item}"


# --- what a beginner needs first ------------------------------------------------


def test_the_readme_installs_what_its_first_requests_need() -> None:
    """A page is fetched with an extra; the workspace is no file of the repository."""
    before, _, _ = _text("README.md").partition('"Fetch www.example.org')
    assert "pip install -q '.[web]'" in before
    folder = re.search(r"`(neuraxis-workspace/)`", _text("README.md"))
    assert folder
    assert folder[1] in _text(".gitignore").splitlines()


def test_the_ports_of_an_allowed_host() -> None:
    """Whoever allows a host alone is told which ports that covers."""
    (option,) = [one for one in cli.commands["run"].params if one.name == "allow_host"]
    *most, last = map(str, sorted(USUAL_PORTS))
    assert isinstance(option, click.Option)
    assert f"HOST for the ports {', '.join(most)} and {last} only" in str(option.help)
