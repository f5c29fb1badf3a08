"""The notation against real function documents and calls (BFCL, see data/README.md).

Every function is translated from the v2 notation, the same with our additions (which
say what the bare notation loses), the v1 notation and its own JSON Schema. Each call
must be accepted, refused (naming the field) or brought to the one value it can mean.
Run: `python benchmarks/bfcl.py`. It prints the figures and exits with 1 if a rule is
broken. `NEURAXIS_SHARED_DATA` names the data's folder.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuraxis.formatting import nearest
from neuraxis.schema.notation.nodes import parameter_schema, parameters_schema
from neuraxis.schema.notation.type_refs import collect_types
from neuraxis.schema.notation.types import NotationProblem
from neuraxis.schema.schema import Schema

FORMS = ("dsl_v2", "dsl_v2+", "dsl_v1", "json_schema")
BARE = ("dsl_v2", "dsl_v1")


@dataclass
class Report:
    """What one form of the descriptions gave."""

    form: str
    functions: int = 0
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def data_folder() -> Path:
    given = os.environ.get("NEURAXIS_SHARED_DATA")
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    return Path(given) if given else beside


def rows(folder: Path, name: str, every: int = 1) -> Iterator[dict[str, Any]]:
    with (folder / "bfcl" / f"{name}.jsonl").open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % every == 0:
                yield json.loads(line)


def enriched(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A node with what only our additions can say, from the function's own schema."""
    new = dict(node)
    kind = schema.get("type")
    if isinstance(kind, list) and "null" in kind:
        new["nullable"] = True
    for key in ("default", "maximum", "minItems", "maxItems"):
        if key in schema:
            new[key] = schema[key]
    items = schema.get("items") or {}
    if "enum" in items:
        new["items"] = {"enum": items["enum"]}
    below = node.get("type")
    if isinstance(below, dict):
        inner = schema["properties"]
        new["type"] = {key: enriched(value, inner[key]) for key, value in below.items()}
    elif isinstance(below, list):
        inner = items.get("properties", {})
        new["type"] = [enriched(value, inner[value["name"]]) for value in below]
    return new


def schema_of(function: dict[str, Any], form: str, report: Report) -> Schema | None:
    """The schema of one function in one form; None where it has no such form."""
    written = function[form.removesuffix("+")]
    if written is None:
        return None
    report.functions += 1
    if form == "json_schema":
        # The calls were checked where `format` is a remark, as 2020-12 has it.
        return Schema({**written, "x-formats": "annotation"})
    problems: list[NotationProblem] = []
    types = collect_types(written, problems=problems)
    if form.startswith("dsl_v2"):
        node = written["parameter"]
        if form.endswith("+"):
            node = enriched(node, function["json_schema"])
        schema = parameter_schema(node, types, problems=problems)
    else:
        schema = parameters_schema(written["parameters"], types, problems=problems)
    for problem in problems:
        if problem.severity == "error":
            report.problems.append(f"{function['name']}: {problem}")
        else:
            report.counts["warnings of a document"] += 1
    return Schema(schema)


def names_field(call: dict[str, Any], problems: tuple[Any, ...]) -> bool:
    field_name = call["field"]
    return field_name is None or any(field_name in item.path for item in problems)


def same(left: Any, right: Any) -> bool:
    """Equal in value and in type: 1 is not True, and 1 is not 1.0."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def run(folder: Path, form: str, every: int = 1) -> Report:
    report = Report(form)
    functions = {row["fid"]: row for row in rows(folder, "functions")}
    started = time.perf_counter()
    schemas = {
        fid: schema
        for fid, row in functions.items()
        if (schema := schema_of(row, form, report)) is not None
    }
    for call in rows(folder, "accepted", every):
        schema = schemas.get(call["fid"])
        if schema is None:
            continue
        report.counts["accepted"] += 1
        loss = functions[call["fid"]]["dsl_loss"] if form in BARE else []
        value, notes = schema.coerce(call["arguments"])
        if schema.valid(call["arguments"]) and schema.valid(value):
            if value != call["arguments"]:
                report.wrong.append(f"{call['id']}: changed: {notes}")
        elif loss and schema.valid(value):
            report.explained["accepted after a null was left out"] += 1
        elif loss:
            report.explained[f"refused valid: {', '.join(loss)}"] += 1
        else:
            report.wrong.append(f"{call['id']}: refused: {schema.problems(value)}")
    for call in rows(folder, "rejected", every):
        schema = schemas.get(call["fid"])
        if schema is None:
            continue
        report.counts["rejected"] += 1
        value, _ = schema.coerce(call["arguments"])
        problems = schema.problems(value)
        if not problems:
            loss = functions[call["fid"]]["dsl_loss"] if form in BARE else []
            if loss:
                report.explained[f"taken: {call['mutation']}: {loss}"] += 1
            else:
                report.wrong.append(f"{call['id']}: {call['mutation']}: taken")
        elif not names_field(call, problems):
            report.wrong.append(f"{call['id']}: {call['field']} not in {problems}")
    for call in rows(folder, "coercible", every):
        schema = schemas.get(call["fid"])
        if schema is None:
            continue
        value, _ = schema.coerce(call["arguments"])
        if not schema.valid(value):
            report.counts[f"coercible {call['kind']}: refused"] += 1
            if not names_field(call, schema.problems(value)):
                report.wrong.append(f"{call['id']}: {call['field']} not named")
        elif same(value, call["if_lenient"]):
            report.counts[f"coercible {call['kind']}: as meant"] += 1
        elif (
            form in BARE
            and call["kind"] == "enum_case"
            and "items.enum" in functions[call["fid"]]["dsl_loss"]
        ):
            report.explained["enum_case taken raw: items.enum"] += 1
        else:
            report.wrong.append(f"{call['id']}: {call['kind']}: {value}")
    report.seconds = time.perf_counter() - started
    return report


def show(report: Report) -> None:
    print(f"{report.form}: {report.functions} functions, {report.seconds:.2f} s")
    for name, count in sorted(report.counts.items()):
        print(f"  {name}: {count}")
    for name, count in report.explained.items():
        print(f"  explained by dsl_loss: {name}: {count}")
    for title, found in (("PROBLEM", report.problems), ("WRONG", report.wrong)):
        print(f"  {title.lower()}: {len(found)}")
        for text in found[:20]:
            print(f"    {title} {text}")


def suggestions(folder: Path) -> None:
    """How often the nearest name is the one that was meant."""
    names = [row["name"] for row in rows(folder, "functions")]
    misspelled = list(rows(folder, "unknown_command"))
    found = [(nearest(row["name"], names), row["did_you_mean"]) for row in misspelled]
    first = sum(close[:1] == (meant,) for close, meant in found)
    among = sum(meant in close for close, meant in found)
    print(
        f"unknown_command: {len(found)} names among {len(names)}: the right one first "
        f"{first / len(found):.1%} (at least 90 %), among three "
        f"{among / len(found):.1%}"
    )


def main() -> int:
    folder = data_folder()
    if not folder.is_dir():
        print(f"no data at {folder}; set NEURAXIS_SHARED_DATA")
        return 2
    reports = [run(folder, form) for form in FORMS]
    for report in reports:
        show(report)
    suggestions(folder)
    return int(any(report.wrong or report.problems for report in reports))


if __name__ == "__main__":
    sys.exit(main())
