"""NESTFUL and Seal-Tools chains through the whole runtime.

Every chain is written as a model would write it (an intent plan, an array of protocol
v2, the same with asset URLs), said by a scripted model, decoded, checked and run
against stub commands. It passes when each tool received exactly the arguments it must
and each result is what its stub answered.

    python benchmarks/chains.py ../shared/data/chains
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuraxis import Budget, Session
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Command, Plugin
from neuraxis.policy.rules import EVERYTHING
from neuraxis.references.asset_ref import AssetRef, format_url
from neuraxis.settings import Settings
from neuraxis.specs import CommandSpec, Effects, PluginSpec

FORMS = ("intents", "envelope_v2", "envelope_v2 with asset URLs", "native")
_PATH = re.compile(r"\.(\w+)|\[(\d+)\]")
_VAR = re.compile(r"\$(var\w*)((?:[.\[][^$]*)?)\$")
_CALL = re.compile(r"API_call_\d+")


@dataclass(frozen=True)
class Ref:
    """A reference to the answer of a step, as the data set says it."""

    step: int
    path: tuple[str | int, ...] = ()


@dataclass(frozen=True)
class Text:
    """A text with references in it."""

    parts: tuple[str | Ref, ...]


@dataclass(frozen=True)
class Chain:
    """One chain: `steps` are (tool, arguments with `Ref`s in them)."""

    id: str
    query: str
    steps: Sequence[tuple[str, dict[str, Any]]]
    outputs: Sequence[Any]
    expected: Sequence[Any]


# --- the two data sets ---------------------------------------------------------


def nestful(folder: Path) -> Iterator[Chain]:
    for row in _rows(folder / "nestful.jsonl"):
        if row["problem"] is not None:
            continue
        places = {step["label"]: index for index, step in enumerate(row["steps"])}
        yield Chain(
            id=row["id"],
            query=row["query"],
            steps=[
                (step["tool"], _mapped(step["arguments"], places, _nestful_ref))
                for step in row["steps"]
            ],
            outputs=row["stub_outputs"],
            expected=row["expected_arguments"],
        )


def _nestful_ref(text: str, places: dict[str, int]) -> Any:
    parts: list[str | Ref] = []
    done = 0
    for found in _VAR.finditer(text):
        if text[done : found.start()]:
            parts.append(text[done : found.start()])
        path = tuple(key or int(index) for key, index in _PATH.findall(found[2]))
        parts.append(Ref(places[found[1]], path))
        done = found.end()
    if text[done:]:
        parts.append(text[done:])
    if not any(isinstance(part, Ref) for part in parts):
        return text
    return parts[0] if len(parts) == 1 else Text(tuple(parts))


def sealtools(folder: Path) -> Iterator[Chain]:
    for row in _rows(folder / "sealtools.jsonl"):
        places = {
            name: index
            for index, step in enumerate(row["steps"])
            for name in step["produces"]
        }
        outputs = [
            {name: f"<<{name}>>" for name in step["produces"]} for step in row["steps"]
        ]
        steps = [
            (step["tool"], _mapped(step["arguments"], places, _seal_ref))
            for step in row["steps"]
        ]
        expected = [_expected(arguments, outputs) for _, arguments in steps]
        yield Chain(row["id"], row["query"], steps, outputs, expected)


def _seal_ref(text: str, places: dict[str, int]) -> Any:
    if not _CALL.fullmatch(text):
        return text
    return Ref(places[text], (text,))


def _rows(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _mapped(value: Any, places: dict[str, int], read: Any) -> Any:
    if isinstance(value, dict):
        return {key: _mapped(item, places, read) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, places, read) for item in value]
    return read(value, places) if isinstance(value, str) else value


def _expected(value: Any, outputs: Sequence[Any]) -> Any:
    if isinstance(value, Ref):
        found = outputs[value.step]
        for part in value.path:
            found = found[part]
        return found
    if isinstance(value, dict):
        return {key: _expected(item, outputs) for key, item in value.items()}
    if isinstance(value, list):
        return [_expected(item, outputs) for item in value]
    return value


# --- as a model writes them ----------------------------------------------------


def written(chain: Chain, form: str) -> Any:
    """The reply of a model that wants this chain."""
    urls = form.endswith("asset URLs")
    steps = [
        (tool, _as_written(arguments, index, urls))
        for index, (tool, arguments) in enumerate(chain.steps)
    ]
    if form == "intents":
        return json.dumps([{"tool": tool, **given} for tool, given in steps])
    if form == "native":
        calls = [
            {"id": f"call_{index}", "name": tool, "arguments": json.dumps(given)}
            for index, (tool, given) in enumerate(steps)
        ]
        return {"tool_calls": calls, "finish_reason": "tool_calls"}
    return json.dumps(
        [
            {
                "receiver": {"role": "plugin", "name": "chain"},
                "content": {"type": "command", "command": tool, "param": given},
            }
            for tool, given in steps
        ]
    )


def _as_written(value: Any, here: int, urls: bool) -> Any:
    if isinstance(value, Text):
        return "".join(
            part if isinstance(part, str) else _braces(part, here)
            for part in value.parts
        )
    if isinstance(value, Ref):
        if not urls:
            return _braces(value, here)
        path = ("content", "response", *value.path)
        return format_url(AssetRef(asset_id=f"a{value.step + 1}", field_path=path))
    if isinstance(value, dict):
        return {key: _as_written(item, here, urls) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_written(item, here, urls) for item in value]
    return value


def _braces(ref: Ref, here: int) -> str:
    root = "previous_result" if ref.step == here - 1 else f"results[{ref.step}]"
    inside = "".join(
        f"[{part}]" if isinstance(part, int) else f"[{part!r}]" for part in ref.path
    )
    return f"{{{{ {root}{inside} }}}}"


# --- one run -------------------------------------------------------------------


def stub(chain: Chain, received: dict[str, Any]) -> Plugin:
    """A plugin whose commands note what they receive and answer what they must."""

    async def answer(context: Context, /, **arguments: Any) -> Any:
        received[context.call_id] = arguments
        return chain.outputs[int(context.call_id[1:]) - 1]

    async def run(**arguments: Any) -> Any:
        return await answer(arguments.pop("context "), **arguments)

    names: dict[str, dict[str, Any]] = {}
    for tool, arguments in chain.steps:
        taken = {"x-asset-ref": True, "items": {"x-asset-ref": True}}
        names.setdefault(tool, {}).update(dict.fromkeys(arguments, taken))
    specs = tuple(
        CommandSpec(
            name=tool,
            parameters={
                "type": "object",
                "properties": properties,
                "additionalProperties": False,
            },
            effects=Effects(kind="read"),
        )
        for tool, properties in names.items()
    )
    plugin = PluginSpec(name="chain", commands=specs)
    commands = {
        spec.name: Command(
            plugin=plugin, spec=spec, run=run, is_async=True, context_name="context "
        )
        for spec in specs
    }
    return Plugin(spec=plugin, commands=commands)


def fault(chain: Chain, form: str) -> str:
    """What went wrong with a chain written in this form; empty: nothing."""
    received: dict[str, Any] = {}
    session = Session(
        model=ScriptedModel([written(chain, form), "done"]),
        plugins=[stub(chain, received)],
        dialect=form.split()[0],
        budget=Budget(repeats=1_000),
        policy=EVERYTHING,
        settings=Settings(),
    )
    answer = session.run_sync(chain.query)
    session.close()
    if len(answer.calls) != len(chain.steps):
        told = [message.content for message in session.history][-2:]
        return f"{len(answer.calls)} of {len(chain.steps)} calls: {told}"
    for index, (result, output) in enumerate(
        zip(answer.calls, chain.outputs, strict=True)
    ):
        got = received.get(f"a{index + 1}")
        if got != chain.expected[index]:
            return f"step {index + 1} received {got}, not {chain.expected[index]}"
        if result.status != "done" or result.value != output:
            return f"step {index + 1}: {result.error or result.value}"
    return ""


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/chains")
    for name, chains in (
        ("NESTFUL", list(nestful(folder))),
        ("Seal-Tools", list(sealtools(folder))),
    ):
        for form in FORMS:
            started = time.perf_counter()
            faults = [
                (chain.id, told) for chain in chains if (told := fault(chain, form))
            ]
            took = time.perf_counter() - started
            right = len(chains) - len(faults)
            print(
                f"{name:10} {form:28} {right} of {len(chains)} chains right, "
                f"{1000 * took / len(chains):.1f} ms each"
            )
            for chain_id, told in faults[:5]:
                print(f"    {chain_id}: {told[:300]}")


if __name__ == "__main__":
    main()
