"""Run a Python file of the workspace, sandboxed by `sandbox.process` only.

Settings: `sandbox.mode` (default `auto`), `sandbox.seconds`, `sandbox.memory` (bytes),
`sandbox.network` (default false), `sandbox.uid`, `sandbox.allow_none`.
A call cannot change them.
"""

from __future__ import annotations

from collections.abc import Sequence

from neuraxis import call_errors
from neuraxis.builtin.python_file import traceback_hints
from neuraxis.builtin.workspace import changes, number
from neuraxis.plugins.context import Context
from neuraxis.sandbox.files import workspace
from neuraxis.sandbox.process.job import Limits, Outcome
from neuraxis.sandbox.process.run import DEFAULT_UID, run_python
from neuraxis.specs import Json


def run(file_path: str, context: Context) -> dict[str, Json]:
    """Run the script; any failure is `success: false` (rule C12)."""
    try:
        script = workspace.runnable(context.workspace, file_path)
    except workspace.FileRefused as error:
        return {"success": False, "output": "", "error": str(error)}
    context.progress(f"running {script}", None)
    outcome = in_sandbox(script, context)
    result: dict[str, Json] = {"success": outcome.ok, "output": outcome.stdout}
    result["sandbox"] = outcome.sandbox
    if outcome.stderr:
        result["stderr"] = outcome.stderr
    if not outcome.ok:
        result["error"] = outcome.reason or _error(outcome, script, context)
    return result


def in_sandbox(script: str, context: Context, args: Sequence[str] = ()) -> Outcome:
    """Run a script of the workspace with the settings' limits.

    Raises:
        CommandError: a setting is not a number.
    """
    settings, usual = context.settings, Limits()
    outcome = run_python(
        script,
        workspace=context.workspace,
        limits=Limits(
            seconds=number(context, "sandbox.seconds", int(usual.seconds)),
            memory=number(context, "sandbox.memory", usual.memory),
            file_bytes=number(context, "files.file_bytes", usual.file_bytes),
        ),
        network=_has_network(context),
        mode=str(settings.get("sandbox.mode", "auto")),
        cancelled=context.cancelled,
        args=args,
        allow_none=settings.get("sandbox.allow_none") in (True, "true", "1"),
        sandbox_uid=number(context, "sandbox.uid", DEFAULT_UID),
        choose=changes(context).bring_back if context.files is not None else None,
    )
    if outcome.not_kept:
        context.warn(call_errors.script_changes_not_kept(outcome.not_kept))
    return outcome


def _error(outcome: Outcome, script: str, context: Context) -> str:
    """Return the traceback's error line and advice."""
    ended = traceback_hints.ended(outcome.exit_code)
    lines = [line.strip() for line in outcome.stderr.splitlines() if line.strip()]
    if not lines:
        return f"{ended}."
    network = _has_network(context)
    advice = traceback_hints.hint(lines[-1], script, context.workspace, network)
    text = f"{ended}: {lines[-1][:500]}"
    return f"{text.rstrip('.')}. {advice}" if advice else text


def _has_network(context: Context) -> bool:
    return context.settings.get("sandbox.network") in (True, "true", "1")
