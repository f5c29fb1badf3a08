"""Every published plugin file: shown in each dialect, called rightly and wrongly."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from conformance.kit import DIALECTS, reply_in, talk
from conformance.samples import mistakes, sample
from neuraxis.dialects import find_dialect
from neuraxis.dialects.native.dialect import safe_name
from neuraxis.messages import Call
from neuraxis.planning.build import build
from neuraxis.plugins.manifest.load import load_manifest
from neuraxis.plugins.registry import Command, Plugin, Registry


def _plugins(shared_data: Path) -> list[Plugin]:
    """Each file as a listed plugin whose commands give a fitting answer."""
    files = sorted((shared_data / "concopilot" / "configs").glob("*.yaml"))
    assert len(files) == 15
    return [_plugin(file) for file in files]


def _plugin(file: Path) -> Plugin:
    spec, _ = load_manifest(file)
    spec = replace(spec, listed=True)
    return Plugin(
        spec=spec,
        commands={
            item.name: Command(plugin=spec, spec=item, run=_answering(item.response))
            for item in spec.commands
        },
    )


def _answering(response: Any) -> Any:
    answer = None if response is None else sample(response, response)

    def run(*_: Any, **__: Any) -> Any:
        return answer

    return run


def test_B2_A2_every_file_is_shown_in_every_dialect(shared_data: Path) -> None:
    """Each command with its parameters; the YAML in the prompt can be read."""
    for plugin in _plugins(shared_data):
        spec, names = plugin.spec, Registry([plugin]).tool_names
        names_of = {where: tool for tool, where in names.items()}
        for dialect in DIALECTS:
            for strict in (False, True):
                spoken = find_dialect(dialect, strict=strict)
                text = spoken.prompt([spec], names)
                tools = spoken.native_tools([spec], names)
                text += "".join(tool["function"]["name"] for tool in tools)
                for item in spec.commands:
                    native = safe_name(names_of[spec.name, item.name])
                    assert (native if dialect == "native" else item.name) in text
                    if dialect != "native" and item.parameters.get("type") == "object":
                        assert all(name in text for name in item.parameter_names)
                for detail in re.findall(r"^```yaml\n(.*?)\n```$", text, re.M | re.S):
                    assert yaml.safe_load(detail)["name"] == spec.name


def _problems(registry: Registry, command: str, arguments: Any) -> Any:
    """What a model that made this call would be told, before anything runs."""
    (plugin,) = registry.specs
    call = Call(id="a1", plugin=plugin.name, command=command, arguments=arguments)
    known = {"a0"}
    return build([call], registry.find, known_assets=known.__contains__).problems


def test_D7_every_kind_of_wrong_call_is_refused(shared_data: Path) -> None:
    """Right calls, full and least, are accepted; each mistake is told at its place."""
    counts: Counter[str] = Counter()
    for plugin in _plugins(shared_data):
        registry = Registry([plugin])

        for item in plugin.spec.commands:
            schema = item.parameters
            for full in (True, False):
                right = sample(schema, schema, full=full)
                assert _problems(registry, item.name, right) == (), (
                    plugin.spec.source,
                    item.name,
                )
                counts["right"] += 1
                for kind, where, wrong in mistakes(schema, schema, right):
                    (error,) = _problems(registry, item.name, wrong)
                    assert error.code == "invalid_param", (item.name, where, wrong)
                    told = str(error.problems)
                    assert any(str(part) in told for part in where[-2:]), (where, told)
                    counts[kind] += 1
        (error,) = _problems(registry, "no_such_command", {})
        assert error.code == "unknown_command"
    assert set(counts) == {"right", "missing", "wrong type", "unknown key", "bad enum"}
    assert min(counts.values()) >= 4
    assert sum(counts.values()) >= 200


def test_B20_every_command_answers_in_every_dialect(shared_data: Path) -> None:
    """A right call goes through a session, and its answer fits what was declared."""
    for plugin in _plugins(shared_data):
        tools = Registry([plugin]).tool_names
        names = {where: tool for tool, where in tools.items()}
        for item in plugin.spec.commands:
            arguments = sample(item.parameters, item.parameters)
            if "asset_id" in repr(arguments) or "x-type" in repr(item.response):
                continue  # needs an object that the test cannot make
            call = Call(
                id="a1",
                plugin=plugin.spec.name,
                command=item.name,
                arguments=arguments,
            )
            for dialect in DIALECTS:
                said = talk([reply_in(dialect, [call], names), "ok"], [plugin], dialect)
                assert said.answer.text == "ok"
                (result,) = said.answer.calls
                assert (result.error, result.warnings) == (None, ()), item.name
                assert result.value == plugin.commands[item.name].run()  # pyright: ignore[reportOptionalCall]
