"""What the conformance tests share: conversations through a whole session, plugins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuraxis import Answer, Event, Session
from neuraxis.dialects import Dialect, find_dialect
from neuraxis.dialects.native.dialect import safe_name
from neuraxis.events import MessageSent, PlanChecked
from neuraxis.messages import Call, Completion, Reply, Result
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings
from wire_cases import counter

DIALECTS = ("intents", "envelope_v1", "envelope_v2", "native")
ENVELOPES = ("envelope_v1", "envelope_v2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """One finished conversation."""

    answer: Answer
    model: ScriptedModel
    events: tuple[Event, ...]
    session: Session

    @property
    def told(self) -> list[str]:
        """What the runtime told the model, in order, without the asset list."""
        return [
            event.content
            for event in self.events
            if isinstance(event, MessageSent) and event.sender == "system"
        ]

    @property
    def codes(self) -> list[str]:
        """Codes of all that was refused before it ran."""
        return [
            problem["code"]
            for event in self.events
            if isinstance(event, PlanChecked)
            for problem in event.problems
        ]

    @property
    def values(self) -> list[Any]:
        """What the commands returned."""
        return [result.value for result in self.answer.calls]

    @property
    def errors(self) -> list[str]:
        """Codes of the calls that did not work."""
        return [
            result.error.code
            for result in self.answer.calls
            if result.error is not None
        ]


def talk(
    replies: Sequence[Any],
    plugins: Iterable[Any],
    dialect: str = "envelope_v2",
    **options: Any,
) -> Talk:
    """A conversation: the model says `replies`, in order."""
    model = ScriptedModel(list(replies))
    events: list[Event] = []
    with Session(
        model=model,
        plugins=plugins,
        dialect=dialect,
        settings=Settings(),
        **options,
    ) as session:
        answer = session.run_sync("go", events.append)
    return Talk(answer=answer, model=model, events=tuple(events), session=session)


def message(
    plugin: str, command: str, param: Any = None, *, v1: bool = False, **more: Any
) -> dict[str, Any]:
    """A call of the envelope dialects, as data."""
    content: dict[str, Any] = {"command": command}
    if param is not None:
        content["param"] = param
    typed: dict[str, Any] = {} if v1 else {"content_type": "command"}
    receiver = {"role": "plugin", "name": plugin}
    return {"receiver": receiver, **typed, "content": content, **more}


def call_text(*args: Any, **named: Any) -> str:
    """A call of the envelope dialects, as a model writes it."""
    return json.dumps(message(*args, **named))


def block(*intents: dict[str, Any]) -> str:
    """A reply of the intent dialect."""
    return f"<!-- RESPONSE_START -->\n{json.dumps(intents)}\n<!-- RESPONSE_END -->"


def reply_in(dialect: str, calls: Sequence[Call], tools: dict[tuple[str, str], str]):
    """What a model says in a dialect to make these calls (with plugin and command)."""
    if dialect in ENVELOPES:
        return find_dialect(dialect).write(calls)
    plain = [
        Call(
            id=call.id,
            plugin=None,
            command=tools[call.plugin or "", call.command],
            arguments=call.arguments,
        )
        for call in calls
    ]
    if dialect == "intents":
        return find_dialect(dialect).write(plain)
    return {
        "tool_calls": [
            {
                "id": f"call_{call.id}",
                "name": safe_name(call.command),
                "arguments": json.dumps(call.arguments),
            }
            for call in plain
        ],
        "finish_reason": "tool_calls",
    }


def read(dialect: str | Dialect, text: str, *, strict: bool = False) -> Reply:
    """A reply, decoded."""
    reader = (
        find_dialect(dialect, strict=strict) if isinstance(dialect, str) else dialect
    )
    return reader.decode(Completion(text=text), next_id=counter())


def codes(reply: Reply) -> list[str]:
    """The codes of a reply's errors."""
    return [error.code for error in reply.errors]


def folder(base: Path, name: str, manifest: str, code: str = "") -> Path:
    """A plugin folder."""
    made = base / name
    made.mkdir(parents=True)
    (made / "config.yaml").write_text(manifest, encoding="utf-8")
    if code:
        (made / "plugin.py").write_text(code, encoding="utf-8")
    return made


def done(value: Any, *, plugin: str = "web", command: str = "search") -> Result:
    """A result, as the runtime makes it."""
    call = Call(id="a1", plugin=plugin, command=command)
    return Result(call=call, status="done", plugin=plugin, command=command, value=value)
