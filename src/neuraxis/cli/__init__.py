"""Command line interface: `neuraxis …`.

Exit codes: 0 done; 1 the run, its last call or a check failed; 2 a wrong option, name
or file; 3 a limit was reached; 4 the model could not be reached; 5 the journal or a
file could not be written; 6 a call waits for approval; 130 interrupted.
"""

from __future__ import annotations

from neuraxis.cli.main import main

__all__ = ["main"]
