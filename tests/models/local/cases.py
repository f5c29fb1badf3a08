"""Specs, a written-out writer and helpers for the tests of the local model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from neuraxis.messages import Chunk, Message, Prompt
from neuraxis.models.gguf.llama import Ask, Written
from neuraxis.models.local.model import LocalModel
from neuraxis.specs import CommandSpec, Effects, Example, ExampleCall, Json, PluginSpec

TEXT: Json = {"type": "string"}


def record(**properties: Json) -> dict[str, Json]:
    """An object schema; a property whose schema says `optional` is not required."""
    required = [k for k, v in properties.items() if not v.get("optional")]
    return {
        "type": "object",
        "properties": {
            name: {k: v for k, v in schema.items() if k != "optional"}
            for name, schema in properties.items()
        },
        "required": required,
        "additionalProperties": False,
    }


def example(question: str, *calls: tuple[str, dict[str, Json]]) -> Example:
    """An example of one or more calls."""
    return Example(
        question=question,
        calls=tuple(ExampleCall(tool=tool, arguments=given) for tool, given in calls),
    )


def plugin(name: str, *commands: CommandSpec, **more: Any) -> PluginSpec:
    """A plugin of some commands."""
    return PluginSpec(name=name, commands=commands, **more)


READ = Effects(kind="read")

SEARCH = plugin(
    "web",
    CommandSpec(
        name="find_pages",
        description="Searches the web for a query and gives addresses of pages",
        parameters=record(query=TEXT),
        response=record(urls={"type": "array", "items": TEXT}),
        effects=READ,
        examples=(
            example(
                "Search how to bake bread",
                ("find_pages", {"query": "how to bake bread"}),
            ),
        ),
    ),
    CommandSpec(
        name="get_page",
        description="Fetches a web page by its address",
        parameters=record(url={"type": "string", "format": "uri"}),
        response=record(output=TEXT),
        effects=READ,
        examples=(
            example(
                "Fetch www.python.org", ("get_page", {"url": "https://www.python.org"})
            ),
        ),
    ),
)
FILES = plugin(
    "disk",
    CommandSpec(
        name="store",
        description="Writes text into a file",
        parameters=record(file_path=TEXT, contents=TEXT),
        response=record(success={"type": "boolean"}),
        effects=Effects(kind="idempotent"),
        examples=(
            example(
                'Write "good day" into day.txt',
                ("store", {"file_path": "day.txt", "contents": "good day"}),
            ),
        ),
    ),
    CommandSpec(
        name="run_script",
        description="Runs a Python file",
        parameters=record(file_path={"type": "string", "pattern": r"\.py$"}),
        response=record(success={"type": "boolean"}, output=TEXT),
        examples=(example("Execute job.py", ("run_script", {"file_path": "job.py"})),),
    ),
    examples=(
        example(
            "Write a hello world function in python and execute it",
            (
                "store",
                {"file_path": "hello.py", "contents": "print('Hello, world!')\n"},
            ),
            ("run_script", {"file_path": "hello.py"}),
        ),
    ),
)
HOME = plugin(
    "home",
    CommandSpec(
        name="switch_light",
        description="Turns the light of a room on or off",
        parameters=record(room=TEXT, state={"type": "string", "enum": ["on", "off"]}),
        examples=(
            example(
                "Turn on the lights in the kitchen",
                ("switch_light", {"room": "kitchen", "state": "on"}),
            ),
        ),
    ),
    CommandSpec(
        name="set_timer",
        description="Starts a timer",
        parameters=record(minutes={"type": "integer", "minimum": 1}),
        examples=(
            example("Set a timer for 10 minutes", ("set_timer", {"minutes": 10})),
        ),
    ),
    CommandSpec(
        name="send_mail",
        description="Sends an email to someone",
        parameters=record(
            to={"type": "string", "format": "email"},
            body=TEXT,
            subject={"type": "string", "optional": True},
        ),
        examples=(
            example(
                "Email ann@corp.com saying the report is ready",
                ("send_mail", {"to": "ann@corp.com", "body": "the report is ready"}),
            ),
        ),
    ),
)
ALL = (SEARCH, FILES, HOME)


class FakeWriter:
    """Writes what it was given, in order, and keeps what it was asked."""

    def __init__(self, *texts: str, failure: Exception | None = None) -> None:
        self.texts = list(texts)
        self.failure = failure
        self.asked: list[Ask] = []
        self.closed = False

    async def write(
        self, ask: Ask, on_text: Callable[[str], None] | None = None
    ) -> Written:
        self.asked.append(ask)
        if self.failure is not None:
            raise self.failure
        text = self.texts.pop(0) if self.texts else ""
        if on_text is not None:
            for word in text.split(" "):
                on_text(word + " ")
        return Written(text=text, complete=True)

    def close(self) -> None:
        self.closed = True


async def chunks(
    request: str,
    plugins: Sequence[PluginSpec] = ALL,
    writer: FakeWriter | None = None,
    **more: Any,
) -> list[Chunk]:
    """All that the model streams for a request."""
    model = LocalModel(writer)
    prompt = Prompt(
        messages=(Message(role="user", content=request),),
        plugins=tuple(plugins),
        **more,
    )
    return [chunk async for chunk in model.stream(prompt)]
