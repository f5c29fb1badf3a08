"""The four plugins that come with the package, as a person loads them."""

from __future__ import annotations

import ast

import pytest

from neuraxis.plugins.loader import load_plugin
from neuraxis.plugins.registry import Command, Plugin, Registry
from neuraxis.schema.annotations import marks_of
from neuraxis.specs import Example

NAMES = ("web_search", "files", "fetch_url", "python_file")


@pytest.fixture(scope="module")
def plugins() -> tuple[Plugin, ...]:
    """All four, loaded by name."""
    return tuple(load_plugin(f"neuraxis:{name}") for name in NAMES)


@pytest.fixture(scope="module")
def registry(plugins: tuple[Plugin, ...]) -> Registry:
    """One session's plugins."""
    return Registry(plugins)


def _commands(registry: Registry) -> list[Command]:
    return [c for plugin in registry.plugins for c in plugin.commands.values()]


def _examples(registry: Registry) -> list[Example]:
    own = [e for command in _commands(registry) for e in command.spec.examples]
    return own + [e for plugin in registry.plugins for e in plugin.spec.examples]


def test_manifests_have_no_problem(plugins: tuple[Plugin, ...]) -> None:
    """Not even a warning."""
    assert [] == [problem for plugin in plugins for problem in plugin.problems]


def test_C8_to_C11_tools_have_the_names_of_the_document(registry: Registry) -> None:
    """The four tools, their parameters and what they return."""
    expected = {
        "GOOGLE": (("query",), "urls"),
        "FILEWRITER": (("file_path", "contents"), "success"),
        "FETCH_URL": (("url",), "output"),
        "EXECUTE_PYTHON_FILE": (("file_path",), "output"),
    }
    for tool, (parameters, returned) in expected.items():
        plugin, name = registry.tool_names[tool]
        command = registry.find(plugin, name)
        assert isinstance(command, Command)
        assert parameters == command.spec.parameter_names
        assert parameters == command.spec.required
        assert command.spec.response is not None
        assert returned in command.spec.response["required"]


@pytest.mark.parametrize(("tool", "place"), [("GOOGLE", "query"), ("FETCH_URL", "url")])
def test_L_what_leaves_is_declared(registry: Registry, tool: str, place: str) -> None:
    """A query leaves this machine as an address does."""
    plugin, name = registry.tool_names[tool]
    command = registry.find(plugin, name)
    assert isinstance(command, Command)
    assert marks_of(command.spec.parameters).sends_out == ((place,),)


def test_effects(registry: Registry) -> None:
    """What the policy and the schedule rely on."""
    found = {
        registry.tool_name(command): (
            command.spec.effects.kind,
            command.spec.effects.destructive,
            command.spec.effects.open_world,
        )
        for command in _commands(registry)
    }
    assert {
        "GOOGLE": ("read", False, True),
        "FETCH_URL": ("read", False, True),
        "FILEWRITER": ("idempotent", True, False),
        "file_reader": ("read", False, False),
        "list_files": ("read", False, False),
        "append_file": ("once", False, False),
        "replace_in_file": ("once", False, False),
        "copy_file": ("idempotent", True, False),
        "move_file": ("once", True, False),
        "delete_file": ("once", True, False),
        "make_folder": ("idempotent", False, False),
        "save_result": ("idempotent", True, False),
        "find_in_files": ("read", False, False),
        "EXECUTE_PYTHON_FILE": ("once", True, False),
    } == found


def test_C12_a_false_success_is_a_failed_step(registry: Registry) -> None:
    """Both tools that answer with `success` say so in their manifest."""
    found = {registry.tool_name(c): c.spec.failure_field for c in _commands(registry)}
    assert ("success", "success") == (
        found["FILEWRITER"],
        found["EXECUTE_PYTHON_FILE"],
    )


def test_C6_examples_are_valid_calls(registry: Registry) -> None:
    """Each example call names a tool that is there, with arguments that fit."""
    examples = _examples(registry)
    assert len(examples) >= 40
    for example in examples:
        for call in example.calls:
            command = registry.find(*registry.tool_names[call.tool])
            assert isinstance(command, Command)
            assert command.parameters.valid(dict(call.arguments)), example.question


def test_example_outputs_are_what_the_manifest_declares(registry: Registry) -> None:
    """The output shown to a model passes the check that a real one must pass."""
    for command in _commands(registry):
        assert command.response is not None
        assert command.response.valid(command.spec.example_output)


def test_example_scripts_are_python(registry: Registry) -> None:
    """A model copies what it sees: every script of an example compiles."""
    scripts = [
        str(call.arguments["contents"])
        for example in _examples(registry)
        for call in example.calls
        if str(call.arguments.get("file_path", "")).endswith(".py")
        and "contents" in call.arguments
    ]
    assert len(scripts) >= 5
    for script in scripts:
        ast.parse(script)


def test_no_question_stands_twice(registry: Registry) -> None:
    """Two answers for one request would teach a model to guess."""
    questions = [example.question for example in _examples(registry)]
    assert len(questions) == len(set(questions))
