"""`neuraxis batch`: run the requests of a file concurrently."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
from msgspec import Struct

from neuraxis.call_errors.checking import for_person
from neuraxis.cli import signals
from neuraxis.cli.display.text import echo, echo_json, one_line, short
from neuraxis.cli.options import (
    Choices,
    journal_path,
    make_session,
    read_file,
    session_options,
    settings_of,
)
from neuraxis.cli.standard_output import answers_alone
from neuraxis.errors import ConfigError
from neuraxis.formatting import counted

if TYPE_CHECKING:
    from neuraxis.events import ApprovalAsked, Event, Unknown
    from neuraxis.journal import Journal
    from neuraxis.policy.gate import Approve
    from neuraxis.session.session import Session
    from neuraxis.specs import Json


_SHOWN = 20
"""Maximum wrong lines that an error names."""
_EXPECTED = 'expected {"id": …, "request": "…"}, or a text in quotes'


class _Row(Struct, frozen=True, kw_only=True):
    id: str
    request: str


@click.command(short_help="Answer all requests in a file.")
@click.argument("file", type=click.Path(path_type=Path))
@session_options()
@click.option(
    "--at-once",
    type=click.IntRange(1),
    default=20,
    help="Maximum requests that run at once; default: 20.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@answers_alone
def batch(file: Path, at_once: int, quiet: bool, **options: Any) -> int:
    """Answer the requests in FILE, one per line, several at a time.

    A line is {"id": …, "request": …}, or a text in quotes. Each answer is printed as a
    JSON line when it is complete, with the calls that were not done. Run the command
    again to continue a batch that was cut off: answered requests are not asked again.

    Exit codes: 0 all answered, even if calls were not done; 6 some wait for approval,
    all others are answered; 1 some failed or met a limit; and the 2, 4, 5, 130, 143 and
    129 of `neuraxis run`.
    """
    import asyncio  # Imported on first use: slow.

    from neuraxis.cli.approve import ask_on_terminal, is_somebody_there
    from neuraxis.journal import open_journal
    from neuraxis.models import find_model

    rows = _rows(file)
    choices = Choices(**options)
    settings = settings_of(choices)
    name = str(settings.get("model") or "local:")
    model, journal = find_model(name, settings), open_journal(journal_path(settings))

    one_at_a_time = asyncio.Lock()

    def asking(row: _Row) -> Approve:
        """Ask on the terminal, and say for which row it is."""

        async def ask(asked: ApprovalAsked) -> bool | str:
            async with one_at_a_time:
                request = short(row.request)
                echo(f"row {one_line(row.id)}, {request}:", err=True)
                return await ask_on_terminal(asked)

        return ask

    def make(row: _Row) -> Session:
        # another text under the same id is another request, and so is another file's
        request = f"{file.resolve()}\n{row.request}".encode(errors="surrogatepass")
        digest = sha256(request).hexdigest()[:12]
        session_id = f"batch-{file.stem}-{row.id}-{digest}"
        return make_session(
            choices,
            reopen=session_id,
            journal=journal,
            approve=asking(row) if is_somebody_there() else None,
            model=model,
        )

    with closing(journal):
        return _run(make, rows, at_once, quiet, journal)


def _rows(file: Path) -> list[_Row]:
    """Return the requests of a file.

    Raises:
        ConfigError: it is missing, or has invalid lines; all are named.
    """
    lines = read_file(file).split("\n")
    rows: dict[str, _Row] = {}
    wrong: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = _row(_parsed(line), str(number))
            if row.id in rows:
                raise ConfigError(f"id {row.id!r} occurs twice")
            rows[row.id] = row
        except (ValueError, RecursionError, ConfigError) as error:
            wrong.append(f"{file}, line {number}: {error}")
    if wrong:
        more = len(wrong) - _SHOWN
        omitted = [f"… {counted(more, 'more line')}"] if more > 0 else []
        raise ConfigError("\n".join(wrong[:_SHOWN] + omitted))
    return [*rows.values()]


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        # its own line number would be 1, whichever line of the file it is
        place = f" from column {error.colno} on" if error.pos else ""
        raise ValueError(f"{_EXPECTED}; it is not JSON{place}") from None
    except ValueError as error:  # a number of too many digits
        raise ValueError(f"{_EXPECTED}; {error}") from None


def _row(value: Any, number: str) -> _Row:
    from neuraxis.session.validation import check_request  # delays `--help`

    fields = cast(
        "dict[str, Any]", value if isinstance(value, dict) else {"request": value}
    )
    if not isinstance(fields.get("request"), str):
        raise ValueError(_EXPECTED)
    if unknown := sorted(fields.keys() - {"id", "request"}):
        raise ValueError(f"expected id and request only, got {unknown[0]}")
    check_request(fields["request"])
    return _Row(id=str(fields.get("id", number)), request=fields["request"])


def _run(
    make: Callable[[_Row], Session],
    rows: list[_Row],
    at_once: int,
    quiet: bool,
    journal: Journal,
) -> int:
    from neuraxis.session.batch import run_many

    outcomes: Counter[str] = Counter()

    async def go() -> None:
        earlier = incomplete = 0
        with signals.cancelled_by_signals():
            work = run_many(
                make, rows, request=lambda row: row.request, at_once=at_once
            )
            async for item in work:
                if isinstance(item.exception, ConfigError):
                    raise item.exception  # fails now instead of for each row
                answer = item.answer
                outcomes[answer.outcome] += 1
                earlier += item.earlier
                entries = journal.read(item.session)
                not_done = _not_done(entry.event for entry in entries)
                incomplete += bool(not_done)
                entry = {
                    "id": item.row.id,
                    "session": item.session,
                    "outcome": answer.outcome,
                    "text": answer.text,
                    "error": answer.error,
                    "files": list(answer.files),
                    "not_done": not_done,
                    "earlier": item.earlier,
                }
                echo_json(entry)
                if not quiet:
                    listed = ", ".join(f"{n} {what}" for what, n in outcomes.items())
                    notes = [f"{earlier} earlier"] if earlier else []
                    notes += [f"{incomplete} with calls not done"] if incomplete else []
                    rest = f" ({', '.join(notes)})" if notes else ""
                    echo(f"{item.count} of {item.total}: {listed}{rest}", err=True)

    signals.run_to_end(go())
    if outcomes.keys() <= {"answered"}:
        return 0
    return 6 if outcomes.keys() <= {"answered", "waiting"} else 1


def _not_done(events: Iterable[Event | Unknown]) -> list[str]:
    """Return the last plan's calls that were not done, with reasons."""
    from neuraxis.cli.run import UNREAD
    from neuraxis.events import CallFinished, PlanChecked

    left: dict[str, str] = {}
    for event in events:
        if isinstance(event, PlanChecked):
            errors = cast("tuple[dict[str, Json], ...]", event.problems)
            wrong = [error for error in errors if error["code"] not in UNREAD]
            if wrong or not errors:
                left = {f"{n}": _message(error) for n, error in enumerate(wrong)}
        elif isinstance(event, CallFinished) and not event.part_of:
            left.pop(event.id, None)  # one of unknown outcome ends twice
            if event.status != "done":
                error = cast("dict[str, Json]", event.error or {})
                name = f"{event.plugin}.{event.command}"
                left[event.id] = f"{name}: {_message(error)}"
    return [*left.values()]


def _message(error: Mapping[str, Json]) -> str:
    return for_person(str(error.get("message", "")))
