"""English word lists for parsing requests."""


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def _pairs(text: str) -> dict[str, str]:
    return {item.partition(":")[0]: item.partition(":")[2] for item in text.split()}


DETERMINERS = words("a an the my your our their his her its some any me us")
PREPOSITIONS = words("to in on at by for from with into onto as about of under inside")
PRONOUNS = words("it them that this these those")
SOMEBODY = words("it them him her me us")
QUESTION = words("what which who whose when where why how is are does do did will")
ADVICE = words("should shall must ought")
CLOSED = DETERMINERS | PREPOSITIONS | PRONOUNS | SOMEBODY | QUESTION
"""Words that never request a command."""
FUNCTION = (CLOSED - {"under"}) | words(
    """i we you he she they was were be been am can could would should shall may have
    has had please just now also then so there here and let lets i'd i'll i'm want
    need like has what's where's who's there's it's that's up out off over down via
    using use got get again too today right kindly quickly really currently exactly
    let's called named titled name given own s ask thanks more ok okay tell give still
    much many"""
)
"""Words that need no place in a call, without negations and the like."""
DENYING = words("not no never don't dont doesn't without except unless neither nor")
TURNING = DENYING | words(
    """only if until but or instead whatever whichever whoever anything
    something than every each all both while whenever before after between other
    another most least less last previous next half twice against"""
)
"""Words that a command may learn from an example only, not its description."""
RESULTS = words("result output answer outcome response find one hit")
FOLLOWING = words(
    """and now then ok okay what how about the same do it that again also next for of in
    with to please at on from well thanks great is s"""
)
SAYING = words("saying says say containing contains reading reads that with stating")
NAMING = words("sentence phrase word words line lines string text message note")
NAMED = {
    "email": words("email mail address to cc bcc recipient sender from"),
    "url": words("url uri link address website site page"),
    "path": words("path file filename folder directory document"),
}
"""Words in names of parameters that accept a kind of address."""
TOLD = {"email": {"address"}, "url": words("url uri link"), "path": {"path"}}
"""The same for their descriptions."""
LONG = words("contents content body text message code")
MOMENTS = words("date time when day weekday due deadline moment")
DAYS = words(
    """today tomorrow tonight yesterday monday tuesday wednesday thursday friday
    saturday sunday"""
)
TIMES = DAYS | words(
    """noon midnight morning afternoon evening week month year january next
    february march april may june july august september october november december"""
)
PRINTING = words("print prints output outputs display displays show shows say says")
PROGRAM = words("script program function code python")
ENDINGS = _pairs(
    """text:txt txt:txt markdown:md md:md csv:csv json:json html:html pdf:pdf js:js
    python:py py:py log:log"""
)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
MONTHS = {name: f"{at:02}" for at, name in enumerate(_MONTHS.split(), 1)}
_TO = words("target destination arrival recipient to new end until")
_FROM = words("sourc origin start departur from old begin sender")
_BY = words("author artist writer")
_ABOUT = words("topic subject")
SIDES = {
    "from": _FROM, "to": _TO, "into": _TO, "with": _TO, "until": _TO, "by": _BY,
    "about": _ABOUT,
}  # fmt: skip
OPPOSITES = tuple(_pairs("on:off open:closed enabled:disabled locked:unlocked").items())
_NUMBERS = """zero:0 two:2 three:3 four:4 five:5 six:6 seven:7 eight:8 nine:9 ten:10
    twelve:12 fifteen:15 twenty:20 thirty:30 forty:40 fifty:50 sixty:60 hundred:100"""
NUMBERS = {word: int(value) for word, value in _pairs(_NUMBERS).items()}
ORDINALS = {"first": 0, "1st": 0, "top": 0, "second": 1, "third": 2, "last": -1}
_ALIKE = """run execute launch start/write save store put record keep note dump/
    create make add new generate build produce/share post publish/
    pay transfer wire/delete remove erase/show display print list view/
    find search google/read open show print view display/
    get fetch retrieve download load grab visit scrape/
    send email mail message text/add append insert attach put/copy duplicate/
    move rename/replace change substitute swap edit/set turn switch adjust/
    set start begin/book reserve/cancel delete remove/schedule plan add create/
    check look/remind reminder/function program script code/file document/
    folder directory/link url address site website webpage page/text content/
    picture image photo/mean average/sum total/
    inhabitant population people live/task todo/light lamp/
    event appointment meeting/phone telephone/mail email e-mail message/
    large big/price cost/bill invoice/movie film/currency money/
    near close nearby/gram g/kilogram kg kilo/hour h/minute min/
    pound gbp/dollar usd/euro eur/yen jpy"""
ALIKE = tuple([words(group) for group in _ALIKE.split("/")])
IRREGULAR = _pairs(
    "ran:run written:write made:make found:find people:people lives:live"
)
POLITE = (
    r"(?:hi|hello|hey|ok|okay|great|good morning)(?: there)?[,!.]?\s+(?=\S+\s+\S)"
    r"|(?:please|pls|plz),?\s+|(?:would you )?be so kind (?:as )?to\s+|kindly\s+"
    r"|would you mind\s+"
    r"|(?:can|could|would|will) (?:you|u|we)(?: please| kindly| just| quickly)?\s+"
    r"|(?:i|we)(?: would|'d|’d)? (?:really )?(?:want|need|like|love)(?: you)? to\s+"
    r"|(?:i|we) (?:want|need)\s+(?=\w)"
    r"|(?:help me|let'?s|go ahead and|make sure to|be sure to)\s+(?=\w)"
    r"|(?:first(?:ly)?|next|then|now|finally|lastly|afterwards|also|and),?\s+"
    r"|(?:just|quickly)\s+|(?:do|run|make|perform) an?\s+(?:\w+\s+)?(?=search\b)"
)
SEPARATORS = (
    r"[,;.]?\s+(?:and\s+)?(?:then|afterwards)\b,?\s+"
    r"|[,;.]\s*(?:and\s+)?(?:after that|finally|next|lastly)\b,?\s+"
    r"|\s+(?:and\s+)?after that,?\s+|;\s+|(?<=[\w)\"'”’`])[.!?]\s+(?=\S)|\s*\n+\s*"
)
THANKS = (
    r"(?:[,.!]?\s+(?:please|pls|plz|(?:many )?(?:thanks|thx)|thank you)"
    r"(?: (?:so|very) much)?|,? so (?:that )?(?:i|we) can\b[^.!?]*)(?=[.!?]*$)"
)
JOINS = r",?\s+(?:and|&)\s+(?:also\s+|finally\s+|please\s+)?|,\s+(?:also\s+|please\s+)?"
"""Words that begin a new clause if a command's verb follows."""
