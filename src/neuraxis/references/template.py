"""Templates: texts with `{{ … }}` expressions, bound to a plan's steps.

One type, `AssetRef`, refers to the previous step's result and to an asset stored an
hour ago (decision 2). It has three written forms: the object `{"asset_id",
"field_path"}`, the URL `asset://id/part/part`, and `{{ … }}` (see
`neuraxis.references.parser`). Nothing here runs code, and a filled-in value is never
read for references again (rule C24).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.formatting import counted, nearest
from neuraxis.messages import Path, Problem
from neuraxis.references.asset_ref import (
    AssetRef,
)
from neuraxis.references.filters import Operation
from neuraxis.references.parser import PREVIOUS, Malformed, Parsed, split
from neuraxis.references.path import RESPONSE

# --- templates -----------------------------------------------------------------

MOST_PROBLEMS = 50
"""Maximum problems reported for the references of one call."""


class Expression(Struct, frozen=True, kw_only=True):
    """Parsed expression with a known root: `step` is its call's id."""

    text: str
    step: str
    operations: tuple[Operation, ...] = ()

    @property
    def ref(self) -> AssetRef:
        """Return the place in the step's asset, up to the first filter."""
        if not self.operations:
            return AssetRef(asset_id=self.step, field_path=RESPONSE)
        path: list[str | int] = []
        for operation in self.operations:
            if isinstance(operation, str) or (
                isinstance(operation, int) and operation >= 0
            ):
                path.append(operation)
            else:
                break
        return AssetRef(asset_id=self.step, field_path=(*RESPONSE, *path))


class Template(Struct, frozen=True, kw_only=True, dict=True):
    """Text with expressions in it, or one expression alone (`whole`)."""

    parts: tuple[str | Expression, ...]

    @property
    def whole(self) -> bool:
        """Return whether one expression is the whole value, with native type."""
        return len(self.parts) == 1 and isinstance(self.parts[0], Expression)

    @cached_property
    def refs(self) -> tuple[AssetRef, ...]:
        """Return every place that it reads, in order."""
        return tuple([part.ref for part in self.parts if isinstance(part, Expression)])


class Binding(Struct, frozen=True, kw_only=True):
    """Template with its path in the arguments."""

    path: Path
    template: Template


class Scope(Struct, frozen=True, kw_only=True):
    """Names that an expression of one step may use.

    Args:
        ids: the call ids of all steps of the plan, in order.
        here: the place of this step in `ids`.
        names: the names of named steps, and their places.
        bare: whether a value that is exactly `PREVIOUS` is a reference (lenient).
        extra: further roots and their `Expression.step`: `item` in a step with
            `for_each`.
        strict: whether `{{ … }}` with another root is a problem.
    """

    ids: tuple[str, ...] = ()
    here: int = 0
    names: Mapping[str, int] = {}
    bare: bool = True
    extra: Mapping[str, str] = {}
    strict: bool = False


def read_template(
    text: str, scope: Scope, path: Path, problems: list[Problem]
) -> Template | None:
    """Parse a text as template; None for plain data."""
    if "{{" not in text:
        # The bare keyword of rule C18; for a first step it is data.
        if text != "PREVIOUS" or not scope.bare or scope.here == 0:
            return None
        before = scope.ids[scope.here - 1]
        return Template(parts=(Expression(text=text, step=before),))
    roots = {*scope.names, *scope.extra} if scope.extra else scope.names
    pieces = split(text, roots, strict=scope.strict)
    if len(pieces) == 1 and pieces[0] == text:
        return None
    parts: list[str | Expression] = []
    for piece in pieces:
        if isinstance(piece, str):
            parts.append(piece)
            continue
        if len(problems) >= MOST_PROBLEMS:
            break
        bound = _bind(piece, scope)
        if isinstance(bound, Problem):
            problems.append(replace(bound, path=path))
        else:
            parts.append(bound)
    return Template(parts=tuple(parts))


def _bind(piece: Parsed | Malformed, scope: Scope) -> Expression | Problem:
    """Return the expression bound to its root's step, or a problem."""
    if isinstance(piece, Malformed):
        return Problem(
            expected=piece.expected,
            got=piece.got,
            candidates=nearest(piece.got, piece.candidates),
            keyword="syntax",
        )
    if piece.root in scope.extra:
        value = scope.extra[piece.root]
        return Expression(text=piece.text, step=value, operations=piece.operations)
    if piece.root in PREVIOUS:
        place = scope.here - 1
    elif piece.index is not None:
        place = piece.index if piece.index >= 0 else scope.here + piece.index
    else:
        place = scope.names[piece.root]
    if 0 <= place < scope.here:
        return Expression(
            text=piece.text, step=scope.ids[place], operations=piece.operations
        )
    got = f"{{{{ {piece.text[:60]} }}}}"
    if place < 0:
        expected = "a step before it (" + (
            "there is none so far back" if scope.here else "this is the first step"
        )
        keyword = "dangling"
    elif place == scope.here:
        expected = "a step before it (a step cannot use its own result"
        keyword = "cyclic"
    elif place < len(scope.ids):
        expected = f"a step before it (step {place + 1} comes later"
        keyword = "forward"
    else:
        expected = f"a step before it (the plan has {counted(len(scope.ids), 'step')}"
        keyword = "dangling"
    return Problem(expected=expected + ")", got=got, keyword=keyword)
