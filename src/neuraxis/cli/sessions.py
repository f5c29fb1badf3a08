"""`neuraxis sessions`: list, show, delete, answer what waits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

import click
from msgspec.structs import asdict, fields

from neuraxis.cli.continue_session import (
    existing_journal,
    session_in,
    session_to_continue,
)
from neuraxis.cli.display.text import (
    columns,
    echo,
    echo_json,
    folded,
    one_line,
    seconds,
    short,
)
from neuraxis.cli.options import (
    Choices,
    asset_folder,
    journal_option,
    journal_path,
    keep_earlier_name,
    pairs_of,
    session_options,
    settings_of,
)
from neuraxis.cli.standard_output import stdout
from neuraxis.errors import ConfigError
from neuraxis.formatting import counted
from neuraxis.specs import Json

if TYPE_CHECKING:
    from neuraxis.events import Event, Unknown
    from neuraxis.journal import Journal, SessionInfo

_LISTED = 20
"""Sessions that `list` shows without --all."""
_FOR_PROGRAMS = ("v", "key", "digest", "written", "parameters", "carried")
"""Fields of events that only --json shows."""


class _AnswerOptions(TypedDict, total=False):
    allowed: Required[bool]
    arguments: dict[str, Json]
    how: str
    reason: str


@click.group()
def sessions() -> None:
    """Show, continue and delete earlier sessions; approve calls."""


def _journal(path: str | None) -> Journal:
    journal_file = path or journal_path(settings_of(Choices()))
    opened = existing_journal(journal_file, named=path is not None)
    if opened is not None:
        return opened
    from neuraxis.journal import open_journal

    echo(f"there are no sessions yet: {journal_file} does not exist", err=True)
    return open_journal("memory")


def _when(at: float) -> str:
    """Return a time in the local time zone."""
    from datetime import datetime

    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"


@sessions.command("list")
@journal_option
@click.option("--json", "as_json", is_flag=True, help="Print the whole list as JSON.")
@click.option(
    "--all", "whole", is_flag=True, help=f"List all, not only the last {_LISTED}."
)
def list_(journal: str | None, as_json: bool, whole: bool) -> int:
    """List the sessions, the last used first.

    Each is shown with how its last request ended; `neuraxis sessions resume` continues
    one that is ready, cancelled or unfinished.
    """
    from neuraxis.session.past import waiting

    with closing(_journal(journal)) as opened:
        infos = waiting.list_sessions(opened)
    if as_json:
        echo_json([asdict(info) for info in infos])
        return 0
    omitted = 0 if whole else len(infos) - _LISTED
    infos = infos if omitted <= 0 else infos[:_LISTED]
    ids = [one_line(info.session) for info in infos]
    width = max(map(len, ids), default=0)
    if infos:
        heading = f"{'session':<{width}}  {'last used':<19}  events  state"
        echo(f"{heading:<{width + 43}}first request")
    for session_id, info in zip(ids, infos, strict=True):
        echo(
            f"{session_id:<{width}}  {_when(info.ended)}  {info.events:>6}  "
            f"{info.state:<10}  {one_line(info.title)}".rstrip()
        )
    if omitted > 0:
        echo(f"… and {omitted:,} more: --all")
    return 0


@sessions.command(short_help="Show everything that happened in one session.")
@click.argument("session")
@journal_option
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON lines.")
def show(session: str, journal: str | None, as_json: bool) -> int:
    """Show all events of SESSION (its id, or the beginning of it).

    Long values are cut; fields that say nothing are left out. --json shows all.
    """
    from neuraxis.events import Unknown, to_json

    with closing(_journal(journal)) as opened:
        session_id = session_in(opened.sessions(), session)
        entries = opened.read(session_id)
    if entries and not as_json:
        echo(f"session {one_line(session_id)}, begun {_when(entries[0].at)}")
    for entry in entries:
        event = entry.event
        written = (
            {"type": event.type, **event.data}
            if isinstance(event, Unknown)
            else to_json(event)
        )
        if as_json:
            echo_json({"seq": entry.seq, "at": entry.at, **written})
        else:
            time = _when(entry.at).partition(" ")[2]
            kind = one_line(str(written.pop("type")))
            line = f"{entry.seq:>4}  {time}  {kind:<16}  {_fields(event, written)}"
            width = columns() if stdout().isatty() else len(line)
            echo("\n".join(folded(line.rstrip(), width)))
    return 0


def _fields(event: Event | Unknown, written: Mapping[str, Json]) -> str:
    """Return the fields that are neither empty nor their default."""
    defaults = {item.name: item.default for item in fields(event)}
    texts: list[str] = []
    for name, value in written.items():
        if value in (None, "", [], {}, defaults.get(name)) or name in _FOR_PROGRAMS:
            continue
        match name, value:
            case "seconds", float():
                texts.append(f"took={seconds(value)}")
            case "expires", float():
                texts.append(f"expires={_when(value)}")
            case _:
                texts.append(f"{one_line(name)}={short(value, 100)}")
    return "  ".join(texts)


@sessions.command()
@click.argument("session", required=False)
@journal_option
@click.option(
    "--json", "as_json", is_flag=True, help="Print the questions as JSON lines."
)
def pending(session: str | None, journal: str | None, as_json: bool) -> int:
    """List the calls that wait for approval, in SESSION or all."""
    from neuraxis.cli.run import question_lines, resuming
    from neuraxis.session.past import waiting

    with closing(_journal(journal)) as opened:
        infos = waiting.list_sessions(opened)
        if session is not None:
            session_id = session_in(infos, session)
            infos = [info for info in infos if info.session == session_id]
        ids = [info.session for info in infos if info.state == "waiting"]
        questions = [
            each for session_id in ids for each in waiting.pending(opened, session_id)
        ]
    for question in questions:
        if as_json:
            echo_json(question.to_json())
    if not as_json:
        echo("\n".join(question_lines(questions)) or "nothing waits for approval")
        for info in infos:
            if info.state == "ready":
                echo(f"{info.session} is answered; now: {resuming(info.session)}")
    return 0


@sessions.command(short_help="Approve a call that waits.")
@click.argument("session")
@click.argument("question")
@click.argument("changed", nargs=-1, metavar="[NAME=VALUE]...")
@click.option(
    "--always",
    is_flag=True,
    help="Also give the question's widest offer, which `pending` shows.",
)
@journal_option
def approve(
    session: str,
    question: str,
    changed: tuple[str, ...],
    always: bool,
    journal: str | None,
) -> int:
    """Approve QUESTION of SESSION, with these arguments changed.

    A value is read as JSON, else as text. `neuraxis sessions resume` runs the call.
    """
    arguments: dict[str, Json] = {}
    for name, value in pairs_of(changed):
        try:
            arguments[name] = json.loads(value)
        except ValueError:
            arguments[name] = value
    how = "always" if always else "once"
    _answer(journal, session, question, allowed=True, arguments=arguments, how=how)
    return 0


@sessions.command(short_help="Deny a call that waits.")
@click.argument("session")
@click.argument("question")
@click.argument("reason", default="")
@journal_option
def deny(session: str, question: str, reason: str, journal: str | None) -> int:
    """Deny QUESTION of SESSION; the model is told the REASON."""
    _answer(journal, session, question, allowed=False, reason=reason)
    return 0


@sessions.command(short_help="Delete a session for good.")
@click.argument("session")
@journal_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(session: str, journal: str | None, yes: bool) -> int:
    """Delete SESSION: its events, stored objects and old versions of files.

    What its commands wrote to the workspace stays. There is no undo.
    """
    from neuraxis.cli.approve import is_somebody_there
    from neuraxis.session.past.delete import delete_session

    opened = _journal(journal)
    try:
        infos = opened.sessions()
        session_id = session_in(infos, session)
        if not yes:
            (info,) = (info for info in infos if info.session == session_id)
            _confirm_deletion(info, is_somebody_there())
        objects = asset_folder(settings_of(Choices(journal=journal)))
        delete_session(opened, session_id, asset_folder=objects)
    finally:
        opened.close()
    echo(f"deleted: {one_line(session_id)}")
    return 0


def _confirm_deletion(info: SessionInfo, is_somebody_there: bool) -> None:
    """Ask whether to delete a session.

    Raises:
        ConfigError: the user declines, or cannot be asked.
    """
    from neuraxis.cli.approve import confirm

    session = one_line(info.session)
    if not is_somebody_there:
        raise ConfigError(
            f"session {session} was not deleted: write --yes to delete it"
        )
    title = f", {one_line(info.title)}" if info.title else ""
    text = (
        f"Delete session {session} ({counted(info.events, 'event')}{title}) for good?"
    )
    if not confirm(text):
        raise ConfigError(f"session {session} was not deleted")


def _answer(
    journal: str | None, session: str, question: str, **said: Unpack[_AnswerOptions]
) -> None:
    from neuraxis.cli.run import resuming
    from neuraxis.session.past import waiting

    with closing(_journal(journal)) as opened:
        session_id = session_in(opened.sessions(), session)
        opened.claim(session_id)
        _, answered = waiting.answer(opened, session_id, question, **said)
        open_questions = waiting.pending(opened, session_id)
    verb = "approved" if answered.allowed else "denied"
    if answered.offer:
        verb += f", with {one_line(answered.offer)}"
    after = f"now: {resuming(session_id)}"
    if open_questions:
        ids = ", ".join(item.id for item in open_questions)
        after = f"still open: {ids} (neuraxis sessions pending {session_id})"
    echo(f"{question} is {verb}; {after}")


@sessions.command(short_help="Continue a request that waited or was cut off.")
@click.argument("session")
@session_options()
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON lines.")
@click.option("-q", "--quiet", is_flag=True, help="Print only the answer.")
def resume(session: str, as_json: bool, quiet: bool, **options: Any) -> int:
    """Continue the request of SESSION that waited or was cut off.

    The exit codes are those of `neuraxis run`.
    """
    from neuraxis.cli.run import ask, open_session, say_next

    choices = Choices(**options)
    earlier = session_to_continue(
        choices, latest=False, given=session, quiet=quiet or as_json
    )
    with open_session(
        earlier.choices, earlier.session, None, quiet or as_json
    ) as opened:
        code = ask(opened, None, as_json=as_json, quiet=quiet)[1]
        if not as_json:
            say_next(opened)
        return code


keep_earlier_name(sessions, "ls", list_)
keep_earlier_name(sessions, "rm", delete)
