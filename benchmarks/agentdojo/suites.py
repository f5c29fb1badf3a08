"""AgentDojo's suites as plugins of our runtime; nothing of it calls a model."""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

import yaml

from neuraxis.plugins.registry import Command, Plugin
from neuraxis.specs import CommandSpec, Effects, PluginSpec

VERSION = "v1.2.2"
TOOLS = Path(os.environ.get("DOJO_TOOLS") or Path(__file__).parent / "tools.yaml")
DECLARED: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(
    TOOLS.read_text(encoding="utf-8")
)


def load_suites() -> dict[str, Any]:
    """The four suites, without the clients of five vendors that its agents import."""
    spec = importlib.util.find_spec("agentdojo")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("agentdojo is not installed: see README.md beside this file")
    root = spec.submodule_search_locations[0]
    for name in ("agent_pipeline", "agent_pipeline.llms"):
        package = types.ModuleType(f"agentdojo.{name}")
        package.__path__ = [f"{root}/{name.replace('.', '/')}"]
        sys.modules[package.__name__] = package
    google = types.ModuleType("agentdojo.agent_pipeline.llms.google_llm")
    google.EMPTY_FUNCTION_NAME = "<empty-function-name>"  # type: ignore[attr-defined]
    sys.modules[google.__name__] = google
    from agentdojo.task_suite.load_suites import get_suites

    return get_suites(VERSION)


def plain(value: Any) -> Any:
    """A tool's answer as JSON."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value


class World:
    """One environment, its tools as a plugin, and the calls that were run in it."""

    def __init__(self, suite: Any, environment: Any) -> None:
        from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime

        self.environment = environment
        self.traces: list[Any] = []
        self._call = FunctionCall
        self._runtime = FunctionsRuntime(suite.tools)
        groups: dict[str, list[CommandSpec]] = {}
        for function in suite.tools:
            spec = command_spec(function, DECLARED[suite.name][function.name])
            groups.setdefault(plugin_of(suite.name, function.name), []).append(spec)
        self.plugins = [self._plugin(name, specs) for name, specs in groups.items()]

    def _plugin(self, name: str, specs: list[CommandSpec]) -> Plugin:
        spec = PluginSpec(
            name=name, commands=tuple(specs), description="Tools.", source="dojo"
        )
        return Plugin(
            spec=spec,
            commands={
                item.name: Command(plugin=spec, spec=item, run=self._tool(item.name))
                for item in specs
            },
        )

    def run(self, name: str, arguments: dict[str, Any]) -> Any:
        """Run a tool outside of any session."""
        return self._tool(name)(**arguments)

    def _tool(self, name: str) -> Any:
        def run(**arguments: Any) -> Any:
            value, _ = self._runtime.run_function(
                self.environment, name, arguments, raise_on_error=True
            )
            self.traces.append(self._call(function=name, args=arguments))
            return plain(value)

        return run


def plugin_of(suite: str, tool: str) -> str:
    """AgentDojo's tools come as clients of products: each is a plugin here."""
    products = {
        "email": "mail",
        "contacts": "mail",
        "file": "drive",
        "calendar": "calendar",
    }
    if suite not in ("workspace", "travel"):
        return suite
    return next((name for word, name in products.items() if word in tool), suite)


def command_spec(function: Any, declared: dict[str, Any]) -> CommandSpec:
    """A tool's own name, words and schema; effects and marks as declared."""
    schema = function.parameters.model_json_schema()
    schema.pop("title", None)
    schema["additionalProperties"] = False
    for name in declared.get("trusted_only", ()):
        schema["properties"][name]["x-trusted-only"] = True
    for name in declared.get("sends_out", ()):
        schema["properties"][name]["x-sends-out"] = True
    kind = declared["kind"]
    fields = declared.get("vouched", [])
    response: dict[str, Any] | None = None
    if declared["kind"] == "once" and fields:  # one record
        record = {f: {"x-trusted": True} for f in fields}
        response = {"type": "object", "properties": record}
    elif fields == ["*"]:  # a list of names
        response = {"type": "array", "items": {"x-trusted": True}}
    elif fields:  # a list of records
        record = {
            "type": "object",
            "properties": {f: {"x-trusted": True} for f in fields},
        }
        response = {"type": "array", "items": record}
    return CommandSpec(
        name=function.name,
        description=function.description,
        parameters=schema,
        response=response,
        effects=Effects(
            kind=kind,
            destructive=declared.get("destructive", kind == "once"),
            open_world=declared.get("open_world", False),
            public=declared.get("public", False),
            declared=True,
        ),
        blocking=False,
    )


def canaries(suite: Any) -> set[str]:
    """Tools that answered with a text of a third party in some ground truth."""
    vectors = suite.get_injection_vector_defaults()
    marked = {name: f"CANARY {name}" for name in vectors}
    found: set[str] = set()
    for task in (*suite.user_tasks.values(), *suite.injection_tasks.values()):
        environment = suite.load_and_inject_default_environment(marked)
        if hasattr(task, "init_environment"):
            environment = task.init_environment(environment)
        world = World(suite, environment)
        for call in task.ground_truth(environment.model_copy(deep=True)):
            if "CANARY" in repr(world.run(call.function, plain(dict(call.args)))):
                found.add(call.function)
    for tool in suite.tools:
        fields = tool.parameters.model_fields.values()
        if not any(item.is_required() for item in fields):
            environment = suite.load_and_inject_default_environment(marked)
            world = World(suite, environment)
            if "CANARY" in repr(world.run(tool.name, {})):
                found.add(tool.name)
    return found
