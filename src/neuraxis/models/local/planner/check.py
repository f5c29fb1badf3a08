"""A planned call against the command's own schema, before it is written."""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.messages import Path
from neuraxis.models.local.planner.earlier import Step
from neuraxis.schema import Schema
from neuraxis.specs import Json


def checked(step: Step) -> tuple[Step | None, str]:
    """Return the step without invalid optional parameters, or its error."""
    schema = Schema(step.tool.spec.parameters)
    arguments = dict(step.arguments)
    problems = schema.problems(arguments, holes=_holes(arguments))
    for problem in problems:
        name = problem.path[0] if problem.path else None
        if isinstance(name, str) and name not in step.tool.spec.required:
            arguments.pop(name, None)
    if problems:
        problems = schema.problems(arguments, holes=_holes(arguments))
    if problems:
        said = "; ".join(call_errors.problem_text(problem) for problem in problems)
        return None, said
    return replace(step, arguments=arguments), ""


def _holes(value: Json, path: Path = ()) -> list[Path]:
    """Places where a reference stands."""
    if isinstance(value, str):
        return [path] if value.startswith("{{") else []
    if isinstance(value, dict):
        named = cast("dict[str, Json]", value)
        return [hole for key in named for hole in _holes(named[key], (*path, key))]
    return []
