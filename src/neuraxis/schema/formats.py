"""String formats that the validator does not know, or knows differently.

Dates and times are ISO 8601 as users and models write them: zone and seconds may be
omitted, which RFC 3339 does not allow.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import re
from collections.abc import Callable

_CLOCK = r"\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d)?"
_TIME = re.compile(_CLOCK, re.ASCII)
_DURATION = re.compile(
    r"(?P<minus>-?)P(?=[\dT])(?:(?P<weeks>\d{1,9})W)?(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?"
    r"(?:(?P<seconds>\d{1,9}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)
_DATE_TIME = re.compile(rf"\d{{4}}-\d\d-\d\d[Tt ]{_CLOCK}", re.ASCII)


def _date_time(text: str) -> bool:
    if not _DATE_TIME.fullmatch(text):
        return False
    try:
        datetime.datetime.fromisoformat(text.upper())
    except ValueError:
        return False
    return True


def _time(text: str) -> bool:
    return bool(_TIME.fullmatch(text)) and _date_time(f"2000-01-01T{text}")


def _base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _decimal(text: str) -> bool:
    try:
        return decimal.Decimal(text).is_finite()
    except decimal.InvalidOperation:
        return False


def duration_seconds(text: str) -> float | None:
    """Return the seconds of an ISO 8601 duration without years or months."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        return None
    parts = found.groupdict()
    minus = parts.pop("minus")
    numbers = {name: float(part) for name, part in parts.items() if part}
    seconds = datetime.timedelta(**numbers).total_seconds()
    return -seconds if minus else seconds


FORMATS: dict[str, Callable[..., bool]] = {
    "date-time": _date_time,
    "time": _time,
    "byte": _base64,
    "decimal": _decimal,
}
"""Formats added to the validator's own, or replacing them."""
