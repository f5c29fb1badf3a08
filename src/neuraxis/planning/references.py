"""Read the references in one call's arguments.

Each becomes a binding (`{{ … }}`), an asset reference, plain data, or a problem
reported to `PlanBuilder`, which collects the mistakes of all calls of a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.frames import may_become
from neuraxis.formatting import nearest
from neuraxis.messages import Call, CallError, Path, Problem
from neuraxis.plugins.registry import Command
from neuraxis.references import check
from neuraxis.references.asset_ref import (
    AssetRef,
    format_object,
    parse_reference,
    reference_fault,
)
from neuraxis.references.evaluate import evaluate, fill
from neuraxis.references.parser import foreign
from neuraxis.references.path import RESPONSE
from neuraxis.references.render import ReferenceFailure
from neuraxis.references.template import (
    MOST_PROBLEMS,
    Binding,
    Expression,
    Scope,
    Template,
    read_template,
)
from neuraxis.schema.annotations import RAW_KEY
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

ITEM = "item"
"""Root that stands for one item of `for_each`, and its `Expression.step`."""
PARAMS = "params"
"""Root of a saved plan's parameters, and its `Expression.step`."""


class Unknown(Struct, frozen=True, kw_only=True):
    """Parameter of a saved plan that has no value yet."""

    kind: str
    """JSON type of the parameter."""


class PlanBuilder(Struct, kw_only=True):
    """Mutable state of one `build`: call ids, commands found, errors."""

    calls: Sequence[Call]
    known_assets: Callable[[str], bool]
    asset_ids: Sequence[str]
    templates: bool
    lenient: bool
    params: Mapping[str, Json] | None = None
    """Of a saved plan, in which no other template is expected."""
    loops: bool = False
    """Whether any of the calls has a `for_each`."""
    ids: tuple[str, ...] = ()
    places: Mapping[str, int] = {}
    names: Mapping[str, int] = {}
    found: list[Command | None] = []
    errors: list[CallError] = []
    at_fault: list[str] = []

    @property
    def extra(self) -> Sequence[str]:
        """Return the roots that are not the name of a step."""
        params = (PARAMS,) if self.params is not None else ()
        return (*params, ITEM) if self.loops else params

    def response(self, place: int) -> Mapping[str, Json] | None:
        """Return a step's declared response schema; a list's for a loop."""
        found = self.found[place]
        if found is None or found.response is None:
            return None
        schema = found.response.json
        if self.calls[place].for_each is None:
            return schema
        listed: dict[str, Json] = {"type": "array", "items": schema}
        return {**listed, "$defs": schema["$defs"]} if "$defs" in schema else listed

    def target(self, here: int) -> str:
        """Return the name of a call in messages, numbered among several."""
        name = self.calls[here].target
        return name if len(self.calls) == 1 else f"step {here + 1}: {name}"

    def tell(self, here: int, error: CallError) -> None:
        """Add a problem of a call."""
        self.errors.append(error)
        self.at_fault.append(self.calls[here].id)


class CallReader(Struct, kw_only=True):
    """Reads the references of one call."""

    here: int
    call: Call
    schema: Schema
    work: PlanBuilder
    bindings: list[Binding] = []
    asset_refs: list[tuple[Path, AssetRef]] = []
    depends: set[str] = set()
    refused: list[Path] = []
    """Places that were reported already: the schema need not report them again."""
    notes: list[str] = []
    warnings: list[str] = []
    extra: Mapping[str, str] = {}
    items_of: Expression | None = None
    """Source of the loop's items, if it is one expression."""

    def read(self, arguments: Json, places: list[tuple[Path, Json]]) -> Json:
        """Sort every place into bindings, asset references and plain data."""
        work = self.work
        extra = dict(self.extra)
        if work.params is not None:
            extra[PARAMS] = PARAMS
        scope = Scope(
            ids=work.ids,
            here=self.here,
            names=work.names,
            bare=work.lenient,
            extra=extra,
            strict=work.params is not None,
        )
        written: dict[Path, Json] = {}
        for path, value in places:
            if isinstance(value, str) and work.templates and not self.call.literal:
                if value == "PREVIOUS" and self._is_declared_value(path):
                    continue
                problems: list[Problem] = []
                template = read_template(value, scope, path, problems)
                template = self._fitting(template, path, value, problems)
                for problem in problems:
                    self._tell(problem)
                if problems:
                    self.refused.append(path)
                    continue
                self._warn_of_text(path, value, {*work.names, *extra})
                if template is not None and work.params is not None:
                    if self._is_given(template, path, work.params, written):
                        continue
                    template = self._given(template, path, work.params)
                    if template is None:
                        continue
                if template is not None:
                    if not template.refs:  # escaped braces only
                        written[path] = "".join(map(str, template.parts))
                        continue
                    self.bindings.append(Binding(path=path, template=template))
                    self._depend(path, template.parts)
                    if value == "PREVIOUS":
                        self.notes.append(
                            f"{call_errors.path_text(path, work.target(self.here))}: "
                            "PREVIOUS read as {{ previous_result }}"
                        )
                    continue
            self._asset(path, value, written)
        return fill(arguments, written)

    def _fitting(
        self, template: Template | None, path: Path, text: str, problems: list[Problem]
    ) -> Template | None:
        """Return the template, without blanks that would make it a text."""
        if template is None or problems or template.whole or not template.refs:
            return template
        kinds: Any = (self.schema.at(path) or {}).get("type", "string")
        if "string" in kinds:
            return template
        parts = [part for part in template.parts if not str(part).isspace()]
        if len(parts) > 1 or not self.work.lenient:
            kind = kinds if isinstance(kinds, str) else " or ".join(kinds)
            expected = f"{kind}, so one reference without text around it"
            got = call_errors.quote(text)
            problems.append(Problem(path=path, expected=expected, got=got))
        return Template(parts=tuple(parts))

    def _warn_of_text(self, path: Path, text: str, names: set[str]) -> None:
        """Warn of braces left as text and perhaps meant as a reference.

        They are the whole value, or their root is nearly one that there is.
        """
        work = self.work
        roots = ("previous_result", "results[n]", *work.names)
        for braces, root in islice(foreign(text, names), MOST_PROBLEMS):
            close = nearest(root, roots)
            if self.here and (close or braces == text):
                where = call_errors.path_text(path, work.target(self.here))
                messages = self.warnings if work.lenient else self.notes
                messages.append(call_errors.braces_are_text(where, braces, close))
                return

    def _is_declared_value(self, path: Path) -> bool:
        """Return whether the word PREVIOUS is a declared value of the parameter."""
        node = self.schema.at(path) or {}
        return "PREVIOUS" in (*node.get("enum", ()), node.get("const"))

    def _depend(self, path: Path, parts: Sequence[str | Expression]) -> None:
        for part in parts:
            if isinstance(part, str):
                continue
            step, operations = part.step, part.operations
            if step == ITEM:
                if self.items_of is None or not operations:
                    continue
                step = self.items_of.step
                operations = (*self.items_of.operations, 0, *operations)
            else:
                self.depends.add(step)
            place = self.work.places[step]
            response = self.work.response(place)
            if not operations and len(parts) == 1 and step == part.step:
                self._check_class(path, response)
            if response is None or not operations:
                continue
            problem = check.check(response, operations)
            if problem is not None:
                tool = self.work.calls[place].command
                name = f"{tool} in {{{{ {part.text[:60]} }}}}"
                expected = f"{problem.expected} of the response of {name}"
                self._tell(replace(problem, path=path, expected=expected))

    def _is_given(
        self,
        template: Template,
        path: Path,
        params: Mapping[str, Json],
        written: dict[Path, Json],
    ) -> bool:
        """Replace a value that is only a plan parameter by its data."""
        (*rest, last) = template.parts
        if rest or isinstance(last, str) or last.step != PARAMS:
            return False
        unknown = _unknown(last, params)
        if unknown is not None:
            self._may_fit(unknown, last, path)
            self.refused.append(path)
            return True
        try:
            wants_text = self.schema.wants_text(path)
            written[path] = evaluate(template, lambda _: params, wants_text, path=path)
        except ReferenceFailure as failure:
            self._tell(failure.problem)
            self.refused.append(path)
        return True

    def _given(
        self, template: Template, path: Path, params: Mapping[str, Json]
    ) -> Template | None:
        """Return the template with the plan's parameters filled in as text."""
        parts: list[str | Expression] = []
        for part in template.parts:
            if isinstance(part, str) or part.step != PARAMS:
                parts.append(part)
                continue
            if _unknown(part, params) is not None:
                parts.append(f"{{{{ {part.text} }}}}")
                continue
            try:
                alone = Template(parts=(part,))
                parts.append(evaluate(alone, lambda _: params, True, path=path))
            except ReferenceFailure as failure:
                self._tell(failure.problem)
                self.refused.append(path)
                return None
        return Template(parts=tuple(parts))

    def _may_fit(self, unknown: Unknown, part: Expression, path: Path) -> None:
        """Report an unknown parameter whose type can never fit."""
        kinds: Any = (self.schema.at(path) or {}).get("type", "string")
        takes = {kinds} if isinstance(kinds, str) else set(kinds)
        if len(part.operations) > 1 or "string" in takes or unknown.kind in takes:
            return
        if not (unknown.kind == "integer" and "number" in takes):
            got = f"{{{{ {part.text[:60]} }}}}, a parameter of type {unknown.kind}"
            expected = " or ".join(sorted(takes))
            self._tell(Problem(path=path, expected=expected, got=got))

    def _asset(self, path: Path, value: Json, written: dict[Path, Json]) -> None:
        ref = parse_reference(value)
        is_raw = (self.schema.at(path) or {}).get(RAW_KEY) is True
        takes = is_raw or self.schema.takes_reference(path)
        if ref is None:
            fault = reference_fault(value) if takes else ""
            if fault:
                got = call_errors.quote(value)
                self._tell(Problem(path=path, expected=fault, got=got))
                self.refused.append(path)
            return
        where = call_errors.path_text(path, self.work.target(self.here))
        place = self.work.places.get(ref.asset_id)
        known = place is not None or self.work.known_assets(ref.asset_id)
        if not takes and self._is_no_parameter(path):
            return  # reported as an unknown key: there is no value to pass
        if not takes:
            # a text is data unless it names a live asset (B44); so is an object that
            # the parameter itself declares with an `asset_id`
            if known if isinstance(value, str) else not self._declares_id(path):
                error = call_errors.asset_ref_not_acceptable(where)
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
            got = call_errors.quote(ref.asset_id)
            self._tell(Problem(path=path, expected=expected, got=got, keyword=keyword))
            self.refused.append(path)
        elif not known:
            error = call_errors.asset_unknown(ref.asset_id, self.work.asset_ids, where)
            self.work.tell(self.here, error)
            self.refused.append(path)
        else:
            if place is not None:
                self.depends.add(ref.asset_id)
                if ref.field_path == RESPONSE:
                    self._check_class(path, self.work.response(place))
            if is_raw:  # the command accepts the reference itself (rule B43)
                written[path] = format_object(ref)
            else:
                self.asset_refs.append((path, ref))

    def _check_class(self, path: Path, response: Mapping[str, Json] | None) -> None:
        """Report a result that can never become the parameter's class."""
        given = str((response or {}).get("x-type", ""))
        wanted = self.schema.classes_at(path)
        if given and wanted and not any(may_become(given, name) for name in wanted):
            expected = f"a reference to an object of the class {' or '.join(wanted)}"
            self._tell(Problem(path=path, expected=expected, got=f"the class {given}"))
            self.refused.append(path)

    def _is_no_parameter(self, path: Path) -> bool:
        node = self.schema.at(()) or {}
        closed = node.get("additionalProperties") is False
        return closed and bool(path) and path[0] not in node.get("properties", ())

    def _declares_id(self, path: Path) -> bool:
        node = self.schema.at(path) or {}
        return "asset_id" in node.get("properties", ())

    def _tell(self, problem: Problem) -> None:
        root = self.work.target(self.here)
        text = call_errors.problem_text(replace(problem, path=()))
        error = call_errors.reference_not_found(
            call_errors.path_text(problem.path, root),
            text.removeprefix("the arguments: "),
        )
        self.work.tell(
            self.here,
            replace(error, problems=(problem,), candidates=problem.candidates),
        )


def _unknown(part: Expression, params: Mapping[str, Json]) -> Unknown | None:
    """Return the parameter without a value that an expression uses."""
    name = part.operations[0] if part.operations else None
    value = params.get(name) if isinstance(name, str) else None
    return value if isinstance(value, Unknown) else None
