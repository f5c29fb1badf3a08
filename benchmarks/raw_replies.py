"""How a session would act on raw replies of models: right, told, silent, wrong.

    python benchmarks/raw_replies.py replies.jsonl tools.json [-v] [--dialects native]

A line of the replies is `{"text": …, "calls": [{"name": …, "arguments": {…}}]}`: what
a model wrote, and the calls that a careful reader finds in it (and `"status": "cut"`
where a call in it has no end). The tools are function
definitions with JSON Schema. Right: exactly these calls would run, in order. Told: no
other call runs, and the model hears of what was not read. Silent: a call is lost and
nobody hears of it. Wrong: a call would run that the text does not hold.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from neuraxis.dialects import Dialect, find_dialect
from neuraxis.messages import Completion, Reply
from neuraxis.schema.schema import Schema
from neuraxis.specs import CommandSpec, PluginSpec

Said = list[tuple[str, Any]]


def commands_of(tools: list[dict[str, Any]]) -> dict[str, CommandSpec]:
    """The commands of function definitions, bare or as servers take them."""
    bare = [tool.get("function") or tool for tool in tools]
    return {
        tool["name"]: CommandSpec(
            name=tool["name"],
            description=tool.get("description", ""),
            parameters=tool.get("parameters") or tool.get("json_schema") or {},
        )
        for tool in bare
    }


def dialect_of(name: str, commands: dict[str, CommandSpec]) -> Dialect:
    """A dialect that was shown these commands."""
    dialect = find_dialect(
        name,
        parameter_names=lambda tool: (
            commands[tool].parameter_names if tool in commands else ()
        ),
    )
    plugin = PluginSpec(name="p", commands=tuple(commands.values()))
    names = {tool: ("p", tool) for tool in commands}
    dialect.prompt([plugin], names)
    dialect.native_tools([plugin], names)
    return dialect


def checked(
    calls: Said, commands: dict[str, CommandSpec], schemas: dict[str, Schema]
) -> Said | None:
    """The calls as they would run; None: the model is told that one cannot."""
    done: Said = []
    for name, given in calls:
        if name not in commands:
            return None
        if name not in schemas:
            schemas[name] = Schema(commands[name].parameters)
        value, _ = schemas[name].coerce(given)
        if schemas[name].problems(value):
            return None
        done.append((name, value))
    return done


def verdict(wanted: Said, got: Said | None, reply: Reply) -> str:
    """Return what became of a reply; `got` is None where all is refused."""
    if got is None:
        return "told"
    if got == wanted:
        return "right"
    left = list(wanted)
    for call in got:
        if call not in left:
            return "wrong"
        left.remove(call)
    # the model hears of what was left only beside calls, or where an error says so
    return "told" if reply.left else "silent"


def judge(
    row: dict[str, Any],
    dialect: Dialect,
    commands: dict[str, CommandSpec],
    schemas: dict[str, Schema],
) -> tuple[str, Said | None, Reply]:
    """Return the verdict on one reply, the calls that would run, and the reply."""
    whole = Completion(text=row["text"], finish_reason="stop")
    reply = dialect.decode(whole, next_id=str)
    calls = [(call.target, call.arguments) for call in reply.calls]
    got = None if reply.errors else checked(calls, commands, schemas)
    expected = [(item["name"], item["arguments"]) for item in row["calls"]]
    wanted = checked(expected, commands, schemas)
    if wanted is None or row.get("status") == "cut":
        # what no tool takes, or has no end: to tell the model is all that can be done
        done = "right" if got is None else "wrong" if got else "silent"
        return done, got, reply
    return verdict(wanted, got, reply), got, reply


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("replies", type=Path)
    parser.add_argument("tools", type=Path)
    parser.add_argument("-v", action="store_true", dest="verbose")
    parser.add_argument("--dialects", default="native,intents")
    given = parser.parse_args()
    lines = given.replies.read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    commands = commands_of(json.loads(given.tools.read_text("utf-8")))
    for name in given.dialects.split(","):
        dialect, schemas = dialect_of(name, commands), dict[str, Schema]()
        counted: Counter[str] = Counter()
        for row in rows:
            said, got, reply = judge(row, dialect, commands, schemas)
            kind = "with calls" if row["calls"] else row.get("status") or "words"
            kind = "words" if kind == "read" else kind
            counted[f"{kind}: {said}"] += 1
            if given.verbose and said != "right":
                print(f"[{said}] {row.get('id', '')} {row['text']!r}")
                print(f"    wanted {row['calls']!r}")
                why = [error.message for error in reply.errors]
                print(f"    got {got!r} {why} {reply.texts!r:.200}")
        print(f"{name:8} {len(rows)} replies: {dict(sorted(counted.items()))}")


if __name__ == "__main__":
    main()
