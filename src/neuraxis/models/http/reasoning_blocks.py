"""Pack a turn's reasoning blocks, which go back unchanged to their server.

Models that think between tool calls require their signed reasoning back. A turn's
blocks are carried as one opaque text, and only the same server and model get it back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from neuraxis.messages import Message
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.parsing.surrogates import whole_pairs
from neuraxis.specs import Json

MOST_CARRIED = 2 * 1024 * 1024
"""Maximum characters carried per turn; more is dropped and noted."""


def pack(origin: str, size: int = 0, **state: Json) -> tuple[str, str]:
    """Return a turn's state as text, or a note why not.

    Args:
        origin: server and model; empty: nothing is carried.
        size: characters received; of a state that is too large, only some are passed.
        **state: the blocks to send back, in order.
    """
    if not origin or (not any(state.values()) and size <= MOST_CARRIED):
        return "", ""
    try:
        text = json.dumps(
            {"from": origin, **state}, ensure_ascii=False, separators=(",", ":")
        )
    except (ValueError, RecursionError):
        return "", "the server's reasoning cannot be sent back: it is nested deeply"
    if max(size, len(text)) > MOST_CARRIED:
        return "", (
            "the server's reasoning is not sent back with the results: it has "
            f"more than {MOST_CARRIED} characters; the server may do worse, or "
            "refuse the next request"
        )
    return whole_pairs(text), ""


def state_of(carried: str, origin: str) -> Mapping[str, Json]:
    """Return the state in a turn's text; empty: another origin's."""
    try:
        state = as_map(json.loads(carried))
    except (ValueError, RecursionError):
        return {}
    return state if origin and state.get("from") == origin else {}


def unpack(message: Message, origin: str) -> list[dict[str, Json]]:
    """Return the blocks of a model's turn; none if from another server."""
    if message.role != "assistant":
        return []
    blocks = as_list(state_of(message.carried, origin).get("blocks"))
    return [
        cast("dict[str, Json]", block) for block in blocks if isinstance(block, dict)
    ]
