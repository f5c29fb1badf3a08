"""Every sentence that a model can be told, in one reviewed place.

Each function returns a `CallError`: where, what was expected, what was given, what to
do. No sentence holds a traceback, a secret or a path outside the workspace; texts of
third parties are quoted, short, as data and never as an instruction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from neuraxis.formatting import QUOTED as QUOTED
from neuraxis.formatting import did_you_mean, listed, named
from neuraxis.formatting import nearest as nearest
from neuraxis.formatting import path_text as path_text
from neuraxis.formatting import quote as quote
from neuraxis.formatting import type_name as type_name
from neuraxis.messages import CallError, Problem
from neuraxis.specs import Json

_WRITTEN = json.JSONEncoder(ensure_ascii=False).encode
SAID_NOTHING = "(I said nothing.)"  # Some servers accept no empty reply.
RESULTS_SEEN = "I see the results."  # Some servers require an assistant turn there.

# --- reading a reply -----------------------------------------------------------


def malformed_reply(detail: str, where: str = "") -> CallError:
    """Report an unreadable reply. `detail` says what and where."""
    return CallError(
        code="malformed_reply",
        where=where,
        message=f"The reply could not be read as calls: {detail} Nothing was run. "
        "Write the whole reply again in the format that was asked for.",
    )


def truncated_reply(detail: str = "") -> CallError:
    """Report that the model was cut off (rule D10)."""
    return CallError(
        code="truncated_reply",
        message="The reply was cut off before its end, so nothing of it was run. "
        f"{detail and f'{detail} '}Write it again, shorter: fewer calls, or shorter "
        "contents.",
    )


def calls_left(tools: Sequence[str]) -> str:
    """Tell of calls that were written and not read (rule C3)."""
    return (
        "Only the first block of calls was read. Not run of your reply: "
        f"{listed(tools)}. Call again what is still needed, in one block."
    )


def duplicate_key(key: str, where: str) -> CallError:
    """Report a key that occurs twice in a JSON object (rule D5)."""
    return CallError(
        code="duplicate_key",
        where=where,
        message=f"The key {_WRITTEN(key)} stands twice in one object"
        f"{f' at {where}' if where else ''}. Nothing was run. Write each key once.",
    )


def receiver_id_not_allowed() -> CallError:
    """Report a receiver with an id (rules A22, B13)."""
    return CallError(
        code="receiver_id_not_allowed",
        where="receiver.id",
        message='receiver.id: expected no "id" field, since a receiver is found by its '
        'name. Remove "id" from "receiver".',
    )


# --- finding and checking ------------------------------------------------------


def unknown_plugin(name: str, known: Sequence[str]) -> CallError:
    """Report that the plugin does not exist (rules B5, B6)."""
    close = nearest(name, known)
    return CallError(
        code="unknown_plugin",
        where="receiver.name",
        candidates=close,
        message=f"The requested plugin {named(name)} does not exist."
        f"{did_you_mean(close)} Plugins there are: {listed(known)}. "
        "If none fits, do the task yourself and answer the user directly.",
    )


def unknown_command(name: str, known: Sequence[str], plugin: str = "") -> CallError:
    """Report an unknown command or tool (rules B5, C4)."""
    close = nearest(name, known)
    what = f"plugin {plugin} has no command" if plugin else "there is no tool"
    kind = "Its commands" if plugin else "The tools"
    return CallError(
        code="unknown_command",
        where="content.command" if plugin else "tool",
        candidates=close,
        message=f"{named(name)}: {what} of that name.{did_you_mean(close)} "
        f"{kind} are: {listed(known)}.",
    )


def not_shown(tool: str) -> CallError:
    """The command exists and was not listed in the prompt (rule B4)."""
    return CallError(
        code="unknown_command",
        where="tool",
        candidates=("find_commands",),
        message=f"{named(tool)} is not listed, so that it cannot be called. Call "
        "find_commands with a few words on what is to be done; what it finds can be "
        "called from the next reply on.",
    )


def problem_text(problem: Problem, root: str = "") -> str:
    """Format a problem: `crop.boxes[1].x: expected integer, got "one"`."""
    where = path_text(problem.path, root)
    text = f"{where or 'the arguments'}: expected {problem.expected}"
    if problem.got:
        text += f", got {problem.got}"
    if problem.candidates:
        text += f" (did you mean {' or '.join(problem.candidates)}?)"
    return text


def invalid_param(
    target: str, problems: Sequence[Problem], valid: Sequence[str] = ()
) -> CallError:
    """Report all invalid arguments at once, each with its path (D7)."""
    told = "; ".join(problem_text(problem, target) for problem in problems)
    tail = f" Parameters of {target}: {listed(list(valid))}." if valid else ""
    return CallError(
        code="invalid_param",
        where=path_text(problems[0].path, target) if problems else target,
        problems=tuple(problems),
        message=f"{told}.{tail}",
    )


# --- references ----------------------------------------------------------------


def reference_not_found(where: str, detail: str) -> CallError:
    """Report a `{{ … }}` whose target is missing or later (C23)."""
    stop = "" if detail.endswith((".", "?", "?)")) else "."
    return CallError(
        code="reference_not_found", where=where, message=f"{where}: {detail}{stop}"
    )


def asset_ref_not_acceptable(where: str) -> CallError:
    """Report a reference where only a value is allowed (rule B44)."""
    return CallError(
        code="asset_ref_not_acceptable",
        where=where,
        message=f"{where}: expected the value itself; this parameter takes no asset "
        "reference. Pass the value.",
    )


def asset_not_found(asset_id: str, known: Sequence[str], where: str = "") -> CallError:
    """Report that no asset has that id (rule B49)."""
    close = nearest(asset_id, known)
    return CallError(
        code="asset_not_found",
        where=where,
        candidates=close,
        message=f"{where + ': ' if where else ''}there is no asset "
        f"{named(asset_id)}.{did_you_mean(close)} "
        f"Assets there are: {listed(known)}.",
    )


def asset_unknown(asset_id: str, known: Sequence[str], where: str = "") -> CallError:
    """Report `asset_not_found` where the known ids are unavailable."""
    if known:
        return asset_not_found(asset_id, known, where)
    return CallError(
        code="asset_not_found",
        where=where,
        message=f"{where + ': ' if where else ''}there is no asset "
        f"{named(asset_id)}. Use the id of an asset that was told, or the value.",
    )


def too_many_steps(count: int, most: int) -> CallError:
    """Report more calls than a plan may have (rule D6)."""
    return CallError(
        code="budget_exhausted",
        message=f"The reply has {count} calls; at most {most} may stand in one. "
        "Nothing was run. Write fewer calls.",
    )


def asset_path_not_found(
    asset_id: str, deepest: str, available: str, hint: str = "", where: str = ""
) -> CallError:
    """Report a path that leads nowhere, and how far it led (B49)."""
    tail = f" Did you mean {hint}?" if hint else ""
    return CallError(
        code="asset_path_not_found",
        where=where,
        candidates=(hint,) if hint else (),
        message=f"{where + ': ' if where else ''}the path is not in asset "
        f"{asset_id}: it is valid up to {deepest}, where there is {available}.{tail}",
    )


def asset_lost(asset_id: str) -> CallError:
    """Report that the object could not be saved with the session (B60)."""
    return CallError(
        code="asset_lost",
        message=f"The asset {asset_id} was lost: its object could not be kept. "
        "Run the command that made it again.",
    )


def invalid_asset_type(where: str, expected: str, got: str) -> CallError:
    """Report that the value behind a reference has the wrong type (B42)."""
    return CallError(
        code="invalid_asset_type",
        where=where,
        message=f"{where}: the reference leads to {got}, expected {expected}.",
    )


# --- running -------------------------------------------------------------------


def denied(target: str, reason: str) -> CallError:
    """Report that the policy or the user refused the call."""
    return CallError(
        code="denied",
        where=target,
        fixable_by="user",
        message=f"{target} was not allowed to run: {reason}",
    )


def file_of_the_user(path: str, use: str) -> str:
    """Why a change of a file needs an approval (finding N1)."""
    if use == "change":
        return (
            f"{quote(path)} is a file of the user's that the request does not name, "
            "and it would be changed"
        )
    done = "moved or deleted" if use == "remove" else "replaced as a whole"
    return (
        f"{quote(path)} was not written by this runtime, or was changed since, and it "
        f"would be {done}"
    )


def file_way_out(use: str) -> str:
    """What to do where a file may not be changed and nobody can be asked."""
    if use == "write":
        first = "Write to another name, append to it, or change a passage of it"
    elif use == "change":
        first = "Write the result to another name"
    else:
        first = "Copy it to another name and leave it where it is"
    return (
        f"{first}; or tell the user that it needs their approval "
        "(on the command line: --yes-to PLUGIN.COMMAND)."
    )


def version_stored(path: str, *, durable: bool) -> str:
    """A file was replaced, moved or deleted, and can be brought back."""
    how = "`neuraxis undo`" if durable else "`session.undo()`, until the program ends,"
    return f"The old version of {quote(path)} is stored; {how} brings it back."


def script_changes_refused(paths: Sequence[str]) -> str:
    """Changes of a script to files of the user's that were not brought back."""
    some = listed([quote(path) for path in paths])
    return (
        f"The script changed or deleted files that this runtime did not write: {some}. "
        "They are as they were before, since nobody approved it. Let the script write "
        "to other names; or the user allows it with --yes-to python_file.run."
    )


def budget_exhausted(what: str, limit: float) -> CallError:
    """Report that a limit of the run was reached."""
    return CallError(
        code="budget_exhausted",
        fixable_by="user",
        message=f"The limit of this run was reached: {what} (at most {limit:g}). "
        "No more calls are run. Answer the user with what there is.",
    )


def repeated_call(target: str, times: int) -> CallError:
    """Report a repeated call with the same arguments."""
    return CallError(
        code="repeated_call",
        where=target,
        message=f"{target} was called {times} times with the same arguments. It was "
        "not run again; its earlier result stands. Use it, or call something else.",
    )


def failed(target: str, message: str) -> CallError:
    """Report the command's own failure (`CommandError`, `success: false`)."""
    return CallError(code="failed", where=target, message=f"{target} failed: {message}")


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
    message = f"{target} did not end within {seconds:g} seconds and was stopped."
    if changes:
        message += _MAY_BE_DONE
    return CallError(code="timeout", where=target, message=message)


_MAY_BE_DONE = (
    " It may have done its work all the same: check that before you call it again."
)


def still_running(target: str, seconds: float, *, changes: bool = False) -> CallError:
    """The command is over its time and does not stop; `changes`: it has an effect."""
    message = (
        f"{target} did not end within {seconds:g} seconds. It was asked to stop and is "
        "still running; what it returns is thrown away."
    )
    if changes:
        message += " It may still do its work: check that before you call it again."
    return CallError(code="timeout", where=target, message=message)


def no_thread_free(target: str, seconds: float) -> CallError:
    """The command was not begun, since other calls had all threads."""
    return CallError(
        code="timeout",
        where=target,
        message=f"{target} was not run: for {seconds:g} seconds other calls had all "
        "threads. Go on without it, or try again later.",
    )


def still_busy(target: str) -> CallError:
    """Report that earlier calls of the command still run over time."""
    return CallError(
        code="timeout",
        where=target,
        message=f"{target} was not run: an earlier call of it was stopped and still "
        "runs. Go on without it, or try again later.",
    )


def cancelled(
    target: str, *, changes: bool = False, still_running: bool = False
) -> CallError:
    """The run was stopped; `changes`: the command has an effect."""
    message = f"{target} was stopped with the run, by the user or by a limit."
    if still_running:
        message = (
            f"The run was stopped, by the user or by a limit. {target} was asked to "
            "stop and is still running; what it returns is thrown away."
        )
    return CallError(
        code="cancelled",
        where=target,
        fixable_by="user",
        message=message + _MAY_BE_DONE if changes else message,
    )


def outcome_unknown(target: str) -> CallError:
    """Report that the runtime or worker was lost meanwhile (decision 8)."""
    return CallError(
        code="outcome_unknown",
        where=target,
        fixable_by="user",
        message=f"{target} was started, but it is not known how it ended. It was not "
        "run again. Check what it did before you call it again.",
    )


def unknown_before(target: str, calls: Sequence[str]) -> str:
    """The reason for a question about a command with calls of unknown outcome."""
    listed = ", ".join(calls)
    return (
        f"it is not known whether an earlier call of {target} ({listed}) had its "
        "effect; this would be another one"
    )


def had_its_effect(target: str, call_id: str) -> CallError:
    """An earlier call, of unknown outcome so far, was done."""
    return CallError(
        code="repeated_call",
        where=target,
        message=f"{target} was not run: the earlier call {call_id} had its effect, as "
        "its plugin says now. Call it again only if the user wants it once more.",
    )


def had_no_effect(target: str) -> CallError:
    """An earlier call, of unknown outcome so far, was not done."""
    return CallError(
        code="failed",
        where=target,
        message=f"{target} was started and had no effect.",
    )


def plugin_contract_error(target: str, problems: Sequence[Problem]) -> CallError:
    """Report a response that does not match the manifest (rule D11)."""
    told = "; ".join(problem_text(problem, "response") for problem in problems)
    return CallError(
        code="plugin_contract_error",
        where=target,
        problems=tuple(problems),
        fixable_by="author",
        message=f"{target} gave an answer that its description does not allow: {told}.",
    )


def skipped(target: str, because: str) -> CallError:
    """Report a step skipped because an earlier one failed (rule C19)."""
    return CallError(
        code="skipped",
        where=target,
        message=f"{target} was not run, since {because} did not work.",
    )


def not_begun(target: str) -> CallError:
    """Report that the run was cut off before this step."""
    return CallError(
        code="skipped",
        where=target,
        message=f"{target} was not run: the run was cut off before it. "
        "Call it again if it is still wanted.",
    )


def items_failed(
    target: str, failed: int, items: int, told: Sequence[str]
) -> CallError:
    """Report failed items of a step with `for_each`."""
    each = "; ".join(text.rstrip(".") for text in told)
    return CallError(
        code="failed",
        where=target,
        message=f"{target} failed for {failed} of {items} items: {each}. "
        "What became of each item stands in the response.",
    )


def budget_left(calls: int, replies: int, seconds: float) -> str:
    """Return the remaining budget, reported when little remains."""
    return (
        f"(Left in this run: {calls} calls, {replies} replies with this one, "
        f"{seconds:.0f} seconds. Answer the user before they are used up.)"
    )


def one_at_a_time() -> CallError:
    """Advise single calls after plans kept failing."""
    return CallError(
        code="malformed_reply",
        message="Several replies with more than one call could not be run. Write one "
        "call only, and wait for its result before the next.",
    )


def asset_list(meta: Sequence[Json]) -> str:
    """Return the assets as the model sees them each turn (B55)."""
    rows = "\n".join([_WRITTEN(item) for item in meta])
    # A plugin's column names must not end the block.
    rows = rows.replace("```", "`\u200b``").replace("<!--", "<\\u0021--")
    return (
        "Current AssetMeta list (what is kept; refer to it by its path, "
        "e.g. asset://ID/content/response):\n```json\n" + rows + "\n```"
    )


def to_json(error: CallError) -> dict[str, Json]:
    """Return the error as JSON, equivalent to its text (rule D7)."""
    written: dict[str, Json] = {"code": error.code, "message": error.message}
    if error.where:
        written["where"] = error.where
    if error.problems:
        written["problems"] = [
            {
                "path": list(problem.path),
                "expected": problem.expected,
                "got": problem.got,
                **(
                    {"candidates": list(problem.candidates)}
                    if problem.candidates
                    else {}
                ),
            }
            for problem in error.problems
        ]
    if error.candidates:
        written["candidates"] = list(error.candidates)
    if error.fixable_by != "model":
        written["fixable_by"] = error.fixable_by
    return written
