"""`neuraxis chat`: a conversation on the terminal."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from neuraxis.call_errors.checking import for_person
from neuraxis.cli.continue_session import resume_options, session_to_continue
from neuraxis.cli.display.text import echo, one_line
from neuraxis.cli.options import (
    Choices,
    journal_path,
    session_options,
    settings_of,
)
from neuraxis.cli.run import ask, open_session, question_lines
from neuraxis.cli.signals import cancelled_by_signals, run_to_end
from neuraxis.cli.standard_input import read_lines
from neuraxis.errors import ConfigError, NeuraxisError
from neuraxis.formatting import why_unusable

if TYPE_CHECKING:
    from neuraxis.session.session import Session

HELP = """/help           this list
/attach FILE    give the model a file: a picture, a table, a text
/model [NAME]   show the model, or switch to another
/plugins        list the tools that the model can call
/assets         list the objects of this conversation
/open ID        show a table, a picture or a text
/save ID FILE   write an object to a file
/undo           restore the files that the last run changed
/retry          repeat the last request
/pending        list the calls that wait for approval
/approve ID     approve a call that waits; the last answer continues its plan
/deny ID [WHY]  deny a call that waits
/resume         continue what waited or was cut off
/new            begin a new conversation
/session        show this conversation's id
/quit           end (also Ctrl-D)

Ctrl-C stops an answer, or drops what you typed.
End a line with \\ to continue it."""
_SHOWN = 1_000
"""Maximum characters of an earlier request or answer."""
_END = ("/quit", "/exit")


class Conversation:
    """Open session of a chat, and its last request."""

    def __init__(self, choices: Choices, session: Session) -> None:
        self.choices = choices
        self.session = session
        self.last = ""
        """The last request."""
        self.code = 0

    def take(self, line: str) -> None:
        """Run one line: a request or a command."""
        word, _, rest = line.partition(" ")
        if not line:
            return
        if not line.startswith("/"):
            self.last = line
            self.ask(line)
        elif (do := _COMMANDS.get(word)) is None:
            echo(f"there is no command {word}; /help lists them", err=True)
        else:
            try:
                do(self, rest.strip())
            except NeuraxisError as error:
                echo(f"neuraxis: {error}", err=True)

    def ask(self, request: str | None) -> None:
        """Run a request, or continue the last one; print what waits."""
        self.code = ask(self.session, request)[1]
        for question in self.session.pending():
            echo(f"/approve {question.id}, or /deny {question.id} WHY", err=True)

    def reopen(self, choices: Choices, session_id: str | None) -> None:
        """Continue in another session: with another model, or a new one."""
        before = self.session.id
        self.session.close()
        try:
            self.session = open_session(choices, session_id, None, quiet=False)
        except NeuraxisError:
            self.session = open_session(self.choices, before, None, quiet=False)
            raise
        self.choices = choices


@click.command(short_help="Chat with a model.")
@session_options()
@resume_options
def chat(resume: bool, session_id: str | None, **options: Any) -> int:
    """Talk to the model; /help lists the commands of the chat.

    From a pipe, each line is a request, and the exit code is that of the last one, as
    for `run`.
    """
    earlier = session_to_continue(Choices(**options), latest=resume, given=session_id)
    choices = earlier.choices
    talk = Conversation(
        choices, open_session(choices, earlier.session, None, quiet=False)
    )
    try:
        if sys.stdin.isatty():
            for request, answer in earlier.turns:
                echo(f"> {_cut(request)}\n{_cut(answer)}", err=True)
            _talk(talk)
            return 0
        for line in read_lines():
            if line.strip().split(" ")[0] in _END:
                break
            talk.take(line.strip())
        return talk.code
    finally:
        talk.session.close()


def _cut(text: str) -> str:
    """Return the beginning of an earlier text."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _talk(talk: Conversation) -> None:
    read = _reader()
    echo(f"{talk.session.model.name}, /help for help", err=True)
    interrupted = False
    while True:
        try:
            line = read().strip()
            while line.endswith("\\"):
                line = f"{line[:-1]}\n{read()}".strip()
        except EOFError:
            return
        except KeyboardInterrupt:
            if interrupted:
                raise
            # as in a shell: the typed line is dropped, the conversation continues
            echo("\nto end, type /quit or press Ctrl-C again", err=True)
            interrupted = True
            continue
        interrupted = False
        if line.split(" ")[0] in _END:
            return
        try:
            talk.take(line)
        except KeyboardInterrupt:
            echo("stopped; /resume continues it", err=True)


def _reader() -> Callable[[], str]:
    """Return a line reader: prompt_toolkit's, else the terminal's."""
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import FileHistory, InMemoryHistory
    except ImportError:
        with contextlib.suppress(ImportError):  # Windows
            __import__("readline")
        return lambda: input("> ")
    from neuraxis.settings import user_dir

    file = user_dir("data") / "chat_history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        history = FileHistory(str(file))
    except OSError:  # no reason to refuse the conversation
        history = InMemoryHistory()
    words = WordCompleter([*_COMMANDS, *_END], sentence=True)
    editor = PromptSession[str](history=history, completer=words, enable_suspend=True)

    def read() -> str:
        lines: list[str] = []

        async def typed() -> None:
            # raised inside the editor's callbacks, a signal would be lost
            with cancelled_by_signals():
                lines.append(await editor.prompt_async("> "))

        run_to_end(typed())
        return lines[0]

    return read


def _help(talk: Conversation, rest: str) -> None:
    echo(HELP)


def _needed(rest: str, usage: str) -> str:
    """Return what follows a command.

    Raises:
        ConfigError: there is nothing.
    """
    if not rest:
        raise ConfigError(f"expected {usage}")
    return rest


def _attach(talk: Conversation, rest: str) -> None:
    path = Path(_needed(rest, "/attach FILE")).expanduser()
    # a terminal writes the path of a dragged file as a shell would read it
    with contextlib.suppress(ValueError):
        (word,) = shlex.split(rest)
        if not path.exists() and Path(word).expanduser().exists():
            path = Path(word).expanduser()
    echo(f"attached as {talk.session.attach(path)}", err=True)


def _model(talk: Conversation, rest: str) -> None:
    from neuraxis.models import find_model

    if rest:
        choices = replace(talk.choices, model=rest)
        settings = settings_of(choices)
        find_model(rest, settings)  # a wrong name changes nothing
        if journal_path(settings) == "memory":
            raise ConfigError(
                "this conversation is in memory only, so no other model can continue "
                f"it; end it and begin with --model {rest}"
            )
        talk.reopen(choices, talk.session.id)
    echo(talk.session.model.name)


def _plugins(talk: Conversation, rest: str) -> None:
    for name in talk.session.registry.tool_names:
        echo(name)


def _assets(talk: Conversation, rest: str) -> None:
    from neuraxis.assets.in_words import in_words

    assets = talk.session.assets
    listing = assets.listing()
    for entry in listing:
        asset_id = str(entry["asset_id"])
        try:
            what = in_words(_object(talk, asset_id))
        except ConfigError:
            what = "lost"
        name = assets.name(asset_id) or f"from {entry['from']}"
        echo(one_line(f"{asset_id}  {name}: {what} ({entry['size']})"))
    if not listing:
        echo("there are no objects yet", err=True)


def _object(talk: Conversation, name: str) -> Any:
    if name not in talk.session.assets.ids:
        raise ConfigError(f"there is no object {name!r} here; /assets lists them")
    from neuraxis.assets.store import ReferenceLost

    try:
        content: Any = talk.session.assets.native(name).get("content")
    except ReferenceLost as lost:
        raise ConfigError(for_person(lost.error.message)) from None
    return content.get("response", content) if hasattr(content, "get") else content


def _open(talk: Conversation, rest: str) -> None:
    from neuraxis.cli.display.objects import print_object

    value = _object(talk, _needed(rest, "/open ID; /assets lists the objects"))
    if not print_object(value):
        echo(str(value))


def _save(talk: Conversation, rest: str) -> None:
    from neuraxis.builtin.files.plugin import as_file

    name, _, path = rest.partition(" ")
    place = Path(_needed(path.strip(), "/save ID FILE")).expanduser()
    data = as_file(_object(talk, name), place.suffix)
    try:
        with place.open("xb") as file:  # an existing file is never replaced
            file.write(data)
    except OSError as error:
        raise ConfigError(
            f"{place}: cannot be written: {why_unusable(error)}"
        ) from None
    echo(f"written: {place}", err=True)


def _undo(talk: Conversation, rest: str) -> None:
    from neuraxis.cli.undo import show_undone

    show_undone(talk.session.undo())


def _retry(talk: Conversation, rest: str) -> None:
    if talk.last:
        talk.take(talk.last)
    else:
        echo("no request was sent yet", err=True)


def _pending(talk: Conversation, rest: str) -> None:
    questions = talk.session.pending()
    for line in question_lines(questions):
        echo(line)
    if not questions:
        echo("no call waits for approval", err=True)


def _approve(talk: Conversation, rest: str) -> None:
    talk.session.approve(_needed(rest, "/approve ID; /pending lists the calls"))
    _continue(talk)


def _deny(talk: Conversation, rest: str) -> None:
    _needed(rest, "/deny ID WHY; /pending lists the calls")
    question, _, reason = rest.partition(" ")
    talk.session.deny(question, reason.strip())
    _continue(talk)


def _continue(talk: Conversation) -> None:
    """Continue the waiting plan if all of its questions are answered."""
    if open_questions := talk.session.pending():
        echo(
            f"still open: {', '.join(question.id for question in open_questions)}",
            err=True,
        )
    else:
        talk.ask(None)


def _resume(talk: Conversation, rest: str) -> None:
    talk.ask(None)


def _new(talk: Conversation, rest: str) -> None:
    talk.reopen(talk.choices, None)
    echo(talk.session.id, err=True)


def _session(talk: Conversation, rest: str) -> None:
    echo(talk.session.id)


_COMMANDS: dict[str, Callable[[Conversation, str], None]] = {
    "/help": _help,
    "/attach": _attach,
    "/model": _model,
    "/plugins": _plugins,
    "/assets": _assets,
    "/open": _open,
    "/save": _save,
    "/undo": _undo,
    "/retry": _retry,
    "/pending": _pending,
    "/approve": _approve,
    "/deny": _deny,
    "/resume": _resume,
    "/new": _new,
    "/session": _session,
}
