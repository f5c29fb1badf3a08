r"""Read Harmony's messages (gpt-oss): a header with a recipient, then JSON.

`to=` may stand before or after the channel. A message to a recipient that is no tool
(the user, the model itself) is no call.
"""

from __future__ import annotations

import re

from msgspec import Struct

from neuraxis.dialects.families.family import Family, Reading, Taken
from neuraxis.dialects.families.named_json import named_json
from neuraxis.parsing.json_errors import broken, cut_off, end_of

_HEADER = (
    r"(?:<\|(?:start|channel|constrain)\|>|(?<![\w.])to=)[^<\n]{0,200}"
    r"(?:<\|(?:channel|constrain)\|>[^<\n]{0,200}){0,4}"
)
_TO = re.compile(r"to=(?P<own>functions\.)?(?P<name>[\w.-]{1,200})")
_SPACE = re.compile(r"\s*")
_END = re.compile(r"\s*<\|(?:call|end|return)\|>")


class _Harmony(Struct, frozen=True):
    models: str
    begin: re.Pattern[str]

    def read(self, text: str, begin: re.Match[str], reading: Reading) -> Taken | None:
        header, at = begin[0], begin.end()
        to = _TO.search(header)
        if to is None or not (to["own"] or reading.is_tool(to["name"])):
            if "functions." in header and header.endswith("<|message|>"):
                raise broken(text, begin.start(), "expected to=functions.NAME")
            return None
        name = to["name"]
        if not header.endswith("<|message|>") or at == len(text):
            raise cut_off(text, f"where the arguments of {name} begin")
        at = end_of(_SPACE, text, at)
        return named_json(text, at, name, reading, _END)


HARMONY: Family = _Harmony(
    "gpt-oss", re.compile(rf"{_HEADER}(?:<\|message\|>|\Z)", re.IGNORECASE)
)
