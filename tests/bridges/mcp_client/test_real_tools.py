"""527 tool definitions of 70 real MCP servers (shared/data/mcp)."""

import json
from pathlib import Path

import pytest

from neuraxis.bridges.mcp_client.tools import import_tools
from neuraxis.dialects.intents.signatures import parameter_lines
from neuraxis.dialects.native.tool_schema import for_server
from neuraxis.schema.schema import Schema

DATA = Path(__file__).parents[4] / "shared" / "data" / "mcp" / "real_tools.jsonl"


@pytest.fixture(scope="module")
def servers():
    if not DATA.is_file():
        pytest.skip("shared/data/mcp is not here")
    found = {}
    for line in DATA.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["server"], []).append(row["tool"])
    return found


@pytest.fixture(scope="module")
def imported(servers):
    return {name: import_tools(tools, name) for name, tools in servers.items()}


def test_all_definitions_are_imported(servers, imported):
    """Each of the 527 becomes a command of its server's plugin."""
    assert sum(len(tools) for tools in servers.values()) == 527
    assert sum(len(each.tools) for each in imported.values()) == 527


def test_the_one_invalid_schema_is_named(imported):
    """A boolean `exclusiveMinimum` is of draft 4; it is said, and read as draft 4."""
    problems = [text for each in imported.values() for text in each.problems]
    assert len(problems) == 1
    assert problems[0].startswith("pdf-reader-mcp.read_pdf: inputSchema: the schema is")
    assert "draft-04" in problems[0]
    (tool,) = imported["pdf-reader-mcp"].tools
    schema = Schema(tool.spec.parameters)
    assert schema.valid({"sources": [{"pages": [1]}]})
    assert not schema.valid({"sources": [{"pages": [0]}]})  # exclusive, as in draft 4


def test_the_schemas_are_enforced_as_the_servers_wrote_them(servers, imported):
    """Nothing that constrains values is lost; only remarks and `x-` words may go."""
    for name, tools in servers.items():
        for given, tool in zip(tools, imported[name].tools, strict=True):
            kept = {**tool.spec.parameters}
            del kept["x-formats"]
            assert without_remarks(kept) == without_remarks(given["inputSchema"])


def without_remarks(node):
    if isinstance(node, list):
        return [without_remarks(item) for item in node]
    if not isinstance(node, dict):
        return node
    words = ("description", "title", "$schema")
    return {
        key: without_remarks(value)
        for key, value in node.items()
        if not (key in words and isinstance(value, str)) and not key.startswith("x-")
    }


def test_every_command_can_be_shown_in_the_notation_and_to_servers(imported):
    """Both forms that models are shown can be made of every schema."""
    for each in imported.values():
        for tool in each.tools:
            names = tool.spec.parameter_names
            assert len(parameter_lines(tool.spec)) >= len(names)
            assert for_server(tool.spec.parameters)["type"] == "object"


def test_every_effect_is_the_strictest(imported):
    """No server's hint made anything laxer."""
    kinds = {
        (tool.spec.effects.kind, tool.spec.effects.open_world)
        for each in imported.values()
        for tool in each.tools
    }
    assert kinds == {("once", True)}
