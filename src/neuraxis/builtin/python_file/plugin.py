"""Running a Python file of the workspace, in the sandbox of `sandbox.process` only."""

from __future__ import annotations

from neuraxis.plugins.context import Context
from neuraxis.sandbox import files
from neuraxis.sandbox.process import run_python
from neuraxis.specs import Json


def run(file_path: str, context: Context) -> dict[str, Json]:
    """Run the script; whatever goes wrong is `success: false` (rule C12)."""
    try:
        script = files.runnable(context.workspace, file_path)
    except files.FileRefused as error:
        return {"success": False, "output": "", "error": str(error)}
    context.progress(f"running {script}", None)
    outcome = run_python(script, workspace=context.workspace)
    result: dict[str, Json] = {"success": outcome.ok, "output": outcome.stdout}
    if outcome.stderr:
        result["stderr"] = outcome.stderr
    if not outcome.ok:
        result["error"] = outcome.reason or _last_line(
            outcome.stderr, outcome.exit_code
        )
    return result


def _last_line(stderr: str, exit_code: int | None) -> str:
    """The line of a traceback that says what happened."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    said = f": {lines[-1][:500]}" if lines else "."
    return f"The script ended with the exit code {exit_code}{said}"
