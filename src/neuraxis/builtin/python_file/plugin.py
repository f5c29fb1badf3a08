"""Running a Python file of the workspace, in the sandbox of `sandbox.process` only.

Settings: `sandbox.mode` (default `auto`), `sandbox.seconds`, `sandbox.memory` (bytes),
`sandbox.network` (default false), `sandbox.uid`, `sandbox.allow_none`, `sandbox.wasm`.
A call has no way to change any of them.
"""

from __future__ import annotations

from neuraxis.builtin.workspace import number
from neuraxis.plugins.context import Context
from neuraxis.sandbox import files
from neuraxis.sandbox.process import DEFAULT_UID, Limits, Outcome, run_python
from neuraxis.specs import Json


def run(file_path: str, context: Context) -> dict[str, Json]:
    """Run the script; whatever goes wrong is `success: false` (rule C12)."""
    try:
        script = files.runnable(context.workspace, file_path)
    except files.FileRefused as error:
        return {"success": False, "output": "", "error": str(error)}
    context.progress(f"running {script}", None)
    outcome = _run(script, context)
    result: dict[str, Json] = {"success": outcome.ok, "output": outcome.stdout}
    result["sandbox"] = outcome.sandbox
    if outcome.stderr:
        result["stderr"] = outcome.stderr
    if not outcome.ok:
        result["error"] = outcome.reason or _last_line(
            outcome.stderr, outcome.exit_code
        )
    return result


def _run(script: str, context: Context) -> Outcome:
    settings, usual = context.settings, Limits()
    return run_python(
        script,
        workspace=context.workspace,
        limits=Limits(
            seconds=number(context, "sandbox.seconds", int(usual.seconds)),
            memory=number(context, "sandbox.memory", usual.memory),
        ),
        network=settings.get("sandbox.network") in (True, "true", "1"),
        mode=str(settings.get("sandbox.mode", "auto")),
        cancelled=context.cancelled,
        allow_none=settings.get("sandbox.allow_none") in (True, "true", "1"),
        sandbox_uid=number(context, "sandbox.uid", DEFAULT_UID),
        wasm=str(settings.get("sandbox.wasm") or ""),
    )


def _last_line(stderr: str, exit_code: int | None) -> str:
    """The line of a traceback that says what happened."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    said = f": {lines[-1][:500]}" if lines else "."
    return f"The script ended with the exit code {exit_code}{said}"
