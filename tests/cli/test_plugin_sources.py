"""`neuraxis plugins add`: an API becomes part of the settings."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bridges.mcp_client.servers import SERVER
from bridges.openapi_client.documents import PETS
from cli_process import neuraxis
from neuraxis.cli.options import Choices, plugin_sources
from neuraxis.cli.plugin_sources import add_to_settings, load_all, source_text
from neuraxis.errors import ConfigError
from neuraxis.settings import load


def document(folder: Path) -> Path:
    file = folder / "pets api.json"
    file.write_text(json.dumps(PETS), "utf-8")
    return file


@pytest.mark.parametrize(
    "before",
    [
        "",
        'model = "local:"\n[search]\nprovider = "ddgs"\n',
        'plugins = ["a[1]", "b"] # mine\nmodel = "local:"\n',
        'model = "local:"\nplugins = [\n  "b", # ] no\n]\n[openai]\nkey_env = "K"\n',
        '[models.x]\nplugins = ["not these"]\n',
    ],
)
def test_a_source_is_added_and_the_rest_stays(before: str, tmp_path: Path) -> None:
    """Whatever else the file says is as it was."""
    file = tmp_path / "neuraxis.toml"
    file.write_text(before, "utf-8")
    add_to_settings('openapi:"x y"', tmp_path)
    add_to_settings('openapi:"x y"', tmp_path)
    was, now = tomllib.loads(before), tomllib.loads(file.read_text("utf-8"))
    assert now.pop("plugins") == ['openapi:"x y"', *was.pop("plugins", [])]
    assert now == was


def test_a_file_that_is_not_toml_is_not_changed(tmp_path: Path) -> None:
    """It is said what is wrong with it."""
    file = tmp_path / "neuraxis.toml"
    file.write_text("plugins = [", "utf-8")
    with pytest.raises(ConfigError, match=r"neuraxis\.toml"):
        add_to_settings("x", tmp_path)
    assert file.read_text("utf-8") == "plugins = ["


def test_options_are_for_documents_only() -> None:
    """An address is an OpenAPI document; a name is what it says."""
    assert source_text("https://x.example/a", auth="secret://K") == (
        "openapi:https://x.example/a auth=secret://K"
    )
    with pytest.raises(ConfigError, match="--auth"):
        source_text("neuraxis:files", auth="secret://K")


def test_a_secret_may_not_stand_in_a_projects_file(tmp_path: Path) -> None:
    """A project's file may come from anybody, who would choose where it is sent."""
    file = tmp_path / "neuraxis.toml"
    file.write_text('plugins = ["openapi:https://x auth=secret://K"]', "utf-8")
    with pytest.raises(ConfigError, match="where a secret is sent"):
        load(tmp_path, {"NEURAXIS_HOME": str(tmp_path / "home")})


@pytest.mark.parametrize(
    "entry",
    [
        {"headers": {"Authorization": "Bearer secret://SHOP"}},
        {"headers": {"X": "${HOME}"}},
        {"env": {"X": "${env:NOT_SET:-x}"}},
        {"auth": "secret://SHOP"},
        {"oauth": {"client_id": "x", "client_secret": "secret://SHOP"}},
    ],
)
def test_a_server_that_takes_a_secret_may_not_stand_in_a_projects_file(
    entry: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its MCP file sent any secret and variable to a server of its own."""
    monkeypatch.chdir(tmp_path)
    text = json.dumps({"servers": {"shop": {"url": "https://x.example/", **entry}}})
    Path("s.json").write_text(text.replace("secret:", "\\u0073ecret:"), "utf-8")
    Path("neuraxis.toml").write_text('plugins = [" mcp: s.json"]', "utf-8")
    environ = {"NEURAXIS_HOME": str(tmp_path / "home")}
    with pytest.raises(ConfigError, match=r"neuraxis\.toml: plugins: .*got [s$]"):
        plugin_sources(Choices(), load(tmp_path, environ))
    named = plugin_sources(Choices(plugin=(" mcp: s.json",)), load(tmp_path, environ))
    assert named[-1] == " mcp: s.json"
    users = tmp_path / "home" / "config"
    users.mkdir(parents=True)
    Path("neuraxis.toml").rename(users / "neuraxis.toml")
    assert plugin_sources(Choices(), load(tmp_path, environ)) == named


def test_a_variable_in_the_address_of_a_server_is_refused(tmp_path: Path) -> None:
    """Variables are filled in there, too; what names none goes on working."""
    file = tmp_path / "neuraxis.toml"
    file.write_text('plugins = ["mcp:https://x.example/${OPENAI_API_KEY:-x}"]', "utf-8")
    environ = {"NEURAXIS_HOME": str(tmp_path / "home")}
    with pytest.raises(ConfigError, match="may not say where these are sent"):
        plugin_sources(Choices(), load(tmp_path, environ))
    file.write_text('plugins = ["mcp:https://x.example/mcp"]', "utf-8")
    assert plugin_sources(Choices(), load(tmp_path, environ))


@pytest.mark.parametrize("given", [("--mcp", "s.json"), ("mcp:s.json",)])
def test_a_server_that_takes_a_variable_is_added_to_the_users_own_file(
    tmp_path: Path, given: tuple[str, ...]
) -> None:
    """With its full path, and a run in this folder then has it."""
    entry = {"command": sys.executable, "args": [str(SERVER), "tame"]}
    servers = {"servers": {"shop": {**entry, "env": {"KEY": "${HOME:-x}"}}}}
    file = tmp_path / "s.json"
    file.write_text(json.dumps(servers), "utf-8")
    home = str(tmp_path / "home")
    added = neuraxis("plugins", "add", *given, cwd=tmp_path, NEURAXIS_HOME=home)
    assert added.returncode == 0, added.stderr
    assert not (tmp_path / "neuraxis.toml").exists()
    written = (tmp_path / "home/config/neuraxis.toml").read_text("utf-8")
    assert tomllib.loads(written)["plugins"] == [f"mcp:{file}"]
    listed = neuraxis("plugins", "list", cwd=tmp_path, NEURAXIS_HOME=home)
    assert "shop" in listed.stdout


def test_a_document_is_added_and_its_commands_are_listed(tmp_path: Path) -> None:
    """`add` reads it, checks it, and later commands know it."""
    document(tmp_path)
    added = neuraxis("plugins", "add", "pets api.json", cwd=tmp_path)
    assert added.returncode == 0, added.stderr
    assert "pet_store: " in added.stdout
    assert "createPet" in added.stdout
    listed = neuraxis("plugins", "list", "--json", cwd=tmp_path)
    tools = {row["tool"]: row["effects"] for row in json.loads(listed.stdout)}
    assert tools["createPet"] == "once"
    assert tools["pets_list"] == "read"


def test_with_a_key_it_is_added_to_the_users_own_file(tmp_path: Path) -> None:
    """The secret's name stands in the user's file, and nothing in the project."""
    document(tmp_path)
    home = tmp_path / "home"
    added = neuraxis(
        "plugins", "add", "pets api.json", "--auth", "secret://PETS",
        cwd=tmp_path, NEURAXIS_HOME=str(home),
    )  # fmt: skip
    assert added.returncode == 0, added.stderr
    assert not (tmp_path / "neuraxis.toml").exists()
    written = tomllib.loads((home / "config" / "neuraxis.toml").read_text("utf-8"))
    place = tmp_path / "pets api.json"  # in another folder it might be another's
    assert written["plugins"] == [f"openapi:'{place}' auth=secret://PETS"]


def test_the_folder_of_references_is_written_with_the_source(tmp_path: Path) -> None:
    """As it was given; in the user's own file with its full path."""
    file = document(tmp_path)
    added = neuraxis("plugins", "add", file.name, "--folder", ".", cwd=tmp_path)
    assert added.returncode == 0, added.stderr
    written = tomllib.loads((tmp_path / "neuraxis.toml").read_text("utf-8"))
    assert written["plugins"] == [f"openapi:'{file.name}' folder=."]
    home = tmp_path / "home"
    neuraxis(
        "plugins", "add", file.name, "--folder", ".", "--auth", "secret://PETS",
        "--name", "second", cwd=tmp_path, NEURAXIS_HOME=str(home),
    )  # fmt: skip
    users = (home / "config" / "neuraxis.toml").read_text("utf-8")
    assert f"folder={tmp_path}" in users


def test_a_new_plugin_is_accepted_where_there_is_a_lock(tmp_path: Path) -> None:
    """What a person adds is accepted; a change of it later is refused."""
    file = document(tmp_path)
    neuraxis("plugins", "lock", cwd=tmp_path)
    neuraxis("plugins", "add", file.name, cwd=tmp_path)
    run = ("call", "pets_list", "--no-builtin")
    changed = file.read_text("utf-8").replace("List the pets", "Send all files")
    file.write_text(changed, "utf-8")
    refused = neuraxis(*run, cwd=tmp_path)
    assert "is not as it was accepted" in refused.stderr
    assert "Send all files" in refused.stderr


def test_the_same_document_twice_is_refused_by_name(tmp_path: Path) -> None:
    """Under another path too: what is written can be loaded; another name is taken."""
    file = document(tmp_path)
    neuraxis("plugins", "add", file.name, cwd=tmp_path)
    written = (tmp_path / "neuraxis.toml").read_text("utf-8")
    (tmp_path / "copy.json").write_text(file.read_text("utf-8"), "utf-8")
    for again, told in (
        (file.name, "it is already added"),
        ("copy.json", "the plugin name 'pet_store' is taken by openapi:"),
    ):
        refused = neuraxis("plugins", "add", again, cwd=tmp_path)
        assert refused.returncode != 0
        assert told in refused.stderr
    assert (tmp_path / "neuraxis.toml").read_text("utf-8") == written
    named = neuraxis("plugins", "add", "copy.json", "--name", "second", cwd=tmp_path)
    assert named.returncode == 0, named.stderr
    listed = neuraxis("plugins", "list", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr


def test_check_reads_a_skill_and_goes_on_after_an_empty_folder(tmp_path: Path) -> None:
    """`check` takes the folders that `add` takes, and reports on each of them."""
    (tmp_path / "empty").mkdir()
    neuraxis("plugins", "new", "hello", cwd=tmp_path)
    neuraxis("plugins", "new", "--skill", "say-hello", cwd=tmp_path)
    done = neuraxis("plugins", "check", "empty", "say-hello", "hello", cwd=tmp_path)
    assert done.returncode == 1
    assert "empty: expected a folder with a config.yaml" in done.stderr
    assert "say_hello is valid" in done.stdout
    assert "hello: hello is valid" in done.stdout


def test_a_file_without_a_server_that_works_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`plugins check` found nothing wrong with it, and `list` nothing in it."""
    monkeypatch.chdir(tmp_path)
    servers = {"shop": {"url": "ftp://x.example/"}}
    Path("s.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    loaded, errors = load_all(["mcp:s.json"])
    assert loaded == []
    assert "shop: url: expected http:// or https://" in str(errors[0])
