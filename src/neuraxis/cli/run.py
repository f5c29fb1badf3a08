"""`neuraxis run`: one request, answered; progress on stderr, the answer on stdout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from neuraxis.cli import signals
from neuraxis.cli.continue_session import resume_options, session_to_continue
from neuraxis.cli.display.text import echo, echo_file, echo_json, inert, one_line
from neuraxis.cli.options import (
    Choices,
    journal_path,
    make_session,
    session_options,
    settings_of,
)
from neuraxis.cli.plans import check_folder, keep_plan
from neuraxis.cli.standard_input import attach_piped, read_text
from neuraxis.cli.standard_output import answers_alone, kept_for_answers, stdout
from neuraxis.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neuraxis.events import Event
    from neuraxis.session.answer import Answer
    from neuraxis.session.past.waiting import Question, WaitingPlan
    from neuraxis.session.session import Session
    from neuraxis.session.watch import Watch
    from neuraxis.specs import Json

EXIT = {
    "answered": 0, "failed": 1, "declined": 1, "budget": 3, "waiting": 6,
    "cancelled": 130,
}  # fmt: skip
UNREAD = {
    "malformed_reply", "truncated_reply", "duplicate_key", "receiver_id_not_allowed",
}  # fmt: skip
"""Error codes after which the reply may have been no call."""


def _in_quotes(
    context: click.Context, parameter: click.Parameter, words: tuple[str, ...]
) -> str | None:
    """Return the request, which must be one argument."""
    if len(words) > 1:
        raise click.UsageError(
            f'Put the request in quotes: neuraxis run "{" ".join(words)}"', context
        )
    return words[0] if words else None


@click.command(short_help="Answer one request.")
@click.argument("request", nargs=-1, callback=_in_quotes, metavar="[REQUEST]")
@session_options()
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON lines.")
@resume_options
@click.option("-q", "--quiet", is_flag=True, help="Print only the answer.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Also print the result of each step."
)
@click.option(
    "--attach",
    multiple=True,
    type=click.Path(),
    help="A file for the model: a picture, a table, a text; - waits for standard "
    "input.",
)
@click.option(
    "--record",
    type=click.Path(),
    help="Record the model's replies in a file, to replay them.",
)
@click.option(
    "--save-plan",
    type=click.Path(path_type=Path),
    help="Save the calls that succeeded as a plan, to run without a model.",
)
@answers_alone
def run(
    request: str | None,
    as_json: bool,
    resume: bool,
    session_id: str | None,
    quiet: bool,
    verbose: bool,
    record: str | None,
    attach: tuple[str, ...],
    save_plan: Path | None,
    **options: Any,
) -> int:
    """Answer REQUEST, calling plugins where needed.

    Without REQUEST, or if it is -, it is read from standard input. With a REQUEST,
    piped input is attached to it.

    Exit codes: 0 answered, 1 failed (also if the last call failed or was refused),
    2 wrong option or name, 3 limit reached, 4 no model, 5 journal or file not
    writable, 6 a call waits for approval, 130 interrupted (Ctrl-C), 143 and 129 ended
    by SIGTERM and SIGHUP.
    """
    from neuraxis.session.validation import check_request  # delays `--help`

    text = _piped(request) if request in (None, "-") else request
    check_request(text)
    if "-" in attach and request in (None, "-"):
        raise ConfigError("--attach -: standard input is already the request")
    earlier = session_to_continue(
        Choices(**options), latest=resume, given=session_id, quiet=quiet or as_json
    )
    choices = earlier.choices
    if save_plan is not None:
        check_folder(save_plan)
    session = open_session(choices, earlier.session, record, quiet=True)
    with session:
        for path in attach:
            if path != "-":
                session.attach(Path(path))
        if text is request:  # else standard input is the request
            attach_piped(session, is_asked_for="-" in attach)
        if not (quiet or as_json):
            say_who(session)
        try:
            answer, code = ask(
                session, text, as_json=as_json, quiet=quiet, verbose=verbose
            )
        except KeyboardInterrupt:
            is_kept = journal_path(settings_of(choices)) != "memory"
            if is_kept and session.journal.read(session.id):
                echo(f"to continue: {resuming(session.id)}", err=True)
            raise
        if not as_json:
            say_next(session)
        if save_plan is not None:
            keep_plan(session, answer, text, save_plan, choices.on_error)
    return code


def code_of(answer: Answer, refused: bool = False) -> int:
    """Return the exit code; a failed last call is a failure.

    Args:
        answer: how the run ended.
        refused: whether the model's last calls failed their check, so that the answer
            does not have them.
    """
    if answer.outcome != "answered":
        return EXIT.get(answer.outcome, 1)
    if refused or (answer.calls and answer.calls[-1].status != "done"):
        return 1
    return 0


def _piped(request: str | None) -> str:
    if request is None and sys.stdin.isatty():
        raise ConfigError(
            "there is no request: write it after `run` in quotes, or pipe it in"
        )
    return read_text()


def open_session(
    choices: Choices, session_id: str | None, record: str | None, quiet: bool
) -> Session:
    """Return a session, its model recorded where a file is named."""
    model: Any = None
    if record is not None:
        settings = settings_of(choices)
        name = str(settings.get("model") or "local:")
        from neuraxis.models import find_model
        from neuraxis.models.recorder import Recorder

        model = Recorder(find_model(name, settings), Path(record))
    session = make_session(choices, resume=session_id, model=model)
    if not quiet:
        say_who(session)
    return session


def say_who(session: Session) -> None:
    """Say that the offline planner answers, if it does."""
    if session.model.name == "local:":
        from neuraxis.models.offline.say import WHO

        echo(WHO, err=True)


def ask(
    session: Session,
    request: str | None,
    *,
    as_json: bool = False,
    quiet: bool = False,
    verbose: bool = False,
) -> tuple[Answer, int]:
    """Run one request in the terminal, shown live.

    Ctrl-C ends it with its child processes.

    Returns:
        The answer, and its exit code.

    Raises:
        KeyboardInterrupt: the user pressed Ctrl-C; commands were told to stop.
        Signalled: the process is to end; commands were told to stop.
    """
    if as_json:
        answer, code = _drive(session, request, _json_line)
        echo_json({"type": "answer", **answer.to_json()})
        return answer, code
    if quiet:
        answer, code = _drive(session, request, None)
        show_answer(session, answer, quiet=True)
        return answer, code
    from neuraxis.cli.display.progress import Live

    live = Live(aloud=stdout().isatty(), results=verbose)
    plan = _waiting_plan(session)
    if request is None and plan is not None:
        live.number(plan.steps)
    elif plan is not None and plan.asked:
        unfinished = [one for one in plan.steps if one not in plan.ended]
        calls = ", ".join(f"{one} {plan.steps[one]['tool']}" for one in unfinished)
        echo(
            f"not run, since you asked for something else: {one_line(calls)}", err=True
        )
    try:
        answer, code = _drive(session, request, live)
    finally:
        live.close()
    show_answer(session, answer, quiet=False, printed=live.printed, reply=live.reply)
    return answer, code


def _waiting_plan(session: Session) -> WaitingPlan | None:
    """Return the plan that waits or was cut off."""
    from neuraxis.session.past.waiting import last_plan

    return last_plan(entry.event for entry in session.journal.read(session.id))


def _drive(
    session: Session, request: str | None, watch: Watch | None
) -> tuple[Answer, int]:
    from neuraxis.events import PlanChecked
    from neuraxis.models.accumulate import close_model

    answers: list[Answer] = []  # not returned: asyncio would write it out as text
    refused = False

    def see(event: Event) -> None:
        nonlocal refused
        if isinstance(event, PlanChecked):
            codes = {cast("dict[str, Json]", item)["code"] for item in event.problems}
            refused = bool(codes - UNREAD) or (refused and bool(codes))
        if watch is not None:
            watch(event)

    async def go() -> None:
        try:
            with signals.cancelled_by_signals():
                work = session.resume() if request is None else session.run(request)
                answers.append(await work.drive(see))
        finally:
            await close_model(session.model)

    with kept_for_answers():
        signals.run_to_end(go())
    return answers[0], code_of(answers[0], refused)


def _json_line(event: Event) -> None:
    from neuraxis.events import to_json

    echo_json(to_json(event))


def question_lines(questions: Iterable[Question]) -> Iterable[str]:
    """Return the open questions as lines of inert text."""
    from neuraxis.cli.approve import arguments_shown

    for question in questions:
        yield f"? {question.session}  {question.id}  {one_line(question.call.target)}"
        yield from arguments_shown(question.call.arguments, question.origins)
        if question.call.for_each is not None:
            yield f"    once for each item of {one_line(str(question.call.for_each))}"
        yield from (f"    {one_line(line)}" for line in question.lost)
        yield f"  reason: {one_line(question.reason)}"
        if question.offers:
            yield f"  widest offer: {one_line(question.offers[-1])}"


def say_next(session: Session) -> None:
    """Print how to answer open questions, and how to continue."""
    questions = session.pending()
    if questions:
        question = f"{session.id} {questions[0].id}"
        echo(f"to approve: neuraxis sessions approve {question}", err=True)
        echo(f"or to deny: neuraxis sessions deny {question} REASON", err=True)
        echo(f"then: {resuming(session.id)}", err=True)


def resuming(session: str) -> str:
    """Return the command that continues a session."""
    return (
        f"neuraxis sessions resume {session}, with the -p, --base-url and --journal of "
        "the run if it had any"
    )


def show_answer(
    session: Session,
    answer: Answer,
    *,
    quiet: bool,
    printed: str = "",
    reply: str = "",
) -> None:
    """Show the answer, with a table and pictures, and what failed.

    The answer goes to standard output, everything else to standard error.

    Args:
        session: the session of the run.
        answer: the run's answer.
        quiet: show nothing besides the answer.
        printed: the beginning of the answer that was printed already.
        reply: the model's last reply, with its references.
    """
    from neuraxis.cli.display.markdown import print_markdown
    from neuraxis.cli.display.objects import print_object

    remainder = inert(answer.text).removeprefix(printed)
    if remainder.strip():
        print_markdown(remainder, after=bool(printed.strip()))
    if answer.error:
        echo(f"neuraxis: {answer.error}", err=True)
    if answer.outcome == "waiting":
        echo("\n".join(question_lines(session.pending())), err=True)
    if quiet:
        return
    if stdout().isatty():
        for value in _beside(answer, reply):
            print_object(value)
    for path in answer.files:
        echo_file(session.workspace / path)


def _beside(answer: Answer, reply: str) -> Iterable[Any]:
    """Return the table and the pictures to show after the answer.

    Of each kind these are the objects that the answer refers to, else the last one. A
    table that it refers to is part of its text.
    """
    from neuraxis.assets.embed import is_picture, is_table
    from neuraxis.references.asset_ref import parse_embedded

    named = {ref.asset_id for _, _, ref in parse_embedded(reply)}
    objects = [(asset.id in named, asset.value) for asset in answer.assets]
    tables = [(is_named, value) for is_named, value in objects if is_table(value)]
    if not any(is_named for is_named, _ in tables):
        yield from [value for _, value in tables[-1:]]
    pictures = [(is_named, value) for is_named, value in objects if is_picture(value)]
    chosen = [value for is_named, value in pictures if is_named]
    yield from chosen or [value for _, value in pictures[-1:]]
