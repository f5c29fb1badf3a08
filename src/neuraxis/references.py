"""Arguments as a model wrote them flow in; references flow out, and values go back in.

One type, `AssetRef`, for the result of the step before and the asset stored an hour ago
(decision 2). Three written forms: the object `{"asset_id", "field_path"}`, the URL
`asset://id/part/part`, and `{{ … }}` (see `neuraxis.expressions`). Nothing here runs
code, and a value that was filled in is never read for references again (rule C24).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, cast

from neuraxis.asset_refs import (
    SCHEME,
    AssetRef,
    format_object,
    format_url,
    looks_like_object,
    parse_embedded,
    parse_reference,
    reference_fault,
)
from neuraxis.expressions import PREVIOUS, Malformed, Parsed, split
from neuraxis.filters import Operation, apply
from neuraxis.messages import Path, Problem
from neuraxis.paths import RESPONSE, WalkError, suggest_path, walk
from neuraxis.record import record
from neuraxis.sentences import nearest, type_name
from neuraxis.specs import Json
from neuraxis.texts import Budget, ReferenceFailure, as_text, failure

__all__ = [
    "SCHEME",
    "AssetRef",
    "Binding",
    "Expression",
    "ReferenceFailure",
    "Scope",
    "Template",
    "WalkError",
    "evaluate",
    "fill",
    "find_asset_refs",
    "find_places",
    "find_templates",
    "format_object",
    "format_url",
    "parse_embedded",
    "parse_reference",
    "read_template",
    "reference_fault",
    "suggest_path",
    "walk",
]


# --- templates -----------------------------------------------------------------

MOST_PROBLEMS = 50
"""Problems with the references of one call that are told."""


@record(frozen=True, slots=True, kw_only=True)
class Expression:
    """A parsed expression whose root is known: `step` is the call it refers to."""

    text: str
    step: str
    operations: tuple[Operation, ...] = ()

    @property
    def ref(self) -> AssetRef:
        """The place in the step's asset, as far as keys and indices say it."""
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


@record(frozen=True, slots=True, kw_only=True)
class Template:
    """A text with expressions in it, or one expression alone (`whole`)."""

    parts: tuple[str | Expression, ...]

    @property
    def whole(self) -> bool:
        """Whether the value keeps its native type: no text stands around it."""
        return len(self.parts) == 1 and isinstance(self.parts[0], Expression)

    @property
    def refs(self) -> tuple[AssetRef, ...]:
        """Every place that it takes a value from, in order."""
        return tuple([part.ref for part in self.parts if isinstance(part, Expression)])


@record(frozen=True, slots=True, kw_only=True)
class Binding:
    """A template and where in the arguments it stands."""

    path: Path
    template: Template


@record(frozen=True, slots=True, kw_only=True)
class Scope:
    """What an expression of one step may name.

    Args:
        ids: the call ids of all steps of the plan, in order.
        here: the place of this step in `ids`.
        names: the steps that have a name of their own, and their places.
        bare: whether a value that is exactly `PREVIOUS` is a reference (lenient).
        extra: further roots and what stands for their value in `Expression.step`:
            `item` in a step that is done for each item of a list.
    """

    ids: tuple[str, ...] = ()
    here: int = 0
    names: Mapping[str, int] = field(default_factory=dict[str, int])
    bare: bool = True
    extra: Mapping[str, str] = field(default_factory=dict[str, str])


def find_places(arguments: Json) -> list[tuple[Path, Json]]:
    """Every value that may be a reference: a quick look, not yet a reading.

    Each is a text with `{{` in it, the word PREVIOUS, a text that begins with
    `asset://`, or an object with the keys of a reference.
    """
    found: list[tuple[Path, Json]] = []
    # A stack and no recursion: what a model wrote may be nested deeply.
    stack: list[tuple[Path, Json]] = [((), arguments)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            entries = cast("dict[str, Json]", value)
            if "asset_id" in entries and looks_like_object(entries):
                found.append((path, entries))
                continue
            items = entries.items()
        elif isinstance(value, list):
            items = enumerate(cast("list[Json]", value))
        else:
            items = ((None, value),)
        for key, item in items:
            if isinstance(item, str):
                if "{{" in item or item == "PREVIOUS" or item.startswith(SCHEME):
                    found.append((path if key is None else (*path, key), item))
            elif key is not None and isinstance(item, (dict, list)):
                stack.append(((*path, key), cast("Json", item)))
    return found


def find_asset_refs(arguments: Json) -> tuple[tuple[Path, AssetRef], ...]:
    """Every reference in object or URL form, and where it stands."""
    return tuple(
        (path, ref)
        for path, value in find_places(arguments)
        if (ref := parse_reference(value)) is not None
    )


def find_templates(
    arguments: Json, scope: Scope
) -> tuple[tuple[Binding, ...], tuple[Problem, ...]]:
    """Every text with one of our expressions, and all that is wrong with them."""
    bindings: list[Binding] = []
    problems: list[Problem] = []
    for path, value in find_places(arguments):
        if isinstance(value, str):
            template = read_template(value, scope, path, problems)
            if template is not None:
                bindings.append(Binding(path=path, template=template))
    return tuple(bindings), tuple(problems)


def read_template(
    text: str, scope: Scope, path: Path, problems: list[Problem]
) -> Template | None:
    """The text as a template; None where nothing in it is ours."""
    if "{{" not in text:
        # The bare keyword of rule C18. A first step has nothing before it: data.
        if text != "PREVIOUS" or not scope.bare or scope.here == 0:
            return None
        before = scope.ids[scope.here - 1]
        return Template(parts=(Expression(text=text, step=before),))
    roots = {*scope.names, *scope.extra} if scope.extra else scope.names
    pieces = split(text, roots)
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
    """The expression with the step that its root names, or why there is none."""
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
        expected = f"a step before it (the plan has {len(scope.ids)} steps"
        keyword = "dangling"
    return Problem(expected=expected + ")", got=got, keyword=keyword)


def evaluate(
    template: Template,
    lookup: Callable[[AssetRef], Any],
    wants_text: bool,
    *,
    path: Path = (),
) -> Any:
    """The value of a template: native where it is whole, else text (rule C20).

    Args:
        template: what `find_templates` read.
        lookup: gives the whole answer of a step; it is asked for the reference
            `(step, content/response)` only, and the rest is walked here.
        wants_text: the parameter takes nothing but text.
        path: where the template stands, for the problem that is raised.

    Raises:
        ReferenceFailure: something is not there, or does not fit.
    """
    budget = Budget()
    texts: list[str] = []
    for part in template.parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        try:
            root = lookup(AssetRef(asset_id=part.step, field_path=RESPONSE))
            value = _apply(root, part.operations, budget)
            if template.whole and (not wants_text or isinstance(value, str)):
                return value
            texts.append(_as_text(value, budget))
        except ReferenceFailure as error:
            problem = error.problem
            text = part.text[:60]
            raise ReferenceFailure(
                replace(
                    problem,
                    path=path or problem.path,
                    expected=f"{problem.expected} in {{{{ {text} }}}}",
                )
            ) from None
    return "".join(texts)


def _apply(root: Any, operations: Sequence[Operation], budget: Budget) -> Any:
    try:
        return apply(root, operations, budget)
    except ReferenceFailure:
        raise
    except Exception as error:
        raise _unreadable(root, error) from error


def _as_text(value: Any, budget: Budget) -> str:
    try:
        return as_text(value, budget)
    except ReferenceFailure:
        raise
    except Exception as error:
        raise _unreadable(value, error) from error


def _unreadable(value: Any, error: Exception) -> ReferenceFailure:
    what = f"{type_name(value)} that raises {type(error).__name__}"
    return failure("a value that can be looked into", what)


def fill(arguments: Json, replacements: Mapping[Path, Any]) -> Json:
    """The arguments with a value put in at each path; the input is left as it is."""
    if not replacements:
        return arguments
    if () in replacements:
        return replacements[()]
    root = _copy(arguments)
    copied: dict[Path, Any] = {(): root}
    for path, value in replacements.items():
        parent = root
        for depth in range(1, len(path)):
            here = path[:depth]
            if here not in copied:
                copied[here] = parent[path[depth - 1]] = _copy(parent[path[depth - 1]])
            parent = copied[here]
        parent[path[-1]] = value
    return root


def _copy(value: Json) -> Json:
    if isinstance(value, dict):
        return dict(cast("dict[str, Json]", value))
    return list(cast("list[Json]", value))
