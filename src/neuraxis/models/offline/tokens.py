"""Split a request into clauses, and clauses into words and values."""

import re
from collections.abc import Collection, Sequence

from msgspec import Struct

from neuraxis.models.offline import english
from neuraxis.specs import Json

_TOP = "com|org|net|io|dev|edu|gov|info|example|test|co|uk|de|fr|eu|ch|nl|it|es|ai|app"
_MONTH = rf"(?:{'|'.join(english.MONTHS)})[a-z]{{0,6}}"
_TOKEN = re.compile(
    rf"""
    (?P<code>[A-Za-z_][\w.]*\((?:[^()\n]|\([^()\n]*\))*\)|\{{[^\n]*\}}|\[[^\n\]]*\])
  | (?P<quoted>"[^"\n]*"|“[^”\n]*”|«[^»\n]*»|`[^`\n]*`
      |(?<!\w)['‘](?:[^'’`\n]|['’](?=\w))*['’`](?!\w))
  | (?P<email>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)
  | (?P<url>(?:https?://|www\.)[^\s,;"'<>]*[\w/=&%-]
      |(?:[a-z0-9-]+\.)+(?:{_TOP})(?:/[^\s,;"'<>]*[\w/=&%-])?(?![\w.]*\w))
  | (?P<date>\d{{4}}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?Z?)?
      |\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{_MONTH},?\s\d{{4}}\b
      |{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?,?\s\d{{4}}\b)
  | (?P<month>\d{{4}}-\d\d(?![\w-])|{_MONTH}\s\d{{4}}\b)
  | (?P<time>\d{{1,2}}:\d\d(?:\s?[ap]m)?\b|\d{{1,2}}\s?[ap]m\b)
  | (?P<glob>[\w./-]*\*[\w.*?/-]*)
  | (?P<path>~?(?:[\w.-]+/)+(?:[\w.-]*\w)?
      |\.?[A-Za-z_][\w-]*(?:\.[\w-]+)*\.[A-Za-z]\w{{0,7}}\b
      |\d[\w-]*\.[A-Za-z]\w{{1,7}}\b)
  | (?P<number>(?<![\w.])[-+]?\d+(?:,\d{{3}})*(?:\.\d+)?(?!\w|[.-]\d))
  | (?P<word>\w+(?:['’.-]\w+)*)
  | (?P<mark>[^\w\s])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ENDINGS = (
    ("ies", "y", 4), ("sses", "ss", 5), ("ches", "ch", 5), ("shes", "sh", 5),
    ("xes", "x", 4), ("ing", "", 6), ("ed", "", 5), ("s", "", 4),
)  # fmt: skip
TYPED = english.words("quoted code email url date month time glob path number")


class Token(Struct, frozen=True, kw_only=True):
    """One word or value; `stem` is its word without endings."""

    text: str
    low: str
    stem: str
    kind: str  # `word`, `mark`, or the kind of value
    value: Json
    start: int
    end: int
    inner: str = ""  # kind of a quoted text that is one value

    def has(self, kind: str) -> bool:
        """Return whether it can be a value of this kind."""
        return kind in (self.kind, self.inner)


def stem(word: str) -> str:
    """Return a word without its English endings."""
    low = word.lower().replace("’", "'").removesuffix("'s")
    if low in english.IRREGULAR:
        return english.IRREGULAR[low]
    for ending, replacement, least in _ENDINGS:
        if low.endswith(ending) and len(low) >= least and not low.endswith("ss"):
            low = low[: len(low) - len(ending)] + replacement
            if ending in ("ing", "ed") and len(low) > 3 and low[-1] == low[-2] != "l":
                low = low[:-1]
            break
    return low[:-1] if low.endswith("e") and len(low) > 3 else low


def named(name: str) -> list[str]:
    """Return the words of `camelCase`, `snake_case` and plain text."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [part for part in re.split(r"[^\w]+|_+", spaced) if part]


def stems(text: str) -> list[str]:
    """Return the stems of all words of a text or name."""
    return [stem(word) for word in named(text)]


def tokenise(text: str) -> list[Token]:
    """Return the words and values of a text."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind, raw = str(match.lastgroup), match.group()
        value: Json = raw[1:-1] if kind == "quoted" else raw
        if kind == "number":
            digits = raw.replace(",", "")
            value = float(digits) if "." in digits else int(digits)
        elif kind in ("date", "month") and not raw[:4].isdigit():
            value = _iso(raw.lower())
        elif kind == "word" and raw.lower() in english.NUMBERS:
            value = english.NUMBERS[raw.lower()]
        inner, low = "", raw.lower()
        if kind == "quoted" and (whole := _TOKEN.fullmatch(str(value))):
            inner = str(whole.lastgroup)
        elif kind == "quoted" and re.search(r"\w\.[a-z]\w{0,6}$", low[:-1]):
            inner = "path"
        if kind == "path" and "." not in raw.rsplit("/", 1)[-1]:
            inner = "folder"
        token = Token(
            text=raw, low=low, stem=stem(low) if kind == "word" else low, kind=kind,
            value=value, start=match.start(), end=match.end(), inner=inner,
        )  # fmt: skip
        tokens.append(token)
    return tokens


def _iso(text: str) -> str:
    """Return a day or month in ISO 8601."""
    *day, year = re.findall(r"\d+", text)
    name = next(word for word in re.findall("[a-z]{3}", text) if word in english.MONTHS)
    return "-".join([year, english.MONTHS[name], *(f"{int(one):02}" for one in day)])


def alike(first: str, second: str) -> bool:
    """Return whether two stems are similar enough to match."""
    return not _GROUPS.get(first, _NONE).isdisjoint(_GROUPS.get(second, _NONE))


_NONE = frozenset[int]()
_STEMS = [frozenset(map(stem, group)) for group in english.ALIKE]
VERBS = frozenset[str]().union(*_STEMS)  # may begin a clause, whatever the commands are
_GROUPS = {one: frozenset(n for n, g in enumerate(_STEMS) if one in g) for one in VERBS}
_POLITE = re.compile(english.POLITE, re.IGNORECASE)
_SEPARATOR = re.compile(english.SEPARATORS, re.IGNORECASE)
_JOIN = re.compile(english.JOINS, re.IGNORECASE)
_THANKS = re.compile(english.THANKS, re.IGNORECASE)
_MOST = 8  # maximum cuts of a text


def bare(text: str) -> str:
    """Return a clause without its polite words."""
    text = _THANKS.sub("", text.strip().rstrip(",;"))
    while (match := _POLITE.match(text)) is not None and match.end() < len(text):
        text = text[match.end() :]
    return _THANKS.sub("", re.sub(r"(?i)\Aget rid of\b", "delete", text))


def cuts(text: str, heads: Collection[str]) -> list[tuple[int, int, bool]]:
    """Return where the text may be cut; True: where it must be."""
    protected = [
        (t.start, t.end) for t in tokenise(text) if t.kind in ("quoted", "code")
    ]
    places: list[tuple[int, int, bool]] = []
    for pattern, sure in ((_SEPARATOR, True), (_JOIN, False)):
        for match in pattern.finditer(text):
            begin, end = match.span()
            used = [*protected, *((a, b) for a, b, _ in places)]
            if any(a < end and begin < b for a, b in used):
                continue
            after = tokenise(bare(text[end:])[:200])[:1]
            verb = after and (after[0].kind in TYPED or stem(after[0].text) in heads)
            if sure or verb:
                places.append((begin, end, sure))
    return sorted(places)[:_MOST]


def pieces(text: str, at: Sequence[tuple[int, int, bool]]) -> list[str]:
    """Return the clauses between the cuts."""
    begins = [0, *(end for _, end, _ in at)]
    ends = [*(start for start, _, _ in at), len(text)]
    parts = [bare(text[a:b]) for a, b in zip(begins, ends, strict=True)]
    return [part for part in parts if part]
