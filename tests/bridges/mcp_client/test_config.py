"""Configuration of MCP servers: commands, URLs, and the files of other clients."""

import json

import pytest

from neuraxis.bridges.mcp_client.config import read_servers, suggested_name
from neuraxis.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem .", "filesystem"),
        ("uvx mcp-server-git --repository x", "git"),
        ("python servers/weather.py", "weather"),
        ("npx some-server", "some"),
        ("npx -y figma-mcp@1.2.3", "figma"),
        ("https://mcp.example.com/mcp", "mcp_example_com"),
        ("/opt/bin/thing", "thing"),
    ],
)
def test_a_plugin_is_named_after_its_server(text, name):
    """The person's words name the plugin, never the server's own."""
    assert suggested_name(text) == name


def test_a_command_is_split_as_a_shell_would_and_run_without_one():
    """Quotes hold together; nothing is expanded."""
    (server,) = read_servers("npx 'a b' $(rm -rf /)").servers
    assert server.command == ("npx", "a b", "$(rm", "-rf", "/)")


def test_the_configuration_file_of_other_clients_is_read(tmp_path, monkeypatch):
    """`mcpServers` with its usual keys, comments and a trailing comma."""
    monkeypatch.setenv("MY_TOKEN", "t0ken-value")
    file = tmp_path / "mcp.json"
    file.write_text("""{
      // servers of mine
      "mcpServers": {
        "File System": {"command": "npx", "args": ["-y", "fs", "."], "cwd": "/tmp"},
        "remote": {"type": "http", "url": "https://example.com/mcp",
                   "headers": {"Authorization": "Bearer ${MY_TOKEN}"},
                   "autoApprove": ["x"]},
        "off": {"command": "npx", "disabled": true},
        "default": {"command": "x", "env": {"A": "${NOT_SET_HERE:-b}"}},
        "lacking": {"command": "x", "env": {"A": "${NOT_SET_HERE}"}},
        "broken": {"args": []},
        "old": {"type": "sse", "url": "https://example.com/sse"},
        "odd": 5,
      }
    }""")
    found = read_servers(str(file))
    by_name = {server.name: server for server in found.servers}
    assert list(by_name) == ["File_System", "remote", "default"]
    assert by_name["File_System"].command == ("npx", "-y", "fs", ".")
    assert by_name["File_System"].cwd == "/tmp"
    assert by_name["remote"].headers == {"Authorization": "Bearer t0ken-value"}
    assert by_name["default"].env == {"A": "b"}
    told = "\n".join(found.problems)
    for words in (
        "remote: autoApprove is ignored",
        "lacking: not set in the env",
        "broken: expected command",
        "old: the transport sse",
        "odd: expected",
    ):
        assert words in told


@pytest.mark.parametrize(
    "tree",
    [
        {"servers": {"a": {"command": "x", "type": "stdio"}}, "inputs": []},
        {"context_servers": {"a": {"command": {"path": "x", "args": []}}}},
        {"mcp": {"servers": {"a": {"command": "x"}}}},
    ],
)
def test_the_forms_of_editors_are_read(tree):
    """VS Code and Zed write other keys."""
    (server,) = read_servers(tree).servers
    assert (server.name, server.command) == ("a", ("x",))


def test_one_server_can_be_given_as_a_mapping():
    """With OAuth and effects, which a person writes."""
    (server,) = read_servers(
        {
            "url": "https://example.com/mcp",
            "effects": {"get_*": "read"},
            "oauth": {"clientId": "me", "client_secret": "secret://SHOP"},
        }
    ).servers
    assert server.name == "example_com"
    assert server.effects == {"get_*": "read"}
    assert (server.oauth.client_id, server.oauth.client_secret) == (
        "me",
        "secret://SHOP",
    )


@pytest.mark.parametrize(
    "given",
    [
        "",
        "'open",
        {"name": "x"},
        {"command": "x", "effects": {"*": "harmless"}},
        {"command": "x", "effects": "read"},
        {"url": "ftp://example.com"},
        "missing.json",
    ],
)
def test_what_names_no_server_is_refused(given, tmp_path, monkeypatch):
    """The message says what was expected."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"expected|no command|cannot be read"):
        read_servers(given)


def test_a_file_that_is_no_json_is_named(tmp_path):
    """The place in the file stands in the message."""
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {}})[:-3])
    with pytest.raises(ConfigError, match=r"mcp\.json"):
        read_servers(file)


def test_variables_are_filled_in_wherever_a_key_may_stand(monkeypatch):
    """`auth` and `oauth` were sent with the name of the variable."""
    monkeypatch.setenv("SHOP_KEY", "k-481516")
    entry = {
        "url": "https://x.example/mcp",
        "auth": "${SHOP_KEY}",
        "oauth": {"client_secret": "${SHOP_KEY}"},
    }
    (server,) = read_servers({"mcpServers": {"a": entry}}).servers
    assert server.headers == {"Authorization": "Bearer k-481516"}
    assert server.oauth is not None
    assert server.oauth.client_secret == "k-481516"
