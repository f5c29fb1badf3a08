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
from neuraxis.execution.loop_limits import check_loop_limits
from neuraxis.execution.runtime import Runtime
from neuraxis.execution.scheduler import run_plan
from neuraxis.messages import (
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
from neuraxis.policy.deferred_questions import Waits
from neuraxis.policy.plan_approval import confirm_guessed
from neuraxis.session.answer import (
    Answer,
    Outcome,
    answer_of,
    embed_assets,
    took_too_long,
)
from neuraxis.session.ask_model import Stop, ask_model, read_reply
from neuraxis.session.config import RunConfig, RunState, runtime_of
from neuraxis.session.past.recorded import last_results
from neuraxis.session.past.resume import as_completion
from neuraxis.session.past.waiting import ContinuedPlan
from neuraxis.session.prompt import remaining_budget
from neuraxis.session.shorten.history import fitting_prompt
from neuraxis.session.typed.replies import MAX_CORRECTIONS
from neuraxis.session.visible_results import visible_results, with_shown_assets
from neuraxis.specs import Json

MAX_MISREAD = 3
"""Consecutive unreadable replies that end a run."""
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
    state = RunState(results=_carried_over(text, config, history))
    cancelled = RunCancellation()
    outcome: Outcome = "answered"
    if text is not None:
        history.append(_add_request(text, tuple(shows), config, emit))
    runtime = runtime_of(config, state, emit, cancelled)
    early = _make_early_starts(config, runtime)
    turns = _turns(config, history, state, runtime, early, emit, live)
    try:
        try:
            await _within_time(config.budget.seconds, turns)
        finally:
            early.stop()
            if early.busy:
                await early.discard()
    except Stop as stop:
        outcome, error = stop.outcome, stop.error
        _add_final_text(stop.reply, history, state, emit)
    except Waits:
        outcome = "waiting"
    except ModelError as model_error:
        outcome, error = "failed", model_error
    except TimeLimitReached:
        cancelled.stopped = True
        seconds = config.budget.seconds
        emit(BudgetReached(what="seconds", limit=seconds, used=seconds))
        outcome, error = "budget", took_too_long(state, config)
    except asyncio.CancelledError:
        cancelled.stopped = True
        emit(_cancelled_event(state.existing_files(config.workspace), started))
        if config.settled is not None:
            await config.settled()
        raise
    answer = answer_of(state, outcome, error, runtime, config)
    emit(_end_event(outcome, answer.files, answer.text, answer.error, started))
    return answer


def _carried_over(
    text: str | None, config: RunConfig, history: Sequence[Message]
) -> list[Result]:
    """Return the results of the interrupted plan, for a resumed run."""
    if text is not None or config.waited is not None:
        return []
    return last_results(history, config.assets)


def _add_request(
    text: str,
    assets: tuple[str, ...],
    config: RunConfig,
    emit: Callable[[Event], None],
) -> Message:
    emit(MessageSent(sender="user", receiver="model", content=text, assets=assets))
    config.origins.add_request(text)
    note = ""
    if config.files is not None:
        note = call_errors.files_undone(config.files.untold)
        config.files.untold.clear()
    content = config.dialect.request(f"{note}{text}")
    return Message(role="user", content=content, is_request=True, assets=assets)


def _add_final_text(
    reply: str, history: list[Message], state: RunState, emit: Callable[[Event], None]
) -> None:
    if reply:
        history.append(Message(role="assistant", content=reply))
        emit(MessageSent(sender="model", receiver="user", content=reply))
        state.texts = [reply]


def _make_early_starts(config: RunConfig, runtime: Runtime) -> EarlyStarts:
    return EarlyStarts(
        is_on=config.early_start and not guesses(config.model),
        dialect=config.dialect,
        runtime=runtime,
        plan=lambda calls: plan_of(calls, config),
        next_id=config.ids.next,
    )


async def _within_time(seconds: float, turns: Coroutine[Any, Any, None]) -> None:
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
    return check_loop_limits(plan, usage or Usage(), config.budget)


async def run_calls(
    calls: Sequence[Call],
    config: RunConfig,
    emit: Callable[[Event], None],
    params: Mapping[str, Json] | None = None,
) -> list[Result]:
    """Run the program's own calls, checked and authorised like a model's.

    If the plan has problems nothing runs, and each result's error is the first.

    Raises:
        ConfigError: the model already used the id of a call.
    """
    plan = plan_of(calls, config, params)
    if not plan.problems:
        config.ids.take(calls, config.session)
    emit(replace(_plan_event(plan, Reply()), by_program=True))
    if plan.problems:
        error = plan.problems[0]
        return [Result(call=call, status="failed", error=error) for call in calls]
    config = replace(config, later=None)  # the program waits for these results
    runtime = runtime_of(config, RunState(), emit, RunCancellation())
    results = await run_plan(plan, runtime)
    # the next prompt describes these objects to the model
    runtime.gate.origins.unseen += [item.call.id for item in results if item.stored]
    return results


def _end_event(
    outcome: str, files: tuple[str, ...], text: str, error: str, started: float
) -> SessionFinished:
    return SessionFinished(
        outcome=outcome,  # pyright: ignore[reportArgumentType] - one of its words
        text=text,
        error=error,
        seconds=time.perf_counter() - started,
        files=files,
    )


def _cancelled_event(files: tuple[str, ...], started: float) -> SessionFinished:
    return _end_event("cancelled", files, "", "the run was cancelled", started)


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
        pending = _pop_unread_reply(history)
    else:
        await _run_waiting_plan(config, config.waited, history, state, runtime, emit)
    for turn in runtime.usage.replies(limit):
        if early.busy:
            await early.discard()
        early.begin()
        seconds = time.perf_counter() - state.started
        if seconds > config.budget.seconds:
            raise TimeLimitReached  # nothing was awaited, so the timer could not fire
        left = remaining_budget(config.budget, runtime.usage, seconds)
        if pending is None:
            if config.settled is not None:
                await config.settled()  # nothing is lost while the model is asked
            prompt = await fitting_prompt(config, history, left, runtime, emit)
            completion = await ask_model(
                config, runtime, prompt, turn, early, emit, live
            )
        else:
            completion, pending = pending, None
        reply = await read_reply(completion, config, history, early.next_id)
        texts = await embed_assets(reply.texts, config, state)
        for text in texts:
            emit(MessageSent(sender="model", receiver="user", content=text))
        if not reply.calls and not reply.errors:
            if _is_answered(config, history, state, texts, completion, emit):
                return
            continue
        if reply.errors:
            emit(_unread_event(reply))
            _report_errors(config, history, state, reply.errors, emit)
            continue
        plan = early.with_values(plan_of(reply.calls, config, usage=runtime.usage))
        emit(_plan_event(plan, reply))
        if problems := plan.problems:
            if len(reply.calls) > 1 and state.misread:
                problems = (*problems, call_errors.one_at_a_time())
            _report_errors(config, history, state, problems, emit)
            continue
        state.misread = 0
        results = await _run_plan(plan, config, runtime, state)
        results = _with_unread_calls(results, reply)
        _report_results(config, history, state, plan, results, emit)
    emit(BudgetReached(what="model calls", limit=limit, used=limit))
    raise _too_many_turns(turn, limit)


def _too_many_turns(turns: int, limit: int) -> Stop:
    nested = (
        f", and models inside its commands {limit - turns}" if limit > turns else ""
    )
    return Stop(
        "budget",
        f"no answer after {turns} replies of the model{nested} (Budget.model_calls); "
        "another request goes on from there",
    )


def _is_answered(
    config: RunConfig,
    history: list[Message],
    state: RunState,
    texts: list[str],
    completion: Completion,
    emit: Callable[[Event], None],
) -> bool:
    """Check the final answer; report what is wrong to the model."""
    state.texts = texts
    if config.output is None:
        if texts and completion.finish_reason == "length":
            raise Stop("budget", _CUT)
        if not texts:
            error = call_errors.empty_reply()
            emit(_unread_event(Reply(errors=(error,))))
            _report_errors(config, history, state, (error,), emit)
        return bool(texts)
    output = config.output.read("\n\n".join(texts))
    if not isinstance(output, CallError):
        state.output, text = output
        state.texts = [text]
        return True
    if sum(item.code == output.code for item in state.problems) == MAX_CORRECTIONS:
        state.problems.append(output)
        raise Stop("failed", call_errors.no_output(output, MAX_CORRECTIONS + 1))
    emit(_unread_event(Reply(errors=(output,))))
    _show_errors(config, history, state, (output,), emit)
    return False


async def _run_waiting_plan(
    config: RunConfig,
    waiting_plan: ContinuedPlan,
    history: list[Message],
    state: RunState,
    runtime: Runtime,
    emit: Callable[[Event], None],
) -> None:
    """Run the rest of a plan that waited for approvals."""
    ids = waiting_plan.ids(config.ids)
    reply = config.dialect.decode(as_completion(history[-1]), next_id=ids)
    plan = plan_of(waiting_plan.with_changes(reply).calls, config)
    if plan.problems:
        _report_errors(config, history, state, plan.problems, emit)
        return
    results = await _run_plan(plan, config, runtime, state)
    results = waiting_plan.with_warnings(results)
    _report_results(config, history, state, plan, results, emit)


async def _run_plan(
    plan: Plan, config: RunConfig, runtime: Runtime, state: RunState
) -> list[Result]:
    """Run a plan; ask first about a guessed one."""
    state.plans.append(plan)
    if guesses(config.model):
        refusal = await confirm_guessed(plan.steps, runtime.gate)
        if refusal:
            calls = ((step.call.target, step.arguments) for step in plan.steps)
            state.declined = call_errors.plan_not_run(calls, refusal)
            return [denied_result(step, refusal, runtime) for step in plan.steps]
    results = runtime.usage.ended
    results.clear()
    try:
        return await run_plan(plan, runtime)
    except (asyncio.CancelledError, Waits):
        ids = [step.call.id for step in plan.steps]
        state.results += [results[own] for own in ids if own in results]
        raise


def _pop_unread_reply(history: list[Message]) -> Completion | None:
    """Return the unread reply of a run that was cut off."""
    if not history or history[-1].role != "assistant":
        return None
    return as_completion(history.pop())


def _with_unread_calls(results: list[Result], reply: Reply) -> list[Result]:
    """Warn in the last result of calls that were not read."""
    if not (reply.left and results):
        return results
    warnings = (*results[-1].warnings, call_errors.calls_left(reply.left))
    return [*results[:-1], replace(results[-1], warnings=warnings)]


def _unread_event(reply: Reply) -> PlanChecked:
    return PlanChecked(
        steps=(),
        problems=tuple(call_errors.to_json(error) for error in reply.errors),
        notes=reply.notes,
    )


def _plan_event(plan: Plan, reply: Reply) -> PlanChecked:
    return PlanChecked(
        steps=tuple([_step_json(step) for step in plan.steps]),
        problems=tuple([call_errors.to_json(error) for error in plan.problems]),
        notes=(*reply.notes, *plan.notes),
    )


def _step_json(step: Step) -> Json:
    call = step.call
    described: dict[str, Json] = {
        "id": call.id,
        "tool": call.target,
        "arguments": call.arguments,
        "name": call.name,
        "depends": list[Json](sorted(step.depends)) if step.depends else [],
    }
    if call.for_each is not None:
        described["for_each"] = call.for_each
    return described


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
    for message in with_shown_assets(config.dialect.answer(visible), results):
        history.append(message)
        text, assets = message.content, message.assets
        emit(
            MessageSent(sender="system", receiver="model", content=text, assets=assets)
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
    advice = "Another dialect or model may help"
    if history[-1].finish_reason == "length":
        advice = "It reached the limit of tokens: raise models.NAME.max_tokens"
    _show_errors(config, history, state, errors, emit)
    if state.misread >= MAX_MISREAD:
        # what follows the first sentence is for the model
        last = errors[0].message.partition(". ")[0].removesuffix(".")
        raise Stop(
            "failed",
            f"the model wrote {state.misread} replies in a row that could not be "
            f"used; the last one: {last}. {advice}",
        )


def _show_errors(
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
