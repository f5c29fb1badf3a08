"""Replies that the server cut off: nothing of them runs (rule D10).

Every dialect checks this first, before it imports the patterns that read a whole reply.
"""

from __future__ import annotations

import re

from neuraxis.call_errors import truncated_reply
from neuraxis.messages import Completion, Reply

_WHOLE = ("stop", "tool_calls", "answer")
"""Finish reasons of a complete reply."""


def was_cut(completion: Completion) -> bool:
    """Return whether the server cut the reply off."""
    return completion.finish_reason not in _WHOLE


def cut_reply(text: str) -> Reply:
    """Return the reply for a cut-off text: only plain text remains."""
    bare = text.strip() if not re.search(r"[{<\[]", text) else ""
    return Reply(texts=(bare,) if bare else (), errors=(truncated_reply(),))
