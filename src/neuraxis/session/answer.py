"""How a run of a session ended: as a value, and as JSON for `--json`."""

from __future__ import annotations

from msgspec import Struct

from neuraxis import call_errors
from neuraxis.messages import NOTHING_USED, Result, Usage
from neuraxis.specs import Json


class Answer(Struct, frozen=True, kw_only=True):
    """How one run of a session ended."""

    text: str
    """What the model said to the person; references in it are filled in."""
    outcome: str
    """`answered`, `failed` or `budget`. A run that is cancelled has no answer: it
    raises `asyncio.CancelledError`."""
    calls: tuple[Result, ...] = ()
    """What became of each call that the model made, in the order of their plans."""
    assets: tuple[str, ...] = ()
    """Ids of the objects kept during this run."""
    files: tuple[str, ...] = ()
    """Paths that commands wrote, relative to the workspace."""
    usage: Usage = NOTHING_USED
    """Tokens of all replies, as the server counts them; 0 where it does not."""
    usd: float = 0.0
    """Cost in US dollars of all replies whose price is known."""
    error: str = ""
    """Why it failed; of one that answered: that its end could not be stored."""


def as_json(answer: Answer) -> Json:
    """The answer as JSON, for `--json` and the service."""
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
    """One result as JSON; an object that is an asset is told by its id."""
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
