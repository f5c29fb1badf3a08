"""Running a script in a sandbox, for the tests of `sandbox`."""

from __future__ import annotations

from pathlib import Path

from neuraxis.sandbox.process.job import Limits, Outcome
from neuraxis.sandbox.process.run import run_python

SHORT = Limits(seconds=5, cpu_seconds=5)


def run_script(
    folder: Path, script: str, kind: str = "auto", **options: object
) -> Outcome:
    """Write the script into the folder and run it there."""
    (folder / "script.py").write_text(script, encoding="utf-8")
    given = {"limits": SHORT, "mode": kind, **options}
    return run_python("script.py", workspace=folder, **given)  # type: ignore[arg-type]
