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
from neuraxis.planning.plan import ITEM
from neuraxis.plugins.registry import Command
from neuraxis.references import check
from neuraxis.references.asset_ref import (
    AssetRef,
    format_object,
    parse_reference,
    reference_fault,
)
from neuraxis.references.evaluate import evaluate
from neuraxis.references.parser import foreign
from neuraxis.references.path import RESPONSE, fill
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
    """Parameters of a saved plan; None: the calls are no saved plan's."""
    loops: bool = False
    """Whether any of the calls has a `for_each`."""
    ids: tuple[str, ...] = ()
    indexes: Mapping[str, int] = {}
    names: Mapping[str, int] = {}
    commands: list[Command | None] = []
    errors: list[CallError] = []
    at_fault: list[str] = []

    @property
    def extra(self) -> Sequence[str]:
        """Return the roots of references that are no steps."""
        params = (PARAMS,) if self.params is not None else ()
        return (*params, ITEM) if self.loops else params

    def response(self, index: int) -> Mapping[str, Json] | None:
        """Return the schema of a step's response, a list for loops."""
        command = self.commands[index]
        if command is None or command.response is None:
            return None
        schema = command.response.json
        if self.calls[index].for_each is None:
            return schema
        listed: dict[str, Json] = {"type": "array", "items": schema}
        return {**listed, "$defs": schema["$defs"]} if "$defs" in schema else listed

    def target(self, index: int) -> str:
        """Return the name of a call, for messages."""
        name = self.calls[index].target
        return name if len(self.calls) == 1 else f"step {index + 1}: {name}"

    def add_error(self, index: int, error: CallError) -> None:
        """Add a problem of a call."""
        self.errors.append(error)
        self.at_fault.append(self.calls[index].id)


class CallReader(Struct, kw_only=True):
    """Reads the references of one call."""

    index: int
    call: Call
    schema: Schema
    work: PlanBuilder
    bindings: list[Binding] = []
    asset_refs: list[tuple[Path, AssetRef]] = []
    depends: set[str] = set()
    refused: list[Path] = []
    """Paths with a reported problem: the schema check skips them."""
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
            here=self.index,
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
                template = self._without_blanks(template, path, value, problems)
                for problem in problems:
                    self._add_problem(problem)
                if problems:
                    self.refused.append(path)
                    continue
                if template is None or not template.whole:
                    self._warn_about_braces(path, value, {*work.names, *extra})
                if template is not None and work.params is not None:
                    if self._replace_by_parameter(template, path, work.params, written):
                        continue
                    template = self._fill_in_parameters(template, path, work.params)
                    if template is None:
                        continue
                if template is not None:
                    if not template.refs:  # escaped braces only
                        written[path] = "".join(map(str, template.parts))
                        continue
                    self.bindings.append(Binding(path=path, template=template))
                    self._add_dependencies(path, template.parts)
                    if value == "PREVIOUS":
                        self.notes.append(
                            f"{call_errors.path_text(path, work.target(self.index))}: "
                            "PREVIOUS read as {{ previous_result }}"
                        )
                    continue
            self._read_asset_reference(path, value, written)
        return fill(arguments, written)

    def _without_blanks(
        self, template: Template | None, path: Path, text: str, problems: list[Problem]
    ) -> Template | None:
        """Return the template, without spaces that would make it a text."""
        if template is None or problems or template.whole or not template.refs:
            return template
        kinds: Any = (self.schema.at(path) or {}).get("type", "string")
        if "string" in kinds:
            return template
        visible_parts = [part for part in template.parts if not str(part).isspace()]
        if len(visible_parts) > 1 or not self.work.lenient:
            kind = kinds if isinstance(kinds, str) else " or ".join(kinds)
            expected = f"{kind}, so one reference without text around it"
            got = call_errors.quote(text)
            problems.append(Problem(path=path, expected=expected, got=got))
        return Template(parts=tuple(visible_parts))

    def _warn_about_braces(self, path: Path, text: str, names: set[str]) -> None:
        """Warn about braces that may be meant as a reference.

        They are the whole value, or their root resembles an existing one.
        """
        work = self.work
        roots = ("previous_result", "results[n]", *work.names)
        for braces, root in islice(foreign(text, names), MOST_PROBLEMS):
            similar = nearest(root, roots)
            if similar or (self.index and braces == text):
                path_name = call_errors.path_text(path, work.target(self.index))
                messages = self.warnings if work.lenient else self.notes
                messages.append(call_errors.braces_are_text(path_name, braces, similar))
                return

    def _is_declared_value(self, path: Path) -> bool:
        """Return whether the word PREVIOUS is a declared value of the parameter."""
        node = self.schema.at(path) or {}
        return "PREVIOUS" in (*node.get("enum", ()), node.get("const"))

    def _add_dependencies(self, path: Path, parts: Sequence[str | Expression]) -> None:
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
            index = self.work.indexes[step]
            response = self.work.response(index)
            if not operations and len(parts) == 1 and step == part.step:
                self._check_class(path, response)
            if response is None:
                continue
            given = check.check(response, operations)
            if isinstance(given, Problem):
                tool = self.work.calls[index].command
                name = f"{tool} in {{{{ {part.text[:60]} }}}}"
                expected = f"{given.expected} of the response of {name}"
                self._add_problem(replace(given, path=path, expected=expected))
            elif len(parts) == 1:
                self._check_kinds(path, given, part)

    def _replace_by_parameter(
        self,
        template: Template,
        path: Path,
        params: Mapping[str, Json],
        written: dict[Path, Json],
    ) -> bool:
        """Replace a value that is only a plan parameter with its data."""
        (*others, last) = template.parts
        if others or isinstance(last, str) or last.step != PARAMS:
            return False
        unknown = _unknown(last, params)
        if unknown is not None:
            self._check_unknown_type(unknown, last, path)
            self.refused.append(path)
            return True
        try:
            wants_text = self.schema.wants_text(path)
            written[path] = evaluate(template, lambda _: params, wants_text, path=path)
        except ReferenceFailure as failure:
            self._add_problem(failure.problem)
            self.refused.append(path)
        return True

    def _fill_in_parameters(
        self, template: Template, path: Path, params: Mapping[str, Json]
    ) -> Template | None:
        """Return the template with the plan's parameters filled in as text."""
        filled_parts: list[str | Expression] = []
        for part in template.parts:
            if isinstance(part, str) or part.step != PARAMS:
                filled_parts.append(part)
                continue
            if _unknown(part, params) is not None:
                filled_parts.append(f"{{{{ {part.text} }}}}")
                continue
            try:
                single = Template(parts=(part,))
                filled_parts.append(evaluate(single, lambda _: params, True, path=path))
            except ReferenceFailure as failure:
                self._add_problem(failure.problem)
                self.refused.append(path)
                return None
        return Template(parts=tuple(filled_parts))

    def _check_unknown_type(
        self, unknown: Unknown, part: Expression, path: Path
    ) -> None:
        """Report a parameter without a value whose type is never accepted."""
        kinds: Any = (self.schema.at(path) or {}).get("type", "string")
        takes = {kinds} if isinstance(kinds, str) else set(kinds)
        if len(part.operations) > 1 or "string" in takes or unknown.kind in takes:
            return
        if not (unknown.kind == "integer" and "number" in takes):
            got = f"{{{{ {part.text[:60]} }}}}, a parameter of type {unknown.kind}"
            expected = " or ".join(sorted(takes))
            self._add_problem(Problem(path=path, expected=expected, got=got))

    def _read_asset_reference(
        self, path: Path, value: Json, written: dict[Path, Json]
    ) -> None:
        ref = parse_reference(value)
        is_raw = (self.schema.at(path) or {}).get(RAW_KEY) is True
        takes = is_raw or self.schema.takes_reference(path)
        if ref is None:
            fault = reference_fault(value) if takes else ""
            if fault:
                got = call_errors.quote(value)
                self._add_problem(Problem(path=path, expected=fault, got=got))
                self.refused.append(path)
            return
        path_name = call_errors.path_text(path, self.work.target(self.index))
        index = self.work.indexes.get(ref.asset_id)
        exists = index is not None or self.work.known_assets(ref.asset_id)
        if not takes and self._is_unknown_parameter(path):
            return  # reported as an unknown key: there is no value to pass
        if not takes:
            # text is data unless it names a live asset (B44); so is an object whose
            # schema has its own `asset_id`
            if isinstance(value, str):
                is_reference = exists
            else:
                is_reference = not self._has_asset_id_property(path)
            if is_reference:
                error = call_errors.asset_ref_not_acceptable(path_name)
                self.work.add_error(self.index, error)
                self.refused.append(path)
        elif index is not None and index >= self.index:
            is_own_result = index == self.index
            if is_own_result:
                keyword, reason = "cyclic", "a step cannot use its own result"
            else:
                keyword, reason = "forward", f"step {index + 1} comes later"
            expected = f"an asset of a step before it ({reason})"
            got = call_errors.quote(ref.asset_id)
            self._add_problem(
                Problem(path=path, expected=expected, got=got, keyword=keyword)
            )
            self.refused.append(path)
        elif not exists:
            error = call_errors.asset_unknown(
                ref.asset_id, self.work.asset_ids, path_name
            )
            self.work.add_error(self.index, error)
            self.refused.append(path)
        else:
            if index is not None:
                self.depends.add(ref.asset_id)
                if ref.field_path == RESPONSE:
                    self._check_class(path, self.work.response(index))
            if is_raw:  # the command accepts the reference itself (rule B43)
                written[path] = format_object(ref)
            else:
                self.asset_refs.append((path, ref))

    def _check_class(self, path: Path, response: Mapping[str, Json] | None) -> None:
        """Report a result that cannot become the parameter's class."""
        result_class = str((response or {}).get("x-type", ""))
        accepted = self.schema.classes_at(path) if result_class else ()
        if accepted and not any(may_become(result_class, name) for name in accepted):
            expected = f"a reference to an object of the class {' or '.join(accepted)}"
            self._add_problem(
                Problem(path=path, expected=expected, got=f"the class {result_class}")
            )
            self.refused.append(path)

    def _check_kinds(self, path: Path, gives: frozenset[str], part: Expression) -> None:
        """Report a reference whose declared type the parameter never accepts."""
        node = (self.schema.at(path) or {}) if gives else {}
        kinds: Any = () if "x-type" in node or RAW_KEY in node else node.get("type", ())
        takes = {kinds} if isinstance(kinds, str) else set(kinds)
        number = {"integer", "number"}
        given = gives | number if gives & number else gives
        if takes and "string" not in takes and takes.isdisjoint(given):
            got = f"{' or '.join(sorted(gives))} from {{{{ {part.text[:60]} }}}}"
            expected = " or ".join(sorted(takes))
            self._add_problem(Problem(path=path, expected=expected, got=got))
            self.refused.append(path)

    def _is_unknown_parameter(self, path: Path) -> bool:
        node = self.schema.at(()) or {}
        closed = node.get("additionalProperties") is False
        return closed and bool(path) and path[0] not in node.get("properties", ())

    def _has_asset_id_property(self, path: Path) -> bool:
        node = self.schema.at(path) or {}
        return "asset_id" in node.get("properties", ())

    def _add_problem(self, problem: Problem) -> None:
        root = self.work.target(self.index)
        text = call_errors.problem_text(replace(problem, path=()))
        error = call_errors.reference_not_found(
            call_errors.path_text(problem.path, root),
            text.removeprefix("the arguments: "),
        )
        self.work.add_error(
            self.index,
            replace(error, problems=(problem,), candidates=problem.candidates),
        )


def _unknown(part: Expression, params: Mapping[str, Json]) -> Unknown | None:
    """Return the parameter of an expression, if it has no value."""
    name = part.operations[0] if part.operations else None
    value = params.get(name) if isinstance(name, str) else None
    return value if isinstance(value, Unknown) else None
