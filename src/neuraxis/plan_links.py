"""A link of a chain read the short way: a call that is right but for its templates.

A call and what is known of its plan flow in; its bindings and the steps it depends on
flow out. What is not exactly that, a mistake above all, is None here and read the long
way (`plan_references`), which gives the same for what is; a test holds the two
together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from neuraxis import declared
from neuraxis.messages import Call, Problem
from neuraxis.notation.coercion import has_whole_float
from neuraxis.plan_references import Found, Work
from neuraxis.references import (
    SCHEME,
    Binding,
    Scope,
    find_places,
    read_template,
)
from neuraxis.specs import Json

_STAND_IN: Final[Mapping[Any, Json]] = {
    "string": "text",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
}
"""What is checked in the place of a value that is not known yet."""

Link = tuple[tuple[Binding, ...], frozenset[str]]
"""The templates of a call, and the ids of the calls it takes values from."""


def read_link(here: int, call: Call, found: Found, work: Work) -> Link | None:
    """The templates among the arguments, where all else is right; else None."""
    schema, arguments = found.parameters, call.arguments
    properties = cast("dict[str, Json]", schema.json.get("properties"))
    if (
        type(arguments) is not dict
        or call.literal
        or not work.templates
        or work.params is not None
        or "asset_id" in arguments
        or schema.json.get("type") != "object"
        or type(properties) is not dict
    ):
        return None
    scope = Scope(ids=work.ids, here=here, names=work.names, bare=work.lenient)
    bindings: list[Binding] = []
    depends: set[str] = set()
    checked: dict[str, Json] = {**arguments}
    for key, value in checked.items():
        if type(value) is str and "{{" in value:
            stand_in = _stand_in(properties.get(key))
            binding = _binding(key, value, scope, work, depends)
            if stand_in is None or binding is None:
                return None
            if not binding.template.whole and type(stand_in) is not str:
                return None  # text where none is taken, or the text of a list
            bindings.append(binding)
            checked[key] = stand_in
        elif not _is_plain(value):
            return None
    if not bindings or not schema.valid(checked):
        return None
    return tuple(bindings), frozenset(depends)


def _stand_in(node: Any) -> Json:
    """A value of the node's type, which need not fit it otherwise; None: none known."""
    if not isinstance(node, dict) or "enum" in node or "const" in node:
        return None
    kind: Any = cast("dict[str, Json]", node).get("type")
    return _STAND_IN.get(kind) if isinstance(kind, str) else None


def _binding(
    key: str, text: str, scope: Scope, work: Work, depends: set[str]
) -> Binding | None:
    """The text as a template, with what it depends on noted; None: look closer."""
    problems: list[Problem] = []
    template = read_template(text, scope, (key,), problems)
    if template is None or problems:
        return None
    refers = False
    for part in template.parts:
        if isinstance(part, str):
            continue
        refers = True
        depends.add(part.step)
        if part.operations:
            response = work.response(work.places[part.step])
            if response is not None and declared.check(response, part.operations):
                return None
    return Binding(path=(key,), template=template) if refers else None


def _is_plain(value: Json) -> bool:
    """Whether nothing in it is a reference, or would be read as something else."""
    kind = value.__class__
    if kind is str:
        return value != "PREVIOUS" and not value.startswith(SCHEME)
    if kind is float:
        return not value.is_integer()  # 2.0 may be meant as 2
    if kind is dict or kind is list:
        return not find_places(value) and not has_whole_float(value)
    return True
