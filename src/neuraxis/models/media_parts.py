"""Replace pictures and files in a prompt with words, where needed.

A model without vision reads what there is, and how to pass it to commands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.errors import ModelError
from neuraxis.messages import Message, Part, Prompt

if TYPE_CHECKING:
    from neuraxis.models import Model

PARTS_BYTES = 15_000_000
"""Maximum bytes of pictures and files in a prompt; the oldest become words."""
_PARTS = attrgetter("parts")


def sees(model: Model) -> bool:
    """Return whether a model accepts pictures and files."""
    return bool(getattr(model, "sees", False))


def as_seen_by(model: Model, prompt: Prompt) -> Prompt:
    """Return the prompt in a form that the model accepts."""
    return prompt if sees(model) else with_shown(prompt, lambda part: False)


def with_shown(prompt: Prompt, is_seen: Callable[[Part], bool]) -> Prompt:
    """Return the prompt with words instead of parts that are not sent."""
    if not any(map(_PARTS, prompt.messages)):
        return prompt
    messages: list[Message] = []
    room = PARTS_BYTES
    for message in reversed(prompt.messages):
        shown: list[Part] = []
        for part in message.parts:
            is_there = bool(part.data or not part.about)
            if is_there and len(part.data) <= room and is_seen(part):
                room -= len(part.data)
                shown.append(part)
        messages += reversed([*_with_words(message, tuple(shown))])
    return replace(prompt, messages=tuple(reversed(messages)))


def _with_words(message: Message, shown: tuple[Part, ...]) -> Iterator[Message]:
    if not message.parts:
        yield message
        return
    words = [
        call_errors.only_words(part) for part in message.parts if part not in shown
    ]
    if assets := [part.asset for part in shown if part.asset]:
        words.append(call_errors.shown_here(assets))
    if message.role == "tool":  # servers accept only text there
        yield replace(message, parts=())
        yield Message(role="user", content="\n".join(words), parts=shown)
    else:
        content = "\n\n".join(filter(None, [message.content, *words]))
        yield replace(message, content=content, parts=shown)


def refused_parts(prompt: Prompt, error: ModelError) -> list[Part]:
    """Return the pictures and files that a refusal means."""
    parts = [part for message in prompt.messages for part in message.parts]
    text = str(error)
    if error.status in (401, 403, 429):
        return []
    files = [part for part in parts if not part.media_type.startswith("image/")]
    if files and re.search(r"(?i)\bpdf\b|document|\bfiles?\b|input_file", text):
        return files
    about_parts = re.search(
        r"(?i)image|picture|vision|visual|multi-?modal|modalit|mmproj|media.?type"
        r"|content.{0,80}string|string.{0,40}content|expected.{0,20}\b(?:str|text)",
        text,
    )
    return parts if error.status == 413 or about_parts else []
