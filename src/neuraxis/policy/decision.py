"""Input and output of the policy: `Facts` and `Decision`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as File
from typing import Literal, cast

from msgspec import Struct, field

from neuraxis import call_errors
from neuraxis.messages import CallError, Path
from neuraxis.planning.plan import Step
from neuraxis.plugins.registry import Command
from neuraxis.policy.provenance.labels import Traced
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.provenance.words import leaves
from neuraxis.sandbox.files.history import FileHistory, Use
from neuraxis.schema.annotations import Annotations, FileUse
from neuraxis.specs import Json

Verdict = Literal["allow", "ask", "deny"]


class Refused(Exception):
    """A step is not run; the model gets `error`."""

    def __init__(self, error: CallError) -> None:
        super().__init__(error.message)
        self.error = error


class Decision(Struct, frozen=True, kw_only=True):
    """What the policy says of one call."""

    verdict: Verdict
    reason: str = ""
    """Why, in words."""
    way_out: str = ""
    """What the model can do instead if nobody approves."""
    offers: tuple[str, ...] = ()
    """Wider approvals for this session that the user can give, in words."""
    frees_files: bool = False
    """Whether it allows changes of the user's files, too, as a rule or default may."""


ALLOWED = Decision(verdict="allow")


def declaration_of(command: Command) -> str:
    """Return how a program declares that a command only reads, if any."""
    of_server = command.plugin.source.startswith("mcp:")
    if not of_server and command.function is None:
        return ""  # its manifest or document declares it
    return call_errors.only_reads(command.spec.name, of_server=of_server)


class Facts(Struct, frozen=True, kw_only=True):
    """One call, and what the runtime knows about its values and files."""

    step: Step
    arguments: Json
    """Resolved, without references."""
    traced: Sequence[Traced] = ()
    workspace: File
    origins: Origins = field(default_factory=Origins)
    files: FileHistory | None = None
    """The history of the workspace's files; None: no file is protected."""
    own: Sequence[tuple[str, Use, str]] = ()
    """The user's files that it would change: how, and why that needs approval."""

    @property
    def marks(self) -> Annotations:
        """The annotations of the command's parameters."""
        return self.step.command.marks

    @property
    def risky(self) -> list[str]:
        """The user's files whose change needs approval."""
        return [path for path, _, why in self.own if why]

    @property
    def with_defaults(self) -> Json:
        """The arguments, with the defaults of omitted ones."""
        given = self.arguments
        if not isinstance(given, dict):
            return given
        return self.step.command.spec.defaults | cast("dict[str, Json]", given)

    @property
    def uses(self) -> list[tuple[Path, str, FileUse | Use]]:
        """The files that the call names, and what it does to each."""
        marks = self.marks
        found: list[tuple[Path, str, FileUse | Use]] = []
        for place, value in leaves(self.with_defaults) if marks.files else ():
            use = marks.file_use(place)
            if use is not None and not isinstance(value, dict | list | None):
                moved = use == "remove" and marks.moves
                found.append((place, str(value), "move" if moved else use))
        return found

    def named(self, *uses: FileUse | Use) -> list[str]:
        """Return the files that the call names for one of these uses."""
        return [path for _, path, use in self.uses if use in uses]
