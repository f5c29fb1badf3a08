"""An earlier session's events flow in, its conversation flows out, to go on with it.

A call that was started and never finished is told as unknown (decision 8, rule D14):
it is not run again, and the model is asked to look before it repeats it.
"""

from __future__ import annotations

from collections.abc import Sequence

from neuraxis import sentences
from neuraxis.dialects import Dialect
from neuraxis.events import (
    AssetStored,
    CallFinished,
    CallStarted,
    Event,
    MessageSent,
    ModelFinished,
    Unknown,
)
from neuraxis.later import dataclass
from neuraxis.messages import Call, Message, Result
from neuraxis.specs import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What is left of an earlier session."""

    messages: tuple[Message, ...] = ()
    calls: int = 0
    """How many calls it numbered."""
    values: tuple[tuple[str, str, Json], ...] = ()
    """(call id, command, answer) of what was said inline: can be referred to again."""
    assets: tuple[AssetStored, ...] = ()


def history_of(events: Sequence[Event | Unknown], dialect: Dialect) -> Past:
    """The conversation that these events recorded."""
    messages: list[Message] = []
    values: dict[str, tuple[str, str, Json]] = {}
    running: dict[str, CallStarted] = {}
    assets: list[AssetStored] = []
    highest = 0
    for event in events:
        match event:
            case MessageSent(sender="user"):
                if running:
                    messages += _unknown(running, dialect)
                text = dialect.request(event.content)
                messages.append(Message(role="user", content=text))
            case MessageSent(sender="system", receiver="model"):
                messages.append(Message(role="user", content=event.content))
            case ModelFinished():
                messages.append(Message(role="assistant", content=event.text))
            case CallStarted() if not event.part_of:
                running[event.id] = event
                highest = max(highest, _number(event.id))
            case CallFinished():
                running.pop(event.id, None)
                highest = max(highest, _number(event.id))
                values.pop(event.id, None)  # the last one counts
                if event.status == "skipped":
                    assets = [asset for asset in assets if asset.id != event.id]
                elif event.asset is None and not event.part_of:
                    values[event.id] = (event.id, event.command, event.value)
            case AssetStored():
                assets.append(event)
                highest = max(highest, _number(event.id))  # what a person attached
            case _:
                pass
    if running:
        messages += _unknown(running, dialect)
    return Past(
        messages=tuple(messages),
        calls=highest,
        values=tuple(values.values()),
        assets=tuple(assets),
    )


def _number(call_id: str) -> int:
    digits = call_id[1:]
    return int(digits) if digits.isdecimal() else 0


def _unknown(running: dict[str, CallStarted], dialect: Dialect) -> list[Message]:
    """One message that tells what was cut off; empties `running`."""
    results = [
        Result(
            call=Call(id=event.id, plugin=None, command=event.tool),
            status="failed",
            plugin=event.plugin,
            command=event.command,
            error=sentences.outcome_unknown(event.tool),
        )
        for event in running.values()
    ]
    running.clear()
    return [
        Message(role="user", content=message.content)
        for message in dialect.answer(results)
    ]
