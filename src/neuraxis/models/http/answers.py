"""Parse servers' answers: JSON frames, and the errors they report."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from html import unescape
from typing import cast

from neuraxis.models.http.sse import Event
from neuraxis.parsing.json_access import as_map
from neuraxis.specs import Json

MOST_TEXT = 300
"""Maximum characters of a server's own message in an error."""
_DEEPEST = 20
"""Maximum depth at which an error's body is searched for its message."""
DONE = "[DONE]"
_STATUS: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "server_error": 500,
    "service_unavailable": 503,
    "timeout_error": 504,
    "vector_store_timeout": 504,
    "overloaded": 529,
    "overloaded_error": 529,
    "1001": 504,
    "1002": 429,
    "1004": 401,
    "1008": 402,
}
"""Status codes of error names: an error in an answer often has no number.

https://docs.anthropic.com/en/api/errors, and what OpenAI-compatible servers send; the
numbers are MiniMax's.
"""
_MESSAGES = (
    "error",
    "message",
    "detail",
    "msg",
    "errors",
    "base_resp",  # MiniMax
    "status_msg",
)
"""Keys of an error's text, in any case: AWS writes `Message`."""
_MOST_TOKENS = 10**12
"""Numbers above this count nothing."""
_TOO_LONG = re.compile(
    r"context.{0,20}(?:length|size|window)|(?<!took )too (?:long|large)|too many tokens"
    r"|maximum prompt length|input token count",
    re.IGNORECASE,
)


class ServerError(Exception):
    """Raised for an error in a server's answer, or a malformed answer.

    `again`: the same request may succeed later. `mends`: it may, whatever the status.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        again: bool = False,
        foreign: bool = False,
        is_final: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.foreign = foreign
        self.is_final = is_final
        self.again = again or status is not None
        self.mends = again


def broken_off() -> ServerError:
    """Return the exception for a stream that broke off."""
    return ServerError("the stream broke off before the answer's end", again=True)


def frame_of(event: Event) -> Mapping[str, Json]:
    """Return the JSON object of a stream's event.

    Raises:
        ServerError: it is not a JSON object, or a plain error text.
    """
    try:
        return as_map(json.loads(event.text))
    except (ValueError, RecursionError) as error:
        if event.name == "error":
            raise ServerError(f"it says: {error_message(event.text)}") from error
        raise no_json() from error


def no_json() -> ServerError:
    """Return the exception for a frame that is not JSON, perhaps cut."""
    return ServerError("a frame of its answer is not JSON", again=True, foreign=True)


def as_str(value: Json) -> str:
    """Return the value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def count(value: Json) -> int:
    """Return a number of tokens; 0 if it is not a number.

    Some servers write `"100"` or `100.0`: unread, no budget would hold.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return 0
    return int(number) if math.isfinite(number) and 0 < number < _MOST_TOKENS else 0


def server_error(error: Json) -> ServerError:
    """Return the exception for an error in an answer."""
    status = None
    fields = as_map(error)
    fields = as_map(fields.get("error")) or as_map(fields.get("base_resp")) or fields
    for key in ("code", "status", "status_code", "type"):
        word = str(fields.get(key))
        is_number = word.isdecimal() and len(word) == 3
        number = int(word) if is_number else _STATUS.get(word.lower(), 0)
        if 400 <= number <= 599:
            status = number
            break
    detail = error_message(error)
    return ServerError(
        f"it says: {detail}" if detail else "it reports an error",
        status=status,
        # Groq: the model's call was malformed; a retry may succeed
        again="tool_use_failed" in json.dumps(error, default=str),
    )


def error_message(body: Json, depth: int = 0) -> str:
    """Return the message in an error's body, on one line."""
    if depth > _DEEPEST:
        return ""
    if isinstance(body, str):
        return _one_line(body)
    if isinstance(body, list):
        items = [error_message(item, depth + 1) for item in cast("list[Json]", body)]
        return _one_line("; ".join(item for item in items if item))
    if isinstance(body, dict):
        fields: dict[str, Json] = {}
        for name, value in cast("dict[str, Json]", body).items():
            fields[name.lower()] = fields.get(name.lower()) or value
        for key in _MESSAGES:
            if message := error_message(fields.get(key), depth + 1):
                # FastAPI puts the faulty field there
                place = _dotted(fields.get("loc"))
                return _one_line(f"{place}: {message}") if place else message
    return ""


def _dotted(place: Json) -> str:
    steps = cast("list[Json]", place) if isinstance(place, list) else [place]
    return ".".join(str(step) for step in steps if isinstance(step, str | int))


def body_message(raw: bytes, content_type: str) -> str:
    """Return the message in a refusal's body, or a page's title."""
    text = raw.decode("utf-8", "replace")
    try:
        return error_message(json.loads(text))
    except (ValueError, RecursionError):
        is_page = "html" in content_type or b"<html" in raw.lower()
        return _title(raw) if is_page else _one_line(text)


def _title(page: bytes) -> str:
    """Return the title of an HTML page, else its first heading."""
    lower = page.lower()  # of bytes, since of a text it may have another length
    for name in (b"title", b"h1"):
        start = lower.find(b"<" + name)
        end = lower.find(b"</" + name, max(start, 0))
        inside = page[start:end].partition(b">")[2] if 0 <= start < end else b""
        if inside.strip() and b"<" not in inside:
            return _one_line(unescape(inside.decode("utf-8", "replace")))
    return ""


def _one_line(text: str) -> str:
    line = re.sub(r"[\s\x00-\x1f\x7f]+", " ", text).strip()
    return line if len(line) <= MOST_TEXT else line[: MOST_TEXT - 1] + "…"


def is_about_size(message: str) -> bool:
    """Return whether the prompt was too long: a retry is useless."""
    return bool(_TOO_LONG.search(message))
