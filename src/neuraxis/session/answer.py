"""The answer of a run, as data and as JSON for `--json`."""

from __future__ import annotations

from msgspec import Struct

from neuraxis import call_errors
from neuraxis.messages import NOTHING_USED, Result, Usage
from neuraxis.specs import Json


class Answer(Struct, frozen=True, kw_only=True):
    """Outcome of one run of a session."""

    text: str
    """The model's final text, with its references filled in."""
    outcome: str
    """`answered`, `failed` or `budget`; a cancelled run raises `CancelledError`."""
    calls: tuple[Result, ...] = ()
    """Results of all calls of the model, in their plans' order."""
    assets: tuple[str, ...] = ()
    """Ids of the assets stored during this run."""
    files: tuple[str, ...] = ()
    """Paths that commands wrote, relative to the workspace."""
    usage: Usage = NOTHING_USED
    """Tokens of all replies, as the server counts them; 0 where it does not."""
    usd: float = 0.0
    """Cost in US dollars of all replies whose price is known."""
    error: str = ""
    """Reason of a failure, or why an answered run's end is unstored."""


def as_json(answer: Answer) -> Json:
    """Return the answer as JSON, for `--json` and the service."""
    return {
        "text": answer.text,
        "outcome": answer.outcome,
        "calls": [result_json(result) for result in answer.calls],
        "assets": list(answer.assets),
        "files": list(answer.files),
        "usage": {
            "input_tokens": answer.usage.input_tokens,
            "output_tokens": answer.usage.output_tokens,
        },
        "usd": answer.usd,
        "error": answer.error,
    }


def result_json(result: Result) -> dict[str, Json]:
    """Return one result as JSON; an asset's object becomes its id."""
    error = None if result.error is None else call_errors.to_json(result.error)
    return {
        "id": result.call.id,
        "tool": result.call.target,
        "status": result.status,
        "value": None if result.stored else result.value,
        "asset": result.call.id if result.stored else None,
        "error": error,
        "warnings": list(result.warnings),
        "seconds": round(result.seconds, 6),
    }
