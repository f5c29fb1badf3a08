"""Envelope dialects, protocols v1 and v2: calls and results as messages.

It writes plugins and results as text for the model, and reads the calls of a reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from neuraxis.call_errors import to_json
from neuraxis.dialects.cut_off import cut_reply, was_cut
from neuraxis.dialects.envelope.prompt import (
    Generation,
    node_text,
    plugins_text,
    prompt_frame,
)
from neuraxis.dialects.instruction_template import Template, load_plugins_template
from neuraxis.dialects.results import json_for_model, json_text
from neuraxis.dialects.streaming import TextReader
from neuraxis.messages import Call, CallError, Completion, Message, Reply, Result
from neuraxis.references.asset_ref import AssetRef, format_object
from neuraxis.specs import Json, PluginSpec

_PLUGIN_ERRORS = (
    "failed",
    "timeout",
    "cancelled",
    "outcome_unknown",
    "plugin_contract_error",
)
"""Errors of a started command, whose sender is its plugin (D8)."""


class Envelope:
    """Dialect of messages to plugins.

    Args:
        name: which of the two protocols.
        strict: exactly what the document says; else also what models write.
        template: the user's own instruction text with `{plugins}` in it.
        goes_on: whether a failed step leaves out only what depends on it.
    """

    stop: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        name: Literal["envelope_v1", "envelope_v2"] = "envelope_v2",
        strict: bool = False,
        template: Path | None = None,
        goes_on: bool = False,
    ) -> None:
        self.name = name
        self._generation: Generation = "v1" if name == "envelope_v1" else "v2"
        self._strict = strict
        self._goes_on = goes_on
        self._commands: frozenset[str] = frozenset()
        self._template: Template | None = (
            None if template is None else load_plugins_template(template)
        )

    def prompt(
        self, plugins: Sequence[PluginSpec], tool_names: Mapping[str, tuple[str, str]]
    ) -> str:
        """Return the instruction text with the plugins filled in (rule A1)."""
        self._commands = frozenset(
            name
            for plugin, command in tool_names.values()
            for name in (command, f"{plugin}.{command}")
        ).union(tool_names)
        frame = self._template or prompt_frame(self._generation, goes_on=self._goes_on)
        return frame.fill(
            plugins_text(plugins, generation=self._generation, strict=self._strict)
        )

    def native_tools(
        self, plugins: Sequence[PluginSpec], tool_names: Mapping[str, tuple[str, str]]
    ) -> tuple[Mapping[str, Json], ...]:
        """Return nothing: the plugins are in the prompt."""
        return ()

    def notation(self, schema: Mapping[str, Json]) -> str:
        """Return an object's schema as the node of a manifest."""
        return node_text(schema)

    def request(self, text: str) -> str:
        """Return the user's request as a message to the model."""
        return self._text(
            {
                "sender": {"role": "user"},
                "receiver": {"role": "cerebrum"},
                "content_type": "text/plain",
                "content": text,
            }
        )

    def decode(self, completion: Completion, *, next_id: Callable[[], str]) -> Reply:
        """Decode a completion; if it was cut off, nothing runs (D10)."""
        if was_cut(completion):
            return cut_reply(completion.text)
        # imported on first use: compiling its patterns would delay each session's start
        from neuraxis.dialects.envelope.decode import read_reply, read_strictly

        text, generation = completion.text, self._generation
        if self._strict:
            return read_strictly(text, generation=generation, next_id=next_id)
        return read_reply(
            text,
            generation=generation,
            next_id=next_id,
            is_tool=self._commands.__contains__,
        )

    def early(self) -> TextReader:
        """Return a reader for a streaming reply."""
        return TextReader(
            lambda message: self.decode(Completion(text=message), next_id=str)
        )

    def write(self, calls: Sequence[Call]) -> str:
        """Return one message, or a list of them."""
        return self._joined([self._call(call) for call in calls])

    def _call(self, call: Call) -> dict[str, Json]:
        plugin, command = call.plugin, call.command
        if plugin is None:
            plugin, _, command = command.rpartition(".")
        message: dict[str, Json] = {"receiver": {"role": "plugin", "name": plugin}}
        if self._generation == "v2":
            message["content_type"] = "command"
        param: Json = call.arguments
        if self._generation == "v1" and not isinstance(param, dict):
            param = {"value": param}  # v1 has objects only (rule K3)
        message["content"] = {"command": command, "param": param}
        if call.name is not None:
            message["as"] = call.name
        if call.literal:
            message["$literal"] = True
        if call.for_each is not None:
            message["$for_each"] = call.for_each
        if call.max_items is not None:
            message["$max_items"] = call.max_items
        return message

    def encode(self, results: Sequence[Result]) -> str:
        """Return the results in the calls' order (B20-B26, B51-B54, D8)."""
        return self._joined([self._answer(result) for result in results])

    def answer(self, results: Sequence[Result]) -> tuple[Message, ...]:
        """Return one message with all results."""
        content = self.encode(results)
        return (Message(role="user", content=content, results=tuple(results)),)

    def correction(
        self, errors: Sequence[CallError], reply: Message
    ) -> tuple[Message, ...]:
        """Return one message with all mistakes; its sender is the system."""
        content = self._joined([_error(error, None, {}) for error in errors])
        return (Message(role="user", content=content),)

    def _answer(self, result: Result) -> dict[str, Json]:
        plugin, command = _names(result)
        if result.error is not None:
            sender = plugin if result.error.code in _PLUGIN_ERRORS else None
            extra: dict[str, Json] = {"command": command}
            if result.value is not None and not result.stored:
                extra["response"] = self._result_json(result)
            return self._with_id(_error(result.error, sender, extra), result)
        message: dict[str, Json] = {
            "sender": {"role": "plugin", "name": plugin},
            "receiver": {"role": "cerebrum"},
        }
        if result.stored:
            message["content_type"] = "asset_ref"
            message["content"] = format_object(AssetRef(asset_id=result.call.id))
        else:
            message["content_type"] = "command"
            message["content"] = {
                "command": command,
                "response": self._result_json(result),
            }
        if result.warnings and not self._strict:
            message["warnings"] = list(result.warnings)
        return message if result.stored else self._with_id(message, result)

    def _with_id(self, message: dict[str, Json], result: Result) -> dict[str, Json]:
        # rule B26: never in the receiver; the strict profile omits it
        return message if self._strict else {**message, "id": result.call.id}

    def _result_json(self, result: Result) -> Json:
        return json_for_model(result.value, result.call.id, whole=self._strict)

    def _joined(self, messages: Sequence[dict[str, Json]]) -> str:
        joined = list(messages)
        return self._text(joined[0] if len(joined) == 1 else joined)

    def _text(self, value: Json) -> str:
        if self._strict:
            text = json.dumps(value, ensure_ascii=False, indent=2)
            return text.encode(errors="replace").decode()
        return json_text(value, indent=2)


def _names(result: Result) -> tuple[str, str]:
    """Return the plugin and command that the call named (rules B21, B24)."""
    plugin = result.call.plugin or result.plugin or ""
    command = result.call.command if result.call.plugin else result.command
    return plugin, command or result.call.command


def _error(
    error: CallError, plugin: str | None, extra: Mapping[str, Json]
) -> dict[str, Json]:
    sender: dict[str, Json] = (
        {"role": "plugin", "name": plugin} if plugin else {"role": "system"}
    )
    fields = to_json(error)
    content = {"error": fields.pop("code"), "detail": fields.pop("message")}
    return {
        "sender": sender,
        "receiver": {"role": "cerebrum"},
        "content_type": "error",
        "content": {**content, **extra, **fields},
    }
