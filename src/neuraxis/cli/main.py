"""Command group, and the mapping from exceptions to exit codes."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys
from typing import Any, cast

import click
from click.shell_completion import get_completion_class

from neuraxis import __version__
from neuraxis.cli import signals
from neuraxis.cli.calls import call
from neuraxis.cli.chat import chat
from neuraxis.cli.display.text import echo, inert
from neuraxis.cli.doctor import doctor
from neuraxis.cli.many.batch import batch
from neuraxis.cli.mcp import mcp
from neuraxis.cli.models import models
from neuraxis.cli.plans import plan
from neuraxis.cli.plugins import plugins
from neuraxis.cli.prompts import prompt
from neuraxis.cli.run import run
from neuraxis.cli.sessions import sessions
from neuraxis.cli.undo import undo
from neuraxis.errors import (
    ConfigError,
    MissingExtra,
    ModelError,
    NeuraxisError,
    SessionBusy,
    StorageError,
)

INTERRUPTED = 130
_ELSEWHERE = {"--tool": "--plugin", "--tools": "--plugin", "--function": "--plugin"}
"""What other programs call an option."""


@click.command(short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script; e.g. eval "$(neuraxis completion bash)"."""
    shell_class = get_completion_class(shell)
    if shell_class is None:  # click supports only these three shells.
        raise click.UsageError(f"{shell}: no completion for this shell")
    root = click.get_current_context().find_root().command
    echo(shell_class(root, {}, "neuraxis", "_NEURAXIS_COMPLETE").source())
    return 0


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="neuraxis")
def cli() -> None:
    """Let a language model call your functions, web APIs and MCP servers."""


for command in (
    run,
    batch,
    chat,
    call,
    plan,
    plugins,
    prompt,
    models,
    mcp,
    sessions,
    undo,
    doctor,
    completion,
):
    cli.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code, without traceback.

    With NEURAXIS_TRACEBACK=1 an error that this package did not foresee is shown
    whole, for a bug report.
    """
    _open_streams()
    _escape_unencodable()
    _print_logs()
    signals.install()
    try:
        code = cli.main(args=arguments, prog_name="neuraxis", standalone_mode=False)
    except click.ClickException as error:
        _suggest_option(error)
        error.show()
        _suggest_group(error)
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _print_error("interrupted")
        signals.leave(INTERRUPTED)
    except signals.Signalled as error:
        with contextlib.suppress(OSError):  # the terminal may be closed
            _print_error(str(error))
        signals.leave(error.exit_code)
    except BrokenPipeError:
        # The reader of the pipe has closed it.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - to the end
        code = 0
    except NeuraxisError as error:
        _print_error(str(error))
        code = exit_code(error)
    except OSError as error:
        _print_error(f"system error: {error}{_lost_folder()}")
        code = 5
    except Exception as error:  # noqa: BLE001 - the last place before a traceback
        _print_error(
            f"internal error: {type(error).__name__}: {error}. Run it again with "
            "NEURAXIS_TRACEBACK=1 and report the traceback"
        )
        code = 1
    else:
        if isinstance(code, int) and code:
            signals.leave(code)  # a limit may have left a command in a thread
    sys.exit(code if isinstance(code, int) else 0)


def _lost_folder() -> str:
    """Return what to do if the current folder was deleted."""
    try:
        os.getcwd()
    except OSError:
        return "; the current folder does not exist any more: change to another one"
    return ""


def _suggest_option(error: click.ClickException) -> None:
    """Suggest an option by its meaning, where one of like letters misleads."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        ours = _ELSEWHERE.get(error.option_name, "")
        if any(ours in option.opts for option in error.ctx.command.params):
            cast("Any", error).possibilities = [ours]


def _suggest_group(error: click.ClickException) -> None:
    """Suggest the group of a command: `neuraxis new` is `neuraxis plugins new`."""
    name = re.search(r"No such command '([\w-]+)'", error.message)
    for group in cli.commands.values():
        if name and isinstance(group, click.Group) and name[1] in group.commands:
            echo(f"Did you mean: neuraxis {group.name} {name[1]}", err=True)


def _open_streams() -> None:
    """Open the null device for each standard stream that is closed.

    A file that is opened later would get its descriptor, and what a plugin prints.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - to the end


def _escape_unencodable() -> None:
    """Write characters outside the locale's encoding as escapes.

    In JSON a lone surrogate, which no encoding has, becomes the escape that JSON
    uses.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _print_logs() -> None:
    """Print libraries' log messages, which may quote a server, as inert text."""

    def shown(record: logging.LogRecord) -> bool:
        if (
            record.name == "neuraxis.commands"
            and os.environ.get("NEURAXIS_TRACEBACK") != "1"
        ):
            return False  # the failed call already has a line
        record.msg, record.args = inert(record.getMessage()), ()
        if record.exc_info and record.exc_info[0] is not None:
            # a formatter uses this text instead of its own
            traceback_text = logging.Formatter().formatException(record.exc_info)
            record.exc_text = inert(traceback_text)
        return True

    if logging.lastResort is not None:
        logging.lastResort.addFilter(shown)


def exit_code(error: NeuraxisError) -> int:
    """Return the documented exit code of an error."""
    match error:
        case ModelError():
            return 4
        case StorageError() | SessionBusy():
            return 5
        case ConfigError() | MissingExtra():
            return 2
        case _:
            return 1


def _print_error(text: str) -> None:
    echo(f"neuraxis: {text}", err=True)
    if os.environ.get("NEURAXIS_TRACEBACK") == "1":
        import traceback

        echo(traceback.format_exc(), err=True)
