"""The command line as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path


def neuraxis(
    *arguments: str, cwd: Path, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run it with that text on standard input."""
    return subprocess.run(
        [sys.executable, "-m", "neuraxis", *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "NO_COLOR": "1", **env},
    )
