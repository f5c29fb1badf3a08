"""Messages about calls that ran, or were not allowed to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from neuraxis.call_errors.checking import problem_text
from neuraxis.formatting import counted, in_seconds, listed, preview
from neuraxis.messages import CallError, Problem
from neuraxis.specs import Json

_SPANS = 10
"""Maximum ranges of items that one message names."""


def denied(target: str, reason: str) -> CallError:
    """Report that the policy or the user refused the call."""
    return CallError(
        code="denied",
        where=target,
        fixable_by="user",
        message=f"{target} was not allowed to run: {reason}",
    )


def plan_not_run(calls: Iterable[tuple[str, Json]], why: str) -> str:
    """Tell the user that a plan was not run."""
    calls_text = "; ".join(
        f"{target} {preview(arguments)}" for target, arguments in calls
    )
    return f"this plan was not run: {calls_text}. Reason: {why}"


def budget_exhausted(what: str, limit: float, *, tool: str = "") -> CallError:
    """Report that a limit of the run was reached; `tool`: whose limit."""
    rest = "No more calls are run. Answer the user with what there is."
    if tool:
        rest = f"{tool} is not run again; other commands are. Go on without it."
    return CallError(
        code="budget_exhausted",
        fixable_by="user",
        message=f"The limit of this run was reached: {what} (at most {limit:g}). "
        f"{rest}",
    )


def repeated_call(target: str, times: int) -> CallError:
    """Report a repeated call with the same arguments."""
    return CallError(
        code="repeated_call",
        where=target,
        message=f"{target} was already called {counted(times, 'time')} with the same "
        "arguments. It was not run again. Use its earlier result, or call something "
        "else.",
    )


def failed(target: str, message: str) -> CallError:
    """Report the command's own failure (`CommandError`, `success: false`)."""
    return CallError(code="failed", where=target, message=f"{target} failed: {message}")


def definition_changed(target: str, how: str) -> str:
    """Report that an imported command differs from the accepted one."""
    return f"{target}: {how}; a person must look at it and begin a new session"


def definitions_unread(target: str) -> str:
    """Report that a server announced changed commands but did not list them."""
    return (
        f"{target} was not called: its server said that its commands changed, and "
        "the new list could not be read. Try again later, or tell the user"
    )


def crashed(target: str, kind: str, first_line: str) -> CallError:
    """Report an exception: type and first line, no traceback (style rule)."""
    text = first_line if len(first_line) <= 500 else first_line[:499] + "…"
    return CallError(
        code="failed",
        where=target,
        fixable_by="author",
        message=f"{target} failed: {kind}: {text}" if text else f"{target}: {kind}",
    )


def timed_out(target: str, seconds: float, *, changes: bool = False) -> CallError:
    """Report a time limit; `changes`: the command has an effect."""
    message = f"{target} did not end within {in_seconds(seconds)} and was stopped."
    if changes:
        message += _MAY_BE_DONE
    return CallError(code="timeout", where=target, message=message)


_MAY_BE_DONE = (
    " It may have done its work all the same: check that before you call it again."
)


def still_running(target: str, seconds: float, *, changes: bool = False) -> CallError:
    """Report a command that exceeded its time limit and still runs.

    `changes`: the command has an effect.
    """
    message = (
        f"{target} did not end within {in_seconds(seconds)}. It was asked to stop and "
        "is still running; what it returns will be discarded."
    )
    if changes:
        message += " It may still take effect: check that before you call it again."
    return CallError(code="timeout", where=target, message=message)


def no_thread_free(target: str, seconds: float) -> CallError:
    """Report that all threads were busy, so the command did not start."""
    return CallError(
        code="timeout",
        where=target,
        message=f"{target} was not run: other calls used all threads for "
        f"{in_seconds(seconds)}. Go on without it, or try again later.",
    )


def still_busy(target: str) -> CallError:
    """Report that earlier calls of the command still run past their limit."""
    return CallError(
        code="timeout",
        where=target,
        message=f"{target} was not run: an earlier call of it was stopped and still "
        "runs. Go on without it, or try again later.",
    )


def cancelled(
    target: str, *, changes: bool = False, still_running: bool = False
) -> CallError:
    """Report that the run was stopped; `changes`: the command has an effect."""
    message = f"{target} was stopped with the run, by the user or by a limit."
    if still_running:
        message = (
            f"The run was stopped, by the user or by a limit. {target} was asked to "
            "stop and is still running; what it returns will be discarded."
        )
    return CallError(
        code="cancelled",
        where=target,
        fixable_by="user",
        message=message + _MAY_BE_DONE if changes else message,
    )


def run_too_long(seconds: float, stopped: Sequence[str]) -> str:
    """Tell the user and the program why a run ended.

    Args:
        seconds: the run's limit.
        stopped: the stopped calls that have an effect.
    """
    text = f"the run took longer than {in_seconds(seconds)}"
    if stopped:
        text += (
            f". It is not known what {listed(stopped)} did: check that before you ask "
            "again"
        )
    return text


def outcome_unknown(target: str, *, changes: bool = True) -> CallError:
    """Report that the runtime or worker was lost meanwhile (decision 5)."""
    if not changes:
        return CallError(
            code="outcome_unknown",
            where=target,
            message=f"{target} was started, and its answer was lost. It changes "
            "nothing: call it again if you need the answer.",
        )
    return CallError(
        code="outcome_unknown",
        where=target,
        fixable_by="user",
        message=f"{target} was started, but it is not known how it ended. It was not "
        "run again. Check what it did before you call it again.",
    )


def unknown_before(target: str, calls: Sequence[str]) -> str:
    """Return why a command with unknown outcomes needs an approval."""
    names = ", ".join(calls)
    return (
        f"it is unknown whether an earlier call of {target} ({names}) took "
        "effect; this would repeat it"
    )


def had_its_effect(target: str, call_id: str) -> CallError:
    """Report that an earlier call with unknown outcome was done."""
    return CallError(
        code="repeated_call",
        where=target,
        message=f"{target} was not run: the earlier call {call_id} had its effect, as "
        "its plugin says now. Call it again only if the user wants it once more.",
    )


def had_no_effect(target: str) -> CallError:
    """Report that an earlier call with unknown outcome was not done."""
    return CallError(
        code="failed",
        where=target,
        message=f"{target} was started and had no effect.",
    )


def plugin_contract_error(target: str, problems: Sequence[Problem]) -> CallError:
    """Report a response that does not match the manifest (rule D11)."""
    problems_text = "; ".join(problem_text(problem, "response") for problem in problems)
    return CallError(
        code="plugin_contract_error",
        where=target,
        problems=tuple(problems),
        fixable_by="author",
        message=f"{target} returned a value that its description does not allow: "
        f"{problems_text}.",
    )


def skipped(target: str, because: str) -> CallError:
    """Report a step skipped because an earlier one failed (rule C19).

    It may have run early, with its result discarded: the message covers both.
    """
    return CallError(
        code="skipped",
        where=target,
        message=f"{target} was skipped, because {because} failed.",
    )


def left_out(*, goes_on: bool) -> str:
    """Return what a failed step does to its plan, for prompts.

    `goes_on`: other steps still run (`on_error="continue"`).
    """
    return (
        "the steps that depend on it are skipped"
        if goes_on
        else "all later steps are skipped"
    )


def not_begun(target: str) -> CallError:
    """Report that the run was cut off before this step."""
    return CallError(
        code="skipped",
        where=target,
        message=f"{target} was not run: the run was cut off before it. "
        "Call it again if it is still wanted.",
    )


def changed_by_person(arguments: Sequence[str]) -> str:
    """Warn that the user changed arguments before approving."""
    return f"The user said yes after changing {', '.join(arguments)}."


def summary_wanted(words: int) -> str:
    """Ask the model for a summary of the conversation so far."""
    return (
        "Do not answer a request now, and call nothing. Sum up this conversation so "
        f"far in at most {words} words, as plain text for yourself: what the user "
        "wants and said of themselves, what was done and decided, facts and numbers "
        "that may be needed, ids of objects (such as a12), what is open."
    )


def summed_up(summary: str, asset: str) -> str:
    """Introduce a summary of the earlier conversation."""
    return (
        "(You summed up the conversation so far as follows; this is no request. Every "
        f"word of it is stored as asset://{asset}/content.)\n{summary}\n(End of the "
        "summary.)"
    )


def items_failed(
    target: str, failed: int, items: int, messages: Sequence[str]
) -> CallError:
    """Report failed items of a step with `for_each`."""
    errors_text = "; ".join(text.rstrip(".") for text in messages)
    return CallError(
        code="failed",
        where=target,
        message=f"{target} failed for {failed} of {items} items: {errors_text}. "
        "The response lists the outcome of each item.",
    )


def loop_beyond_limit(target: str, items: int, left: int, what: str) -> CallError:
    """Report a list that is longer than the run's limits allow."""
    do = (
        f"Give it at most {left} of the items now, such as [:{left}], or tell the user "
        "which limit is too low."
        if left
        else "Tell the user which limit was reached."
    )
    return CallError(
        code="budget_exhausted",
        where=target,
        message=f"{target} was not run for any item: its list has {items} items, and "
        f"this run has {left} left of its {what}. {do}",
    )


def loop_cut_off(
    target: str,
    ended: Sequence[int],
    unsure: Sequence[int],
    left: Sequence[int] | None,
    *,
    again: bool,
) -> CallError:
    """Report a loop that was stopped between its items.

    Args:
        target: the command.
        ended: items whose outcome is known.
        unsure: items that began, and whose outcome is unknown.
        left: items that did not begin; None: their number is unknown.
        again: whether an item may safely run twice.
    """
    sentences = [f"{target} was cut off before the end of its list."]
    if ended:
        sentences.append(f"{_items(ended)} ended.")
    if unsure:
        check = (
            "it may be called again"
            if again
            else "check what it did before you call it again"
        )
        sentences.append(f"How {_items(unsure).lower()} ended is not known: {check}.")
    if left is None:
        sentences.append("The items after them did not begin.")
    elif left:
        open_items = sorted([*left, *unsure]) if again else left
        first = open_items[0]
        is_tail = open_items[-1] - first + 1 == len(open_items)
        scope = f" for the rest, [{first}:] of the list," if is_tail else " for these"
        sentences.append(
            f"{_items(left)} did not begin. Call it{scope} if still wanted."
        )
    if ended or unsure:
        sentences.append("The response says how each item that began ended.")
    is_unknown = bool(unsure) and not again
    return CallError(
        code="outcome_unknown" if is_unknown else "cancelled",
        where=target,
        fixable_by="user" if is_unknown else "model",
        message=" ".join(sentences),
    )


def _items(indexes: Sequence[int]) -> str:
    """Return `Items 0 to 4, 7` of sorted numbers."""
    spans: list[list[int]] = []
    for at in indexes:
        if spans and at == spans[-1][1] + 1:
            spans[-1][1] = at
        else:
            spans.append([at, at])
    parts = [str(a) if a == b else f"{a} to {b}" for a, b in spans[:_SPANS]]
    if len(spans) > _SPANS:
        parts.append("…")
    return f"{'Item' if len(indexes) == 1 else 'Items'} {', '.join(parts)}"


def budget_left(calls: int, replies: int, seconds: float) -> str:
    """Return the remaining budget, reported when little remains."""
    parts = [counted(calls, "call"), f"{counted(replies, 'reply')} with this one"]
    if math.isfinite(seconds):
        parts.append(counted(round(seconds), "second"))
    remaining = ", ".join(parts)
    return f"(Left in this run: {remaining}. Answer the user before they are used up.)"


def one_at_a_time() -> CallError:
    """Advise single calls after plans kept failing."""
    return CallError(
        code="malformed_reply",
        message="Several replies with more than one call could not be run. Write one "
        "call only, and wait for its result before the next.",
    )
