"""An error that a model is told flows in; its JSON form flows out.

The sentences are in `sentences.py`; here is how one travels: in an answer of a dialect,
in an event of the journal, in a result that another program reads.
"""

from __future__ import annotations

from neuraxis.messages import CallError
from neuraxis.specs import Json


def error_json(error: CallError) -> dict[str, Json]:
    """The error as JSON: the same matter as its text (rule D7)."""
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
