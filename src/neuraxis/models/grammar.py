"""Build grammars that constrain a model to well-formed calls.

A `messages.CallForm` becomes llama.cpp's GBNF, or a structural tag of vLLM. The text
before a block is free: the grammar begins with the block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Literal, cast

from msgspec.structs import replace

from neuraxis.errors import ConfigError
from neuraxis.formatting import did_you_mean, nearest
from neuraxis.messages import CallForm, Prompt
from neuraxis.specs import Json

Kind = Literal["llama.cpp", "vllm"]
KINDS: tuple[Kind, ...] = ("llama.cpp", "vllm")

MOST_CALLS = 16
"""Maximum calls of one block: small models repeat for ever."""
_WORD = 1
"""llama.cpp's number for a trigger that is a word in the text."""
_JSON = r"""
ws ::= | " " | "\n" [ \t]{0,16}
string ::= "\"" char* "\""
char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?
boolean ::= "true" | "false"
null ::= "null"
array ::= "[" ws (value (ws "," ws value)*)? ws "]"
object ::= "{" ws (member (ws "," ws member)*)? ws "}"
member ::= string ws ":" ws value
value ::= object | array | string | number | boolean | null
expression ::= "\"{{" [^"\\\x00-\x1F]* "}}\""
address ::= "\"asset://" [^"\\\x00-\x1F]* "\""
name ::= "\"" [a-zA-Z_] [a-zA-Z0-9_]{0,40} "\""
"""
_PATTERNS = {"^\\{": "expression", "^as": "address", "^[a": "name"}
"""Rules of known patterns, by the pattern's beginning."""
_NAMED = ("string", "integer", "number", "boolean", "null", "array", "object")


def constraint(
    prompt: Prompt, choice: str | None, kind: Kind, *, parallel: bool | None = None
) -> dict[str, Json]:
    """Return the request fields that constrain the reply to the form.

    Args:
        prompt: has the form of its calls; without one nothing is constrained.
        choice: `tool_choice` of the options.
        kind: which server reads the fields.
        parallel: whether a reply may have several calls; if a tool is named, it may
            not.

    Raises:
        ConfigError: the choice names no tool.
    """
    if prompt.form is None or choice == "none":
        return {}
    names_tool = choice not in (None, "auto", "required")
    form = prompt.form(names_tool or parallel is False)
    if names_tool:
        if choice not in form.calls:
            hint = did_you_mean(nearest(choice, form.calls))
            raise ConfigError(f"tool_choice: there is no tool {choice!r}.{hint}")
        only = {choice: form.calls[choice]}
        form = replace(form, calls=only)
    if not form.calls:
        return {}
    must = choice not in (None, "auto")
    if kind == "llama.cpp":
        fields: dict[str, Json] = {"grammar": gbnf(form)}
        if not must:
            trigger = {"type": _WORD, "value": form.start}
            fields |= {"grammar_lazy": True, "grammar_triggers": [trigger]}
        return fields
    tag = {"begin": form.start, "schema": list_schema(form), "end": form.end}
    if must:
        # a reply of calls only needs no markers: it is decoded without them, too
        return {"structured_outputs": {"json": tag["schema"]}}
    tags = {"type": "structural_tag", "structures": [tag], "triggers": [form.start]}
    return {"response_format": tags}


def list_schema(form: CallForm) -> dict[str, Json]:
    """Return the JSON Schema of a list of calls."""
    item = {"anyOf": list(form.calls.values())}
    schema: dict[str, Json] = {"type": "array", "items": item, "minItems": 1}
    schema["maxItems"] = 1 if form.single else MOST_CALLS
    return {**schema, "$defs": form.definitions} if form.definitions else schema


def gbnf(form: CallForm) -> str:
    """Return the grammar of a block in llama.cpp's notation."""
    rules = _Rules()
    for name, node in form.definitions.items():
        rules.lines.append(f"{_rule_name(name)} ::= {rules.of(node)}")
    calls = rules.add(" | ".join(rules.of(call) for call in form.calls.values()))
    start, end = _text(form.start), _text(form.end)
    further_calls = "" if form.single else f'(ws "," ws {calls}){{0,{MOST_CALLS - 1}}} '
    root = f'root ::= {start} ws "[" ws {calls} {further_calls}ws "]" ws {end}'
    return "\n".join([root, *rules.lines]) + _JSON


class _Rules:
    """Collects grammar rules; equal ones once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._known: dict[str, str] = {}

    def add(self, body: str) -> str:
        """Return the name of the rule with that body."""
        if body not in self._known:
            self._known[body] = name = f"r{len(self._known)}"
            self.lines.append(f"{name} ::= {body}")
        return self._known[body]

    def of(self, node: Json) -> str:
        """Return the rule of a schema."""
        schema = cast("Mapping[str, Json]", node or {})
        if "$ref" in schema:
            return _rule_name(str(schema["$ref"]).removeprefix("#/$defs/"))
        if "enum" in schema:
            return self.add(" | ".join(_literal(value) for value in schema["enum"]))
        if "anyOf" in schema:
            return self.add(" | ".join(self.of(arm) for arm in schema["anyOf"]))
        if "pattern" in schema:
            return _PATTERNS[str(schema["pattern"])[:3]]
        if schema.get("properties"):
            return self.add(self._object(schema))
        if "items" in schema:
            item = self.of(schema["items"])
            return self.add(f'"[" ws ({item} (ws "," ws {item})*)? ws "]"')
        kind = schema.get("type")
        return kind if kind in _NAMED else "value"

    def _object(self, schema: Mapping[str, Json]) -> str:
        """Return the rule of an object: required members, then optional ones."""
        required: Sequence[str] = schema.get("required", ())
        must: list[str] = []
        optional: list[str] = []
        for name, node in schema["properties"].items():
            member = f'{_literal(name)} ws ":" ws {self.of(node)}'
            (must if name in required else optional).append(self.add(member))
        extra = schema.get("additionalProperties", True)
        rest = ""
        if extra is not False:
            member = "member" if extra is True else f'string ws ":" ws {self.of(extra)}'
            rest = self.add(f'(ws "," ws {member})*')
        # backwards: each optional member, and what may follow it
        tails = [rest]
        for name in reversed(optional):
            tails.append(self.add(f'(ws "," ws {name})? {tails[-1]}'.rstrip()))
        tails.reverse()
        if must:
            members = ' ws "," ws '.join(must) + f" {tails[0]}"
        else:
            firsts = zip(optional, tails[1:], strict=True)
            members = " | ".join(f"{name} {tail}" for name, tail in firsts)
            members = f"({members})?"
        return f'"{{" ws {members} ws "}}"'


def _rule_name(name: str) -> str:
    return "d-" + re.sub("[^a-zA-Z0-9]", lambda found: f"-{ord(found[0]):x}-", name)


def _literal(value: Json) -> str:
    """Return a JSON value as a literal of the grammar."""
    return _text(json.dumps(value, ensure_ascii=False))


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r") + '"'
