"""Convert request words to JSON values of a parameter's type.

`NOTHING` means that the text is no value of that parameter. Dates and times are
rewritten only where the schema or the examples want a fixed form.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, cast

from neuraxis.models.local.planner.catalogue import Slot
from neuraxis.models.local.planner.kinds import type_of
from neuraxis.models.local.planner.language import Language, split_words
from neuraxis.schema import Schema
from neuraxis.specs import Json


class Nothing:
    """The type of `NOTHING`."""

    __slots__ = ()


NOTHING: Final = Nothing()
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_CLOCK = re.compile(r"\d{2}:\d{2}(:\d{2})?")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def convert(text: str, slot: Slot, language: Language) -> Json | Nothing:
    """The value that the text is for this parameter."""
    plain = text.strip()
    if slot.kind == "enum":
        found = choose(plain, slot, language)
        return NOTHING if found is None else found
    match slot.kind:
        case "integer" | "number":
            return _number(plain, slot, language)
        case "boolean":
            low = plain.casefold()
            if low in language.words("true_words"):
                return True
            return False if low in language.words("false_words") else NOTHING
        case "list":
            return _list(plain, slot, language)
        case "object":
            return NOTHING
        case "date" | "datetime" | "time":
            plain = moment(plain, slot, language)
        case "url" if "://" not in plain and _wants_scheme(plain, slot):
            plain = f"https://{plain}"
        case _:
            pass
    return _shaped(plain, slot, language)


def _wants_scheme(text: str, slot: Slot) -> bool:
    """Check whether the parameter requires an address with a scheme."""
    schema = Schema(slot.schema)
    if not schema.valid(text):
        return schema.valid(f"https://{text}")
    texts = [value for value in slot.values if isinstance(value, str)]
    return bool(texts) and all("://" in value for value in texts)


def _number(text: str, slot: Slot, language: Language) -> Json | Nothing:
    low = text.casefold().replace(",", "").replace("−", "-").strip(" $€£%°")
    words = language.table("numbers")
    if low in words:
        value = float(words[low])
    elif found := _NUMBER.search(low):
        value = float(found.group())
    else:
        return NOTHING
    if type_of(slot.schema) == "integer" or slot.kind == "integer":
        if value != int(value):
            return NOTHING
        return _bounded(int(value), slot)
    return _bounded(int(value) if value == int(value) else value, slot)


def _bounded(value: float, slot: Slot) -> Json | Nothing:
    low, high = slot.schema.get("minimum"), slot.schema.get("maximum")
    if (low is not None and value < low) or (high is not None and value > high):
        return NOTHING
    return value


def _list(text: str, slot: Slot, language: Language) -> Json | Nothing:
    joined = "|".join(re.escape(word) for word in language.words("coordination"))
    parts = re.split(rf"\s*(?:,|;)\s*(?:(?:{joined})\s+)?|\s+(?:{joined})\s+", text)
    items = [part.strip(" \"'`“”") for part in parts if part and part.strip()]
    schema = cast("Mapping[str, Json]", slot.schema.get("items") or {})
    kind = type_of(schema)
    if kind in ("integer", "number"):
        numbers: list[Json] = []
        for item in items:
            found = _NUMBER.search(item)
            if not found:
                return NOTHING
            value = float(found.group())
            numbers.append(int(value) if value == int(value) else value)
        return numbers or NOTHING
    choices = cast("Sequence[Json]", schema.get("enum") or ())
    if choices:
        known = {str(choice).casefold(): choice for choice in choices}
        chosen = [known[item.casefold()] for item in items if item.casefold() in known]
        return chosen or NOTHING
    if kind in ("object", "array", "boolean"):
        return NOTHING
    return list[Json](items) or NOTHING


def choose(text: str, slot: Slot, language: Language) -> Json | None:
    """The member of the enum that the text names."""
    folded = [language.fold(word) for word in split_words(text)]
    if not folded:
        return None
    for choice in slot.choices:
        if [language.fold(word) for word in split_words(str(choice))] == folded:
            return choice
    return _alias(text, slot.choices, language)


def _alias(text: str, choices: Sequence[Json], language: Language) -> Json | None:
    said = language.table("aliases").get(text.casefold(), ())
    for other in said:
        for choice in choices:
            if str(choice).casefold() == other.casefold():
                return choice
    return None


def phrases(slot: Slot, language: Language) -> dict[tuple[str, ...], Json]:
    """Folded words that name a member of the enum -> that member."""
    found: dict[tuple[str, ...], Json] = {}
    for choice in slot.choices:
        words = tuple(language.fold(word) for word in split_words(str(choice)))
        if words:
            found.setdefault(words, choice)
    for said in language.table("aliases"):
        choice = _alias(said, slot.choices, language)
        if choice is not None:
            words = tuple(language.fold(word) for word in split_words(said))
            if words:
                found.setdefault(words, choice)
    return found


def _shaped(text: str, slot: Slot, language: Language) -> Json | Nothing:
    """The text in the form that the pattern or the examples have."""
    if not text:
        return NOTHING
    longest = slot.schema.get("maxLength")
    if isinstance(longest, int) and len(text) > longest:
        return NOTHING
    forms = [text]
    forms += list(language.table("aliases").get(text.casefold(), ()))
    forms += [text.upper(), text.casefold(), text.title(), text.strip(" .,!?")]
    if pattern := str(slot.schema.get("pattern", "")):
        compiled = _compiled(pattern)
        if compiled is None:
            return text
        return next((form for form in forms if compiled.search(form)), NOTHING)
    shown = [value for value in slot.values if isinstance(value, str) and value]
    if shown and slot.kind in ("currency", "language", "identifier"):
        for test in (str.isupper, str.islower):
            if all(test(value) and len(value) <= 5 for value in shown):
                sizes = {len(value) for value in shown}
                for form in forms:
                    if test(form) and len(form) in sizes:
                        return form
    elif slot.kind == "currency" and not text.isupper():
        return next((form for form in forms[1:] if form.isupper()), text)
    return text


@cache
def _compiled(pattern: str) -> re.Pattern[str] | None:
    # Patterns are the plugin author's, ECMA 262; what Python cannot read is not used.
    try:
        return re.compile(pattern)
    except re.error:
        return None


def moment(text: str, slot: Slot, language: Language) -> str:
    """Return a date or time in the parameter's form, else unchanged."""
    shown = [value for value in slot.values if isinstance(value, str)]
    described = str(slot.schema.get("description", "")).casefold()
    form = str(slot.schema.get("format", ""))
    pattern = str(slot.schema.get("pattern", ""))
    iso = (
        form in ("date", "date-time")
        or "yyyy-mm-dd" in described
        or "iso" in described.split()
        or (bool(shown) and all(_ISO.match(value) for value in shown))
        or pattern.startswith((r"^\d{4}-", "^[0-9]{4}-"))
    )
    clock = (
        form == "time"
        or "hh:mm" in described
        or (bool(shown) and all(_CLOCK.fullmatch(value) for value in shown))
        or pattern.startswith((r"^\d{2}:", "^[0-9]{2}:", r"^([01]", r"^(?:[01]"))
    )
    if slot.kind == "time":
        return (to_clock(text, language) or text) if clock else text
    if slot.kind == "date":
        return (to_date(text, language) or text) if iso else text
    if not iso:
        return text
    today = datetime.date.today()  # noqa: DTZ011 - the person's own day
    day = to_date(text, language) or today.isoformat()
    hour = to_clock(text, language)
    joint = "T" if not shown or "T" in shown[0] else " "
    seconds = (
        ":00" if form == "date-time" or any(v.count(":") > 1 for v in shown) else ""
    )
    return f"{day}{joint}{hour or '09:00'}{seconds}"


def to_clock(text: str, language: Language) -> str | None:
    """`3pm`, `3:15 p.m.`, `noon` as HH:MM."""
    low = text.casefold()
    for word, clock in language.table("times").items():
        if re.search(rf"\b{re.escape(word)}\b", low):
            return str(clock)
    found = re.search(r"\b(\d{1,2})(?::(\d{2}))?(?::\d{2})?\s*([ap])?\.?m?\b", low)
    if not found or not (found.group(2) or found.group(3) or "o'clock" in low):
        return None
    hour, minute = int(found.group(1)), int(found.group(2) or 0)
    if found.group(3):
        hour = hour % 12 + (12 if found.group(3) == "p" else 0)
    return f"{hour:02d}:{minute:02d}" if hour < 24 and minute < 60 else None


def to_date(
    text: str, language: Language, today: datetime.date | None = None
) -> str | None:
    """A day as it is said, as YYYY-MM-DD."""
    low = text.casefold()
    now = today or datetime.date.today()  # noqa: DTZ011 - the person's own day
    if found := _ISO.search(low):
        return found.group()
    if found := re.search(r"\b(\d{1,2})([/.])(\d{1,2})\2(\d{2,4})\b", low):
        first, second = int(found.group(1)), int(found.group(3))
        year = int(found.group(4)) + (2000 if len(found.group(4)) == 2 else 0)
        month, day = (second, first) if found.group(2) == "." else (first, second)
        if month > 12:
            month, day = day, month
        return _day(year, month, day)
    if said := _named_month(low, language, now):
        return said
    days = language.table("days")
    for word in sorted(days, key=len, reverse=True):
        if re.search(rf"\b{re.escape(word)}\b", low):
            if days[word] == "sat":
                return _after(now, (5 - now.weekday()) % 7)
            return _after(now, int(days[word]))
    for word, number in language.table("weekdays").items():
        if re.search(rf"\b{re.escape(word)}\b", low):
            ahead = (int(number) - now.weekday()) % 7 or 7
            return _after(now, ahead)
    return None


def _named_month(low: str, language: Language, now: datetime.date) -> str | None:
    for word, number in language.table("months").items():
        found = re.search(
            rf"\b{re.escape(word)}\.? (\d{{1,2}})(?!\d)(?:\w{{2}})?(?:,? (\d{{4}}))?"
            rf"|\b(\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of )?{re.escape(word)}\b"
            rf"(?:,? (\d{{4}}))?",
            low,
        )
        if found:
            day = int(found.group(1) or found.group(3))
            year = int(found.group(2) or found.group(4) or now.year)
            said = _day(year, int(number), day)
            if said and not (found.group(2) or found.group(4)) and said < str(now):
                return _day(year + 1, int(number), day)
            return said
    return None


def _after(now: datetime.date, days: int) -> str:
    return (now + datetime.timedelta(days=days)).isoformat()


def _day(year: int, month: int, day: int) -> str | None:
    try:
        return datetime.date(year, month, day).isoformat()
    except ValueError:
        return None
