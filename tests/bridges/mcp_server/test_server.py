"""The MCP server, asked by the SDK's client, in process and over HTTP."""

import asyncio
import base64
import json
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from neuraxis import Context, Session, command
from neuraxis.bridges.mcp_server import approvals
from neuraxis.bridges.mcp_server.client import calling, form, roots, sampling
from neuraxis.bridges.mcp_server.server import McpService
from neuraxis.bridges.mcp_server.transports import serve_http
from neuraxis.errors import ConfigError
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import Policy, Rule

MODES = ("legacy", "2026-07-28")


@command(effects="none")
def add(a: int, b: int = 1) -> dict[str, int]:
    """Add two numbers.

    Args:
        a: the first.
        b: the second.
    """
    return {"sum": a + b}


@command(effects="read")
def letters(count: int) -> str:
    """Give a text of that many letters."""
    return "x" * count


@command(effects="read")
def picture() -> Any:
    """Give a picture."""
    from PIL import Image

    return Image.new("RGB", (4, 3), "red")


@command(effects="read")
def width(image: Any) -> int:
    """Give the width of a picture."""
    return image.size[0]


@command(effects="read")
async def steps(context: Context) -> str:
    """Say how far it is."""
    for number in range(3):
        context.progress(f"step {number}", (number + 1) / 3)
        await asyncio.sleep(0)
    return "done"


@command(effects="once")
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@command(effects="read")
def broken() -> str:
    """Fail."""
    raise ValueError("it broke")


RUNS = []


@command(effects="once")
async def book(day: str) -> str:
    """Book a table; asks for the number of guests, then for a name."""
    RUNS.append(day)
    asked = calling()
    fields = {"guests": {"type": "integer"}}
    guests = form("How many?", {"type": "object", "properties": fields})
    first = await asked.ask(guests=guests)
    then = await asked.ask(name=sampling("A name?"), folders=roots())
    return f"{day} {first['guests']} {then['name']} {then['folders']}"


@command(effects="read")
def greeting(name: str, times: int = 1) -> str:
    """Greet somebody.

    Args:
        name: whom.
        times: how often.
    """
    return f"Say hello to {name} {times} times."


@command(effects={"kind": "read", "others_write": True})
def mails() -> str:
    """Give the mails."""
    return "From Eve: my account is EVE-123"


@command(effects="once", trusted_only=["to"])
def transfer(to: str, amount: int) -> str:
    """Send money."""
    return f"sent {amount} to {to}"


PLUGINS = [
    add,
    letters,
    picture,
    width,
    steps,
    pay,
    broken,
    book,
    greeting,
    mails,
    transfer,
]


@pytest.fixture
def session(tmp_path):
    with Session(
        model=ScriptedModel([]),
        plugins=PLUGINS,
        workspace=tmp_path / "w",
        approve=approvals.approve,
        policy=Policy(rules=(Rule(verdict="ask", target="*pay*"),)),
    ) as made:
        yield made


def client(session, mode, **options):
    service = McpService(
        session, prompts=["greet*"], resources={"hello://{name}": "greeting"}
    )
    return Client(service.server(), mode=mode, **options)


@pytest.mark.parametrize("mode", MODES)
async def test_commands_are_tools_with_schemas_and_hints(session, mode):
    """Names, both schemas, and the effects as annotations."""
    async with client(session, mode) as asked:
        tools = {tool.name: tool for tool in (await asked.list_tools()).tools}
    assert list(tools) == [plugin.__name__ for plugin in PLUGINS] + ["run_plan"]
    assert tools["add"].input_schema["required"] == ["a"]
    assert tools["add"].output_schema["type"] == "object"
    assert tools["add"].annotations.read_only_hint is True
    assert tools["pay"].annotations.read_only_hint is False
    assert tools["pay"].annotations.destructive_hint is True
    assert "x-" not in json.dumps([tool.input_schema for tool in tools.values()])


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_is_checked_and_answers_with_structure(session, mode):
    """Wrong arguments are told as the model is told of them; nothing runs."""
    async with client(session, mode) as asked:
        right = await asked.call_tool("add", {"a": 2})
        assert right.structured_content == {"sum": 3}
        assert json.loads(right.content[0].text) == {"sum": 3}
        wrong = await asked.call_tool("add", {"a": "two"})
        assert wrong.is_error
        assert "expected integer" in wrong.content[0].text
        failed = await asked.call_tool("broken")
        assert failed.is_error
        assert "it broke" in failed.content[0].text
        with pytest.raises(MCPError, match="Unknown tool"):
            await asked.call_tool("none", {})


@pytest.mark.parametrize("mode", MODES)
async def test_a_large_answer_is_a_link_to_a_resource(session, mode):
    """The client reads it when it wants to; others read of none."""
    async with client(session, mode) as asked:
        answer = await asked.call_tool("letters", {"count": 100_000})
        (link,) = [each for each in answer.content if each.type == "resource_link"]
        (listed,) = (await asked.list_resources()).resources
        assert str(listed.uri) == str(link.uri)
        read = await asked.read_resource(link.uri)
        assert read.contents[0].text == "x" * 100_000
        with pytest.raises(MCPError, match="not found"):
            await asked.read_resource("neuraxis://asset/other")
        with pytest.raises(MCPError, match="not found"):
            await asked.read_resource("file:///etc/passwd")


@pytest.mark.parametrize("mode", MODES)
async def test_a_picture_is_sent_and_can_be_handed_on(session, mode):
    """As an image, as a resource, and by reference to the next tool."""
    pytest.importorskip("PIL.Image")
    async with client(session, mode) as asked:
        answer = await asked.call_tool("picture")
        (image,) = [each for each in answer.content if each.type == "image"]
        assert base64.b64decode(image.data).startswith(b"\x89PNG")
        (link,) = [each for each in answer.content if each.type == "resource_link"]
        read = await asked.read_resource(link.uri)
        assert read.contents[0].mime_type == "image/png"
        asset = link.uri.rpartition("/")[2]
        for reference in (link.uri, {"asset_id": asset}, {"asset_id": link.uri}):
            answer = await asked.call_tool("width", {"image": reference})
            assert answer.structured_content == {"result": 4}, answer.content


@pytest.mark.parametrize("mode", MODES)
async def test_a_plan_is_one_tool(session, mode):
    """Its steps hand objects on; a wrong plan is refused whole."""
    pytest.importorskip("PIL.Image")
    plan = {
        "steps": [
            {"tool": "picture", "as": "red"},
            {"tool": "width", "arguments": {"image": "{{ red }}"}},
            {"tool": "add", "arguments": {"a": "{{ previous_result }}"}},
        ]
    }
    async with client(session, mode) as asked:
        answer = await asked.call_tool("run_plan", plan)
        assert not answer.is_error, answer.content
        told = answer.structured_content["steps"]
        assert [step["status"] for step in told] == ["done"] * 3
        assert [step["result"] for step in told] == [None, 4, {"sum": 5}]
        assert told[0]["resource"].startswith("neuraxis://asset/")
        wrong = {
            "steps": [{"tool": "pay", "arguments": {"amount": 1}}, {"tool": "nothing"}]
        }
        answer = await asked.call_tool("run_plan", wrong)
        assert answer.is_error
        assert "paid" not in str(answer)
        none = await asked.call_tool("run_plan", {"steps": []})
        assert none.is_error


@pytest.mark.parametrize("mode", MODES)
async def test_progress_reaches_the_client(session, mode):
    """In order, with the fraction."""
    heard = []

    async def hear(done, total, message):
        heard.append((round(done), total, message))

    async with client(session, mode) as asked:
        await asked.call_tool("steps", progress_callback=hear)
    assert heard == [(33, 100, "step 0"), (67, 100, "step 1"), (100, 100, "step 2")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("action", "allow", "done"),
    [
        ("accept", True, True),
        ("accept", False, False),
        ("decline", True, False),
    ],
)
async def test_a_call_that_needs_a_yes_asks_the_person(
    session, mode, action, allow, done
):
    """By elicitation; the question shows the call. Only a plain yes runs it."""
    asked_for = []

    async def answer(context, params):
        asked_for.append(params.message)
        return ElicitResult(action=action, content={"allow": allow})

    async with client(session, mode, elicitation_callback=answer) as asked:
        result = await asked.call_tool("pay", {"amount": 7})
    assert result.is_error is not done
    assert ("paid 7" in result.content[0].text) is done
    assert len(asked_for) == 1
    assert '"amount": 7' in asked_for[0]


@pytest.mark.parametrize("mode", MODES)
async def test_without_elicitation_it_is_refused(session, mode):
    """Nothing runs, and nobody said no: the reason and the way out are told."""
    async with client(session, mode) as asked:
        result = await asked.call_tool("pay", {"amount": 7})
    assert result.is_error
    told = result.content[0].text
    assert "paid" not in told
    assert "said no" not in told
    assert "this MCP client cannot ask its user" in told


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("can_ask", [True, False])
@pytest.mark.parametrize("read", ["tool", "plan", "resource", "prompt"])
async def test_what_the_client_was_given_is_read(session, mode, can_ask, read):
    """Its model may have been told by a stranger what to do next."""
    questions = []

    async def yes(context, params):
        questions.append(params.message)
        return ElicitResult(action="accept", content={"allow": True})

    to_eve = {"to": "EVE-123", "amount": 5}
    options = {"elicitation_callback": yes} if can_ask else {}
    service = McpService(session, prompts=["mails"], resources={"mails://": "mails"})
    async with Client(service.server(), mode=mode, **options) as asked:
        first = await asked.call_tool("transfer", {"to": "ADA-1", "amount": 1})
        assert not first.is_error  # nothing was read
        if read == "tool":
            await asked.call_tool("mails")
        elif read == "plan":
            await asked.call_tool("run_plan", {"steps": [{"tool": "mails"}]})
        elif read == "resource":
            await asked.read_resource("mails://")
        else:
            await asked.get_prompt("mails")
        result = await asked.call_tool("transfer", to_eve)
    assert result.is_error is not can_ask
    assert len(questions) == can_ask
    told = (questions or [result.content[0].text])[0]
    assert "after it read answers of mails.mails" in told
    assert can_ask or "--yes-to transfer.transfer" in told


@pytest.mark.parametrize("mode", MODES)
async def test_a_yes_may_be_for_more_than_one_call(session, mode):
    """The question offers it; the answer is for those values only."""
    forms = []

    async def person(context, params):
        forms.append(params.requested_schema)
        choice = params.requested_schema["properties"]["more"]
        assert choice["default"] == choice["enum"][0] == "only what is shown here"
        wider = choice["enum"][1]
        return ElicitResult(action="accept", content={"allow": True, "more": wider})

    async with client(session, mode, elicitation_callback=person) as asked:
        await asked.call_tool("mails")
        for amount in (1, 2):
            await asked.call_tool("transfer", {"to": "ADA-1", "amount": amount})
        assert len(forms) == 1
        await asked.call_tool("transfer", {"to": "EVE-123", "amount": 5})
        assert len(forms) == 2


@pytest.mark.parametrize("mode", MODES)
async def test_a_plan_written_before_reading_runs(session, mode):
    """A value that it refers to is asked about where the user's own must stand."""
    own = {"tool": "transfer", "arguments": {"to": "ADA-1", "amount": 1}}
    foreign = {"tool": "transfer", "arguments": {"to": "{{ m }}", "amount": 1}}
    steps = [{"tool": "mails", "as": "m"}, own, foreign]
    async with client(session, mode) as asked:
        result = await asked.call_tool("run_plan", {"steps": steps})
    told = result.structured_content["steps"]
    assert [step["status"] for step in told] == ["done", "done", "failed"]


async def test_a_yes_to_one_call_is_for_no_other(session):
    """2026-07-28: the client may not change the call with its answer."""
    async with client(session, "2026-07-28", elicitation_callback=None) as plain:
        assert (await plain.call_tool("pay", {"amount": 1})).is_error

    async def answer(context, params):
        return ElicitResult(action="accept", content={"allow": True})

    async with client(session, "2026-07-28", elicitation_callback=answer) as asked:
        first = await asked.session.call_tool(
            "pay", {"amount": 7}, allow_input_required=True
        )
        yes = {"approval": ElicitResult(action="accept", content={"allow": True})}
        changed = await asked.session.call_tool(
            "pay",
            {"amount": 7_000},
            input_responses=yes,
            request_state=first.request_state,
            allow_input_required=True,
        )
        assert changed.result_type == "input_required"  # asked about anew
        with pytest.raises(MCPError, match="requestState"):
            await asked.session.call_tool(
                "pay",
                {"amount": 7},
                input_responses=yes,
                request_state="guess",
                allow_input_required=True,
            )


def answers(guests):
    async def person(context, params):
        return ElicitResult(action="accept", content={"guests": guests})

    async def model(context, params):
        text = types.TextContent(text="Ada")
        return types.CreateMessageResult(role="assistant", content=text, model="m")

    async def folders(context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///home")])

    return {
        "elicitation_callback": person,
        "sampling_callback": model,
        "list_roots_callback": folders,
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:The .* capability is deprecated")
async def test_a_command_asks_the_client_and_runs_once(session, mode):
    """Its questions are the answers of 2026-07-28; the command waits, and goes on."""
    RUNS.clear()
    async with client(session, mode, **answers(4)) as asked:
        result = await asked.call_tool("book", {"day": "Monday"})
    said = "Monday {'guests': 4} Ada ['file:///home']"
    assert result.content[0].text == said
    assert RUNS == ["Monday"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:The .* capability is deprecated")
async def test_a_form_that_does_not_fit_is_an_error(session, mode):
    """What the person filled in is checked."""
    async with client(session, mode, **answers("many")) as asked:
        result = await asked.call_tool("book", {"day": "Monday"})
    assert result.is_error
    assert "did not fill in the form" in result.content[0].text


async def test_a_client_that_cannot_answer_is_not_asked(session):
    """2026-07-28 wants an error of the protocol; before, the call fails."""
    async with client(session, "legacy") as asked:
        assert (await asked.call_tool("book", {"day": "Monday"})).is_error
    async with client(session, "2026-07-28") as asked:
        with pytest.raises(MCPError, match="declares no elicitation") as caught:
            await asked.call_tool("book", {"day": "Monday"})
    assert caught.value.error.data == {"requiredCapabilities": {"elicitation": {}}}


@pytest.mark.parametrize("mode", MODES)
async def test_a_step_of_a_plan_can_ask_for_a_yes(session, mode):
    """The plan waits where it is: its first step is not run again."""
    RUNS.clear()

    async def yes(context, params):
        if "guests" in params.requested_schema["properties"]:
            return ElicitResult(action="accept", content={"guests": 2})
        return ElicitResult(action="accept", content={"allow": True})

    steps = [
        {"tool": "add", "arguments": {"a": 1}},
        {"tool": "pay", "arguments": {"amount": 5}},
    ]
    async with client(session, mode, elicitation_callback=yes) as asked:
        result = await asked.call_tool("run_plan", {"steps": steps})
    told = result.structured_content["steps"]
    assert [step["status"] for step in told] == ["done", "done"], result.content


@pytest.mark.parametrize("mode", MODES)
async def test_commands_are_prompts_and_resources(session, mode):
    """Those that were named; they go the way of all calls."""
    async with client(session, mode) as asked:
        (prompt,) = (await asked.list_prompts()).prompts
        assert prompt.name == "greeting"
        assert [(one.name, one.required) for one in prompt.arguments] == [
            ("name", True),
            ("times", False),
        ]
        got = await asked.get_prompt("greeting", {"name": "Ada", "times": "2"})
        assert got.messages[0].content.text == "Say hello to Ada 2 times."
        with pytest.raises(MCPError, match="expected integer"):
            await asked.get_prompt("greeting", {"name": "Ada", "times": "often"})
        with pytest.raises(MCPError, match="Unknown prompt"):
            await asked.get_prompt("add", {"a": "1"})
        templates = (await asked.list_resource_templates()).resource_templates
        assert "hello://{name}" in [one.uri_template for one in templates]
        read = await asked.read_resource("hello://Ada")
        assert read.contents[0].text == "Say hello to Ada 1 times."
        with pytest.raises(MCPError, match="not found"):
            await asked.read_resource("hello://Ada/more")


@pytest.mark.parametrize("name", ["pay", "nothing"])
async def test_what_has_effects_is_neither_prompt_nor_resource(session, name):
    """A client reads them without a thought."""
    with pytest.raises(ConfigError, match=name):
        McpService(session, prompts=[name])
    with pytest.raises(ConfigError, match=name):
        McpService(session, resources={"x://y": name})


@pytest.mark.filterwarnings("ignore:The .* capability is deprecated")
async def test_words_of_progress_are_log_messages_for_who_wants_them(session):
    """None before `logging/setLevel`, and none above its level."""
    heard = []

    async def hear(params):
        heard.append((params.level, params.data))

    async with client(session, "legacy", logging_callback=hear) as asked:
        await asked.call_tool("steps")
        assert heard == []
        await asked.set_logging_level("info")
        await asked.call_tool("steps")
        assert heard == [("info", f"step {number}") for number in range(3)]
        await asked.set_logging_level("error")
        await asked.call_tool("steps")
        assert len(heard) == 3


async def served(session, work, **options):
    started = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve_http(McpService(session), started=started.set_result, **options)
    )
    try:
        url = await asyncio.wait_for(started, 10)
        return await work(url)
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_it_serves_over_http_on_loopback(session, mode):
    """Streamable HTTP, both revisions."""

    async def work(url):
        async with Client(url, mode=mode) as asked:
            assert asked.protocol_version == (
                "2025-11-25" if mode == "legacy" else "2026-07-28"
            )
            result = await asked.call_tool("add", {"a": 1, "b": 1})
            return result.structured_content

    assert await served(session, work) == {"sum": 2}


async def test_http_wants_the_token(session):
    """Without it nothing is answered, not even the list."""
    import httpx2

    async def work(url):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        async with httpx2.AsyncClient() as plain:
            refused = await plain.post(url, json=body)
            wrong = await plain.post(
                url, json=body, headers={"Authorization": "Bearer x"}
            )
        headers = {"Authorization": "Bearer t0ken-value"}
        async with (
            httpx2.AsyncClient(headers=headers) as right,
            Client(streamable_http_client(url, http_client=right)) as asked,
        ):
            tools = (await asked.list_tools()).tools
        return refused.status_code, wrong.status_code, len(tools)

    assert await served(session, work, token="t0ken-value") == (
        401,
        401,
        len(PLUGINS) + 1,
    )


async def test_a_page_of_another_origin_is_refused(session):
    """DNS rebinding: the Host and Origin headers are checked."""
    import httpx2

    async def work(url):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        async with httpx2.AsyncClient() as page:
            host = await page.post(url, json=body, headers={"Host": "evil.example"})
            origin = await page.post(
                url, json=body, headers={"Origin": "http://evil.example"}
            )
        return host.status_code, origin.status_code

    assert await served(session, work) == (421, 403)


async def test_a_port_that_is_taken_is_a_plain_error(session):
    """It says where, and what to do."""

    async def work(url):
        port = int(url.rsplit(":")[-1].partition("/")[0])
        with pytest.raises(ConfigError, match=f"listens at 127.0.0.1:{port}: end it"):
            await serve_http(McpService(session), port=port)

    await served(session, work)


async def test_it_listens_on_loopback_only(session):
    """Another address is refused."""
    with pytest.raises(ConfigError, match=r"expected one of 127"):
        await serve_http(McpService(session), host="0.0.0.0")


@pytest.mark.parametrize("mode", MODES)
async def test_completions_beyond_the_limit_are_counted(session, mode):
    """Of 130 assets the first hundred are named, and that there are more."""
    for number in range(130):
        session.attach(f"text {number}")
    reference = types.ResourceTemplateReference(uri="neuraxis://asset/{id}")
    argument = {"name": "id", "value": ""}
    async with client(session, mode) as asked:
        found = (await asked.complete(reference, argument)).completion
    assert (len(found.values), found.total, found.has_more) == (100, 130, True)
