"""The agent loop: answer one request, turn by turn.

A turn is: prompt, model, decode, plan, run, encode. The run ends when the model
writes no call, when a limit is reached, or after too many unreadable replies.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.engines import TimeLimitReached
from neuraxis.errors import ModelError
from neuraxis.events import (
    BudgetReached,
    Event,
    MessageSent,
    PlanChecked,
    SessionFinished,
)
from neuraxis.execution.budget import Usage
from neuraxis.execution.cancellation import RunCancellation
from neuraxis.execution.early_start import EarlyStarts
from neuraxis.execution.failures import denied_result
from neuraxis.execution.loop_limits import within_limits
from neuraxis.execution.runtime import Runtime
from neuraxis.execution.scheduler import run_plan
from neuraxis.messages import (
    NOTHING_USED,
    Call,
    CallError,
    Completion,
    Message,
    Reply,
    Result,
)
from neuraxis.models import guesses
from neuraxis.planning.build import build
from neuraxis.planning.plan import Plan, Step
from neuraxis.policy.confirm_plan import confirm
from neuraxis.policy.later import Waits
from neuraxis.session.answer import Answer, Outcome, answer_of, took_too_long
from neuraxis.session.ask_model import Stop, ask_model
from neuraxis.session.config import RunConfig, RunState, carried_over, runtime_of
from neuraxis.session.past.resume import completion_of
from neuraxis.session.past.waiting import GoingOn
from neuraxis.session.prompt import remaining_budget
from neuraxis.session.shorten.history import fitting_prompt
from neuraxis.session.typed.output import MENDS, decoded
from neuraxis.session.visible_results import showing, visible_results
from neuraxis.specs import Json

MISREAD = 3
"""Consecutive unreadable replies that end a run."""
_CANCELLED = "the run was cancelled"
_CUT = (
    "the reply was cut off: it reached the limit of its tokens (max_tokens, or what "
    "the model can hold); the text is what it wrote until then"
)


async def converse(
    text: str | None,
    config: RunConfig,
    history: list[Message],
    emit: Callable[[Event], None],
    live: bool = True,
    shows: Sequence[str] = (),
) -> Answer:
    """Answer one request. `history` grows by its messages, also on failure.

    Args:
        text: the user's request; None: a run that was cut off is resumed.
        config: the session's configuration.
        history: the messages so far.
        emit: sees every event as it happens.
        live: whether the chunks of a reply are reported as events.
        shows: assets that the model is shown with the request.

    Raises:
        StorageError: the journal could not be written.
        asyncio.CancelledError: the run was cancelled, and its commands were stopped.
    """
    started = time.perf_counter()
    error: str | ModelError = ""
    state = RunState(results=carried_over(text, config, history))
    cancelled = RunCancellation()
    outcome: Outcome = "answered"
    if text is not None:
        history.append(_take_request(text, tuple(shows), config, emit))
    runtime = runtime_of(config, state, emit, cancelled)
    early = _early_starts(config, runtime)
    turns = _turns(config, history, state, runtime, early, emit, live)
    try:
        try:
            await _within(config.budget.seconds, turns)
        finally:
            early.stop()
            if early.busy:
                await early.throw_away()
    except Stop as stop:
        outcome, error = stop.outcome, stop.error
        _add_last_word(stop.last_word, history, state, emit)
    except Waits:
        outcome = "waiting"
    except ModelError as failed:
        outcome, error = "failed", failed
    except TimeLimitReached:
        cancelled.stopped = True
        seconds = config.budget.seconds
        emit(BudgetReached(what="seconds", limit=seconds, used=seconds))
        outcome, error = "budget", took_too_long(state, config)
    except asyncio.CancelledError:
        cancelled.stopped = True
        emit(_end("cancelled", state.left(config.workspace), "", _CANCELLED, started))
        if config.settled is not None:
            await config.settled()
        raise
    answer = answer_of(state, outcome, error, runtime, config)
    emit(_end(outcome, answer.files, answer.text, answer.error, started))
    return answer


def _take_request(
    text: str,
    assets: tuple[str, ...],
    config: RunConfig,
    emit: Callable[[Event], None],
) -> Message:
    emit(MessageSent(sender="user", receiver="model", content=text, assets=assets))
    config.origins.add_request(text)
    content = config.dialect.request(text)
    return Message(role="user", content=content, is_request=True, assets=assets)


def _add_last_word(
    text: str, history: list[Message], state: RunState, emit: Callable[[Event], None]
) -> None:
    if text:
        history.append(Message(role="assistant", content=text))
        emit(MessageSent(sender="model", receiver="user", content=text))
        state.texts = [text]


def _early_starts(config: RunConfig, runtime: Runtime) -> EarlyStarts:
    return EarlyStarts(
        on=config.early_start and not guesses(config.model),
        dialect=config.dialect,
        runtime=runtime,
        plan=lambda calls: plan_of(calls, config),
        next_id=config.ids.next,
    )


async def _within(seconds: float, turns: Coroutine[Any, Any, None]) -> None:
    """Await the turns of a run, within its time limit."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            await turns
    except TimeoutError:
        if limit.expired():
            raise TimeLimitReached from None
        raise  # the time limit of a command


def plan_of(
    calls: Sequence[Call],
    config: RunConfig,
    params: Mapping[str, Json] | None = None,
    usage: Usage | None = None,
) -> Plan:
    """Return the checked plan of these calls, or all their mistakes."""
    plan = build(
        calls,
        config.registry.find,
        known_assets=config.assets.known,
        asset_ids=config.assets.ids,
        lenient=not config.strict,
        params=params,
    )
    return within_limits(plan, usage or Usage(), config.budget)


async def run_calls(
    calls: Sequence[Call],
    config: RunConfig,
    emit: Callable[[Event], None],
    params: Mapping[str, Json] | None = None,
) -> list[Result]:
    """Run calls that no model wrote: checked, authorised and stored as ever.

    Where the plan has problems nothing runs, and each call's result is the first.

    Raises:
        ConfigError: the id of a call is that of one of the model's.
    """
    plan = plan_of(calls, config, params)
    if not plan.problems:
        config.ids.take(calls, config.session)
    emit(replace(_checked(plan, Reply()), by_program=True))
    if plan.problems:
        error = plan.problems[0]
        return [Result(call=call, status="failed", error=error) for call in calls]
    config = replace(config, later=None)  # the program waits for these results
    runtime = runtime_of(config, RunState(), emit, RunCancellation())
    results = await run_plan(plan, runtime)
    # with the next request the model is shown what these objects are
    runtime.gate.origins.unseen += [each.call.id for each in results if each.stored]
    return results


def _end(
    outcome: str, files: tuple[str, ...], text: str, error: str, started: float
) -> SessionFinished:
    return SessionFinished(
        outcome=outcome,  # pyright: ignore[reportArgumentType] - one of its words
        text=text,
        error=error,
        seconds=time.perf_counter() - started,
        files=files,
    )


async def _turns(
    config: RunConfig,
    history: list[Message],
    state: RunState,
    runtime: Runtime,
    early: EarlyStarts,
    emit: Callable[[Event], None],
    live: bool,
) -> None:
    limit, turn, pending = config.budget.model_calls, 0, None
    if config.waited is None:
        pending = _pending(history)
    else:
        await _go_on(config, config.waited, history, state, runtime, emit)
    for turn in runtime.usage.replies(limit):
        if early.busy:
            await early.throw_away()
        early.begin()
        seconds = time.perf_counter() - state.started
        if seconds > config.budget.seconds:
            raise TimeLimitReached  # nothing was awaited, so the timer could not fire
        left = remaining_budget(config.budget, runtime.usage, seconds)
        if pending is None:
            if config.settled is not None:
                await config.settled()  # nothing is lost while the model is asked
            prompt = await fitting_prompt(config, history, left, state, runtime, emit)
            completion = await ask_model(
                config, runtime, prompt, turn, early, emit, live
            )
        else:
            completion, pending = pending, None
        if completion.usage is not NOTHING_USED:
            state.usage += completion.usage
        reply = decoded(config.output, config.dialect, completion, early.next_id)
        history.append(_assistant_message(completion, reply))
        texts = [await _readable(text, config, state) for text in reply.texts]
        for text in texts:
            emit(MessageSent(sender="model", receiver="user", content=text))
        if not reply.calls and not reply.errors:
            if _is_answered(config, history, state, texts, completion, emit):
                return
            continue
        if reply.errors:
            emit(_unread(reply))
            _report_errors(config, history, state, reply.errors, emit)
            continue
        plan = early.handed(plan_of(reply.calls, config, usage=runtime.usage))
        emit(_checked(plan, reply))
        if problems := plan.problems:
            if len(reply.calls) > 1 and state.misread:
                problems = (*problems, call_errors.one_at_a_time())
            _report_errors(config, history, state, problems, emit)
            continue
        state.misread = 0
        results = _with_left(await _run_plan(plan, config, runtime, state), reply)
        _report_results(config, history, state, plan, results, emit)
    emit(BudgetReached(what="model calls", limit=limit, used=limit))
    inside = f", and models inside its commands {limit - turn}" if limit > turn else ""
    raise Stop("budget", f"the model was asked {turn} times without an answer{inside}")


def _is_answered(
    config: RunConfig,
    history: list[Message],
    state: RunState,
    texts: list[str],
    completion: Completion,
    emit: Callable[[Event], None],
) -> bool:
    """Check the last word; the model is told what is wrong."""
    state.texts = texts
    if config.output is None:
        if texts and completion.finish_reason == "length":
            raise Stop("budget", _CUT)
        if not texts:
            empty = call_errors.empty_reply()
            emit(_unread(Reply(errors=(empty,))))
            _report_errors(config, history, state, (empty,), emit)
        return bool(texts)
    read = config.output.read("\n\n".join(texts))
    if not isinstance(read, CallError):
        state.output, text = read
        state.texts = [text]
        return True
    if sum(item.code == read.code for item in state.problems) == MENDS:
        state.problems.append(read)
        raise Stop("failed", call_errors.no_output(read, MENDS + 1))
    emit(_unread(Reply(errors=(read,))))
    _tell_errors(config, history, state, (read,), emit)
    return False


async def _go_on(
    config: RunConfig,
    waited: GoingOn,
    history: list[Message],
    state: RunState,
    runtime: Runtime,
    emit: Callable[[Event], None],
) -> None:
    """Run the rest of the plan that waited."""
    ids = waited.ids(config.ids)
    reply = config.dialect.decode(completion_of(history[-1]), next_id=ids)
    plan = plan_of(waited.edited(reply).calls, config)
    if plan.problems:
        _report_errors(config, history, state, plan.problems, emit)
        return
    results = await _run_plan(plan, config, runtime, state)
    _report_results(config, history, state, plan, waited.noted(results), emit)


async def _run_plan(
    plan: Plan, config: RunConfig, runtime: Runtime, state: RunState
) -> list[Result]:
    """Run a plan; ask first about a guessed one."""
    state.plans.append(plan)
    if guesses(config.model) and (no := await confirm(plan.steps, runtime.gate)):
        calls = ((step.call.target, step.arguments) for step in plan.steps)
        state.declined = call_errors.plan_not_run(calls, no)
        return [denied_result(step, no, runtime) for step in plan.steps]
    ended = runtime.usage.ended
    ended.clear()
    try:
        return await run_plan(plan, runtime)
    except (asyncio.CancelledError, Waits):
        ids = [step.call.id for step in plan.steps]
        state.results += [ended[own] for own in ids if own in ended]
        raise


def _assistant_message(completion: Completion, reply: Reply) -> Message:
    return Message(
        role="assistant",
        content=completion.text,
        calls=reply.calls,
        tool_calls=completion.tool_calls,
        carried=completion.carried,
        finish_reason=completion.finish_reason,
    )


def _pending(history: list[Message]) -> Completion | None:
    """Return the unread reply of a run that was cut off."""
    if not history or history[-1].role != "assistant":
        return None
    return completion_of(history.pop())


async def _readable(text: str, config: RunConfig, state: RunState) -> str:
    """Return the answer's text with the assets it embeds (rule B62)."""
    if "<|" not in text:
        return text
    # imported here: few answers embed assets, and the import would delay the first run
    from neuraxis.assets.embed import CannotBeShown, embed
    from neuraxis.execution.offload import aside
    from neuraxis.sandbox.files.call_files import CallFiles
    from neuraxis.sandbox.files.paths import FileRefused
    from neuraxis.sandbox.files.workspace import Quota, write_bytes

    def save(name: str, data: bytes) -> str:
        history = config.files
        try:
            if history is None:
                written = write_bytes(config.workspace, name, data)
            else:
                way = CallFiles(history=history, call_id="", warn=lambda text: None)
                written = way.write(name, data, Quota())
        except FileRefused as error:
            raise CannotBeShown(str(error)) from error
        state.files.append(written)
        return written

    return await aside(True, embed, text, config.assets, save)


def _with_left(results: list[Result], reply: Reply) -> list[Result]:
    """Tell the model with the last result which calls were not read."""
    if not (reply.left and results):
        return results
    warnings = (*results[-1].warnings, call_errors.calls_left(reply.left))
    return [*results[:-1], replace(results[-1], warnings=warnings)]


def _unread(reply: Reply) -> PlanChecked:
    return PlanChecked(
        steps=(),
        problems=tuple(call_errors.to_json(error) for error in reply.errors),
        notes=reply.notes,
    )


def _checked(plan: Plan, reply: Reply) -> PlanChecked:
    return PlanChecked(
        steps=tuple([_step_json(step) for step in plan.steps]),
        problems=tuple([call_errors.to_json(error) for error in plan.problems]),
        notes=(*reply.notes, *plan.notes),
    )


def _step_json(step: Step) -> Json:
    call = step.call
    entry: dict[str, Json] = {
        "id": call.id,
        "tool": call.target,
        "arguments": call.arguments,
        "name": call.name,
        "depends": list[Json](sorted(step.depends)) if step.depends else [],
    }
    if call.for_each is not None:
        entry["for_each"] = call.for_each
    return entry


def _report_results(
    config: RunConfig,
    history: list[Message],
    state: RunState,
    plan: Plan,
    results: Sequence[Result],
    emit: Callable[[Event], None],
) -> None:
    """Add the results to the history, in one message (rule C25)."""
    state.results += results
    if config.raise_failures:
        for result in results:
            if result.exception is not None:
                raise result.exception
    config.origins.shown([result.call.id for result in results])
    visible = visible_results(plan, results, config.show_results)
    for message in showing(config.dialect.answer(visible), results):
        history.append(message)
        content, assets = message.content, message.assets
        emit(
            MessageSent(
                sender="system", receiver="model", content=content, assets=assets
            )
        )
    if state.declined:
        raise Stop("declined", state.declined)


def _report_errors(
    config: RunConfig,
    history: list[Message],
    state: RunState,
    errors: Sequence[CallError],
    emit: Callable[[Event], None],
) -> None:
    """Let the model correct its mistakes, a few times (rule D9)."""
    state.misread += 1
    _tell_errors(config, history, state, errors, emit)
    if state.misread >= MISREAD:
        last = errors[0].message
        raise Stop(
            "failed",
            f"the model wrote {state.misread} replies in a row that could not be "
            f"used; the last one: {last}",
        )


def _tell_errors(
    config: RunConfig,
    history: list[Message],
    state: RunState,
    errors: Sequence[CallError],
    emit: Callable[[Event], None],
) -> None:
    state.problems += errors
    for part in config.dialect.correction(errors, history[-1]):
        history.append(part)
        emit(MessageSent(sender="system", receiver="model", content=part.content))
