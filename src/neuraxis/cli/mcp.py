"""`neuraxis mcp serve`: the plugins, offered to any MCP client."""

from __future__ import annotations

from typing import Any

import click

from neuraxis.cli.display.text import echo
from neuraxis.cli.options import CALLS, Choices, make_session, session_options
from neuraxis.cli.standard_output import answers_alone, stdout
from neuraxis.errors import ConfigError, MissingExtra


@click.group()
def mcp() -> None:
    """Offer plugins over MCP (Model Context Protocol)."""


@mcp.command(short_help="Offer the plugins to MCP clients.")
@session_options(*CALLS)
@click.option(
    "--http",
    is_flag=True,
    help="Serve over HTTP on loopback; default: standard input and output.",
)
@click.option("--host", default="127.0.0.1", help="A loopback address, for --http.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="The port for --http; 0: any free port.",
)
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="PATTERN",
    help="A command `plugin.command` to offer as a prompt, too; * matches any.",
)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="URI=COMMAND",
    help="A resource that `plugin.command` reads; {name} in the URI is its argument.",
)
@click.option(
    "--token",
    metavar="NAME",
    help="The secret NAME that HTTP clients send as `Authorization: Bearer`.",
)
@answers_alone
def serve(
    http: bool,
    host: str,
    port: int,
    token: str | None,
    prompts: tuple[str, ...],
    resources: tuple[str, ...],
    **options: Any,
) -> int:
    """Offer all plugins to MCP clients: commands as tools, assets as resources.

    A client starts this command and speaks over its standard input and output. With
    --http it listens on loopback and prints its address on standard error. For a call
    that needs approval the client asks its user if it can; otherwise it is refused.
    """
    try:
        from neuraxis.bridges.mcp_server import approvals, server, transports
    except ImportError as error:
        raise MissingExtra("mcp", "mcp", "Serving MCP") from error
    import asyncio  # slow to import, and --help needs none

    from neuraxis.models.scripted import ScriptedModel
    from neuraxis.policy.secrets import Secrets

    if token and not http:
        raise ConfigError("--token: expected with --http; stdio has one client only")
    if port and not http:
        raise ConfigError("--port: expected with --http; stdio has no port")
    value = Secrets().value(token) if token else ""
    session = make_session(
        Choices(**options),
        approve=approvals.approve,
        model=ScriptedModel([], name="mcp client"),
    )
    with session:
        service = server.McpService(
            session,
            prompts=prompts,
            resources=dict(_resource(one) for one in resources),
        )
        try:
            if http:
                asyncio.run(
                    transports.serve_http(
                        service, host=host, port=port, token=value, started=_started
                    )
                )
            else:
                asyncio.run(transports.serve_stdio(service, stdout()))
        except KeyboardInterrupt:
            return 0
    return 0


def _resource(text: str) -> tuple[str, str]:
    uri, equals, command = text.rpartition("=")
    if not equals or ":" not in uri:
        raise ConfigError(f"--resource: expected URI=plugin.command, got {text!r}")
    return uri, command


def _started(url: str) -> None:
    echo(f"serving MCP at {url}", err=True)
