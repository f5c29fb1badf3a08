"""The journal's vocabulary: one frozen struct for each thing that happens.

The runtime appends them, the terminal, the page and resuming read them. An event is
written as JSON by `to_json` and read again by `from_json`, also years later: a field
may be added with a default, never renamed; `VERSION` counts the exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct, field

from neuraxis.specs import Json

VERSION = 1


class SessionStarted(Struct, frozen=True, kw_only=True):
    """A session began, or was opened again (`resumed`)."""

    session: str
    model: str
    dialect: str
    plugins: tuple[str, ...] = ()
    workspace: str = ""
    resumed: bool = False
    origins: tuple[Json, ...] = ()
    """Inside of a command: what its request, and what it remembers, is made of."""


class MessageSent(Struct, frozen=True, kw_only=True):
    """Something was said: by the person, to the person, or to the model."""

    sender: Literal["user", "model", "system"]
    receiver: Literal["user", "model"]
    content: str


class ModelStarted(Struct, frozen=True, kw_only=True):
    """The model was asked for the `turn`-th time in this run."""

    turn: int
    model: str


class ModelChunk(Struct, frozen=True, kw_only=True):
    """A piece of what the model writes. Never stored."""

    text: str
    reasoning: str = ""


class ModelFinished(Struct, frozen=True, kw_only=True):
    """The model's whole completion."""

    text: str
    finish_reason: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    tool_calls: tuple[Json, ...] = ()
    """Native tool calls: {id, name, arguments} with the arguments as text."""
    notes: tuple[str, ...] = ()
    carried: str = ""
    """What the server wants back with this turn: opaque JSON of the model's adapter."""
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    annotations: tuple[Json, ...] = ()
    """Citations and sources of the text, each as the server writes it."""
    model: str = ""
    """Name of the model that answered, where it is not the one that was asked."""
    usd: float | None = None
    """Price of the reply in US dollars; None: it is not known."""


class PlanChecked(Struct, frozen=True, kw_only=True):
    """A reply was read and its calls checked, before anything ran."""

    steps: tuple[Json, ...]
    """Each {id, tool, arguments, name?, depends: [id], for_each?}."""
    problems: tuple[Json, ...] = ()
    """Each a CallError as JSON; not empty: nothing ran."""
    notes: tuple[str, ...] = ()


class CallStarted(Struct, frozen=True, kw_only=True):
    """A command is about to run. Stored before it runs (decision 8)."""

    id: str
    plugin: str
    command: str
    tool: str
    arguments: Json
    """As the model wrote them, references unresolved."""
    effects: str = "once"
    shown: Json = None
    """A short form of the resolved arguments, for people."""
    origins: tuple[Json, ...] = ()
    """Where its answer will have come from: {source, open_world, private}."""
    part_of: str = ""
    """The id of the step with `for_each` that this call does one item of."""


class CallProgress(Struct, frozen=True, kw_only=True):
    """A running command says how far it is. Never stored."""

    id: str
    message: str
    fraction: float | None = None


class CallFinished(Struct, frozen=True, kw_only=True):
    """A command ended, was skipped, or its outcome is unknown.

    The last one of an id counts: a failed call may be tried again, and a read-only
    step that ran early is skipped where a step before it fails.
    """

    id: str
    plugin: str
    command: str
    tool: str
    status: Literal["done", "failed", "skipped"]
    value: Json = None
    """The answer where it can be said, else null and `asset` is set."""
    asset: str | None = None
    error: Json = None
    """{code, message, …} of the CallError."""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    wrote: tuple[str, ...] = ()
    """Files of the workspace that it wrote, relative to it."""
    part_of: str = ""
    """The id of the step with `for_each` that this call does one item of."""


class AssetStored(Struct, frozen=True, kw_only=True):
    """An object was kept under a short id."""

    id: str
    kind: str
    """The object's class."""
    meta: Json = None
    bytes: int = 0


class ApprovalAsked(Struct, frozen=True, kw_only=True):
    """A person is asked whether a call may run, or a plan: then `call` names none."""

    id: str
    call: Json
    reason: str
    digest: str = ""
    """Of the exact call; the answer is for no other."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where each argument came from, in words."""
    plan: tuple[Json, ...] = ()
    """Every call of the plan in its order, as `call`, with its `id`, `origins`, the
    `reason` it is asked about for, or `later`: why it will be asked about by itself."""
    inside: tuple[str, ...] = ()
    """The tools that hold the session which asks, the outermost first."""


class ApprovalAnswered(Struct, frozen=True, kw_only=True):
    """The person's answer, or that none came."""

    id: str
    allowed: bool
    by: str = "user"
    digest: str = ""


class BudgetReached(Struct, frozen=True, kw_only=True):
    """A limit of the run was reached."""

    what: str
    limit: float
    used: float


class SessionFinished(Struct, frozen=True, kw_only=True):
    """One run of the session ended."""

    outcome: Literal["answered", "failed", "cancelled", "budget"]
    text: str = ""
    error: str = ""
    seconds: float = 0.0
    files: tuple[str, ...] = ()
    """Paths in the workspace that the run's commands wrote, relative to it."""


class Inside(Struct, frozen=True, kw_only=True):
    """What happened in a session that a command made (`Session(within=context)`)."""

    id: str
    """The command's call."""
    session: str
    event: Mapping[str, Json]
    """As `to_json` writes it; of a session inside of that one, again an `inside`."""


Event = (
    SessionStarted
    | MessageSent
    | ModelStarted
    | ModelChunk
    | ModelFinished
    | PlanChecked
    | CallStarted
    | CallProgress
    | CallFinished
    | AssetStored
    | ApprovalAsked
    | ApprovalAnswered
    | BudgetReached
    | Inside
    | SessionFinished
)

NAMES: Mapping[str, type[Any]] = {
    "session_started": SessionStarted,
    "message": MessageSent,
    "model_started": ModelStarted,
    "model_chunk": ModelChunk,
    "model_finished": ModelFinished,
    "plan_checked": PlanChecked,
    "call_started": CallStarted,
    "call_progress": CallProgress,
    "call_finished": CallFinished,
    "asset_stored": AssetStored,
    "approval_asked": ApprovalAsked,
    "approval_answered": ApprovalAnswered,
    "budget": BudgetReached,
    "inside": Inside,
    "session_finished": SessionFinished,
}
"""Wire name -> class, as design.md lists them."""

TYPES: Mapping[type[Any], str] = {cls: name for name, cls in NAMES.items()}

NOT_STORED = (ModelChunk, CallProgress)
"""Events that readers see live and the journal leaves out."""


class Unknown(Struct, frozen=True, kw_only=True):
    """An event of a later version: kept as it was read."""

    type: str
    data: Mapping[str, Json] = field(default_factory=dict[str, Json])


def innermost(event: Mapping[str, Json]) -> Mapping[str, Any]:
    """What happened where it happened, of an event as JSON."""
    while event.get("type") == "inside":
        event = cast("Mapping[str, Json]", event["event"])
    return event


def to_json(event: Event) -> dict[str, Json]:
    """`{"type": …, "v": 1, …fields}`; tuples become lists."""
    written: dict[str, Json] = {"type": TYPES[type(event)], "v": VERSION}
    for name in event.__struct_fields__:
        value: Any = getattr(event, name)
        written[name] = list(value) if value.__class__ is tuple else value
    return written


def from_json(written: Mapping[str, Json]) -> Event | Unknown:
    """The event that `to_json` wrote; what this version does not know is `Unknown`.

    So is an event that lacks a field, or has a value of another type in one.
    """
    unknown = Unknown(type=str(written.get("type")), data=dict(written))
    cls = NAMES.get(unknown.type)
    if cls is None:
        return unknown
    try:
        return msgspec.convert(dict(written), cls)
    except msgspec.ValidationError:
        return unknown
