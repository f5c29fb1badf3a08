"""The client over HTTP, against our own server: secrets, other hosts, shared use."""

import asyncio
import contextlib
import threading

import httpx2
import pytest

from neuraxis import Call, Session, command
from neuraxis.bridges import mcp
from neuraxis.bridges.mcp_client.guarded_http import GuardedTransport, RefusedAddress
from neuraxis.bridges.mcp_client.transport import Inbox
from neuraxis.bridges.mcp_server.server import McpService
from neuraxis.bridges.mcp_server.transports import serve_http
from neuraxis.errors import ConfigError
from neuraxis.models.scripted import ScriptedModel

TOKEN = "t0ken-of-the-shop"


@command(effects="none")
def leak() -> str:
    """Say what nobody should."""
    return f"the token is {TOKEN}"


@pytest.fixture
def url(tmp_path):
    """A server of ours that wants a token, in a thread."""
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    found = {}

    async def serve():
        with Session(
            model=ScriptedModel([]), plugins=[leak], workspace=tmp_path / "s"
        ) as session:

            def started(address):
                found["url"] = address
                ready.set()

            found["task"] = asyncio.current_task()
            await serve_http(McpService(session), token=TOKEN, started=started)

    def work():
        asyncio.set_event_loop(loop)
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(serve())

    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(20)
    yield found["url"]
    loop.call_soon_threadsafe(found["task"].cancel)
    thread.join(20)
    loop.close()


def opened(tmp_path, source):
    return Session(model=ScriptedModel([]), plugins=[source], workspace=tmp_path / "w")


async def test_a_secret_is_sent_by_name_and_scrubbed_from_answers(
    tmp_path, url, monkeypatch
):
    """N15: the header has the value, the model reads its name."""
    monkeypatch.setenv("NEURAXIS_SECRET_SHOP", TOKEN)
    source = mcp({"url": url, "auth": "secret://SHOP"}, name="shop")
    with opened(tmp_path, source) as session:
        result = await session.call(Call(id="c1", plugin="shop", command="leak"))
        assert result.value == {"result": "the token is secret://SHOP"}


def test_without_the_token_the_server_is_reported(tmp_path, url):
    """A server that refuses is a dead one; `required` raises."""
    source = mcp(url, name="shop")
    with opened(tmp_path, source) as session:
        assert session.registry.listed == ()
    assert "(HTTP 401 Unauthorized); it wants a key: add" in source.problems[0]
    wrong = mcp({"url": url, "headers": {"Authorization": "Bearer x"}}, name="shop")
    with opened(tmp_path, wrong):
        assert "(HTTP 401 Unauthorized); it does not accept" in wrong.problems[0]
    with pytest.raises(ConfigError, match="shop"):
        opened(tmp_path, mcp(url, name="shop", required=True))


def test_a_secret_that_is_not_there_is_named(tmp_path, url):
    """Only its name is said."""
    source = mcp({"url": url, "auth": "secret://NOT_SET"}, name="shop")
    with opened(tmp_path, source):
        pass
    assert "there is no secret NOT_SET" in source.problems[0]


async def test_two_sessions_share_a_source(tmp_path, url, monkeypatch):
    """The last one that closes ends the connection; it may be opened again."""
    monkeypatch.setenv("NEURAXIS_SECRET_SHOP", TOKEN)
    source = mcp({"url": url, "auth": "secret://SHOP"}, name="shop")
    first, second = opened(tmp_path, source), opened(tmp_path, source)
    first.close()
    call = Call(id="c1", plugin="shop", command="leak")
    assert (await second.call(call)).status == "done"
    second.close()
    with opened(tmp_path, source) as third:
        assert (await third.call(call)).status == "done"


def test_a_session_can_be_made_by_a_text(tmp_path, url):
    """As in the settings: `mcp:` and what names the server."""
    with opened(tmp_path, f"mcp:{url}") as session:
        (plugin,) = session.registry.plugins
        assert plugin.spec.name == "mcp_127_0_0_1"


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1/", "http://169.254.169.254/", "http://localhost:1/"]
)
async def test_a_server_cannot_send_the_client_inside(address):
    """SSRF: hosts that a server names for OAuth must be public, or its own."""
    async with httpx2.AsyncClient(
        transport=GuardedTransport("example.com", Inbox())
    ) as client:
        with pytest.raises(RefusedAddress, match="not the server's host"):
            await client.get(address)
