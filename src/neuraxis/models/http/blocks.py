"""A turn's blocks that go back unchanged to their server.

Models that think between tool calls want their signed reasoning again. What one turn
brings is carried as one opaque text, and only its own server and model get it back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from neuraxis.messages import Message
from neuraxis.models.http.surrogates import whole_pairs
from neuraxis.specs import Json

MOST_CARRIED = 2 * 1024 * 1024
"""Maximum characters carried per turn; more is dropped and noted."""


def pack(blocks: Sequence[Json], origin: str) -> tuple[str, str]:
    """Return the blocks as text, and a note if they cannot be.

    Args:
        blocks: all of the turn, in order.
        origin: server and model; empty: nothing is carried.
    """
    if not origin or not blocks:
        return "", ""
    try:
        text = json.dumps(
            {"from": origin, "blocks": blocks},
            ensure_ascii=False,
            separators=(",", ":"),
        )
    except (ValueError, RecursionError):
        return "", "the server's reasoning cannot be sent back: it is nested deeply"
    if len(text) > MOST_CARRIED:
        return "", (
            "the server's reasoning is not sent back with the results: it has "
            f"more than {MOST_CARRIED} characters; the server may do worse, or "
            "refuse the next request"
        )
    return whole_pairs(text), ""


def unpack(message: Message, origin: str) -> list[dict[str, Json]]:
    """Return the blocks of a model's turn; none of another server."""
    if not message.carried or not origin or message.role != "assistant":
        return []
    try:
        kept: Json = json.loads(message.carried)
    except (ValueError, RecursionError):
        return []
    if not isinstance(kept, dict):
        return []
    fields = cast("dict[str, Json]", kept)
    blocks = fields.get("blocks")
    if fields.get("from") != origin or not isinstance(blocks, list):
        return []
    return [
        cast("dict[str, Json]", block)
        for block in cast("list[Json]", blocks)
        if isinstance(block, dict)
    ]
