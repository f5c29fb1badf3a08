"""Recorded dialogues through the whole runtime, in each dialect (BFCL multi-turn).

The 128 functions of eight APIs become plugins by their manifests; their commands give
the recorded answers. A scripted model makes every recorded call of a dialogue, a turn
at a time, in the dialect's own words. What the commands received, what they returned
and what the model was told must be what was recorded.
Run: `python benchmarks/multi_turn.py [dialogues]`. It prints the figures and exits with
1 if anything was another. `NEURAXIS_SHARED_DATA` names the data's folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from neuraxis import Session
from neuraxis.dialects import DIALECTS, find_dialect
from neuraxis.dialects.native.dialect import safe_name
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.plugins.registry import Command, Plugin
from neuraxis.schema.notation.write import node_from_schema
from neuraxis.settings import Settings

_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}


@dataclass
class Report:
    """What one dialect gave."""

    dialect: str
    dialogues: int = 0
    calls: int = 0
    characters: int = 0
    """What the model was told in answers."""
    cut: int = 0
    """Answers that were told with a part left out; the value itself was whole."""
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


def data_folder() -> Path:
    given = os.environ.get("NEURAXIS_SHARED_DATA")
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    return Path(given) if given else beside


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    text = (folder / "bfcl_multi_turn" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def json_schema(node: Any) -> Any:
    """BFCL's types in the words of JSON Schema."""
    if isinstance(node, list):
        return [json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {key: json_schema(value) for key, value in node.items()}
    kind = made.get("type")
    if isinstance(kind, str):
        made["type"] = _TYPES.get(kind, kind)
        if made["type"] is None:
            del made["type"]
    if made.get("default") == "None":  # a text that stands for nothing
        del made["default"]
    return made


def manifests(apis: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """A manifest of protocol v2 for each API."""
    commands: dict[str, list[Any]] = {}
    for api in apis:
        # what the description does not list may be there: the recordings have it
        response = json_schema(api["response"])
        commands.setdefault(api["plugin"], []).append(
            {
                "command_name": api["name"],
                "description": api["description"],
                "parameter": node_from_schema(
                    {**json_schema(api["parameters"]), "additionalProperties": False}
                ),
                "response": node_from_schema(response, flag="optional"),
            }
        )
    return {
        plugin: yaml.safe_dump(
            {"name": plugin, "info": {"description": plugin}, "commands": listed},
            sort_keys=False,
        )
        for plugin, listed in commands.items()
    }


@dataclass
class Recorded:
    """The commands of one dialogue: each call gets the next recorded answer."""

    expected: deque[dict[str, Any]]
    wrong: list[str]

    def plugin(self, spec: Any) -> Plugin:
        found = {
            item.name: Command(plugin=spec, spec=item, run=self._command(item.name))
            for item in spec.commands
        }
        return Plugin(spec=spec, commands=found)

    def _command(self, name: str) -> Any:
        def run(**given: Any) -> Any:
            call = self.expected.popleft()
            if (call["command"], call["param"]) != (name, given):
                self.wrong.append(f"{name}({given}) instead of {call['source']}")
            return call["response"]

        return run


def reply_of(dialect: str, calls: Sequence[Call]) -> Any:
    """What a model says to make these calls."""
    if dialect == "native":
        return {
            "tool_calls": [
                {
                    "id": call.id,
                    "name": safe_name(call.command),
                    "arguments": json.dumps(call.arguments),
                }
                for call in calls
            ],
            "finish_reason": "tool_calls",
        }
    if dialect == "intents":
        calls = [replace(call, plugin=None) for call in calls]
    return find_dialect(dialect).write(calls)


def told_values(dialect: str, texts: Sequence[str]) -> list[Any]:
    """The responses in the messages that the model read."""
    found: list[Any] = []
    for text in texts:
        body = text.replace("<!-- RESULTS_START -->", "")
        value = json.loads(body.replace("<!-- RESULTS_END -->", ""))
        items = value if isinstance(value, list) else value.get("results", [value])
        for item in items:
            said = item.get("content", item)
            found.append(said.get("response"))
    return found


async def play(
    dialogue: Mapping[str, Any], specs: Mapping[str, Any], dialect: str, report: Report
) -> None:
    """One dialogue, a run for each turn of the user."""
    turns: list[list[dict[str, Any]]] = [turn for turn in dialogue["turns"] if turn]
    replies: list[Any] = []
    for turn in turns:
        calls = [
            Call(
                id=f"c{number}",
                plugin=call["plugin"],
                command=call["command"],
                arguments=call["param"],
            )
            for number, call in enumerate(turn)
        ]
        replies += [reply_of(dialect, calls), "Done."]
    name, wrong = dialogue["id"], report.wrong
    recorded = Recorded(deque(call for turn in turns for call in turn), wrong)
    plugins = {call["plugin"] for turn in turns for call in turn}
    model = ScriptedModel(replies)
    with tempfile.TemporaryDirectory() as workspace:
        session = Session(
            model=model,
            plugins=[recorded.plugin(specs[plugin]) for plugin in sorted(plugins)],
            dialect=dialect,
            workspace=workspace,
            settings=Settings(),
        )
        with session:
            for number, turn in enumerate(turns):
                answer = await session.run("Go on.")
                report.calls += len(turn)
                values = [result.value for result in answer.calls]
                wanted = [call["response"] for call in turn]
                if answer.text != "Done." or values != wanted:
                    errors = [result.error for result in answer.calls if result.error]
                    wrong.append(f"{name}, turn {number}: {errors or answer.error}")
                    return
                last = model.prompts[-1].messages
                said = [item.content for item in last if item.results][-len(turn) :]
                if dialect != "native":
                    said = said[-1:]
                report.characters += sum(map(len, said))
                for told, value in zip(told_values(dialect, said), wanted, strict=True):
                    if told != value:
                        if "whole value: asset://" not in json.dumps(told):
                            wrong.append(f"{name}: told {told} instead of {value}")
                        report.cut += 1
    if recorded.expected:
        wrong.append(f"{name}: {len(recorded.expected)} calls were not made")
    report.dialogues += 1


def run(folder: Path, dialect: str, most: int | None = None) -> Report:
    """The dialogues of the data in one dialect."""
    specs: dict[str, Any] = {}
    for plugin, text in manifests(rows(folder, "apis")).items():
        specs[plugin], _ = parse_manifest(text, file=plugin)
    report = Report(dialect)
    started = time.perf_counter()

    async def all_of_them() -> None:
        for dialogue in rows(folder, "dialogues")[:most]:
            await play(dialogue, specs, dialect, report)

    asyncio.run(all_of_them())
    report.seconds = time.perf_counter() - started
    return report


def main() -> int:
    folder = data_folder()
    if not folder.is_dir():
        print(f"no data at {folder}; set NEURAXIS_SHARED_DATA")
        return 2
    most = int(sys.argv[1]) if len(sys.argv) > 1 else None
    failed = False
    for dialect in DIALECTS:
        report = run(folder, dialect, most)
        print(
            f"{dialect}: {report.dialogues} dialogues, {report.calls} calls, "
            f"{len(report.wrong)} wrong, {report.cut} told in part, "
            f"{report.characters} characters told, {report.seconds:.2f} s"
        )
        for text in report.wrong[:20]:
            print(f"  WRONG {text}")
        failed = failed or bool(report.wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
