"""Evaluate templates to values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from neuraxis.formatting import type_name
from neuraxis.messages import Path
from neuraxis.references.asset_ref import (
    AssetRef,
)
from neuraxis.references.filters import Operation, apply
from neuraxis.references.path import RESPONSE, fill
from neuraxis.references.render import Budget, ReferenceFailure, as_text, failure
from neuraxis.references.template import Binding, Template
from neuraxis.specs import Json


def evaluate(
    template: Template,
    lookup: Callable[[AssetRef], Any],
    wants_text: bool,
    *,
    path: Path = (),
) -> Any:
    """Return a template's value: native if it is whole, else text (C20).

    Args:
        template: read by `read_template`.
        lookup: returns the whole answer of a step; it is called with the reference
            `(step, content/response)` only, and the rest is walked here.
        wants_text: whether the parameter accepts text only.
        path: the template's place, for the raised problem.

    Raises:
        ReferenceFailure: something is missing, or does not fit.
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
    got = f"{type_name(value)} that raises {type(error).__name__}"
    return failure("a value that can be looked into", got)


def fill_in(
    value: Json,
    bindings: Iterable[Binding],
    asset_refs: Iterable[tuple[Path, AssetRef]],
    resolve: Callable[[AssetRef], Any],
    wants_text: Callable[[Path], bool] = lambda path: False,
) -> Json:
    """Resolve a value's references without checking the result.

    Raises:
        ReferenceFailure: one does not fit.
    """
    values: dict[Path, Any] = {
        at.path: evaluate(at.template, resolve, wants_text(at.path), path=at.path)
        for at in bindings
    }
    values.update((path, resolve(ref)) for path, ref in asset_refs)
    return fill(value, values)
