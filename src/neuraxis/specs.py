"""Specifications that plugins and their commands declare.

`neuraxis.plugins` reads manifests and Python functions into these. A schema here is a
JSON Schema 2020-12 dict made by `neuraxis.schema`: the same dict is shown to the
model and enforced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

Json = Any
"""JSON value: None, bool, int, float, str, list or dict."""

STREAM_ITEMS = 100_000
"""Maximum items of a command's generator; a longer one is refused."""

EffectKind = Literal["none", "read", "idempotent", "once"]


class Effects(Struct, frozen=True, kw_only=True, eq=False):
    """Effects of a command: what running it may change.

    `none`: a pure function of its arguments. `read`: reads external state, changes
    nothing. `idempotent`: running it twice has the effect of running it once. `once`:
    anything else, the default. `destructive` has the meaning of MCP's hint;
    `open_world` is `others_write` in a manifest.
    """

    kind: EffectKind = "once"
    """Whether running the command changes something, and whether it may run twice."""
    destructive: bool = True
    """Whether the command may delete or overwrite existing data."""
    open_world: bool = True
    """Whether others may have written what the command returns."""
    public: bool = False
    """Whether anybody may see what the command returns."""
    declared: bool = False
    """Whether the author declared more than the kind.

    Without that, a result does not count as written by others (see
    `neuraxis.policy.provenance.tracker`).
    """
    needs_approval: bool = False
    """Whether each call needs approval, as if a rule said `ask`."""
    asks_inside: bool = False
    """Whether a nested session asks for approval of each effect (`agent`)."""

    def __eq__(self, other: object) -> bool:
        # Writing the default equals writing nothing.
        return isinstance(other, Effects) and self._compared == other._compared

    def __hash__(self) -> int:
        return hash(self._compared)

    @property
    def _compared(self) -> tuple[str, bool, bool, bool, bool]:
        return (
            self.kind,
            self.destructive,
            self.open_world,
            self.public,
            self.needs_approval,
        )

    @property
    def readonly(self) -> bool:
        """Whether the command changes nothing; such steps may run concurrently."""
        return self.kind in ("none", "read")


class ExampleCall(Struct, frozen=True, kw_only=True):
    """One call of an example, with the intent dialect's tool name."""

    tool: str
    arguments: Mapping[str, Json]


class Example(Struct, frozen=True, kw_only=True):
    """Example: a user's request and the calls that answer it (C6)."""

    question: str
    calls: tuple[ExampleCall, ...]


class CommandSpec(Struct, frozen=True, kw_only=True):
    """One command of a plugin.

    `parameters` is the schema of the whole `param`: an object schema whose
    `properties` are the named parameters, or any other schema if the manifest
    declares a plain type (rule K3). A node with `"x-asset-ref": true` takes an asset
    reference (B42); a node with `"x-type": "pkg.Class"` is an opaque class that only
    a reference can supply (B41). `$defs` holds the `_type_ref` types (B36).
    `response` is None if the manifest declares none.
    """

    name: str
    """The name in calls."""
    description: str = ""
    """What the command does, for the model."""
    parameters: Mapping[str, Json] = field(
        default_factory=lambda: {
            "type": "object",
            "properties": {},
            "additionalProperties": False,
        }
    )
    response: Mapping[str, Json] | None = None
    effects: Effects = Effects()
    """What running the command may change."""
    examples: tuple[Example, ...] = ()
    """Example calls for the model."""
    example_output: Json = None
    """An example of what the command returns."""
    tool_name: str | None = None
    """Tool name in the intent dialect; None: the unique command name."""
    time_limit: float | None = None
    """Time limit in seconds; None: the session's default."""
    blocking: bool = True
    """Whether a `def` command needs a thread; False: it returns immediately."""
    concurrency: int | None = None
    """Maximum concurrent calls; None: as many as the plan allows."""
    failure_field: str | None = None
    """Boolean response field whose False marks a failed step (rule C12)."""
    raw: Mapping[str, Json] = {}
    """The command as written in the manifest, for rendering (rules A2, B2)."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Return the names of the parameters, in manifest order."""
        properties: Mapping[str, Json] = self.parameters.get("properties", {})
        return tuple(properties)

    @property
    def defaults(self) -> dict[str, Json]:
        """Return the values of parameters that a call may leave out."""
        known: Mapping[str, Json] = self.parameters.get("properties", {})
        return {
            name: node["default"]
            for name, node in known.items()
            if isinstance(node, dict) and "default" in node
        }

    @property
    def required(self) -> tuple[str, ...]:
        """Return the names of the required parameters."""
        return tuple(self.parameters.get("required", ()))


class PluginSpec(Struct, frozen=True, kw_only=True):
    """One plugin."""

    name: str
    """The resolved name (A11), used everywhere."""
    commands: tuple[CommandSpec, ...] = ()
    """Its commands, in manifest order."""
    id: str | None = None
    """Its id in protocol v1; empty: none."""
    title: str | None = None
    """Its name for users."""
    description: str = ""
    """What the plugin is for."""
    description_for_human: str | None = None
    """Description for users (protocol v1)."""
    description_for_model: str | None = None
    """Description for the model (protocol v1)."""
    summary: str | None = None
    """Description in one line."""
    prompt: str | None = None
    """The author's instructions for the model, read from their file (A9, B16)."""
    generation: Literal["v1", "v2", "python"] = "v2"
    """The protocol of its manifest."""
    listed: bool = True
    """Whether it is offered; False: the manifest says `as_plugin: false` (B14)."""
    examples: tuple[Example, ...] = ()
    """Examples that span several commands (chains)."""
    config: Mapping[str, Json] = {}
    """The plugin's own section of the configuration."""
    source: str = ""
    """The source that messages name: a file path or `module:function`."""
    raw: Mapping[str, Json] = {}
    """The manifest as written (names as resolved strings), for rendering."""

    @property
    def description_model(self) -> str:
        """Return the description that the model sees (rule B15)."""
        return self.description_for_model or self.description
