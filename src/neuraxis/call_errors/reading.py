"""Messages about a reply that could not be read as calls."""

from __future__ import annotations

import json
from collections.abc import Sequence

from neuraxis.formatting import listed
from neuraxis.messages import CallError, Part, Problem

_WRITTEN = json.JSONEncoder(ensure_ascii=False).encode


def malformed_reply(detail: str, where: str = "") -> CallError:
    """Report an unreadable reply. `detail` says what and where."""
    return CallError(
        code="malformed_reply",
        where=where,
        message=f"The reply could not be read as calls: {detail} Nothing was run. "
        "Write the whole reply again in the format that was asked for.",
    )


def empty_reply() -> CallError:
    """Report an empty reply."""
    return CallError(
        code="malformed_reply",
        message="The reply was empty. Answer the request in words, or make the calls "
        "that it still needs.",
    )


def truncated_reply(detail: str = "") -> CallError:
    """Report that the model was cut off (rule D10).

    The detail says where the text ends; perhaps only its end marker is missing.
    """
    ended, again = "before its end", "again,"
    if detail:
        ended, again = "or not ended", "again to its end or, if it was too long,"
    return CallError(
        code="truncated_reply",
        message=f"The reply was cut off {ended}, so nothing of it was run. "
        f"{detail and f'{detail} '}Write it {again} shorter: fewer calls, or shorter "
        "contents.",
    )


def calls_left(tools: Sequence[str]) -> str:
    """Report calls that were written but not read (rule C3)."""
    return (
        "Only the first block of calls was read. Not run of your reply: "
        f"{listed(tools)}. Call again what is still needed, in one block."
    )


def duplicate_key(key: str, where: str) -> CallError:
    """Report a key that occurs twice in a JSON object (rule D5)."""
    return CallError(
        code="duplicate_key",
        where=where,
        message=f"The key {_WRITTEN(key)} appears twice in one object"
        f"{f' at {where}' if where else ''}. Nothing was run. Write each key once.",
    )


def receiver_id_not_allowed() -> CallError:
    """Report a receiver with an id (rules A22, B13)."""
    return CallError(
        code="receiver_id_not_allowed",
        where="receiver.id",
        message='receiver.id: expected no "id" field, since a receiver is found by its '
        'name. Remove "id" from "receiver".',
    )


_AGAIN = (
    " Write the whole answer again, corrected, as one JSON object and nothing else."
)


def wrong_output(detail: str, problems: Sequence[Problem] = ()) -> CallError:
    """Report an answer that does not have the requested form."""
    return CallError(
        code="invalid_output",
        where="answer",
        problems=tuple(problems),
        message=f"The answer does not match the requested form: {detail}.{_AGAIN}",
    )


def no_output(last: CallError, times: int) -> str:
    """Tell the program's author why the model's answers were invalid."""
    message = last.message.removesuffix(_AGAIN)
    return (
        f"{times} answers of the model did not match `output`; the last one: {message}"
    )


def only_words(part: Part) -> str:
    """Describe a picture or file that is not sent."""
    description = ", ".join(
        filter(None, [part.name, part.media_type, part.about.rstrip(".")])
    )
    at = (
        f" Commands that take such a file are given {part.asset}." if part.asset else ""
    )
    return f"(Not shown here: {description or 'a file'}.{at})"


def shown_here(assets: Sequence[str]) -> str:
    """Name the objects that a message's pictures show, in order."""
    return f"(Shown here: {', '.join(assets)}.)"
