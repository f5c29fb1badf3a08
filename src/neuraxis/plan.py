"""Calls flow in; a plan, or all that is wrong with them at once, flows out.

Names, arguments, references and their order are checked before the first effect
(decision 5). A plan is its calls in the order they were written, each with what it
depends on; `waits_for` says what may overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from neuraxis import declared, sentences
from neuraxis.expressions import RESERVED
from neuraxis.messages import Call, CallError, Path, Problem
from neuraxis.notation import Schema
from neuraxis.references import (
    AssetRef,
    Binding,
    Expression,
    Scope,
    fill,
    find_places,
    parse_reference,
    read_template,
    reference_fault,
)
from neuraxis.specs import CommandSpec, Json, PluginSpec

MOST_STEPS = 1_000


class Found(Protocol):
    """What the registry finds for a call."""

    @property
    def spec(self) -> CommandSpec: ...
    @property
    def plugin(self) -> PluginSpec: ...
    @property
    def parameters(self) -> Schema: ...
    @property
    def response(self) -> Schema | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A checked call: what it needs and what it stands on.

    `arguments` are as written, with lossless coercions made; references still stand
    in them at the paths of `bindings` and `asset_refs`. `depends` are call ids of
    this plan.
    """

    call: Call
    command: Found
    arguments: Json
    bindings: tuple[Binding, ...] = ()
    asset_refs: tuple[tuple[Path, AssetRef], ...] = ()
    depends: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps in the order they were written. With a problem, nothing may run.

    `at_fault` gives the call id of each problem, in the same order ("": the plan).
    """

    steps: tuple[Step, ...] = ()
    problems: tuple[CallError, ...] = ()
    notes: tuple[str, ...] = ()
    at_fault: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Work:
    """What is gathered while the calls are read, one after another."""

    calls: Sequence[Call]
    known_assets: Callable[[str], bool]
    asset_ids: Sequence[str]
    templates: bool
    lenient: bool
    ids: tuple[str, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict[str, int])
    names: Mapping[str, int] = field(default_factory=dict[str, int])
    found: list[Found | None] = field(default_factory=list["Found | None"])
    errors: list[CallError] = field(default_factory=list[CallError])
    at_fault: list[str] = field(default_factory=list[str])
    forward: dict[int, set[int]] = field(default_factory=dict[int, set[int]])

    def target(self, here: int) -> str:
        """How messages name a call; with its number where there are several."""
        name = self.calls[here].target
        return name if len(self.calls) == 1 else f"step {here + 1}: {name}"

    def tell(self, here: int, error: CallError) -> None:
        """Note a problem of a call."""
        self.errors.append(error)
        self.at_fault.append(self.calls[here].id)


def build(
    calls: Sequence[Call],
    find: Callable[[str | None, str], Found | CallError],
    *,
    known_assets: Callable[[str], bool],
    templates: bool = True,
    lenient: bool = True,
    most_steps: int = MOST_STEPS,
    asset_ids: Sequence[str] = (),
) -> Plan:
    """Check all calls and put them in order.

    Args:
        calls: as the dialect read them.
        find: the registry's `find`.
        known_assets: whether an asset of this id can be resolved.
        templates: whether `{{ … }}` is read at all.
        lenient: whether lossless coercions and the bare word PREVIOUS are taken.
        most_steps: a longer plan is one problem.
        asset_ids: the live assets, for the message that there is no such one.
    """
    if len(calls) > most_steps:
        error = sentences.too_many_steps(len(calls), most_steps)
        return Plan(problems=(error,), at_fault=("",))
    work = _Work(
        calls=calls,
        known_assets=known_assets,
        asset_ids=asset_ids,
        templates=templates,
        lenient=lenient,
    )
    if len(calls) == 1 and calls[0].name is None:
        work.ids = (calls[0].id,)
    else:
        _number(work)
    steps: list[Step] = []
    for here, call in enumerate(calls):
        found = find(call.plugin, call.command)
        if isinstance(found, CallError):
            work.found.append(None)
            work.tell(here, _in_step(found, here, work))
            continue
        work.found.append(found)
        step = _step(here, call, found, work)
        if step is not None:
            steps.append(step)
    if work.errors:
        return Plan(
            steps=tuple(steps),
            problems=tuple(work.errors),
            at_fault=tuple(work.at_fault),
        )
    notes = [note for step in steps for note in step.notes]
    return Plan(steps=tuple(steps), notes=tuple(notes))


def waits_for(plan: Plan) -> Mapping[str, frozenset[str]]:
    """Which steps must have ended before each may start (decision 6).

    Steps that change nothing may overlap. One with an effect waits for all that stand
    before it and holds all that stand after it. Only the nearest are named: what
    those wait for has ended too.
    """
    waits: dict[str, frozenset[str]] = {}
    barrier: frozenset[str] = frozenset()
    since: list[str] = []
    for step in plan.steps:
        own = step.call.id
        if step.command.spec.effects.readonly:
            waits[own] = step.depends | barrier
            since.append(own)
        else:
            waits[own] = step.depends | barrier | frozenset(since)
            barrier, since = frozenset((own,)), []
    return waits


# --- one call ------------------------------------------------------------------


def _number(work: _Work) -> None:
    """Give each call its place; names and ids must be unlike each other."""
    names: dict[str, int] = {}
    places: dict[str, int] = {}
    for here, call in enumerate(work.calls):
        if call.id in places:
            fault = Problem(
                path=("id",), expected="a call id of its own", got=repr(call.id)
            )
            work.tell(here, _invalid(here, [fault], work))
        places.setdefault(call.id, here)
        if call.name is None:
            continue
        expected = ""
        if call.name in names:
            expected = f"a name that no other step has (step {names[call.name] + 1})"
        elif call.name in RESERVED or not call.name.replace("-", "_").isidentifier():
            expected = "a name of letters, digits and _ that is not a word of ours"
        if expected:
            fault = Problem(
                path=("as",), expected=expected, got=sentences.quote(call.name)
            )
            work.tell(here, _invalid(here, [fault], work))
        names.setdefault(call.name, here)
    work.ids = tuple(call.id for call in work.calls)
    work.names, work.places = names, places


def _step(here: int, call: Call, found: Found, work: _Work) -> Step | None:
    schema, arguments = found.parameters, call.arguments
    places = find_places(arguments)
    if not places and schema.valid(arguments):
        return Step(call=call, command=found, arguments=arguments)
    before = len(work.errors)
    notes: tuple[str, ...] = ()
    if work.lenient:
        arguments, notes = _coerced(arguments, schema, places)
        places = find_places(arguments) if places else places
    reading = _Reading(here=here, call=call, schema=schema, work=work)
    arguments = reading.read(arguments, places)
    holes = [binding.path for binding in reading.bindings]
    holes += [path for path, _ in reading.asset_refs]
    problems = schema.problems(arguments, holes=(*holes, *reading.refused))
    if problems:
        work.tell(here, _invalid(here, problems, work, found))
    if len(work.errors) > before:
        return None
    return Step(
        call=call,
        command=found,
        arguments=arguments,
        bindings=tuple(reading.bindings),
        asset_refs=tuple(reading.asset_refs),
        depends=frozenset(reading.depends),
        notes=(*(f"{work.target(here)}: {note}" for note in notes), *reading.notes),
    )


def _coerced(
    arguments: Json, schema: Schema, places: list[tuple[Path, Json]]
) -> tuple[Json, tuple[str, ...]]:
    """The arguments with lossless leniencies made, references left as they were."""
    coerced, notes = schema.coerce(arguments)
    if not places or not notes:
        return coerced, notes
    wrapped = {(*path, 0) for path, _ in places}
    if not any(path in wrapped for path, _ in find_places(coerced)):
        return coerced, notes
    # A reference was taken for the only element of a list. It may well be the list:
    # leave the parameters that hold references alone.
    if not isinstance(arguments, dict):
        return arguments, ()
    held = {path[0] for path, _ in places if path}
    entries: dict[str, Json] = arguments
    rest, notes = schema.coerce(
        {key: value for key, value in entries.items() if key not in held}
    )
    return {key: rest.get(key, value) for key, value in entries.items()}, notes


@dataclass(slots=True, kw_only=True)
class _Reading:
    """The references of one call, as they are read."""

    here: int
    call: Call
    schema: Schema
    work: _Work
    bindings: list[Binding] = field(default_factory=list[Binding])
    asset_refs: list[tuple[Path, AssetRef]] = field(
        default_factory=list[tuple[Path, AssetRef]]
    )
    depends: set[str] = field(default_factory=set[str])
    refused: list[Path] = field(default_factory=list[Path])
    """Places that were already told of: the schema need not tell it again."""
    notes: list[str] = field(default_factory=list[str])

    def read(self, arguments: Json, places: list[tuple[Path, Json]]) -> Json:
        """Sort every place into bindings, asset references and plain data."""
        work = self.work
        scope = Scope(ids=work.ids, here=self.here, names=work.names, bare=work.lenient)
        written: dict[Path, Json] = {}
        for path, value in places:
            if isinstance(value, str) and work.templates and not self.call.literal:
                if value == "PREVIOUS" and self._is_a_choice(path):
                    continue
                problems: list[Problem] = []
                template = read_template(value, scope, path, problems)
                for problem in problems:
                    self._tell(problem)
                if problems:
                    self.refused.append(path)
                    continue
                if template is not None:
                    if not template.refs:  # braces written by their escape only
                        written[path] = "".join(map(str, template.parts))
                        continue
                    self.bindings.append(Binding(path=path, template=template))
                    self._depend(path, template.parts)
                    if value == "PREVIOUS":
                        self.notes.append(
                            f"{sentences.path_text(path, work.target(self.here))}: "
                            "PREVIOUS read as {{ previous_result }}"
                        )
                    continue
            self._asset(path, value)
        return fill(arguments, written)

    def _is_a_choice(self, path: Path) -> bool:
        """Whether the word PREVIOUS is a value that the parameter declares."""
        node: Any = self.schema.at(path)
        return isinstance(node, Mapping) and (
            "PREVIOUS" in node.get("enum", ()) or node.get("const") == "PREVIOUS"
        )

    def _depend(self, path: Path, parts: Sequence[str | Expression]) -> None:
        for part in parts:
            if isinstance(part, str):
                continue
            self.depends.add(part.step)
            earlier = self.work.found[self.work.places[part.step]]
            if earlier is None or earlier.response is None or not part.operations:
                continue
            problem = declared.check(earlier.response.json, part.operations)
            if problem is not None:
                name = f"{earlier.spec.name} in {{{{ {part.text[:60]} }}}}"
                expected = f"{problem.expected} of the response of {name}"
                self._tell(replace(problem, path=path, expected=expected))

    def _asset(self, path: Path, value: Json) -> None:
        ref = parse_reference(value)
        takes = self.schema.takes_reference(path)
        if ref is None:
            fault = reference_fault(value) if takes else ""
            if fault:
                got = sentences.quote(value)
                self._tell(Problem(path=path, expected=fault, got=got))
                self.refused.append(path)
            return
        where = sentences.path_text(path, self.work.target(self.here))
        place = self.work.places.get(ref.asset_id)
        known = place is not None or self.work.known_assets(ref.asset_id)
        if not takes:
            # A text is data unless it names a live asset (B44); so is an object that
            # the parameter itself declares with an `asset_id`.
            if known if isinstance(value, str) else not self._declares_id(path):
                error = sentences.asset_ref_not_acceptable(where)
                self.work.tell(self.here, error)
                self.refused.append(path)
        elif place is not None and place >= self.here:
            own = place == self.here
            expected = "an asset of a step before it" + (
                " (a step cannot use its own result)"
                if own
                else f" (step {place + 1} comes later)"
            )
            keyword = "cyclic" if own else "forward"
            got = sentences.quote(ref.asset_id)
            self._tell(Problem(path=path, expected=expected, got=got, keyword=keyword))
            self.refused.append(path)
        elif not known:
            error = sentences.asset_unknown(ref.asset_id, self.work.asset_ids, where)
            self.work.tell(self.here, error)
            self.refused.append(path)
        else:
            if place is not None:
                self.depends.add(ref.asset_id)
            self.asset_refs.append((path, ref))

    def _declares_id(self, path: Path) -> bool:
        node: Any = self.schema.at(path)
        return isinstance(node, Mapping) and "asset_id" in node.get("properties", ())

    def _tell(self, problem: Problem) -> None:
        root = self.work.target(self.here)
        text = sentences.problem_text(replace(problem, path=()))
        error = sentences.reference_not_found(
            sentences.path_text(problem.path, root),
            text.removeprefix("the arguments: ") + ".",
        )
        self.work.tell(
            self.here,
            replace(error, problems=(problem,), candidates=problem.candidates),
        )


# --- messages ------------------------------------------------------------------


def _invalid(
    here: int, problems: Sequence[Problem], work: _Work, found: Found | None = None
) -> CallError:
    names = found.spec.parameter_names if found is not None else ()
    return sentences.invalid_param(work.target(here), problems, names)


def _in_step(error: CallError, here: int, work: _Work) -> CallError:
    if len(work.calls) == 1:
        return error
    return replace(
        error,
        where=f"step {here + 1}: {error.where}",
        message=f"step {here + 1}: {error.message}",
    )
