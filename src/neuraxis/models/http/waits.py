"""How long a server asks to wait, in headers or words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_DELAY = re.compile(r'"retryDelay":\s{0,9}"(\d{1,9}(?:\.\d{1,9})?)s"')
"""Google's retry delay in the body: `google.rpc.RetryInfo`."""
_SPAN = (
    r"\d{1,9}(?:\.\d{1,9})? ?"
    r"(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)"
    r"(?![a-z])"
)
_WORDS = re.compile(
    rf"(?:try again|retry) (?:in|after) ((?:{_SPAN}[ ,]{{0,2}}){{1,4}})",
    re.IGNORECASE | re.ASCII,
)
"""Such as Groq's "try again in 7m12.5s" and Azure's "retry after 2 seconds"."""
_SPANS = re.compile(
    r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|milli|[smhd])", re.IGNORECASE | re.ASCII
)
_SECONDS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After`: a number, or an HTTP date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
            return float(text) / unit
    try:
        when = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, OverflowError):  # a date beyond the calendar
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max((when - datetime.now(UTC)).total_seconds(), 0.0)


def wait_in_body(body: str) -> float | None:
    """Return the seconds of Google's `RetryInfo`."""
    delay = _DELAY.search(body)
    return float(delay[1]) if delay else None


def wait_in_words(text: str) -> float | None:
    """Return the seconds that a refusal's text asks to wait."""
    if (delay := wait_in_body(text)) is not None:
        return delay
    if (asked := _WORDS.search(text)) is None:
        return None
    return sum(
        float(number) * _SECONDS[unit.lower()]
        for number, unit in _SPANS.findall(asked[1])
    )
