"""Native dialect: tool calls as OpenAI-compatible servers pass them.

It writes plugins as tool definitions and results as tool messages, and reads tool
calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from neuraxis.call_errors import malformed_reply, to_json
from neuraxis.dialects.cut_off import cut_reply, was_cut
from neuraxis.dialects.instruction_template import Template, load_plugins_template
from neuraxis.dialects.intents.signatures import form_text
from neuraxis.dialects.native.tool_schema import for_server, prompt_text
from neuraxis.dialects.results import json_text, outcome
from neuraxis.dialects.streaming import DeltaReader
from neuraxis.formatting import quote, sha256
from neuraxis.messages import (
    Call,
    CallError,
    Completion,
    Message,
    NativeCall,
    Reply,
    Result,
)
from neuraxis.parsing.json_errors import Fault, call_error
from neuraxis.parsing.json_scan import Value, loads, read_at
from neuraxis.specs import CommandSpec, Json, PluginSpec

VALUE = "value"
"""Only parameter of a tool whose command has a scalar parameter (K3)."""

_ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]+")
_NAMESPACE = re.compile(r"\A(?:functions|default_api)[.:]")
"""What models put before a tool's name: it is the namespace of their training."""
_SUFFIX = re.compile(r":[0-9]{1,9}\Z")
"""What they put behind it: the number of the call."""
_SPECIAL = "<|"
"""Beginning of a special token, which a server's parser left in the name."""


def safe_name(tool: str) -> str:
    """Return a unique name that servers accept for the tool."""
    if _ALLOWED.fullmatch(tool):
        return tool
    digest = sha256(tool.encode(errors="replace"))[:8]
    return f"{_NOT_ALLOWED.sub('_', tool)[:55]}_{digest}"


class Native:
    """Dialect of tool calls beside the text.

    It stores each tool's name for the server and each call's server id: an answer
    must have the server's id.

    Args:
        strict: arguments must be valid JSON, and calls in the text are text.
        template: the user's own instruction text; `{plugins}` in it is optional.
        goes_on: whether a failed step leaves out only what depends on it.
    """

    name = "native"
    stop: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        strict: bool = False,
        template: Path | None = None,
        goes_on: bool = False,
    ) -> None:
        self._strict = strict
        self._goes_on = goes_on
        self._template: Template | None = (
            None if template is None else load_plugins_template(template)
        )
        self._tools: dict[str, str] = {}
        self._plain: set[str] = set()
        self._parameters: dict[str, Collection[str]] = {}
        self._ids: dict[str, str] = {}
        self._spaces: set[str] = set()  # plugins: theirs is no model's namespace

    def prompt(
        self, plugins: Sequence[PluginSpec], tool_names: Mapping[str, tuple[str, str]]
    ) -> str:
        """Return the instruction text; the tools are sent beside it."""
        text = prompt_text(plugins, goes_on=self._goes_on)
        return text if self._template is None else self._template.fill(text)

    def native_tools(
        self, plugins: Sequence[PluginSpec], tool_names: Mapping[str, tuple[str, str]]
    ) -> tuple[Mapping[str, Json], ...]:
        """Return the definition of each command, and remember their names."""
        names = {target: tool for tool, target in tool_names.items()}
        self._spaces.update(plugin.name.casefold() for plugin in plugins)
        return tuple(
            self._definition(
                names.get((plugin.name, command.name))
                or f"{plugin.name}.{command.name}",
                command,
            )
            for plugin in plugins
            for command in plugin.commands
        )

    def _definition(self, tool: str, command: CommandSpec) -> Mapping[str, Json]:
        name = safe_name(tool)
        self._tools[name] = tool
        self._parameters[name] = self._parameters[tool] = command.parameter_names
        parameters = for_server(command.parameters)
        if parameters.get("type") != "object":
            self._plain.add(tool)
            parameters = {
                "type": "object",
                "properties": {VALUE: parameters},
                "required": [VALUE],
                "additionalProperties": False,
            }
        function: dict[str, Json] = {"name": name}
        if command.description:
            function["description"] = " ".join(command.description.split())
        return {"type": "function", "function": {**function, "parameters": parameters}}

    def notation(self, schema: Mapping[str, Json]) -> str:
        """Return an object's schema in the format of parameter lines."""
        return form_text(schema)

    def request(self, text: str) -> str:
        """Return the user's request unchanged."""
        return text

    def decode(self, completion: Completion, *, next_id: Callable[[], str]) -> Reply:
        """Decode a completion; if it was cut off, nothing runs (D10)."""
        if was_cut(completion):
            return cut_reply(completion.text)
        if self._strict:
            answer = completion.text.strip()
            reply = Reply(texts=(answer,) if answer else ())
        else:
            reply = self._read_text(completion, next_id)
        if not completion.tool_calls:
            return reply
        return self._read_calls(completion.tool_calls, reply, next_id)

    def early(self) -> DeltaReader:
        """Return a reader for the tool calls of a streaming reply."""
        return DeltaReader(self._read_alone)

    def _read_alone(self, native: NativeCall) -> Call | None:
        arguments = self._arguments(native, {})
        if isinstance(arguments, CallError):
            return None
        return self._own(Call(id="", plugin=None, command=""), native.name, arguments)

    def _read_text(self, completion: Completion, next_id: Callable[[], str]) -> Reply:
        """Decode the text, with calls that the server left in it."""
        # imported on first use: compiling its patterns would delay each session's start
        from neuraxis.dialects.intents.decode import read_reply

        has_native_calls = bool(completion.tool_calls)
        read = read_reply(
            completion.text,
            next_id=(lambda: "") if has_native_calls else next_id,
            parameter_names=lambda tool: self._parameters.get(tool, ()),
            is_tool=self._is_tool,
            first_only=False,
        )
        if not read.calls:
            return replace(read, errors=(), notes=()) if has_native_calls else read
        if has_native_calls:
            left = tuple(call.command for call in read.calls)
            notes = ("calls written as text, not read",)
            return replace(read, calls=(), errors=(), notes=notes, left=left)
        calls = tuple(
            self._own(call, call.command, call.arguments) for call in read.calls
        )
        return replace(read, calls=calls, notes=(*read.notes, "calls written as text"))

    def _is_tool(self, name: str) -> bool:
        return name in self._parameters

    def _read_calls(
        self,
        native_calls: Sequence[NativeCall],
        reply: Reply,
        next_id: Callable[[], str],
    ) -> Reply:
        notes: dict[str, None] = dict.fromkeys(reply.notes)
        errors: list[CallError] = []
        read: list[tuple[NativeCall, Json]] = []
        for native in native_calls:
            arguments = self._arguments(native, notes)
            if isinstance(arguments, CallError):
                errors.append(arguments)
            else:
                read.append((native, arguments))
        if errors:
            return Reply(
                thoughts=reply.thoughts, errors=tuple(errors), notes=tuple(notes)
            )
        calls: list[Call] = []
        for native, arguments in read:
            empty = Call(id=next_id(), plugin=None, command="")
            call = self._own(empty, native.name, arguments)
            self._ids[call.id] = native.id
            if call.command != self._as_named(native.name):
                notes["name of a call corrected"] = None
            calls.append(call)
        return replace(reply, calls=tuple(calls), notes=tuple(notes))

    def _own(self, call: Call, name: str, arguments: Json) -> Call:
        """Return the call with the tool's own name and unwrapped value."""
        tool = self._tool(name)
        if tool in self._plain and isinstance(arguments, dict):
            entries = cast("dict[str, Json]", arguments)
            if set(entries) == {VALUE}:
                arguments = entries[VALUE]
        return replace(call, command=tool, arguments=arguments)

    def _as_named(self, name: str) -> str:
        """Return the tool of that name, which may be the server's."""
        return self._tools.get(name.strip(), name.strip())

    def _tool(self, name: str) -> str:
        """Return the tool of a name, without what servers leave around it.

        The name itself is never corrected (rule A16): not its case, nor its letters.
        """
        tool = self._as_named(name)
        if self._strict or tool in self._parameters:
            return tool
        bare = _SUFFIX.sub("", name.partition(_SPECIAL)[0].strip())
        space = _NAMESPACE.match(bare)
        if space and space[0][:-1].casefold() not in self._spaces:
            bare = bare[space.end() :]
        meant = self._as_named(bare)
        return meant if meant in self._parameters else tool

    def _arguments(
        self, native: NativeCall, notes: dict[str, None]
    ) -> Json | CallError:
        """Return the arguments; malformed ones are never replaced by `{}`."""
        text = native.arguments.strip()
        if not text and not self._strict:
            notes["empty arguments"] = None
            return {}
        read = loads(text) if self._strict else read_at(text, 0)
        if isinstance(read, Fault):
            return self._refused(native, read)
        if text[read.end :].strip():
            fault = f"arguments of {native.name}: expected one JSON object."
            return malformed_reply(fault, native.name)
        notes.update(dict.fromkeys(read.notes))
        value: Json = read.value
        if isinstance(value, str) and not self._strict:
            inner = loads(value)
            if isinstance(inner, Value):
                notes["arguments written as a text in a text"] = None
                value = inner.value
        if value is None and not self._strict:  # Llama, of a tool without parameters
            notes["empty arguments"] = None
            return {}
        if not isinstance(value, dict):
            return malformed_reply(
                f"arguments of {native.name}: expected a JSON object, got "
                f"{quote(value)}.",
                native.name,
            )
        return cast("dict[str, Json]", value)

    def _refused(self, native: NativeCall, fault: Fault) -> CallError:
        error = call_error(fault)
        return replace(
            error,
            where=native.name,
            message=f"Arguments of {native.name}: {error.message}",
        )

    def native_calls(self, calls: Sequence[Call]) -> tuple[NativeCall, ...]:
        """Return the tool calls that a server would pass for these calls."""
        return tuple(
            NativeCall(
                id=self._ids.get(call.id, call.id),
                name=safe_name(call.target),
                arguments=json_text(self._wrapped(call)),
            )
            for call in calls
        )

    def _wrapped(self, call: Call) -> Json:
        arguments: Json = call.arguments
        if call.target in self._plain or not isinstance(arguments, dict):
            return {VALUE: arguments}
        return cast("dict[str, Json]", arguments)

    def write(self, calls: Sequence[Call]) -> str:
        """Return the calls as text, for servers that leave them in it."""
        return "\n".join(
            "<tool_call>\n"
            + json_text(
                {"name": safe_name(call.target), "arguments": self._wrapped(call)}
            )
            + "\n</tool_call>"
            for call in calls
        )

    def encode(self, results: Sequence[Result]) -> str:
        """Return all results in one text, where tool messages are impossible."""
        return json_text(
            {"results": [outcome(item, step) for step, item in enumerate(results, 1)]}
        )

    def answer(self, results: Sequence[Result]) -> tuple[Message, ...]:
        """Return a tool message per result; without ids, one user message."""
        messages: list[Message] = []
        without_id: list[Result] = []
        for step, result in enumerate(results, 1):
            native_id = self._ids.get(result.call.id)
            if native_id is None:
                without_id.append(result)
                continue
            content = json_text(outcome(result, step))
            messages.append(
                Message(
                    role="tool",
                    content=content,
                    results=(result,),
                    tool_call_id=native_id,
                )
            )
        if without_id:
            content = self.encode(without_id)
            messages.append(
                Message(role="user", content=content, results=tuple(without_id))
            )
        return tuple(messages)

    def correction(
        self, errors: Sequence[CallError], reply: Message
    ) -> tuple[Message, ...]:
        """Return the mistakes under each of the reply's calls: servers require that."""
        content = json_text({"errors": [to_json(error) for error in errors]})
        if not reply.tool_calls:
            return (Message(role="user", content=content),)
        return tuple(
            Message(role="tool", content=content, tool_call_id=call.id)
            for call in reply.tool_calls
        )
