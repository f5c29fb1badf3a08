"""Sentences around a call that leave open whether it is made.

The sentence that leads into a call is the model's own, of now, and about this call;
the words behind it do not report, deny or explain it. Otherwise the model is asked.
"""

from __future__ import annotations

import re

ACT = r"(?:call|carr|do|execut|issu|mak|perform|run|send|submit|us|writ)"
"""Verbs of which a call is the object, without their endings."""
_LATER = re.compile(
    r"\b(?:i|we)(?:['’]d| would| could| might)\s+(?:\w+\s+)?"
    rf"{ACT}(?:e|te|y)?\b[^.]*\.?$"
    # "Once she agreed, I will send:", "Tomorrow morning I am going to send:"
    r"|^\W*(?:as soon as|if|once(?! (?:again|more)\b)|until(?! now\b))\b(?! i\b)[^.]*$"
    r"|^\W*(?:later|tomorrow|tonight)\b(?!['’])[^.]*\b(?:i|we)\b[^.]*$",
    re.IGNORECASE,
)
"""What could be, or will be later."""
_DONE = (
    r"(?:became|began|bought|broke|brought|built|came|caught|chose|did|drew|fell|found"
    r"|gave|got|grew|heard|held|kept|knew|made|meant|met|paid|ran|said|saw|sent|sold"
    r"|spent|spoke|stood|taught|threw|told|took|understood|was|went|were|won|wrote)\b"
)
"""Past forms without -ed that are seldom a word of another kind."""
_ED = r"(?!request)\w+[^\We]ed\b"
_ITS = (
    r"(?:an?|it|its|me|my|one|that|the|their|them|these|this|those|two|us|you|your)\b"
)
"""What an object begins with."""
_NOT_BE = r"(?: (?!are|be|been|is)\w+)?"
_PAST = (
    rf"(?<!\bbe )(?<!\bis )(?<!\bare )\b{_DONE}"
    rf"|\b(?:i|we|you|he|she|it|they|this|that|which|who){_NOT_BE} {_ED}"
    rf"|(?:\b(?:had|has|have)|\w['’]ve){_NOT_BE} (?:{_ED}|done\b|\w+en\b)"
    rf"|(?<!\bbe )(?<!\bis )(?<!\bare )\b{_ED} {_ITS}"
    rf"|\bthe \w+ {_ED}(?: with)?\W*$"
)
_CALL = r"(?:answer|call|code|command|function|json|message|request|solution|step|tool)"
_SAYS = rf"(?!as |has to|is |this )\w+[^\Ws]s (?:how|to|{_ITS})"
_OPEN = re.compile(
    rf"{_PAST}"
    # said by others: "The README says to run", "Maria asks me to send"
    rf"|^\W*(?:an?|another|her|his|its|my|one|our|the|their|your)"
    rf"(?: (?!{_CALL})[\w'’`./-]+){{1,12}}? {_SAYS}"
    r"|\w[^\Ws]s (?:me|us)\b|\b(?!allow|let|need)\w+ (?:me|us) to\b"
    # of calls in general: "A call has two fields", "The syntax is", "How to call"
    rf"|^\W*(?:an?|any|each|every) (?:[\w-]+ )*?{_CALL}\b.*?"
    r"\b(?:are|can|has|is|looks?|must|should|would)\b"
    rf"|^\W*(?:\w+ )?{_CALL}s\b.*?\b(?:consist|have|look)\b"
    r"|^\W*the (?:\w+ )?(?:form|format|shape|structure|syntax)\b.*?\b(?:is|looks)\b"
    rf"|^\W*(?:\w+ ){{0,2}}how (?!(?:i|we|you)\b|(?:the|this) (?:\w+ )?{_CALL})",
    re.IGNORECASE,
)
_BEFORE_CLAUSE = re.compile(
    r".*(?:[.!?]['\")*]* (?=\W*(?-i:[A-Z0-9]))|;|[,–—-] (?:and|but|so|then)\b"
    r"|[,–—-] (?=(?:he|here|i|it|let|now|she|that|the|they|this|we|you)\b))",
    re.IGNORECASE,
)
"""What stands before the last main clause."""
_ASIDE = re.compile(r", (?:which|who)\b[^,]*$")
_NOW = re.compile(
    r"\W*(?:\w+ )?(?:(?:i|we)(?:['’]ll| can| will| need)|let(?:['’]s| me| us))\b"
    r"|\W*(?:as you|to)\b|\W*this (?!has |is |was )\w+s\b",
    re.IGNORECASE,
)
_HERE = re.compile(
    r"\W*here(?:['’]s| is| are)\b.*? (?=(?:based|for|from|in|of|to|with)\b)",
    re.IGNORECASE,
)
_KEY = r"(?:arguments|command|content|name|param|parameters|receiver|tool)"
_BEHIND = re.compile(
    # denied: "I have not followed it"
    r"\b(?:i|we)(?:['’]ve| am| could| did| do| had| have| was| will| would)?"
    r"(?:n['’]t| not| never)(?: \w+)? \w+ (?:it|that|them|this|what)\b"
    # reported: "It was made at noon", "That call failed", "The tracker confirmed it"
    rf"|^\W*(?:it|that|this|they)(?: (?:call|command|message|request))?{_NOT_BE}"
    rf" (?:{_DONE}|{_ED})"
    rf"|^\W*(?:and |but )?the \w+ (?:{_DONE}|{_ED}) (?:it|that|this|them)\b"
    # explained: "`name` is the function"
    rf"|^\W*`{_KEY}` \w|^\W*(?:the )?{_KEY} (?:are|has|have|is|\w+[^\Ws]s)\b",
    re.IGNORECASE,
)
_STEP = re.compile(r"\b(\d{1,2})[.):]")
_NEXT_STEP = re.compile(r"^\W*(?:\w+ )?(\d{1,2})[.):]", re.MULTILINE)


def leads_elsewhere(line: str) -> bool:
    """Return whether the line before a call leads into another one."""
    if _LATER.search(line):
        return True
    if line.endswith((".", "!")):
        return False
    before = _BEFORE_CLAUSE.match(line)
    clause = _ASIDE.sub("", line[before.end() :] if before else line)
    if _NOW.match(clause):
        return False
    here = _HERE.match(clause)
    return _OPEN.search(here[0] if here else clause) is not None


def is_reported(rest: str) -> bool:
    """Return whether the words behind a call report, deny or explain it."""
    return _BEHIND.search(rest.lstrip()) is not None


def is_step(line: str, rest: str) -> bool:
    """Return whether a numbered text goes on behind a call."""
    steps = _STEP.findall(line)
    return bool(steps) and str(int(steps[-1]) + 1) in _NEXT_STEP.findall(rest)
