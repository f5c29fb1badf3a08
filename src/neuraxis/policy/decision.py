"""what a rule is given and gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as File
from typing import Literal

from msgspec import Struct, field

from neuraxis.policy.provenance.labels import (
    Traced,
)
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.schema.annotations import NO_MARKS, Annotations

Verdict = Literal["allow", "ask", "deny"]


class Decision(Struct, frozen=True, kw_only=True):
    """What the policy says of one call."""

    verdict: Verdict
    reason: str = ""


ALLOWED = Decision(verdict="allow")


class Facts(Struct, frozen=True, kw_only=True):
    """What is known of a call beside its arguments; without it only rules decide."""

    traced: Sequence[Traced] = ()
    marks: Annotations = NO_MARKS
    origins: Origins = field(default_factory=Origins)
    workspace: File = File()
    wished: bool = True
    """Something in the call stands in the user's own words."""


NO_FACTS = Facts()
