"""`neuraxis plan check|show|run FILE`: work with plan files, without a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neuraxis.call_errors.checking import for_person
from neuraxis.cli.display.text import echo, echo_file, echo_json
from neuraxis.cli.options import (
    PLANS,
    Choices,
    pairs_of,
    read_file,
    session_options,
    to_load,
)
from neuraxis.cli.standard_input import read_text
from neuraxis.cli.standard_output import answers_alone
from neuraxis.errors import StorageError
from neuraxis.formatting import counted, in_seconds, why_unusable

if TYPE_CHECKING:
    from neuraxis.messages import Result
    from neuraxis.planning.load import SavedPlan
    from neuraxis.planning.plan import OnError, Plan
    from neuraxis.session.answer import Answer
    from neuraxis.session.session import Session

_UNKNOWN = ("unknown_command", "unknown_plugin")
"""Error codes after which a plugin may be missing."""
_set = click.option(
    "--set", "given", multiple=True, help="A parameter of the plan: NAME=VALUE."
)
_svg = click.option(
    "--svg",
    type=click.Path(path_type=Path),
    help="Write the drawing to this file, as SVG.",
)
_file = click.argument("file", type=click.Path(path_type=Path))


@click.group("plan")
def plan() -> None:
    """Check, draw and run plans that were saved or written by hand."""


@plan.command(short_help="List everything that is wrong with a plan; run nothing.")
@_file
@_set
@session_options(*PLANS)
@answers_alone
def check(file: Path, given: tuple[str, ...], **options: Any) -> int:
    """Check all of FILE (- is standard input): names, arguments, references.

    Nothing runs. A parameter without a value is assumed to be valid. Exit code 1:
    something is wrong.
    """
    _, built = _checked(file, given, options)
    if not _report_problems(built, options):
        return 1
    echo(f"{file}: {counted(len(built.steps), 'step')}, no problems")
    return 0


@plan.command(short_help="Draw which steps wait for which.")
@_file
@_set
@_svg
@session_options(*PLANS)
@answers_alone
def show(file: Path, given: tuple[str, ...], svg: Path | None, **options: Any) -> int:
    """Draw FILE: what runs in parallel, and what waits."""
    from neuraxis.planning.draw import as_text, drawn

    saved, built = _checked(file, given, options)
    if not _report_problems(built, options):
        return 1
    if saved.description:
        echo(saved.description)
    for parameter in saved.parameters:
        default = parameter.schema.get("default")
        line = f"  {parameter.name}: {parameter.schema['type']}"
        line += "" if default is None else f", default {json.dumps(default)}"
        echo(f"{line}  {parameter.description}".rstrip())
    echo(as_text(drawn(built)))
    if svg is not None:
        _draw(built, {}, svg)
    return 0


@plan.command(short_help="Check a plan and run it, without a model.")
@_file
@_set
@_svg
@click.option("--json", "as_json", is_flag=True, help="Print all results as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print only the last result.")
@session_options(*PLANS)
@answers_alone
def run(
    file: Path,
    given: tuple[str, ...],
    svg: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Check FILE, then run it; no model is needed.

    Prints the result of the last step. Exit codes: 0 all steps done, 1 a step failed
    or the plan is wrong, 2 wrong option, file or parameter, 3 time limit.
    """
    import asyncio  # Imported on first use: slow.

    from neuraxis.cli.display.progress import Live
    from neuraxis.execution.budget import Budget

    saved = _read(file)
    params = saved.values(pairs_of(given, "--set "))
    if svg is not None:
        check_folder(svg)
    results: list[Result] = []
    with _session(options) as session:
        built = session.check(saved.calls, params)
        if not _report_problems(built, options):
            return 1
        on_error = options.get("on_error") or saved.on_error
        seconds = float(options.get("max_seconds") or Budget().seconds)
        live = None if as_json or quiet else Live()
        execution = session.call_all(
            saved.calls, live, params=params, on_error=on_error
        )
        try:
            asyncio.run(_within(execution, seconds, results))
        except TimeoutError:
            echo(f"neuraxis: not finished within {in_seconds(seconds)}", err=True)
            return 3
        finally:
            if live is not None:
                live.close()
    _show(results, as_json=as_json)
    if svg is not None:  # Last, so that the result is printed even if this fails.
        _draw(built, {item.call.id: item.status for item in results}, svg)
    return 0 if all(item.status == "done" for item in results) else 1


async def _within(execution: Any, seconds: float, results: list[Result]) -> None:
    from asyncio import timeout

    async with timeout(seconds):
        results += await execution


def _show(results: Sequence[Result], *, as_json: bool) -> None:
    from neuraxis.cli.display.objects import print_value
    from neuraxis.session.answer import result_json

    if as_json:
        values = [result_json(item) for item in results]
        echo_json(values)
        return
    for item in results:
        if item.error is not None:
            echo(f"neuraxis: {for_person(item.error.message)}", err=True)
    last = results[-1] if results else None
    if last is None or last.status != "done":
        return
    print_value(last.value)


def _read(file: Path) -> SavedPlan:
    from neuraxis.planning.load import read_plan

    if str(file) == "-":
        return read_plan(read_text(), "standard input")
    return read_plan(read_file(file), str(file))


def _checked(
    file: Path, given: Sequence[str], options: Mapping[str, Any]
) -> tuple[SavedPlan, Plan]:
    """Return the checked plan of a file; missing parameters count as valid."""
    saved = _read(file)
    params = saved.values(pairs_of(given, "--set "), samples=True)
    with _session(options) as session:
        return saved, session.check(saved.calls, params)


def _session(options: Mapping[str, Any]) -> Session:
    from neuraxis.cli.options import make_session
    from neuraxis.models.scripted import ScriptedModel

    return make_session(Choices(**options), model=ScriptedModel([]))


def _report_problems(built: Plan, options: Mapping[str, Any]) -> bool:
    """Return whether the plan may run; otherwise print all its errors."""
    for problem in built.problems:
        echo(f"neuraxis: {problem.message}", err=True)
    advice = to_load("", options["plugin"])
    if advice and any(problem.code in _UNKNOWN for problem in built.problems):
        echo(f"note:{advice}", err=True)
    for note in built.notes:
        echo(f"note: {note}", err=True)
    return not built.problems


def _draw(built: Plan, states: Mapping[str, str], svg: Path) -> None:
    from neuraxis.planning.draw import as_svg, drawn

    write_file(svg, as_svg(drawn(built, states)))


def check_folder(path: Path) -> None:
    """Report before a run that an output file's folder is missing.

    Raises:
        StorageError: there is none.
    """
    if not path.parent.is_dir():
        raise StorageError(
            f"{path}: cannot be written: there is no folder {path.parent}; create it"
        )


def write_file(path: Path, text: str) -> None:
    """Write a text file that the user named.

    Raises:
        StorageError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be written: {why_unusable(error)}"
        ) from error
    if sys.stderr.isatty():
        echo_file(path)


def keep_plan(
    session: Session,
    answer: Answer,
    request: str,
    path: Path,
    on_error: OnError | None = None,
) -> None:
    """Write the calls of a successful run as one plan.

    Args:
        session: the session of the run.
        answer: the run's answer.
        request: the user's request; it becomes the description.
        path: the file.
        on_error: the session's `on_error`, if the user chose it.

    Raises:
        StorageError: the file cannot be written.
    """
    from neuraxis.events import PlanChecked
    from neuraxis.planning.save import external_assets, join_replies, plan_text

    by_id = {result.call.id: result for result in answer.calls}
    replies: list[list[Result]] = []
    for entry in session.journal.read(session.id):
        event = entry.event
        if isinstance(event, PlanChecked) and not event.problems:
            ids = [str(step["id"]) for step in event.steps]
            replies.append([by_id[call_id] for call_id in ids if call_id in by_id])
    calls = join_replies(replies)
    missing = [asset for asset in external_assets(calls) if session.assets.known(asset)]
    if missing:
        echo(
            f"neuraxis: the plan uses {', '.join(missing)}, which none of its steps "
            "makes (an attached file, or a step of an earlier request), so it cannot "
            "run as it is",
            err=True,
        )
    if calls:
        write_file(path, plan_text(calls, description=request, on_error=on_error))
    else:
        echo("neuraxis: no call succeeded, so no plan was saved", err=True)
