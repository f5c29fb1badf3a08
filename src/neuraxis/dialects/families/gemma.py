r"""Read Gemma's calls: `call:name{key:<|"|>text<|"|>,count:3}`."""

from __future__ import annotations

import json
import re

from msgspec import Struct

from neuraxis.dialects.families.family import NAME, Family, Reading, Taken, arguments
from neuraxis.parsing.json_errors import broken, cut_off
from neuraxis.parsing.json_scan import Value, Written, value_reader

_NEXT = re.compile(rf"[\s,]*+call:{NAME}\s*+(?=\{{)")


class _Gemma(Struct, frozen=True):
    models: str
    begin: re.Pattern[str]
    quote: str
    end: str

    def read(self, text: str, begin: re.Match[str], reading: Reading) -> Taken | None:
        name, at = begin["name"], begin.end()
        end = text.find(self.end, at)
        body = text[at : end if end >= 0 else len(text)].rstrip()
        parts = body.split(self.quote)
        if len(parts) % 2 == 0:
            raise cut_off(text, f"inside a text of the call of {name}")
        # every second part is a text between the model's quote tokens
        parts[1::2] = [json.dumps(part) for part in parts[1::2]]
        written = "".join(parts)
        calls: list[Written] = []
        read, after = value_reader(written), 0
        while True:
            value = read(after)
            calls.append((name, arguments(text, at, name, value)))
            after = value.end if isinstance(value, Value) else len(written)
            next_call = _NEXT.match(written, after)
            if next_call is None:
                break
            name, after = next_call["name"], next_call.end()
        if written[after:].strip():
            raise broken(text, at, f"expected only the arguments of {name}")
        return Taken(
            calls=tuple(calls),
            end=at + len(body) if end < 0 else end + len(self.end),
        )


GEMMA: tuple[Family, ...] = (
    _Gemma(
        "Gemma 4",
        re.compile(rf"<\|tool_call>\s*call:{NAME}\s*(?=\{{|\Z)"),
        '<|"|>',
        "<tool_call|>",
    ),
    _Gemma(
        "FunctionGemma",
        re.compile(rf"<start_function_call>\s*call:{NAME}\s*(?=\{{|\Z)"),
        "<escape>",
        "<end_function_call>",
    ),
)
