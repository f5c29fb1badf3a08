"""The server that the official conformance suite asks: `mcp serve` with test commands.

Prints its URL. The commands have the names and answers that the scenarios ask for.
"""

import asyncio
import io
import struct
import sys
import tempfile
import wave
from pathlib import Path
from typing import Any

from neuraxis import Context, Session, command
from neuraxis.bridges.mcp_server.client import (
    McpClient,
    calling,
    form,
    roots,
    sampling,
)
from neuraxis.bridges.mcp_server.server import McpService
from neuraxis.bridges.mcp_server.transports import serve_http
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import EVERYTHING


@command(effects="none")
def test_simple_text() -> str:
    """Tests simple text content response."""
    return "This is a simple text response for testing."


def sound() -> bytes:
    sink = io.BytesIO()
    with wave.open(sink, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(struct.pack("<8h", *range(8)))
    return sink.getvalue()


@command(effects="none")
def test_image_content() -> Any:
    """Tests image content response."""
    from PIL import Image

    return Image.new("RGB", (1, 1), "red")


@command(effects="none")
def test_audio_content() -> Any:
    """Tests audio content response."""
    return {"mime_type": "audio/wav", "data": sound()}


@command(effects="none")
def test_embedded_resource() -> Any:
    """Tests embedded resource content response."""
    return {
        "uri": "test://embedded-resource",
        "mime_type": "text/plain",
        "text": "This is an embedded resource content.",
    }


@command(effects="none")
def test_multiple_content_types() -> Any:
    """Tests response with multiple content types."""
    from PIL import Image

    return [
        "Multiple content types test:",
        Image.new("RGB", (1, 1), "red"),
        {
            "uri": "test://mixed-content-resource",
            "mime_type": "application/json",
            "text": '{"test":"data","value":123}',
        },
    ]


@command(effects="none")
def test_error_handling() -> str:
    """Tests error response handling."""
    raise ValueError("This tool intentionally returns an error for testing")


@command(effects="read")
async def test_tool_with_progress(context: Context) -> str:
    """Tests progress notifications."""
    for number in (0.0, 0.5, 1.0):
        context.progress(f"Completed step {number}", number)
        await asyncio.sleep(0.05)
    return "done"


@command(effects="none")
async def test_tool_with_logging(context: Context) -> str:
    """Tests log messages: the words of progress."""
    for text in ("started", "processing data", "completed"):
        context.progress(f"Tool execution {text}", None)
        await asyncio.sleep(0.05)
    return "done"


@command(effects="none")
def test_logging_tool(context: Context) -> str:
    """Tests that nothing is logged unasked."""
    context.progress("working", None)
    return "done"


# --- questions to the client ---------------------------------------------------------


def asked() -> McpClient:
    client = calling()
    assert client is not None
    return client


def person(**fields: Any) -> dict[str, Any]:
    schemas = {name: {"type": kind} for name, kind in fields.items()}
    return {"type": "object", "properties": schemas, "required": list(fields)}


@command(effects="none")
async def test_sampling(prompt: str) -> str:
    """Tests sampling."""
    said = await asked().ask(text=sampling(prompt, 100))
    return f"LLM response: {said['text']}"


@command(effects="none")
async def test_missing_capability() -> str:
    """Tests that nothing is asked of a client that cannot answer."""
    return (await asked().ask(text=sampling("hello", 10)))["text"]


@command(effects="none")
async def test_elicitation(message: str) -> str:
    """Tests elicitation."""
    said = await asked().ask(
        user=form(message, person(username="string", email="string"))
    )
    return f"User response: {said['user']}"


@command(effects="none")
async def test_streaming_elicitation() -> str:
    """Tests that no request goes out beside the answer."""
    return str(await asked().ask(user=form("Go on?", person(ok="boolean"))))


DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {
        "type": "string",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    },
    "verified": {"type": "boolean", "default": True},
}


@command(effects="none")
async def test_elicitation_sep1034_defaults() -> str:
    """Tests defaults of every kind."""
    schema = {"type": "object", "properties": DEFAULTS}
    said = await asked().ask(user=form("Who are you?", schema))
    return f"Elicitation completed: content={said['user']}"


OPTIONS = ["option1", "option2", "option3"]
TITLED = [
    {"const": "value1", "title": "First Option"},
    {"const": "value2", "title": "Second Option"},
    {"const": "value3", "title": "Third Option"},
]
CHOICES = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


@command(effects="none")
async def test_elicitation_sep1330_enums() -> str:
    """Tests the five kinds of choices."""
    schema = {"type": "object", "properties": CHOICES}
    said = await asked().ask(user=form("Choose", schema))
    return f"Elicitation completed: content={said['user']}"


NAME = form("What is your name?", person(name="string"))


@command(effects="none")
async def test_input_required_result_elicitation() -> str:
    """Tests a question that is the answer to the call."""
    said = await asked().ask(user_name=NAME)
    return f"Hello, {(said['user_name'] or {}).get('name')}!"


@command(effects="none")
async def test_input_required_result_sampling() -> str:
    """Tests the same with sampling."""
    said = await asked().ask(
        capital_question=sampling("What is the capital of France?", 100)
    )
    return said["capital_question"]


@command(effects="none")
async def test_input_required_result_list_roots() -> str:
    """Tests the same with roots."""
    return f"Roots: {await asked().ask(client_roots=roots())}"


@command(effects="none")
async def test_input_required_result_request_state() -> str:
    """Tests that the state comes back."""
    await asked().ask(confirm=form("Please confirm", person(ok="boolean")))
    return "state-ok"


@command(effects="none")
async def test_input_required_result_tampered_state() -> str:
    """Tests that another state is refused."""
    await asked().ask(confirm=form("Please confirm", person(ok="boolean")))
    return "done"


@command(effects="none")
async def test_input_required_result_multiple_inputs() -> str:
    """Tests three questions at once."""
    said = await asked().ask(
        user_name=NAME,
        greeting=sampling("Generate a greeting", 50),
        client_roots=roots(),
    )
    return str(said)


@command(effects="none")
async def test_input_required_result_multi_round() -> str:
    """Tests two questions, one after the other."""
    first = await asked().ask(step1=form("Step 1: name?", person(name="string")))
    second = await asked().ask(step2=form("Step 2: color?", person(color="string")))
    return f"{first} {second}"


@command(effects="none")
async def test_input_required_result_capabilities() -> str:
    """Tests that only what the client declares is asked."""
    client = asked()
    possible: dict[str, Any] = {
        "elicitation": NAME,
        "sampling": sampling("hello", 10),
        "roots": roots(),
    }
    wanted = {kind: one for kind, one in possible.items() if client.can(kind)}
    return str(await client.ask(**wanted))


# --- prompts and resources -----------------------------------------------------------


@command(effects="none")
def test_simple_prompt() -> str:
    """A simple prompt."""
    return "This is a simple prompt for testing."


@command(effects="none")
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments.

    Args:
        arg1: the first.
        arg2: the second.
    """
    return f"Prompt with arguments: arg1={arg1!r}, arg2={arg2!r}"


@command(effects="none")
def test_prompt_with_embedded_resource(resourceUri: str) -> Any:
    """A prompt with a resource."""
    return [
        {
            "uri": resourceUri,
            "mime_type": "text/plain",
            "text": "Embedded resource content for testing.",
        },
        "Please process the embedded resource above.",
    ]


@command(effects="none")
def test_prompt_with_image() -> Any:
    """A prompt with a picture."""
    return [test_image_content(), "Please analyze the image above."]


@command(effects="none")
async def test_input_required_result_prompt() -> str:
    """A prompt that asks."""
    question = form("What context should the prompt use?", person(context="string"))
    said = await asked().ask(user_context=question)
    return f"Use this context: {said['user_context']}"


@command(effects="none")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@command(effects="none")
def static_binary() -> Any:
    """A picture."""
    return test_image_content()


@command(effects="none")
def template(id: str) -> dict[str, Any]:
    """A thing by its id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


RESOURCES = {
    "test://static-text": "static_text",
    "test://static-binary": "static_binary",
    "test://watched-resource": "static_text",
    "test://template/{id}/data": "template",
}


async def main() -> None:
    folder = Path(tempfile.mkdtemp())
    plugins = [one for name, one in globals().items() if name.startswith("test_")]
    plugins += [static_text, static_binary, template]
    with Session(
        model=ScriptedModel([]), plugins=plugins, workspace=folder, policy=EVERYTHING
    ) as session:
        service = McpService(
            session,
            prompts=["test_*prompt*"],
            resources=RESOURCES,
        )
        await serve_http(
            service,
            port=int(sys.argv[1]) if len(sys.argv) > 1 else 0,
            started=lambda url: print(url, flush=True),
        )


if __name__ == "__main__":
    asyncio.run(main())
