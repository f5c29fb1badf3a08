"""Build a checked, ordered plan from calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.formatting import quote
from neuraxis.messages import Call, CallError, Problem
from neuraxis.planning.for_each import read_loop
from neuraxis.planning.plan import Plan, Step
from neuraxis.planning.references import CallReader, PlanBuilder
from neuraxis.plugins.registry import Command
from neuraxis.references.asset_ref import SCHEME
from neuraxis.references.find import find_places
from neuraxis.references.parser import NAME, RESERVED
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

MOST_STEPS = 1_000
_PLAIN_KINDS = frozenset({int, bool, type(None)})
"""Types of values that are neither references nor coerced."""
_PLAIN = ("string", "integer", "number", "boolean", "array")


def build(
    calls: Sequence[Call],
    find: Callable[[str | None, str], Command | CallError],
    *,
    known_assets: Callable[[str], bool],
    templates: bool = True,
    lenient: bool = True,
    most_steps: int = MOST_STEPS,
    asset_ids: Sequence[str] = (),
    params: Mapping[str, Json] | None = None,
) -> Plan:
    """Check all calls; return the plan, or all its problems.

    Args:
        calls: the decoded calls.
        find: the registry's `find`.
        known_assets: returns whether an asset of this id can be resolved.
        templates: whether `{{ … }}` is read as a reference.
        lenient: whether lossless coercions and the bare word PREVIOUS are accepted.
        most_steps: maximum number of calls.
        asset_ids: the live assets, for the error that an id does not exist.
        params: values of `{{ params['x'] }}` of a saved plan, in which an unknown
            name in `{{ … }}` is a problem; None: such text is plain data.
    """
    if len(calls) > most_steps:
        error = call_errors.too_many_steps(len(calls), most_steps)
        return Plan(problems=(error,), at_fault=("",))
    loops = [call for call in calls if call.for_each is not None]
    work = PlanBuilder(
        calls=calls,
        known_assets=known_assets,
        asset_ids=asset_ids,
        templates=templates,
        lenient=lenient,
        params=params,
        loops=bool(loops),
    )
    _number(work)
    steps: list[Step] = []
    for index, call in enumerate(calls):
        command = find(call.plugin, call.command)
        if isinstance(command, CallError):
            work.commands.append(None)
            work.add_error(index, _with_step_number(command, index, work))
            continue
        work.commands.append(command)
        step = _step(index, call, command, work)
        if step is not None:
            steps.append(step)
    if work.errors:
        return Plan(
            steps=tuple(steps),
            problems=tuple(work.errors),
            at_fault=tuple(work.at_fault),
        )
    notes = [note for step in steps for note in (*step.notes, *step.warnings)]
    return Plan(steps=tuple(steps), notes=tuple(notes))


# --- one call ------------------------------------------------------------------


def _number(work: PlanBuilder) -> None:
    """Index the calls by name and id; these must be unique."""
    names: dict[str, int] = {}
    indexes: dict[str, int] = {}
    for index, call in enumerate(work.calls):
        if call.id in indexes:
            fault = Problem(
                path=("id",), expected="a call id of its own", got=repr(call.id)
            )
            work.add_error(index, _invalid_param_error(index, [fault], work))
        indexes.setdefault(call.id, index)
        if call.name is None:
            continue
        expected = ""
        if call.name in names:
            expected = f"a name that no other step has (step {names[call.name] + 1})"
        elif call.name in work.extra:
            expected = f"another name, since {call.name} is a word of ours here"
        elif call.name in RESERVED:
            expected = f"another name, since {call.name} is a word of ours"
        elif NAME.fullmatch(call.name) is None:
            expected = "a name of letters, digits and _ that begins with a letter"
        if expected:
            fault = Problem(
                path=("as",), expected=expected, got=call_errors.quote(call.name)
            )
            work.add_error(index, _invalid_param_error(index, [fault], work))
        names.setdefault(call.name, index)
    work.ids = tuple([call.id for call in work.calls])
    work.names, work.indexes = names, indexes


def _step(index: int, call: Call, command: Command, work: PlanBuilder) -> Step | None:
    schema, arguments = command.parameters, call.arguments
    if call.for_each is None and _is_plainly_valid(call, command):
        return Step(call=call, command=command, arguments=arguments)
    references = find_places(arguments)
    errors_before = len(work.errors)
    notes: tuple[str, ...] = ()
    reading = CallReader(index=index, call=call, schema=schema, work=work)
    loop = None if call.for_each is None else read_loop(reading)
    if work.lenient:
        arguments, unwrapped = _unwrap(schema, arguments)
        arguments, notes = schema.coerce(arguments)
        notes = (*unwrapped, *notes)
        # JSON text that was coerced to a list may have references, too
        references = find_places(arguments) if notes else references
    arguments = reading.read(arguments, references)
    holes = [binding.path for binding in reading.bindings]
    holes += [path for path, _ in reading.asset_refs]
    problems: Sequence[Problem] = ()
    if not omits_parameter(schema, arguments):
        problems = schema.problems(
            arguments, holes=(*holes, *reading.refused), strict=not work.lenient
        )
    if problems:
        work.add_error(index, _invalid_param_error(index, problems, work, command))
    if len(work.errors) > errors_before:
        return None
    return Step(
        call=call,
        command=command,
        arguments=arguments,
        bindings=tuple(reading.bindings),
        asset_refs=tuple(reading.asset_refs),
        depends=frozenset(reading.depends),
        notes=(*(f"{work.target(index)}: {note}" for note in notes), *reading.notes),
        warnings=tuple(reading.warnings),
        loop=loop,
    )


def omits_parameter(schema: Schema, arguments: Json) -> bool:
    """Return whether a call omits an optional `param` (rule B38)."""
    return (
        arguments == {}
        and schema.json.get("x-optional") is True
        and not schema.valid(arguments)
    )


def _unwrap(schema: Schema, arguments: Json) -> tuple[Json, tuple[str, ...]]:
    """Unwrap a bare value from the model's extra key (rule K3).

    Only if the parameter cannot be an object.
    """
    if schema.json.get("type") not in _PLAIN or not isinstance(arguments, dict):
        return arguments, ()
    entries = cast("dict[str, Json]", arguments)
    if len(entries) != 1 or "asset_id" in entries:
        return entries, ()
    ((key, value),) = entries.items()
    return value, (f"the value under {quote(key)} taken as the whole parameter",)


def _is_plainly_valid(call: Call, command: Command) -> bool:
    """Return whether the arguments need neither references nor coercion."""
    arguments = call.arguments
    if type(arguments) is not dict:
        return False
    containers: list[Any] = [arguments]
    for container in containers:  # grows while it is iterated
        if len(containers) > 100:
            return False  # the full check decides
        values: Any = container
        if container.__class__ is dict:
            if "asset_id" in container:
                return False
            values = container.values()
        for value in values:
            kind = value.__class__
            if kind in _PLAIN_KINDS:
                continue
            if kind is str:
                # a possible reference: `find_places` decides
                if "{{" in value or SCHEME in value or value == "PREVIOUS":
                    return False
            elif kind is float:
                # 3.0 for an integer is coerced, or refused if strict; NaN is refused
                if value.is_integer() or value - value != 0.0:
                    return False
            elif kind is dict or kind is list:
                containers.append(value)
            else:
                return False
    return command.parameters.valid_json(arguments)


# --- messages ------------------------------------------------------------------


def _invalid_param_error(
    index: int,
    problems: Sequence[Problem],
    work: PlanBuilder,
    command: Command | None = None,
) -> CallError:
    names = command.spec.parameter_names if command is not None else ()
    return call_errors.invalid_param(work.target(index), problems, names)


def _with_step_number(error: CallError, index: int, work: PlanBuilder) -> CallError:
    if len(work.calls) == 1:
        return error
    return replace(
        error,
        where=f"step {index + 1}: {error.where}",
        message=f"step {index + 1}: {error.message}",
    )
