"""Find typed spans in a request: quotes, addresses, paths, numbers.

A span's place is where it stands in the text; its `value` is what a parameter would
be given. Quoted text may also be a path or an address: `kinds` holds all it can be.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from neuraxis.models.local.planner.language import Language

_QUOTES = (
    r"```(?:\w+\n)?(?P<fence>.+?)```|\"(?P<d>[^\"]*)\"|“(?P<t>[^”]*)”"
    r"|«(?P<g>[^»]*)»|„(?P<l>[^“”]*)[“”]|(?<!\w)[`](?P<b>[^`']+)[`']"
    r"|(?<![\w])['‘](?P<s>(?:[^'‘’`]|['’](?=\w))+)['’`](?!\w)"
)
QUOTED = re.compile(_QUOTES, re.DOTALL)
CODE = re.compile(
    r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)*\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*\)"
)
URL = re.compile(
    r"\b(?:https?|ftp)://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]}]|\bwww\.[\w-]+(?:\.[\w-]+)+"
    r"(?:/[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]}])?/?",
    re.IGNORECASE,
)
_TOP = (
    "com|org|net|edu|gov|io|dev|xyz|info|app|ai|co|me|uk|de|fr|eu|ch|at|nl|it|es|tv|us"
    "|ca|au|jp|in|biz|news|blog|tech|online|site|wiki|local|test|example"
)
DOMAIN = re.compile(
    rf"(?<![\w@/.\\-])(?:[a-z0-9](?:[\w-]*[a-z0-9])?\.)+(?:{_TOP})\b"
    r"(?!\.\w)(?:/[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]}])?/?",
    re.IGNORECASE,
)
EMAIL = re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_EXTENSIONS = (
    "py|txt|md|csv|tsv|json|jsonl|html?|xml|ya?ml|toml|ini|cfg|conf|log|sh|bat|js|ts|css"
    "|java|c|h|cpp|rs|go|rb|php|sql|db|sqlite|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg"
    "|webp|bmp|mp3|mp4|wav|avi|mov|zip|gz|tar|rst|tex|ipynb|lock|env|bak|dat|out|r|kt"
    "|swift|parquet|rtf|odt|epub|ics|eml|geojson|mkv|flac|ogg|exe|bin"
)
PATH = re.compile(
    rf"(?<![\w@:/.\\-])(?:[~.]{{1,2}}/|/)?(?:[\w.-]+[/\\])*[\w-][\w.-]*\.(?:{_EXTENSIONS})\b"
    r"(?!\.?[\w@/-])"
    r"|(?<![\w@:/.\\-])(?:[~.]{0,2}/)(?:[\w.-]+/)*[\w.-]*[\w-]/?"
    r"|(?<![\w@:/.\\-])(?:[\w.-]+/)+(?:[\w-]*[\w-])?(?=[\s,.;!?]|$)",
    re.IGNORECASE,
)
NUMBER = re.compile(
    r"(?<![\w.])(?<!\w-)[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?=%|[a-z€$£°]{0,12}\b|\W|$)",
    re.IGNORECASE,
)
EXPRESSION = re.compile(
    r"(?<![\w.])\(*-?\d+(?:\.\d+)?\)*(?:\s*(?:\*\*|[-+*/^%×÷]|(?<=\s)x(?=\s))\s*"
    r"\(*-?\d+(?:\.\d+)?\)*)+(?![\w.-]*[A-Za-z])"
)
SIZE = re.compile(r"(?<![\w.])(\d+)\s?[x×]\s?(\d+)(?!\w)")
ISO_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?Z?)?\b")
NUMERIC_DATE = re.compile(r"\b\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b")
TIME = re.compile(
    r"\b(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?:\s?[ap]\.?m\b\.?)?"
    r"|\b(?:1[0-2]|0?[1-9])\s?[ap]\.?m\b\.?|\b(?:1[0-2]|[1-9]) o'?clock\b",
    re.IGNORECASE,
)


class Span(Struct, frozen=True, kw_only=True):
    """A piece of the text that is one value."""

    start: int
    end: int
    kinds: frozenset[str]
    value: str
    """As written, without quotes."""

    @property
    def quoted(self) -> bool:
        """Whether it stands in quotes."""
        return "quoted" in self.kinds


def _quoted(text: str, language: Language) -> list[Span]:
    """Return the quoted texts that do not stand in code."""
    code = list(CODE.finditer(text))
    found: list[Span] = []
    for match in QUOTED.finditer(text):
        if any(item.start() < match.start() < item.end() for item in code):
            continue
        inner = next((part for part in match.groups() if part is not None), "")
        kinds = frozenset({"quoted", *kinds_of(inner, language)})
        found.append(
            Span(start=match.start(), end=match.end(), kinds=kinds, value=inner)
        )
    return found


def find(text: str, language: Language) -> tuple[Span, ...]:
    """All typed spans, in order; none overlaps another."""
    found: list[Span] = []

    def free(start: int, end: int) -> bool:
        return all(end <= span.start or start >= span.end for span in found)

    def take(pattern: re.Pattern[str], *kinds: str) -> None:
        for match in pattern.finditer(text):
            if match.end() > match.start() and free(match.start(), match.end()):
                found.append(
                    Span(
                        start=match.start(),
                        end=match.end(),
                        kinds=frozenset(kinds),
                        value=match.group(),
                    )
                )

    found += _quoted(text, language)
    take(CODE, "code")
    take(URL, "url")
    take(EMAIL, "email")
    take(ISO_DATE, "date")
    take(NUMERIC_DATE, "date")
    take(TIME, "time")
    dates, times, numbers = _word_patterns(language.code)
    take(dates, "date")
    if times is not None:
        take(times, "time")
    take(DOMAIN, "url")
    for match in SIZE.finditer(text):
        if free(*match.span()):
            found += [
                Span(
                    start=match.start(part),
                    end=match.end(part),
                    kinds=frozenset({"number"}),
                    value=match.group(part),
                )
                for part in (1, 2)
            ]
    take(EXPRESSION, "expression")
    for match in PATH.finditer(text):
        if free(match.start(), match.end()) and not _is_not_path(match.group()):
            found.append(
                Span(
                    start=match.start(),
                    end=match.end(),
                    kinds=frozenset({"path"}),
                    value=match.group(),
                )
            )
    take(NUMBER, "number")
    take(numbers, "number")
    return tuple(sorted(found, key=lambda span: span.start))


def _is_not_path(text: str) -> bool:
    """Fractions, rates and alternatives: 4/4, km/h, and/or."""
    head = text.rpartition(".")[0]
    if "/" in text and not head and not text.startswith(("/", "~", ".")):
        return not text.endswith("/") and max(map(len, text.split("/"))) < 4
    return text in ("/", "./", "../", "~/") or text.replace(".", "").isdigit()


def kinds_of(value: str, language: Language) -> frozenset[str]:
    """What a whole value can be besides plain text."""
    text = value.strip()
    kinds: set[str] = set()
    if URL.fullmatch(text):
        kinds.add("url")
    elif EMAIL.fullmatch(text):
        kinds.add("email")
    else:
        if DOMAIN.fullmatch(text):
            kinds.add("url")
        elif PATH.fullmatch(text) and not _is_not_path(text):
            kinds.add("path")
    if ISO_DATE.fullmatch(text) or NUMERIC_DATE.fullmatch(text):
        kinds.add("date")
    elif TIME.fullmatch(text):
        kinds.add("time")
    elif EXPRESSION.fullmatch(text):
        kinds.add("expression")
    elif NUMBER.fullmatch(text):
        kinds.add("number")
    else:
        dates, times, numbers = _word_patterns(language.code)
        if dates.fullmatch(text):
            kinds.add("date")
        if times is not None and times.fullmatch(text):
            kinds.add("time")
        if numbers.fullmatch(text):
            kinds.add("number")
    return frozenset(kinds)


def _alternatives(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


@cache
def _word_patterns(
    code: str,
) -> tuple[re.Pattern[str], re.Pattern[str] | None, re.Pattern[str]]:
    from neuraxis.models.local.planner.language import load

    language = load(code)
    months = _alternatives(list(language.table("months")))
    week = _alternatives(list(language.table("weekdays")))
    days = _alternatives(list(language.table("days")))
    following = _alternatives([w for w in language.words("next_words") if w != "on"])
    nth = r"\d{1,2}(?:st|nd|rd|th|\.)?"
    dates = re.compile(
        rf"\b(?:(?:{months})\.? {nth}(?!\d)(?:,? \d{{4}})?"
        rf"|{nth} (?:of )?(?:{months})\b(?:,? \d{{4}})?"
        rf"|(?:(?:{following}) )?(?:{week})\b|(?:{days})\b)",
        re.IGNORECASE,
    )
    times = _alternatives(list(language.table("times")))
    numbers = _alternatives(list(language.table("numbers")))
    return (
        dates,
        re.compile(rf"\b(?:{times})\b", re.IGNORECASE) if times else None,
        re.compile(rf"\b(?:{numbers})\b", re.IGNORECASE),
    )
