"""Find an earlier session, and continue it with its model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from neuraxis.cli.display.text import echo, one_line
from neuraxis.cli.options import Choices, journal_path, settings_of
from neuraxis.errors import ConfigError, ModelUnavailable
from neuraxis.formatting import did_you_mean, nearest

if TYPE_CHECKING:
    from neuraxis.events import Event, Unknown
    from neuraxis.journal import Journal, SessionInfo
    from neuraxis.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

_TURNS = 2
"""Number of earlier requests that a continued chat shows."""
_EXAMINED = 20
"""Sessions that are looked through for one with a request."""


def resume_options(command: F) -> F:
    """Add the options of `run` and `chat` that name an earlier session."""
    latest = click.option(
        "-c",
        "--continue",
        "resume",
        is_flag=True,
        help="Continue the last session of this folder.",
    )
    session_option = click.option(
        "-s",
        "--session",
        "session_id",
        help="Continue this session: its id, or the beginning of it.",
    )
    return latest(session_option(command))


class Earlier(Struct, frozen=True, kw_only=True):
    """Session to continue, and the choices with its model."""

    session: str | None
    """Its id; None: a new session."""
    choices: Choices
    turns: Sequence[tuple[str, str]] = ()
    """Its last requests with their answers."""


def _last_conversation(
    journal: Journal, infos: Sequence[SessionInfo], workspace: Path
) -> str | None:
    """Return this folder's last session with a request, else the last.

    Raises:
        ConfigError: all with a request have their files in other folders.
    """
    from neuraxis.events import MessageSent, SessionStarted  # delays `--help`

    elsewhere: tuple[str, str] | None = None
    for info in infos[:_EXAMINED]:
        events = [item.event for item in journal.read(info.session)]
        if any(isinstance(one, MessageSent) and one.sender == "user" for one in events):
            known = [one.workspace for one in events if isinstance(one, SessionStarted)]
            files = Path(known[-1]).resolve() if known and known[-1] else workspace
            if files == workspace:
                return info.session
            elsewhere = elsewhere or (info.session, str(files))
    if elsewhere is not None:
        session, folder = map(one_line, elsewhere)
        raise ConfigError(
            "no session of this folder to continue; the files of the last one are in "
            f"{folder}: to continue it all the same, give -s {session}"
        )
    return infos[0].session if infos else None


def session_to_continue(
    choices: Choices, *, latest: bool, given: str | None, quiet: bool = False
) -> Earlier:
    """Return the session to continue, with its model.

    Args:
        choices: name the journal; their model takes precedence.
        latest: continue the most recently used session of this folder.
        given: the id or its beginning; takes precedence.
        quiet: do not print the session and model.

    Raises:
        ConfigError: the journal has no such session, or nothing is called like its
            model.
    """
    from neuraxis.session.build import build_workspace  # delays `--help`
    from neuraxis.session.inherit import Inherited

    if given is None and not latest:
        return Earlier(session=None, choices=choices)
    settings = settings_of(choices)
    journal = journal_path(settings)
    opened = existing_journal(journal)
    if opened is None:
        infos, session_id, events = (), None, ()
    else:
        with closing(opened):
            infos = opened.sessions()
            session_id = None if given is None else session_in(infos, given)
            here = build_workspace(
                None if choices.workspace is None else Path(choices.workspace),
                Inherited(),
                settings,
            )
            session_id = session_id or _last_conversation(opened, infos, here.resolve())
            events = (
                [item.event for item in opened.read(session_id)] if session_id else ()
            )
    if session_id is None:
        if given is not None:
            session_in(infos, given)
        raise ConfigError(f"the journal {journal} holds no session to continue")
    model = choices.model or _model_of(session_id, events, settings)
    if not quiet:
        model_shown = model or settings.get("model") or "local:"
        hint = ""
        if model_shown.startswith("openai:") and not settings.get("openai.base_url"):
            hint = "; give --base-url again if it had one"
        notice = f"continuing session {one_line(session_id)} with "
        echo(f"{notice}{one_line(model_shown)}{hint}", err=True)
    turns = tuple(_turns(events))[-_TURNS:]
    return Earlier(
        session=session_id, choices=replace(choices, model=model), turns=turns
    )


def _model_of(
    session: str, events: Iterable[Event | Unknown], settings: Settings
) -> str | None:
    """Return the session's last model; None: it had none.

    Raises:
        ConfigError: its name does not identify a model.
    """
    from neuraxis.events import ModelStarted
    from neuraxis.models import find_model
    from neuraxis.models.failover import BETWEEN

    name = None
    for event in events:
        if isinstance(event, ModelStarted):
            name = event.model
    if name is not None and BETWEEN in name:
        raise ConfigError(
            f"session {session} was run with several models ({name}); name one with -m"
        )
    if name is not None:
        try:
            find_model(name, settings)
        except ModelUnavailable:
            pass  # opening the session reports what is missing
        except ConfigError as error:
            raise ConfigError(
                f"session {session} was run with the model {name!r}, which is not "
                f"found here; name one with -m ({error})"
            ) from None
    return name


def _turns(events: Iterable[Event | Unknown]) -> Iterator[tuple[str, str]]:
    """Yield each request with its answer."""
    from neuraxis.events import MessageSent, SessionFinished

    request = ""
    for event in events:
        if isinstance(event, MessageSent) and event.sender == "user":
            request = event.content
        elif isinstance(event, SessionFinished):
            yield request, event.text or event.error


def session_in(known: Sequence[SessionInfo], given: str) -> str:
    """Return the id of the session with this id or prefix.

    Raises:
        ConfigError: no session matches, or several do.
    """
    ids = [info.session for info in known]
    fitting = [session_id for session_id in ids if session_id == given]
    fitting = fitting or [
        session_id for session_id in ids if session_id.startswith(given)
    ]
    if len(fitting) != 1:
        problem = "no session begins" if not fitting else "several sessions begin"
        close = did_you_mean(
            [one_line(session_id) for session_id in nearest(given, ids)]
        )
        raise ConfigError(
            f"{problem} with {given!r}; `neuraxis sessions list` lists them."
            f"{'' if fitting else close}".removesuffix(".")
        )
    return fitting[0]


def existing_journal(path: str, *, named: bool = False) -> Journal | None:
    """Open the journal of a file, or None; never create one.

    Args:
        path: the file.
        named: the user named it, so that it must exist.

    Raises:
        ConfigError: there is no such file, and it was named.
    """
    from neuraxis.journal import open_journal

    if Path(path).exists():
        return open_journal(path)
    if named:
        raise ConfigError(f"--journal {path}: cannot be read: there is no such file")
    return None
