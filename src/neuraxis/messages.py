"""What flows between a model, the runtime and the commands: data, no behaviour.

Every type here is immutable; a step that changes something makes a new value.
The words are those of the table in ARCHITECTURE.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field

from neuraxis.specs import Json, PluginSpec

Path = tuple[str | int, ...]
"""Where in a JSON value: keys and indices from the root."""

ErrorCode = Literal[
    "malformed_reply",  # the reply is not what the dialect asks for
    "truncated_reply",  # the model was cut off; nothing of the reply is run
    "duplicate_key",  # a JSON object of the reply has a key twice
    "receiver_id_not_allowed",
    "unknown_plugin",
    "unknown_command",
    "invalid_param",
    "reference_not_found",  # `{{ … }}` names a step or field that is not there
    "asset_ref_not_acceptable",
    "asset_not_found",
    "asset_path_not_found",
    "asset_lost",
    "invalid_asset_type",
    "denied",
    "budget_exhausted",
    "repeated_call",
    "failed",  # the command ran and failed
    "timeout",
    "cancelled",
    "outcome_unknown",  # it was started and nobody knows how it ended
    "plugin_contract_error",  # the answer is not what the manifest declares
    "skipped",  # not run, since a step before it failed
]


class Problem(Struct, frozen=True, kw_only=True):
    """One thing that is wrong at one place of a call (rule D7)."""

    path: Path = ()
    expected: str
    got: str
    """The type or a short quotation of what stood there, never a secret's value."""
    candidates: tuple[str, ...] = ()
    keyword: str = ""
    """The JSON Schema keyword that failed, or a word of ours."""


class CallError(Struct, frozen=True, kw_only=True):
    """What the model is told of a call that did not work. Made in `sentences.py`."""

    code: ErrorCode
    message: str
    where: str = ""
    problems: tuple[Problem, ...] = ()
    candidates: tuple[str, ...] = ()
    fixable_by: Literal["model", "user", "author"] = "model"


class Call(Struct, frozen=True, kw_only=True):
    """One call as the model wrote it, before anything was checked.

    `plugin` is None in the intent dialect, where one name says both. `id` is also
    the id of the result's asset: a reference to a step is a reference to `id`.
    """

    id: str
    plugin: str | None
    command: str
    arguments: Json = field(default_factory=dict[str, Json])
    name: str | None = None
    """The step's own name, from the intent's optional `"as"` key."""
    literal: bool = False
    """True: nothing between braces in it is a reference (X of rule C21)."""
    for_each: Json = None
    """A list, or a reference to one: the call is made for each `{{ item }}` of it."""
    max_items: int | None = None
    """How many items `for_each` may have; None: `plan.MOST_ITEMS`."""

    @property
    def target(self) -> str:
        """`plugin.command`, or the tool name."""
        return f"{self.plugin}.{self.command}" if self.plugin else self.command


class Result(Struct, frozen=True, kw_only=True, eq=False):
    """How one call ended. `value` is the native object, `stored`: it is an asset."""

    call: Call
    status: Literal["done", "failed", "skipped"]
    plugin: str | None = None
    """The resolved names, where the command was found."""
    command: str | None = None
    value: Any = None
    stored: bool = False
    """True: the value is kept as an asset under `call.id` and not said inline."""
    error: CallError | None = None
    """None where it is done, and only there."""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    """From the start of the command to its end; 0 where it was not run."""
    exception: BaseException | None = None
    """What the command raised, for tests and for `on_failure="raise"`."""

    def __eq__(self, other: object) -> bool:
        # no two exceptions are equal
        if not isinstance(other, Result):
            return False
        compared = [name for name in self.__struct_fields__ if name != "exception"]
        return all(getattr(self, name) == getattr(other, name) for name in compared)

    def __hash__(self) -> int:
        raise TypeError("a Result cannot be hashed: its value may be anything")


class Reply(Struct, frozen=True, kw_only=True):
    """What a dialect read out of one completion; nothing a model writes raises."""

    calls: tuple[Call, ...] = ()
    texts: tuple[str, ...] = ()
    """What was said to the person, in order."""
    thoughts: tuple[str, ...] = ()
    errors: tuple[CallError, ...] = ()
    notes: tuple[str, ...] = ()
    """Every leniency that was used (decision 12)."""


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

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )


NOTHING_USED = Usage()

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "cancelled"]


class ToolCallDelta(Struct, frozen=True, kw_only=True):
    """A piece of a native tool call; pieces with one `index` belong together."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


class Chunk(Struct, frozen=True, kw_only=True):
    """One piece of a streamed completion. The last one has `finish_reason`."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    note: str = ""
    """What the model adapter wants the journal to know (retries, tiers)."""
    carried: str = ""
    """See `Completion.carried`; whole, in one chunk."""
    annotations: tuple[Json, ...] = ()
    """Citations and sources of the text, each as the server writes it."""
    model: str = ""
    """Name of the model that answers, where it is not the one that was asked."""


class NativeCall(Struct, frozen=True, kw_only=True):
    """A whole native tool call: arguments as the text the model wrote."""

    id: str
    name: str
    arguments: str


class Completion(Struct, frozen=True, kw_only=True):
    """All of one model call, joined from its chunks."""

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
    """Name of the model that answered, where it is not the one that was asked."""


class Part(Struct, frozen=True, kw_only=True):
    """A picture or a PDF file beside the text of a message."""

    media_type: str
    """`image/png`, `image/jpeg`, `application/pdf`, …"""
    data: bytes
    name: str = ""
    """The file's name, for servers that want one."""


class Message(Struct, frozen=True, kw_only=True):
    """One message of a conversation, already in the dialect's wire form.

    `calls` and `results` carry the same matter as data, for models that do not read
    text (the planner of the embedded model) and for the native dialect.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    tool_calls: tuple[NativeCall, ...] = ()
    tool_call_id: str | None = None
    carried: str = ""
    """See `Completion.carried`; no part of what is said."""
    parts: tuple[Part, ...] = ()
    """Pictures and files beside `content`, for models that can read them."""


class Prompt(Struct, frozen=True, kw_only=True):
    """What a model is sent.

    The first `constant` messages are byte-identical from turn to turn (decision 8 of
    the plan issue: they come first). `plugins` and `write` are for models that plan
    without reading the text: `write(calls)` gives the calls in the session's dialect.
    """

    messages: tuple[Message, ...]
    constant: int = 0
    stop: tuple[str, ...] = ()
    plugins: tuple[PluginSpec, ...] = ()
    tool_names: Mapping[str, tuple[str, str]] = field(
        default_factory=dict[str, tuple[str, str]]
    )
    """Tool name of the intent dialect -> (plugin, command)."""
    write: Callable[[Sequence[Call]], str] | None = None
    native_tools: tuple[Mapping[str, Json], ...] = ()
    """OpenAI-style tool definitions, for the native dialect only."""
