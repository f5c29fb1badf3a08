"""The golden cases of tests/wire: YAML in, replies and results to compare with out."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from neuraxis.messages import Call, CallError, Completion, NativeCall, Reply, Result

Case = dict[str, Any]
_WIRE = Path(__file__).resolve().parent / "wire"


def cases(dialect: str, kind: str) -> list[Case]:
    """Every case of a dialect that has the key `kind` (reply, results, errors…)."""
    found: list[Case] = []
    for file in sorted((_WIRE / dialect).glob("*.yaml")):
        for case in yaml.safe_load(file.read_text(encoding="utf-8")):
            if kind in case:
                found.append(case | {"file": file.name})
    return found


def case_id(case: Case) -> str:
    """Rule ids first, so that `pytest -k A17` finds the cases of a rule."""
    rules = "_".join(case.get("rules", []))
    return f"{rules}-{case['name']}" if rules else case["name"]


def counter() -> Callable[[], str]:
    """The ids a1, a2, …"""
    numbers = itertools.count(1)
    return lambda: f"a{next(numbers)}"


def completion(case: Case, text: str | None = None) -> Completion:
    """What the model wrote in this case."""
    return Completion(
        text=case["reply"] if text is None else text,
        tool_calls=tuple(NativeCall(**item) for item in case.get("tool_calls", [])),
        finish_reason=case.get("finish_reason", "stop"),
    )


def written(reply: Reply) -> Case:
    """A reply as the cases write it."""
    return {
        "calls": [_call(call) for call in reply.calls],
        "texts": list(reply.texts),
        "thoughts": list(reply.thoughts),
        "errors": [error.code for error in reply.errors],
        "left": list(reply.left),
    }


def expected(case: Case) -> Case:
    """What the case says of the reply, with everything it leaves out."""
    calls = [
        {
            "id": item.get("id", f"a{number}"),
            "plugin": item.get("plugin"),
            "command": item.get("command", item.get("tool")),
            "arguments": item.get("arguments", {}),
            "name": item.get("name"),
            "literal": item.get("literal", False),
            "for_each": item.get("for_each"),
            "max_items": item.get("max_items"),
        }
        for number, item in enumerate(case.get("calls", []), 1)
    ]
    return {
        "calls": calls,
        "texts": case.get("texts", []),
        "thoughts": case.get("thoughts", []),
        "errors": case.get("errors", []),
        "left": case.get("left", []),
    }


def _call(call: Call) -> Case:
    return {
        "id": call.id,
        "plugin": call.plugin,
        "command": call.command,
        "arguments": call.arguments,
        "name": call.name,
        "literal": call.literal,
        "for_each": call.for_each,
        "max_items": call.max_items,
    }


def results(case: Case) -> list[Result]:
    """The results that the case encodes."""
    return [
        Result(
            call=Call(
                id=item["id"],
                plugin=item.get("plugin"),
                command=item.get("command", item.get("tool")),
                name=item.get("name"),
            ),
            status=item["status"],
            plugin=item.get("plugin"),
            command=item.get("command"),
            value=item.get("value"),
            stored=item.get("stored", False),
            error=CallError(**item["error"]) if "error" in item else None,
            warnings=tuple(item.get("warnings", [])),
        )
        for item in case["results"]
    ]
