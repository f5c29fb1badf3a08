"""Detect sentences around a call that leave open whether it is made.

The last main clause before a call decides, without its relative clauses: it must be
the model's own, in the present, and about this call. A participle counts as present; a
past tense has a subject. The words after the call do not report, deny or explain it.
"""

from __future__ import annotations

import re

ACT = r"(?:call|carr|do|execut|issu|mak|perform|run|send|submit|us|writ)"
"""Verbs of which a call is the object, without their endings."""
_MAYBE = re.compile(
    r"\b(?:i|we)(?:['’]d| would| could| might| decline| refuse)\s+(?:\w+\s+){0,2}"
    rf"{ACT}(?:e|te|y)?\b[^.]*\.?$"
    # "Once she agreed, I will send:", "Tomorrow morning I am going to send:"
    r"|^\W*(?:as soon as|if|in case|once(?! (?:again|more)\b)|provided that|should"
    r"|unless|until|when)\b(?! i\b)[^.?]*$"
    r"|^\W*(?:later|tomorrow|tonight)\b(?!['’])[^.]*\b(?:i|we)\b[^.]*$",
    re.IGNORECASE,
)
"""Clauses in the conditional or the future, or that refuse."""
_SHOWN = re.compile(
    rf"(?:\bnot|\bnever|n['’]t) (?:\w+ )?{ACT}(?:e|te|y)?"
    r" (?:it|that|the following|this)\b"
    r"|^\W*(?:here|it|that|this)(?:['’]s| is)(?: just| only)? an? (?:draft|example)\b",
    re.IGNORECASE,
)
"""Words of a sentence after which a call is only shown."""
_BEFORE_SENTENCE = re.compile(r".*[.!?]['\")*]* (?=\W*[A-Z0-9])")
_ING = r"(?!accord|dur|even|quot|morn|\w*thing)\w+ing\b"
_BEFORE_CLAUSE = re.compile(
    r".*(?:[.!?]['\")*]* (?=\W*(?-i:[A-Z0-9]))|;|[,–—-] (?:and|but|now|so|then)\b"
    rf"|[,–—-] (?=(?:he|here|i|it|let|she|that|the|they|this|we|you|{_ING})\b))",
    re.IGNORECASE,
)
"""The text before the last main clause."""
_NOW = re.compile(
    r"\W*(?:(?:i|we)(?:['’](?:ll|m)| am| can| must| need| want| will)"
    rf"|let(?:['’]s| me| us))\b|\W*{_ING}",
    re.IGNORECASE,
)
_HERE = re.compile(
    r"\W*(?:here|that|these|this)(?:['’]s| is| are| was| were)\b.*?"
    r"(?= (?:based|for|from|in|of|to|with)\b|$)",
    re.IGNORECASE,
)
_CALL = r"(?:answer|call|code|command|function|json|message|request|solution|step|tool)"
_FORM = r"(?:form|format|pattern|shape|structure|syntax)"
_SAYS = (
    r"(?:(?:advise|ask|contain|demand|demonstrate|instruct|propose|recommend|show|state"
    r"|suggest|tell|urge)(?:s|e?d)|said|says|told)"
)
_WHO = r"(?:he|i|it|she|the user|they|we|you)"
_RELATIVE = re.compile(
    r"(\b(?:an?|all|any|the|this|those) (?:[\w-]+ ){0,2}?"
    rf"(?!{_CALL}s?\b|{_SAYS}\b|\w+ed\b)[\w-]+)"
    rf"(?: {_WHO}|,? (?:that|which|who)(?: {_WHO})?)"
    r"(?: (?:are|had|has|have|is|was|were))? \w+",
    re.IGNORECASE,
)
"""A noun, and what its relative clause says up to the verb."""
_DONE = (
    r"(?:answered|became|began|broke|came|did|gave|kept|ran|replied|spoke|took|was|went"
    r"|were|wrote)\b"
)
"""Past forms that are seldom participles."""
_ED = (
    r"(?:brought|built|made|meant|said|sent|told"
    r"|(?!ask|assum|descri|embed|mention|request|shred|specif|want)\w+[^\We]ed)\b"
)
_ITS = (
    r"(?:an?|any|it|its|me|my|one|that|the|their|them|these|this|those|two|us|you"
    r"|your)\b"
)
"""First word of a grammatical object."""
_THIS = r"(?:it|that|the following|them|these|this)\b"
_NOT_BE = r"(?: (?!are|be|been|is)\w+)?"
_PAST = (
    rf"(?<=\w )(?<!\b(?:be|is) )(?<!\bare )(?:{_DONE}|{_ED} {_ITS})"
    rf"|\b(?:i|we|you|he|she|it|they|this|that){_NOT_BE} {_ED}"
    rf"|(?:\b(?:had|has|have)|\w['’]ve){_NOT_BE} (?:{_ED}|done\b|\w+en\b)"
)
_OPEN = re.compile(
    rf"{_PAST}"
    r"|^\W*(?:(?:\w+ ){1,3}ago|earlier today|last (?:month|night|time|week|year|\w+day)"
    r"|previously|this morning|yesterday)\b(?!['’])"
    # reported speech: "The README says to run", "Maria asks me to send"
    rf"| {_SAYS} (?:how|to|{_ITS}|{_ING})|\b(?!allow|let|need)\w+ (?:me|us) to\b"
    rf"|\w[^\Ws](?:s|ed) (?:[\w'’]+ ){{1,3}}to {ACT}\w*(?: {_THIS})?\W*$"
    # instructions to the user: "You do it like so", "Use this", "Copy the following"
    r"|^\W*you\b"
    r"|(?:^|, )\W*(?:please )?(?:call|copy|paste|post|run|send|try|type|use|write)"
    rf" {_THIS}"
    # somebody else's call: "The page gives this", "Feel free to copy the following"
    r"|^(?!.*\b(?:here|i|is|let|we)\b).*"
    r"\b(?!(?:after|as|at|before|by|do|for|from|in|like|need|of|on|to|with)\b)\w+ "
    r"(?:the following|this)(?: (?:as|in|into|through|to)\b.*)?\W*$"
    # calls in general: "A call has two fields", "The syntax is", "How to call"
    rf"|^\W*(?:(?:an?|any|each|every|such an?) (?:[\w-]+ )*?{_CALL}"
    rf"|(?:\w+ )?{_CALL}s|the (?:\w+ )?{_FORM})\b.*?"
    r"\b(?:can|consists?|has|have|is|looks?|must|should|would)\b"
    r"|^\W*(?:in general|normally|typically|usually)\b"
    rf"|^(?!\W*(?:here|i|it|so|something|the (?:\w+ )?{_CALL}|this|we)\b)"
    r".*\b(?:as follows|like (?:so|this)|of this (?:form|kind|shape))\W*$"
    r"|^\W*(?:[\w'’]+ ){0,2}how (?!(?:i|we|you can)\b"
    rf"|(?:the|this) (?:\w+ )?{_CALL})",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"\W*(?:as |because |since )?"
    r"(?:you|(?:the|this|your) (?:customer|question|request|task|user))"
    r"(?:['’]ve| has| have| is|['’]d| would)?"
    r" (?:ask|like|mention|need|provid|request|requir|said|specif|want)\w*"
    r"(?: (?:me|us) to| for| to)?\b",
    re.IGNORECASE,
)
"""Clause about the user's request, which the call answers."""
_BEHIND = re.compile(
    # denied: "I have not followed it"
    r"\b(?:i|we)(?:['’]ve| am| could| did| do| had| have| was| will| would)?"
    rf"(?:n['’]t| not| never)(?: \w+)? (?:{ACT}|follow|made|ran|sent|wrote)\w*"
    r" (?:it|that|them|this|what)\b"
    r"|\b(?:disregard|ignore) (?:it|that|the \w+ above|them|this)\b"
    # reported: "It was made at noon", "That call failed", "The tracker confirmed it"
    rf"|^\W*(?:it|that|this|they)(?: (?:call|command|message|request))?{_NOT_BE}"
    rf" (?:{_DONE}|{_ED})"
    rf"|^\W*(?:and |but )?the (?!user)\w+ (?:{_DONE}|{_ED}) (?:it|that|this|them)\b"
    # explained: "`name` is the function", "That is what she wanted me to send"
    r"|^\W*`(?:arguments|command|content|name|param|parameters|receiver|tool)` \w"
    r"|^\W*(?:that|this|the above|the \w+ above)(?:['’]s| is| was)(?: just| only)? "
    r"(?:how (?!i|we)|what (?!i|we|will|you)|made|sent"
    rf"|(?:an?|the) {_FORM})\b",
    re.IGNORECASE,
)
_STEP = re.compile(r"\b(\d{1,2})[.):]")
_NEXT_STEP = re.compile(r"^\W*(?:\w+ )?(\d{1,2})[.):]", re.MULTILINE)


def leads_elsewhere(line: str) -> bool:
    """Return whether the line before a call introduces another call."""
    sentences = _BEFORE_SENTENCE.match(line)
    if _MAYBE.search(line[sentences.end() :] if sentences else line):
        return True
    if line.endswith((".", "!")):
        return _SHOWN.search(line[sentences.end() :] if sentences else line) is not None
    before = _BEFORE_CLAUSE.match(line)
    clause = line[before.end() :] if before else line
    if _NOW.match(clause):
        return False
    announcement = _HERE.match(clause)
    statement = announcement[0] if announcement else _RELATIVE.sub(r"\1", clause)
    request = _WISH.match(statement)
    return (
        _OPEN.search(statement[request.end() :] if request else statement) is not None
    )


def is_reported(following: str) -> bool:
    """Return whether the words after a call report, deny or explain it."""
    return _BEHIND.search(following.lstrip()) is not None


def is_step(line: str, following: str) -> bool:
    """Return whether a numbered list continues after a call."""
    steps = _STEP.findall(line)
    return bool(steps) and str(int(steps[-1]) + 1) in _NEXT_STEP.findall(following)
