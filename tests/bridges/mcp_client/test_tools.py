"""Tool definitions of servers: hints are claims, bad ones hide no others."""

import json
import time

import pytest

from bridges.mcp_client.servers import hostile, opened, say
from neuraxis.errors import ConfigError


async def test_hints_of_a_server_do_not_make_the_policy_laxer(tmp_path):
    """`readOnlyHint` is a claim: the effect stays `once`, the answer untrusted."""
    with opened(tmp_path, hostile("claims")) as session:
        effects = session.registry.find("hostile", "say").spec.effects
        assert (effects.kind, effects.destructive, effects.open_world) == (
            "once",
            True,
            True,
        )
    with opened(tmp_path, hostile("claims", effects={"s*": "read"})) as session:
        effects = session.registry.find("hostile", "say").spec.effects
        assert (effects.kind, effects.open_world) == ("read", True)
        await say(session)
        (label,) = session.origins.results.values()
        assert [origin.open_world for origin in label] == [True]


async def test_bad_tools_hide_no_others(tmp_path):
    """Each bad definition is named with its reason; the rest can be called."""
    source = hostile("bad_tools")
    with opened(tmp_path, source) as session:
        (plugin,) = session.registry.plugins
        assert list(plugin.commands) == ["say", "again", "secret"]
        assert (await say(session)).status == "done"
        schema = plugin.commands["secret"].spec.parameters
        assert "x-secret-ok" not in json.dumps(schema)
    told = "\n".join(source.problems)
    assert "control or invisible characters in the name 'q\\x1b[31m" in told
    for name in (
        "no_schema",
        "wrong",
        "remote",
        "tool 7",
        "tool 8",
        "tool 9",
        "forged",
    ):
        assert name in told


def test_a_list_of_20_000_tools_is_read_in_time_that_grows_with_it(tmp_path):
    """It took 12 to 26 seconds; most of them are left out all the same."""
    source = hostile("many")
    started = time.monotonic()
    with opened(tmp_path, source) as session:
        assert time.monotonic() - started < 8
        assert len(session.registry.plugins[0].commands) == 5_000
    assert "only the first 5000 tools" in source.problems[0]


@pytest.mark.parametrize(
    "effects", [{"say": "reads"}, {"say": {"kind": "read"}}, "read", ["say"]]
)
def test_an_effect_that_is_none_is_refused(effects):
    """Before a server is started; it would stand in the journal as it is."""
    with pytest.raises(ConfigError, match="effects: expected") as raised:
        hostile("tame", effects=effects)
    assert "got" in str(raised.value)


async def test_a_pattern_that_fits_no_tool_is_told(tmp_path):
    """It may be a typo, or have the plugin's name before it."""
    effects = {"sai": "read", "hostile.again": "read", "ag*": "read"}
    source = hostile("tame", effects=effects)
    with opened(tmp_path, source):
        told = "\n".join(source.problems)
    assert "like 'sai'. Did you mean say?" in told
    assert "like 'hostile.again'. Did you mean again?" in told
    assert "ag*" not in told
