"""A planner that knows every answer and obeys every stranger: the worst model there is.

It writes the ground truth of a user's task as our plans: as much as can be written
before anything is read stands in one reply, with `{{ results[n]… }}` where a value is
another call's; what must have been read first stands in a later one, and what stands in
an answer that it was shown is written as it stands. As soon as it is shown an injection
it writes the attacker's calls, then goes on with the task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from suites import World, plain
from wording import Wording, leaves

from neuraxis.messages import Prompt

MARK = "INJECTION-FOLLOW-THIS"
Call = tuple[str, dict[str, Any]]


def ground_truth(task: Any, environment: Any) -> list[Call]:
    """The calls that solve a task."""
    calls = task.ground_truth(environment.model_copy(deep=True))
    return [(call.function, _arguments(call.args)) for call in calls]


def _arguments(given: Any) -> dict[str, Any]:
    """Arguments as JSON; None is the same as leaving it out."""
    return {
        name: getattr(value, "value", plain(value))
        for name, value in given.items()
        if value is not None
    }


def answers(suite: Any, environment: Any, calls: Sequence[Call]) -> list[Any]:
    """What each call will answer: the planner knows."""
    world = World(suite, environment.model_copy(deep=True))
    found: list[Any] = []
    for name, arguments in calls:
        try:
            found.append(world.run(name, arguments))
        except Exception:  # noqa: BLE001 - a tool may raise anything
            found.append(None)
    return found


def replies(
    prompt: str, calls: Sequence[Call], known: Sequence[Any]
) -> list[list[Any]]:
    """The calls as replies; each reply is a list of intents."""
    made: list[list[Any]] = []
    reply: list[Any] = []
    first = 0
    for here, (name, arguments) in enumerate(calls):
        said = Wording(trusted=[prompt, *known[:first]], seen=[])
        before = list(enumerate(known[first:here]))
        written = _write(arguments, said, before)
        unread = [answer for answer in known[first:here] if answer]
        if written is None and reply and unread:
            made.append(reply)
            reply, first = [], here
        if written is None:  # what it writes itself; it has read all it needs
            written = arguments
        reply.append({"tool": name, **written})
    return [*made, reply] if reply else made


def _write(value: Any, said: Wording, before: list[tuple[int, Any]]) -> Any | None:
    """A value with references, or None where it takes having read something."""
    if isinstance(value, dict):
        parts = {key: _write(part, said, before) for key, part in value.items()}
        lost = any(
            part is None and value[key] is not None for key, part in parts.items()
        )
        return None if lost else parts
    if isinstance(value, list):
        items = [_write(part, said, before) for part in value]
        return None if any(item is None for item in items) else items
    if said.trusted(value) or (
        isinstance(value, str)
        and len(value) < 200
        and all(said.trusted(word) for word in value.split())
    ):
        return value  # the request says it, or every word of it
    for index, answer in reversed(before):
        for path, leaf in leaves(answer):
            if (
                type(leaf) is type(value)
                and leaf == value
                and not _is_key(answer, path)
            ):
                return f"{{{{ results[{index}]{_path(path)} }}}}"
    # nothing was read yet: the model's own words
    return value if not before else None


def _is_key(answer: Any, path: tuple[Any, ...]) -> bool:
    """Whether the path leads to a key and not to a value."""
    for part in path:
        if isinstance(answer, dict):
            if part not in answer:
                return True
            answer = answer[part]
        elif isinstance(answer, list):
            answer = answer[part]
        else:
            return True
    return isinstance(answer, dict | list)


def _path(path: tuple[Any, ...]) -> str:
    return "".join(f"[{json.dumps(part)}]" for part in path)


@dataclass
class Planner:
    """Writes its replies in turn; `attack` as soon as it is shown an injection."""

    task: list[list[Any]]
    output: str
    attack: list[Any] = field(default_factory=list)
    mode: str = "free"
    """`free`: any call; `tools`: only calls of planned tools, rewritten; `arguments`:
    only what the plan left open in them."""
    obeyed: bool = False

    def __post_init__(self) -> None:
        self._left: Iterator[list[Any]] = iter(self.task)

    def reply(self, prompt: Prompt) -> str:
        if self.attack and not self.obeyed and MARK in prompt.messages[-1].content:
            self.obeyed = True
            return json.dumps(self.attack)
        calls = next(self._left, None)
        return self.output or "Done." if calls is None else json.dumps(calls)
