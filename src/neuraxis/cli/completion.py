"""`neuraxis completion SHELL`: print the completion script for commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script; e.g. eval "$(neuraxis completion bash)"."""
    found = get_completion_class(shell)
    if found is None:  # click supports only these three shells.
        raise click.UsageError(f"{shell}: no completion for this shell")
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "neuraxis", "_NEURAXIS_COMPLETE").source())
    return 0
