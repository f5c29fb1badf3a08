"""`neuraxis prompt`: print exactly what a model would be sent."""

from __future__ import annotations

from typing import Any

import click
from msgspec.structs import replace

from neuraxis.cli.display.text import echo, echo_json
from neuraxis.cli.options import Choices, make_session, session_options
from neuraxis.cli.standard_output import answers_alone


@click.command(short_help="Print exactly what would be sent to a model.")
@click.argument("request", required=False, default="")
@session_options()
@click.option("--json", "as_json", is_flag=True, help="Print the messages as JSON.")
@answers_alone
def prompt(request: str, as_json: bool, **options: Any) -> int:
    """Print the prompt, with REQUEST in its place; no model is asked.

    Escape codes are left out of the text; with --json they are there, as escapes.
    """
    from neuraxis.messages import Message
    from neuraxis.models.scripted import ScriptedModel

    choices = replace(Choices(**options), journal="memory")
    with make_session(choices, model=ScriptedModel([])) as session:
        text = (
            [Message(role="user", content=session.dialect.request(request))]
            if request
            else []
        )
        sent = session.prompt(text)
        if as_json:
            written: dict[str, Any] = {
                "messages": [
                    {"role": item.role, "content": item.content}
                    for item in sent.messages
                ],
                "stop": list(sent.stop),
            }
            if sent.native_tools:
                written["tools"] = list(sent.native_tools)
            echo_json(written, indent=2)
        else:
            for item in sent.messages:
                echo(item.content)
            if sent.native_tools:
                echo_json(list(sent.native_tools), indent=2)
    return 0
