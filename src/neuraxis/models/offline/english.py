"""English words that requests are read by: data, nothing of any plugin."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION = _words(
    """a an the this that these those my your our their his her its some any to in on at
    by for from with into onto as about of me you i we us it he she they them him is are
    was were be been am do does did can could would should will shall may have has had
    please just now also then so there here what which who whom whose when where why how
    and let lets i'd i'll i'm want need like what's there's it's that's up out off over via
    using got get again too today right kindly quickly really currently exactly let's
    called named titled labelled name inside given own s ask asking thanks more ok okay
    tell give still much many down"""
)
"""Words that need no place in a call. What turns a request round (not, except, only,
if, every, …) is none of them: it must be known to the command, or nothing is done."""
TURNING = _words(
    """not no never don't doesn't without except only if unless until but or instead than
    every each all both neither nor while whenever before after between other another
    most least more less last previous next half twice against"""
)
"""Words that a command's description does not make known, its examples do."""
QUESTION = _words("what which who whose when where why how is are does do did will can")
DETERMINERS = _words("a an the my your our their his her its some any me us")
PREPOSITIONS = _words("to in on at by for from with into onto as about of under inside")
PRONOUNS = _words("it them that this those these")
RESULTS = _words("result output answer outcome response find")
"""Stems that mean the whole of what an earlier command answered."""
SHOWING = _words(
    """show tell give me print display say report let see know what it says say is in
    contains contain result results output content contents there text come comes printed
    did do found"""
)
"""A last clause of these words alone asks for what is shown anyway."""
SAYING = _words("saying says say containing contains reading reads that with stating")
"""Words before a long text, such as a message's."""
NAMING = _words("sentence phrase word words line lines string text message note heading")
"""Nouns that only say what stands in quotes behind them."""
LONG = _words("contents content body text message code")
"""Names of parameters that take whole texts."""
MOMENTS = _words("date time when day due deadline moment")
"""Names of parameters that take a time."""
TIMES = _words(
    """today tomorrow tonight yesterday noon midnight morning afternoon evening week
    weekend month year monday tuesday wednesday thursday friday saturday sunday january
    february march april may june july august september october november december
    oclock now"""
)
"""Words one of which is in each time."""
PRINTING = _words("print prints output outputs display displays show shows say says")
PROGRAM = _words("script program function code python")
ENDINGS = {
    "text": "txt", "txt": "txt", "markdown": "md", "md": "md", "csv": "csv",
    "json": "json", "html": "html", "python": "py", "py": "py",
}  # fmt: skip
"""Kinds of a file as they are said, and the ends of its name."""
FOLLOWING = _words(
    """and now then ok okay what how about the same do it that again also next for of in
    with to please at on from well thanks great is s"""
)
"""Words before the value of a request like the one before it."""
OPPOSITES = (
    ("on", "off"),
    ("open", "closed"),
    ("open", "close"),
    ("enabled", "disabled"),
    ("enable", "disable"),
    ("lock", "unlock"),
    ("locked", "unlocked"),
    ("up", "down"),
    ("yes", "no"),
    ("true", "false"),
)
NUMBERS = {
    word: value
    for value, word in enumerate(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen
        fourteen fifteen sixteen seventeen eighteen nineteen twenty""".split()
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "hundred": 100}
ORDINALS = {
    word: value
    for value, word in enumerate("first second third fourth fifth".split())
} | {"1st": 0, "2nd": 1, "3rd": 2, "last": -1, "top": 0}

ALIKE = tuple(
    _words(line)
    for line in """run execute launch start
    write save store put record keep note dump
    create make add new generate build produce
    share post publish
    pay transfer wire
    delete remove erase
    show display print list view
    find search google
    read open show print view display
    get fetch retrieve download load grab pull visit scrape
    send email mail message text
    add append insert attach put
    replace change substitute swap edit
    copy duplicate
    move rename
    set turn switch adjust
    set start begin
    book reserve
    cancel delete remove
    schedule plan add create
    compute calculate
    check look
    remind reminder
    function program script code
    file document
    folder directory
    link url address site website webpage page
    text content
    picture image photo
    mean average
    sum total
    inhabitant population people live
    event appointment meeting
    task todo
    light lamp
    phone telephone
    mail email e-mail message
    large big
    price cost
    bill invoice
    movie film
    currency money
    near close nearby""".splitlines()
)
"""Stems that are taken for each other, at a lower weight than the word itself."""

IRREGULAR = {
    "ran": "run", "wrote": "write", "written": "write", "got": "get", "sent": "send",
    "made": "make", "found": "find", "kept": "keep", "told": "tell", "shown": "show",
    "said": "say", "took": "take", "taken": "take", "built": "build", "people": "people",
    "children": "child", "does": "do", "bought": "buy", "paid": "pay", "sold": "sell",
    "lives": "live", "lived": "live", "living": "live", "copies": "copy",
}  # fmt: skip

POLITE = (
    r"(?:hi|hello|hey|ok|okay|alright|great|good morning)(?: there)?[,!.]?\s+(?=\S+\s+\S)",
    r"please,?\s+",
    r"kindly\s+",
    r"(?:can|could|would|will) (?:you|we)(?: please| kindly| just| quickly)?\s+",
    r"would you mind\s+",
    r"(?:i|we)(?: would|'d|’d)? (?:really )?(?:want|need|like|love)(?: you)? to\s+",
    r"(?:i|we) (?:want|need)\s+(?=\w)",
    r"(?:help me|let'?s|go ahead and|make sure to|be sure to)\s+(?=\w)",
    r"(?:first(?:ly)?|next|then|now|finally|lastly|afterwards|after that|also|and),?\s+",
    r"(?:just|quickly)\s+",
    r"(?:do|run|make|perform) an?\s+(?:\w+\s+)?(?=search\b)",
)
"""Taken off the start of a clause."""
SEPARATORS = (
    r"[,;.]?\s+(?:and\s+)?(?:then|afterwards)\b,?\s+"
    r"|[,;.]\s*(?:and\s+)?(?:after that|finally|next|lastly)\b,?\s+"
    r"|\s+(?:and\s+)?after that,?\s+|;\s+|(?<=[\w)\"'”’`])[.!?]\s+(?=\S)|\s*\n+\s*"
)
"""Always a new clause."""
JOINS = r",?\s+(?:and|&)\s+(?:also\s+|finally\s+|please\s+)?|,\s+(?:also\s+|please\s+)?"
"""A new clause where a command's verb follows."""
