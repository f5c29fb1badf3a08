"""Messages between a model, the runtime and the commands: data, no behaviour.

Every type here is immutable; a change makes a new value. The names are those of the
table in ARCHITECTURE.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from neuraxis.specs import Json, PluginSpec

Path = tuple[str | int, ...]
"""Path in a JSON value: keys and indices from the root."""

ErrorCode = Literal[
    "malformed_reply",  # The reply does not have the dialect's form.
    "truncated_reply",  # The model was cut off; nothing of the reply runs.
    "invalid_output",  # The answer does not match the requested form.
    "duplicate_key",  # A JSON object of the reply has a key twice.
    "receiver_id_not_allowed",
    "unknown_plugin",
    "unknown_command",
    "invalid_param",
    "reference_not_found",  # `{{ … }}` names a step or field that does not exist.
    "asset_ref_not_acceptable",
    "asset_not_found",
    "asset_path_not_found",
    "asset_lost",
    "invalid_asset_type",
    "denied",
    "budget_exhausted",
    "repeated_call",
    "failed",  # The command ran and failed.
    "timeout",
    "cancelled",
    "outcome_unknown",  # It was started and its outcome is unknown.
    "plugin_contract_error",  # The response does not match the manifest.
    "skipped",  # Not run or discarded, since an earlier step failed.
]


class Problem(Struct, frozen=True, kw_only=True):
    """One error at one place of a call (rule D7)."""

    path: Path = ()
    """Keys and indices from the arguments to the place."""
    expected: str
    """What the schema requires there."""
    got: str
    """Type or short quotation of the given value, never a secret's."""
    candidates: tuple[str, ...] = ()
    """Names that the model may have meant."""
    keyword: str = ""
    """The JSON Schema keyword that failed, or a keyword of this package."""


# Made in `call_errors.py`.
class CallError(Struct, frozen=True, kw_only=True):
    """Error of a call, shown to the model."""

    code: ErrorCode
    """One of a closed list of codes."""
    message: str
    """The place, what was expected, what was given, what to do."""
    where: str = ""
    """The argument or part of the reply; empty: the whole reply."""
    problems: tuple[Problem, ...] = ()
    """One for each wrong argument."""
    candidates: tuple[str, ...] = ()
    """Names that the model may have meant."""
    fixable_by: Literal["model", "user", "author"] = "model"
    """Who can fix it; `author`: the plugin's."""


class Call(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """One call as the model wrote it, before any check.

    `plugin` is None in the intent dialect, where one name identifies both. `id` is
    also the id of the result's asset, so a reference to a step is one to `id`.
    """

    id: str
    plugin: str | None
    command: str
    """The command's name, or a tool name."""
    arguments: Json = {}
    """The arguments as the model wrote them, with unresolved references."""
    name: str | None = None
    """The step's name, from the optional key `"as"`."""
    literal: bool = False
    """Whether braces in the arguments are plain text (rule C21)."""
    for_each: Json = None
    """List or reference to one; the call runs once for each `{{ item }}`."""
    max_items: int | None = None
    """Maximum items of `for_each`; None: 20."""

    @property
    def target(self) -> str:
        """Return `plugin.command`, or the tool name."""
        return f"{self.plugin}.{self.command}" if self.plugin else self.command


class Result(Struct, frozen=True, kw_only=True, eq=False, repr_omit_defaults=True):
    """Result of one call."""

    call: Call
    """The call that this is the result of."""
    status: Literal["done", "failed", "skipped"]
    """How the call ended; `skipped`: an earlier step failed, so that it did not run or
    its result was discarded."""
    plugin: str | None = None
    """The plugin's name; None if the command was not found."""
    command: str | None = None
    """The command's own name; None if it was not found."""
    value: Any = None
    """The object that the command returned, of any size.

    Its JSON instead: in events, in a run that was resumed, and where an asset folder's
    object has left the memory.
    """
    stored: bool = False
    """Whether the value is an asset with the id `call.id`, not inline."""
    preview: Json = None
    """The beginning of such a value, as the model is shown it."""
    error: CallError | None = None
    """The error; None exactly if the call is done."""
    warnings: tuple[str, ...] = ()
    """Warnings that the model was shown with the result."""
    seconds: float = 0.0
    """Seconds from the command's start to its end; 0 if it did not run."""
    shown: bool = False
    """Whether the picture is sent to a model with vision."""
    exception: BaseException | None = None
    """The exception that the command raised, for tests and `raise_errors`."""

    def __eq__(self, other: object) -> bool:
        # Exceptions compare by identity.
        if not isinstance(other, Result):
            return False
        compared = [name for name in self.__struct_fields__ if name != "exception"]
        return all(getattr(self, name) == getattr(other, name) for name in compared)

    def __hash__(self) -> int:
        raise TypeError("a Result cannot be hashed: its value may be anything")


class Reply(Struct, frozen=True, kw_only=True):
    """Decoded completion; no text of a model raises an exception."""

    calls: tuple[Call, ...] = ()
    texts: tuple[str, ...] = ()
    """Texts for the user, in order."""
    thoughts: tuple[str, ...] = ()
    errors: tuple[CallError, ...] = ()
    notes: tuple[str, ...] = ()
    """Leniencies that were used."""
    left: tuple[str, ...] = ()
    """Tools of calls that were written and are not among `calls` (rule C3)."""


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one model call, as the server reports them."""

    input_tokens: int = 0
    """All of the prompt: also what was read from or written to a cache."""
    output_tokens: int = 0
    """All that was written, thinking included."""
    cached_tokens: int = 0
    """Input tokens that were read from the server's prompt cache."""
    cache_write_tokens: int = 0
    """Input tokens that were written to the server's prompt cache."""
    reasoning_tokens: int = 0
    """Output tokens that were thinking."""

    @property
    def total(self) -> int:
        """Return what was read and written together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )


NOTHING_USED = Usage()

FinishReason = Literal[
    "stop", "length", "tool_calls", "content_filter", "cancelled", "declined", "answer"
]
"""Why a reply ended. `answer`: it is the last word, in which no calls are looked for;
`declined`: likewise, and it says why nothing was done."""


class ToolCallDelta(Struct, frozen=True, kw_only=True):
    """Piece of a native tool call; pieces are joined."""

    index: int
    """Number of the call in its reply, from 0; the same in all its pieces."""
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    """The next piece of the arguments' JSON text."""


class Chunk(Struct, frozen=True, kw_only=True):
    """One piece of a streamed completion. The last one has `finish_reason`."""

    text: str = ""
    """The next piece of the reply."""
    reasoning: str = ""
    """The next piece of the model's thoughts, which are no part of the reply."""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    """Pieces of native calls."""
    finish_reason: FinishReason | None = None
    """Why the reply ended; in the last chunk only."""
    usage: Usage | None = None
    """The tokens of the whole reply."""
    note: str = ""
    """Note of the model adapter for the journal (retries, tiers)."""
    carried: str = ""
    """Opaque data to send back to the provider with this turn; whole, in one chunk."""
    annotations: tuple[Json, ...] = ()
    """Citations and sources of the text, each as the server writes it."""
    model: str = ""
    """Name of the model that answers, if it is not the requested one."""


class NativeCall(Struct, frozen=True, kw_only=True):
    """Native tool call: arguments as the text the model wrote."""

    id: str
    name: str
    arguments: str


class Completion(Struct, frozen=True, kw_only=True):
    """Complete result of one model call, joined from its chunks."""

    text: str = ""
    tool_calls: tuple[NativeCall, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()
    carried: str = ""
    """What the adapter sends back with this turn: opaque JSON, for it alone. Servers
    that think between tool calls want their reasoning or a signature of it again."""
    annotations: tuple[Json, ...] = ()
    """Citations and sources of the text, each as the server writes it."""
    model: str = ""
    """Name of the model that answered, if it is not the requested one."""


class Part(Struct, frozen=True, kw_only=True):
    """A picture or a PDF file beside the text of a message."""

    media_type: str
    """`image/png`, `image/jpeg`, `application/pdf`, …"""
    data: bytes
    """The file's content."""
    name: str = ""
    """The file's name, for servers that want one."""
    about: str = ""
    """Its size in words, or why there is no `data` to send."""
    asset: str = ""
    """Reference to the object that it shows."""


class Message(Struct, frozen=True, kw_only=True):
    """One message of a conversation, in the dialect's wire form.

    `calls` and `results` hold the same content as data, for models that do not read
    text (the offline planner) and for the native dialect.
    """

    role: Literal["system", "user", "assistant", "tool"]
    """Who wrote it; `tool`: the result of a native call."""
    content: str
    """The text."""
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    tool_calls: tuple[NativeCall, ...] = ()
    """Native calls of a reply."""
    tool_call_id: str | None = None
    """The native call whose result this is."""
    carried: str = ""
    """Opaque data of the adapter (`Chunk.carried`)."""
    is_request: bool = False
    """Whether it begins a turn: a request of the user's."""
    finish_reason: FinishReason = "stop"
    """Why a reply of the model ended."""
    parts: tuple[Part, ...] = ()
    """Pictures and files beside `content`, for models that can read them."""
    assets: tuple[str, ...] = ()
    """Ids of the objects that `parts` show."""


class CallForm(Struct, frozen=True, kw_only=True):
    """How a reply holds calls: a JSON list between two texts."""

    start: str
    end: str
    calls: Mapping[str, Mapping[str, Json]]
    """The schema of one call, by the tool's name."""
    definitions: Mapping[str, Json] = {}
    """The `$defs` of these schemas."""
    single: bool = False
    """Whether a reply holds one call, which has no other step to refer to."""


class Prompt(Struct, frozen=True, kw_only=True):
    """Prompt sent to a model.

    `plugins` and `write` are for models that plan without reading the text:
    `write(calls)` returns the calls in the session's dialect.
    """

    messages: tuple[Message, ...]
    """The conversation, oldest first."""
    constant: int = 0
    """Number of messages from the first on that are the same bytes in every turn."""
    stop: tuple[str, ...] = ()
    """Texts at which the reply may end."""
    plugins: tuple[PluginSpec, ...] = ()
    tool_names: Mapping[str, tuple[str, str]] = {}
    """Tool name of the intent dialect -> (plugin, command)."""
    write: Callable[[Sequence[Call]], str] | None = None
    form: Callable[[bool], CallForm] | None = None
    """For models held to a grammar: `form(single)`; None: the dialect has none."""
    native_tools: tuple[Mapping[str, Json], ...] = ()
    """OpenAI-style tool definitions, for the native dialect only."""
    output_schema: Mapping[str, Json] | None = None
    """JSON Schema of the answer, where a server may hold the model to it."""
