"""`neuraxis models list`, `test` and `fetch`."""

from __future__ import annotations

import time
from typing import Any

import click

from neuraxis.cli.display.text import console, echo, echo_json
from neuraxis.cli.options import Choices, keep_earlier_name, settings_of
from neuraxis.errors import ModelError

_KINDS = {
    "openai": "a server with OpenAI's interface: openai:NAME, or http://HOST/v1#NAME",
    "openai-responses": "the same with the Responses API: openai-responses:NAME",
    "anthropic": "Anthropic: anthropic:NAME",
    "gemini": "Google AI Studio: gemini:NAME",
    "vertex": "Google Vertex AI: vertex:NAME",
    "bedrock": "Claude on Amazon Bedrock: bedrock:MODEL_ID",
    "azure": "Azure OpenAI: azure:DEPLOYMENT",
    "scripted": "replies from a file: scripted:FILE",
    "local": "the offline planner, not a language model; or weights: local:FILE.gguf",
}


_PLANNER = (
    "neuraxis: local: is the offline planner, rules and no language model, so there "
    "is nothing to test. To test a language model, download one with `neuraxis "
    "models fetch smollm2` and type `neuraxis models test local:smollm2`; `neuraxis "
    "models list` lists the other kinds."
)


@click.group()
def models() -> None:
    """List the kinds of models, try a model, download weights."""


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the kinds as JSON.")
def list_(as_json: bool) -> int:
    """List the kinds of models for --model."""
    from neuraxis.models import model_names

    names = model_names()
    if as_json:
        echo_json(list(names))
    else:
        for name in names:
            description = _KINDS.get(name, "from an installed package")
            echo(f"{name + ':':<17} {description}")
    return 0


@models.command(short_help="Ask a model for one word.")
@click.argument("name", required=False)
@click.option("--base-url", help="The address of an OpenAI-compatible server.")
def test(name: str | None, base_url: str | None) -> int:
    """Ask the model NAME for one word and time it.

    Exit codes: 0 it answered, 1 it did not, 4 it cannot be asked (no key, no file).
    """
    import asyncio  # Imported on first use: slow.

    from neuraxis.messages import Message, Prompt
    from neuraxis.models import complete, find_model
    from neuraxis.models.accumulate import close_model

    settings = settings_of(Choices(model=name, base_url=base_url))
    chosen = str(settings.get("model") or "local:")
    model = find_model(chosen, settings)
    if model.name == "local:":
        echo(_PLANNER, err=True)
        return 1

    async def go() -> Any:
        try:
            request = Message(role="user", content="Answer with the one word: ready")
            return await complete(model, Prompt(messages=(request,)))
        finally:
            await close_model(model)

    started = time.perf_counter()
    try:
        answer = asyncio.run(go())
    except ModelError as error:  # A run treats the error the same way.
        echo(f"neuraxis: {error}", err=True)
        return 1
    took = time.perf_counter() - started
    text = " ".join(answer.text.split())[:80]
    echo(f"{model.name}: {text!r} in {took:.1f} s")
    return 0


@models.command()
@click.argument("name", required=False)
def fetch(name: str | None) -> int:
    """Download an open model; without a name, list some.

    NAME is smollm2, another name in the list, or hf:OWNER/REPO/FILE. It is downloaded
    once; then `-m local:NAME` runs it in this process.
    """
    from neuraxis.models.gguf import files, weights

    if name is None:
        echo(files.listed())
        return 0
    if name == files.SMOLLM2:
        found = weights.find()
        path = found or fetch_shown()
        echo(f"{'already downloaded: ' if found else ''}{path}")
    else:
        echo(str(files.file_of(name, shown=True)()))
    return 0


def fetch_shown() -> Any:
    """Download with an explanation and, on a terminal, a progress bar."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from neuraxis.models.gguf import weights

    screen = console()
    screen.print(weights.SMOLLM2.sentence, markup=False)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        console=screen,
        disable=not screen.is_terminal,
        transient=True,
    ) as progress:
        task = progress.add_task("fetching", total=weights.SMOLLM2.download)
        return weights.fetch(
            lambda done, total: progress.update(task, completed=done, total=total)
        )


keep_earlier_name(models, "ls", list_)
