"""Limits on what a server sends."""

from bridges.mcp_client.servers import hostile, opened, say


async def test_lines_that_are_no_messages_are_passed_over(tmp_path):
    """A server that prints a greeting to standard output is still understood."""
    with opened(tmp_path, hostile("prints")) as session:
        assert (await say(session)).value == "said hello"


async def test_a_result_of_100_megabytes_ends_the_call_and_not_the_session(tmp_path):
    """The connection is closed, the model is told why, and memory stays bounded."""
    with opened(tmp_path, hostile("huge")) as session:
        result = await say(session)
        assert result.status == "failed"
        assert "it sent a message over 64 MiB" in result.error.message
        assert "not known whether" in result.error.message
