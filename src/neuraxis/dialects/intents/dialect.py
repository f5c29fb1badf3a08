"""Intent dialect: a flat JSON list of calls between markers (part C).

It writes plugins and results as text for the model, and reads the calls of a reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import cast

from neuraxis.call_errors import to_json
from neuraxis.dialects.cut_off import cut_reply, was_cut
from neuraxis.dialects.instruction_template import load_message_template
from neuraxis.dialects.intents.call_grammar import call_form
from neuraxis.dialects.intents.calls import END, START, ParameterNames, escape_key
from neuraxis.dialects.intents.prompt import prompt_text
from neuraxis.dialects.intents.signatures import form_text
from neuraxis.dialects.results import json_text, outcomes_text
from neuraxis.dialects.streaming import TextReader
from neuraxis.dialects.strict_first import read_answer, read_calls
from neuraxis.messages import (
    Call,
    CallError,
    CallForm,
    Completion,
    Message,
    Reply,
    Result,
)
from neuraxis.specs import Json, PluginSpec

RESULTS_START = "<!-- RESULTS_START -->"
RESULTS_END = "<!-- RESULTS_END -->"

_LINE_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_LABEL = re.compile(
    rf"(?:(?<=[{_LINE_BREAKS}])|\A)([ \t]*)(\\*)([qaQA][ \t]*:|# Evaluate this)"
)
_MARKER = re.compile(r"<(\\*)(?=!--\s*RE(?:SPONSE|SULTS)_)", re.IGNORECASE)


class Intents:
    """Dialect of `{"tool": …}` lists.

    Args:
        strict: exactly what the document says; else also what models write.
        template: the user's own instruction text with `{{ message }}` in it.
        parameter_names: the parameters of a tool, to distinguish them from the
            dialect's own keys.
        goes_on: whether a failed step leaves out only what depends on it.
    """

    name = "intents"

    def __init__(
        self,
        *,
        strict: bool = False,
        template: Path | None = None,
        parameter_names: ParameterNames | None = None,
        goes_on: bool = False,
    ) -> None:
        self._strict = strict
        self._goes_on = goes_on
        self._parameter_names = parameter_names
        self._tools: Collection[str] = ()
        self._head, self._tail = "", ("q: ", "\na: ")
        self._own = template is not None
        if template is not None:
            filled = load_message_template(template)
            # the line with the message is sent again in each turn
            line = filled.before.rfind("\n") + 1
            self._head = filled.before[:line]
            self._tail = (filled.before[line:], filled.after)
        # a stop sequence removes the end marker, which strict reading requires
        self.stop = () if strict else (END,)

    def prompt(
        self, plugins: Sequence[PluginSpec], tool_names: Mapping[str, tuple[str, str]]
    ) -> str:
        """Return the instruction text: format, tools, and passing of results."""
        self._tools = frozenset(tool_names)
        if self._own:
            return self._head
        return prompt_text(
            plugins, tool_names, strict=self._strict, goes_on=self._goes_on
        )

    def native_tools(
        self, plugins: Sequence[PluginSpec], tool_names: Mapping[str, tuple[str, str]]
    ) -> tuple[Mapping[str, Json], ...]:
        """Return nothing: the tools are in the prompt."""
        return ()

    def notation(self, schema: Mapping[str, Json]) -> str:
        """Return an object's schema in the format of parameter lines."""
        return form_text(schema)

    def form(
        self,
        plugins: Sequence[PluginSpec],
        tool_names: Mapping[str, tuple[str, str]],
        single: bool,
    ) -> CallForm:
        """Return the form of a block, for grammars."""
        return call_form(plugins, tool_names, START, END, single=single)

    def request(self, text: str) -> str:
        """Return the request as a question; it cannot forge the frame (C2)."""
        if not self._strict:
            if ":" in text or "#" in text:
                text = _LABEL.sub(r"\1\\\2\3", text)
            if "<" in text:
                text = _MARKER.sub(r"<\\\1", text)
        before, after = self._tail
        return f"{before}{text}{after}"

    def decode(self, completion: Completion, *, next_id: Callable[[], str]) -> Reply:
        """Decode a completion; if it was cut off, nothing runs (D10)."""
        text = completion.text
        if was_cut(completion):
            return cut_reply(text)
        calls = read_calls(text, START, END, next_id)
        if calls is not None:
            return Reply(calls=calls)
        answer = read_answer(text)
        if answer is not None:
            return Reply(texts=answer)
        # Imported on first use: its patterns take 14 ms, and most replies are flawless.
        from neuraxis.dialects.intents.decode import read_reply, read_strictly

        names = self._parameter_names
        if self._strict:
            return read_strictly(text, next_id=next_id, parameter_names=names)
        return read_reply(
            text, next_id=next_id, parameter_names=names, is_tool=self._is_tool
        )

    def _is_tool(self, name: str) -> bool:
        names = self._parameter_names
        return name in self._tools or bool(names is not None and names(name))

    def early(self) -> TextReader:
        """Return a reader for a streaming reply."""
        return TextReader(self._read_alone, start=START)

    def _read_alone(self, item: str) -> Reply:
        """Decode one intent of a list by itself."""
        completion = Completion(text=f"{START}\n[{item}]\n{END}")
        return self.decode(completion, next_id=str)

    def write(self, calls: Sequence[Call]) -> str:
        """Return the block that makes these calls."""
        items = [self._intent(call) for call in calls]
        return f"{START}\n{json_text(items, indent=2)}\n{END}"

    def _intent(self, call: Call) -> dict[str, Json]:
        intent: dict[str, Json] = {"tool": call.target}
        parameters = self._parameter_names(call.target) if self._parameter_names else ()
        if call.name is not None:
            intent["$as" if "as" in parameters else "as"] = call.name
        if call.literal:
            intent["$literal"] = True
        if call.for_each is not None:
            intent["$for_each"] = call.for_each
        if call.max_items is not None:
            intent["$max_items"] = call.max_items
        arguments: Json = call.arguments
        if isinstance(arguments, dict):
            for key, value in cast("dict[str, Json]", arguments).items():
                plain = key == "as" and key in parameters
                intent[key if plain else escape_key(key)] = value
        else:
            intent["$value"] = arguments
        return intent

    def encode(self, results: Sequence[Result]) -> str:
        """Return all results of a chain in one text (rule C25)."""
        return f"{RESULTS_START}\n{outcomes_text(results)}\n{RESULTS_END}"

    def answer(self, results: Sequence[Result]) -> tuple[Message, ...]:
        """Return one message with all results."""
        content = self.encode(results)
        return (Message(role="user", content=content, results=tuple(results)),)

    def correction(
        self, errors: Sequence[CallError], reply: Message
    ) -> tuple[Message, ...]:
        """Return one message with all mistakes."""
        content = _framed({"errors": [to_json(error) for error in errors]})
        return (Message(role="user", content=content),)


def _framed(body: Json) -> str:
    return f"{RESULTS_START}\n{json_text(body)}\n{RESULTS_END}"
