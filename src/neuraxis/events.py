"""Journal events: one frozen struct for each thing that happens.

The runtime appends them; the terminal, the page and resuming read them. `to_json`
writes an event, `from_json` reads it, also years later: a field may be added with a
default, never renamed; `VERSION` counts the exceptions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from neuraxis.specs import Json

VERSION = 1


class SessionStarted(Struct, frozen=True, kw_only=True, gc=False):
    """A session started, or was opened again (`resumed`)."""

    session: str
    model: str
    dialect: str
    plugins: tuple[str, ...] = ()
    workspace: str = ""
    resumed: bool = False
    origins: tuple[Json, ...] = ()
    """Origins of a nested session's request and memory."""
    key: str = ""
    """Random part of the session's idempotency keys; it never changes."""


class MessageSent(Struct, frozen=True, kw_only=True, gc=False):
    """A message of the user, to the user, or to the model."""

    sender: Literal["user", "model", "system"]
    receiver: Literal["user", "model"]
    content: str
    assets: tuple[str, ...] = ()
    """Ids of the pictures and files that the model is shown with it."""


class ModelStarted(Struct, frozen=True, kw_only=True, gc=False):
    """The model was asked for the `turn`-th time in this run."""

    turn: int
    model: str
    again: bool = False
    """Whether the reply broke off and is requested again; its chunks are void."""


class ModelChunk(Struct, frozen=True, kw_only=True, gc=False):
    """A piece of the model's output. Never stored."""

    text: str
    reasoning: str = ""
    note: str = ""
    """What the model's adapter does meanwhile, such as waiting for a busy server."""


class OutputChunk(Struct, frozen=True, kw_only=True, gc=False):
    """Fields that a streaming answer holds so far. Never stored."""

    value: Json = None
    """The fields so far; the last one may be cut."""


class ModelFinished(Struct, frozen=True, kw_only=True, gc=False):
    """The model's complete output."""

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
    """Opaque JSON of the model's adapter, which the server needs again later."""
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    annotations: tuple[Json, ...] = ()
    """Citations and sources of the text, each as the server writes it."""
    model: str = ""
    """Name of the model that answered, if it is not the requested one."""
    usd: float | None = None
    """Price of the reply in US dollars; None: it is not known."""


class PlanChecked(Struct, frozen=True, kw_only=True, gc=False):
    """A reply was decoded and its calls checked, before anything ran."""

    steps: tuple[Json, ...]
    """Each {id, tool, arguments, name?, depends: [id], for_each?}."""
    problems: tuple[Json, ...] = ()
    """Each a CallError as JSON; not empty: nothing ran."""
    notes: tuple[str, ...] = ()
    by_program: bool = False
    """Whether the program wrote the calls; no reply of the model holds them."""


class CallStarted(Struct, frozen=True, kw_only=True, gc=False):
    """A command is about to run. Stored before it runs (decision 5)."""

    id: str
    plugin: str
    command: str
    tool: str
    arguments: Json
    """Arguments as the model wrote them, references unresolved."""
    effects: str = "once"
    shown: Json = None
    """Short form of the resolved arguments, for people."""
    origins: tuple[Json, ...] = ()
    """Origins that the result will have: {source, open_world, private}."""
    part_of: str = ""
    """Id of the `for_each` step, for a call of one item."""
    items: int | None = None
    """Items of a `for_each` step, each a call of its own; None: an ordinary call."""


class CallProgress(Struct, frozen=True, kw_only=True, gc=False):
    """Progress report of a running command. Never stored."""

    id: str
    message: str
    fraction: float | None = None


class CallFinished(Struct, frozen=True, kw_only=True, gc=False):
    """A command ended, was skipped, or its outcome is unknown.

    One for each call, also if it was retried; none if the process was killed, and
    another if a person or the plugin answers for an outcome that was unknown, or if
    `resume` runs a call again that was stopped. A read-only step that ran early is
    reported as done once all steps before it are done, or as skipped if one of them
    fails.
    """

    id: str
    plugin: str
    command: str
    tool: str
    status: Literal["done", "failed", "skipped"]
    value: Json = None
    """Inline result; null if `asset` is set."""
    asset: str | None = None
    error: Json = None
    """{code, message, …} of the CallError."""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    wrote: tuple[str, ...] = ()
    """Files of the workspace that it wrote, relative to it."""
    copied: tuple[str, ...] | None = None
    """Those that hold others' text word for word; null: not known."""
    part_of: str = ""
    """Id of the `for_each` step, for a call of one item."""
    shown: bool = False
    """Whether the model is shown the picture that the command returned."""


class FileChanged(Struct, frozen=True, kw_only=True, gc=False):
    """A file of the workspace is about to be changed.

    Stored before the change.
    """

    call: str
    path: str
    """Relative to the workspace."""
    kind: str = "write"
    """`write`, `append`, `edit`, `copy`, `move`, `delete`, `script` or `folder`."""
    run: int = 0
    """Number of the run in its session, for `undo`."""
    before: str = ""
    """The SHA-256 digest of the old content, which is stored; empty: there was none."""
    after: str = ""
    """The digest of the new content; empty: the file is deleted or moved away."""
    mode: int = 0
    """Permissions that the old file had."""
    own: bool = False
    """The runtime wrote all of the new content."""
    was_own: bool = False
    """It wrote all of the old content."""


class RunUndone(Struct, frozen=True, kw_only=True, gc=False):
    """The changes of one run to files were taken back."""

    run: int = 0
    files: tuple[str, ...] = ()
    """Paths of the files that are as they were before that run."""


class AssetStored(Struct, frozen=True, kw_only=True, gc=False):
    """An object was stored under a short id."""

    id: str
    kind: str
    """Class of the object."""
    meta: Json = None
    bytes: int = 0
    own: bool = False
    """Whether a program attached it as its own, so that it is not from outside."""


class ApprovalAsked(Struct, frozen=True, kw_only=True, gc=False):
    """The user is asked to approve a call, or a `plan`."""

    id: str
    call: Json
    """Its plugin, command, arguments and, where it runs one, the `code` of a script.

    `files`: it ran, and what it `changed`, `deleted` or `made` waits for the answer.
    `lost`: what files of the user's would lose, in lines to show.
    """
    reason: str
    digest: str = ""
    """Digest of the exact call; the approval covers no other."""
    origins: Mapping[str, str] = {}
    """Origin of each argument, in words."""
    plan: tuple[Json, ...] = ()
    """Calls of a plan in order, where one approval is for each of them.

    Each is as `call`, with its `id`, `origins` and the `reason` for asking.
    """
    inside: tuple[str, ...] = ()
    """Tools that contain the nested session, the outermost first."""
    summary: str = ""
    """One line: what would happen, whose words decide it, and why it is asked."""
    offers: tuple[str, ...] = ()
    """Wider answers in words, for this session; `approve` may return one of them."""
    expires: float = 0.0
    """Seconds since 1970 until which it waits for an answer; 0: it is asked now."""
    written: Json = None
    """Of a question that waits: the arguments as the model wrote them."""
    parameters: Json = None
    """Of a question that waits: the JSON Schema of the arguments."""
    refuses: tuple[str, ...] = ()
    """Digests of the calls (or files) that a no refuses, even after a wider yes."""

    @property
    def calls(self) -> tuple[Json, ...]:
        """All that the question shows: the plan, or the one call."""
        if self.plan:
            return self.plan
        shown = {"id": self.id, "reason": self.reason, "origins": dict(self.origins)}
        return (shown | cast("dict[str, Json]", self.call),)


class ApprovalAnswered(Struct, frozen=True, kw_only=True, gc=False):
    """The user's answer, or its absence."""

    id: str
    allowed: bool
    by: str = "user"
    digest: str = ""
    offer: str = ""
    """The wider answer that was chosen, if one was."""
    reason: str = ""
    """Why not, in the user's words."""
    arguments: Json = None
    """Arguments that the user changed, by name."""


class HistoryShortened(Struct, frozen=True, kw_only=True, gc=False):
    """Older messages were shortened: the prompt had no room for them."""

    how: Literal["references", "summary"]
    messages: tuple[Json, ...] = ()
    """Each [index, new content] of the conversation's messages."""
    dropped: int = 0
    """Number of messages, from the first on, that a summary replaces."""
    of: int = 0
    """Number of all messages then; 0: not known."""
    asset: str = ""
    """Id of the asset that stores their text."""
    before: int = 0
    """Estimated tokens of the prompt."""
    after: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    """Of the reply that summed up."""
    origins: tuple[Json, ...] = ()
    """Origins of the texts that the summary replaces."""


class BudgetReached(Struct, frozen=True, kw_only=True, gc=False):
    """A limit of the run was reached."""

    what: str
    limit: float
    used: float


class SessionFinished(Struct, frozen=True, kw_only=True, gc=False):
    """One run of the session ended."""

    outcome: Literal["answered", "failed", "cancelled", "budget", "waiting", "declined"]
    text: str = ""
    error: str = ""
    seconds: float = 0.0
    files: tuple[str, ...] = ()
    """Paths of written files that are still there, relative to the workspace."""


class Inside(Struct, frozen=True, kw_only=True, gc=False):
    """An event of a nested session (`Options(parent=context)`)."""

    id: str
    """Id of the command's call."""
    session: str
    event: Mapping[str, Json]
    """Event as `to_json` writes it; may be `inside` again."""


Event = (
    SessionStarted
    | MessageSent
    | ModelStarted
    | ModelChunk
    | OutputChunk
    | ModelFinished
    | PlanChecked
    | CallStarted
    | CallProgress
    | CallFinished
    | FileChanged
    | RunUndone
    | AssetStored
    | ApprovalAsked
    | ApprovalAnswered
    | HistoryShortened
    | BudgetReached
    | Inside
    | SessionFinished
)

NAMES: Mapping[str, type[Any]] = {
    "session_started": SessionStarted,
    "message": MessageSent,
    "model_started": ModelStarted,
    "model_chunk": ModelChunk,
    "output_chunk": OutputChunk,
    "model_finished": ModelFinished,
    "plan_checked": PlanChecked,
    "call_started": CallStarted,
    "call_progress": CallProgress,
    "call_finished": CallFinished,
    "file_changed": FileChanged,
    "run_undone": RunUndone,
    "asset_stored": AssetStored,
    "approval_asked": ApprovalAsked,
    "approval_answered": ApprovalAnswered,
    "history_shortened": HistoryShortened,
    "budget": BudgetReached,
    "inside": Inside,
    "session_finished": SessionFinished,
}
"""Wire name -> class, as design.md lists them."""

TYPES: Mapping[type[Any], str] = {cls: name for name, cls in NAMES.items()}

NOT_STORED = frozenset({ModelChunk, OutputChunk, CallProgress})
"""Events that subscribers see live and the journal omits."""


class Unknown(Struct, frozen=True, kw_only=True):
    """Event of a later version, stored unchanged."""

    type: str
    data: Mapping[str, Json] = {}


_ENCODER = msgspec.json.Encoder(enc_hook=str)


def innermost(event: Mapping[str, Json]) -> Mapping[str, Any]:
    """Return the innermost event of nested sessions, as JSON."""
    while event.get("type") == "inside":
        event = cast("Mapping[str, Json]", event["event"])
    return event


def to_json(event: Event) -> dict[str, Json]:
    """Return `{"type": …, "v": 1, …fields}`; tuples become lists.

    Raises:
        TypeError: it is no event.
    """
    kind, cls = TYPES.get(type(event)), type(event)
    if kind is None:
        own = "; use its own to_json()" if hasattr(cls, "to_json") else ""
        raise TypeError(f"to_json: expected an event, got {cls.__name__}{own}")
    written: dict[str, Json] = {"type": kind, "v": VERSION}
    for name in event.__struct_fields__:
        value: Any = getattr(event, name)
        written[name] = list(value) if value.__class__ is tuple else value
    return written


def to_text(event: Event) -> str:
    """Return JSON text of what `to_json` returns."""
    try:
        fields = _ENCODER.encode(event).decode()
    except (TypeError, ValueError):
        # what a plugin answered may hold lone surrogates, which these escapes keep
        return json.dumps(to_json(event), default=str)
    return f'{{"type":"{TYPES[event.__class__]}","v":{VERSION},{fields[1:]}'


def from_json(written: Mapping[str, Json]) -> Event | Unknown:
    """Read an event that `to_json` wrote; unknown ones become `Unknown`.

    An event that lacks a field, or has a value of another type in one, is unknown
    too.
    """
    unknown = Unknown(type=str(written.get("type")), data=dict(written))
    cls = NAMES.get(unknown.type)
    if cls is None:
        return unknown
    try:
        return msgspec.convert(dict(written), cls)
    except msgspec.ValidationError:
        return unknown
