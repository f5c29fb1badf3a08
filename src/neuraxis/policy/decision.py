"""What the policy is given and gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path as File
from typing import Literal

from msgspec import Struct, field

from neuraxis.messages import CallError
from neuraxis.policy.provenance.labels import Traced
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.sandbox.files.history import FileHistory, Use
from neuraxis.schema.annotations import NO_MARKS, Annotations
from neuraxis.specs import Json

Verdict = Literal["allow", "ask", "deny"]


class Refused(Exception):
    """A step is not run; `error` is what the model is told."""

    def __init__(self, error: CallError) -> None:
        super().__init__(error.message)
        self.error = error


class Decision(Struct, frozen=True, kw_only=True):
    """What the policy says of one call."""

    verdict: Verdict
    """`allow`, `ask` or `deny`."""
    reason: str = ""
    """Why, in words."""
    way_out: str = ""
    """What the model can do instead where nobody approves."""
    offers: tuple[str, ...] = ()
    """Wider answers for this session, in words."""
    own_files: bool = False
    """Whether files of the user's would be changed."""
    frees_files: bool = False
    """Whether it allows changes of the user's files, too: a rule or default does."""


ALLOWED = Decision(verdict="allow")


class Facts(Struct, frozen=True, kw_only=True):
    """Facts about a call beside its arguments; without them only rules decide."""

    traced: Sequence[Traced] = ()
    marks: Annotations = NO_MARKS
    origins: Origins = field(default_factory=Origins)
    workspace: File = File()
    files: FileHistory | None = None
    """What is known of the workspace's files; None: no file is protected."""
    may_tell: bool = False
    """Whether something private may have a part in it, however it came there."""
    own: Sequence[tuple[str, Use, str]] = ()
    """Files of the user's that it would change: how, and why that needs a yes."""
    replaces: Mapping[str, Json] = {}
    """Files of the user's that the call would change, with their digests."""
    reads: Mapping[str, Json] = {}
    """Files that a call names which is asked about, with their digests."""


NO_FACTS = Facts()
