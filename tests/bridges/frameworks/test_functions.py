"""OpenAI function definitions as a plugin."""

import json
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Session
from neuraxis.bridges.frameworks import from_openai
from neuraxis.errors import ConfigError
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FORMS: tuple[Any, ...] = (
    {"type": "function", "function": {"name": "double", "parameters": SCHEMA}},
    {"type": "function", "name": "double", "parameters": SCHEMA, "strict": True},
    {"name": "double", "parameters": SCHEMA},
)


def double(n: int) -> int:
    return 2 * n


def dispatch(name: str, arguments: dict[str, Any]) -> str:
    return f"{name} {arguments}"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wrap", [lambda f: [f], lambda f: f, lambda f: {"tools": [f]}])
async def test_every_form_in_a_file(form: Any, wrap: Any, tmp_path: Path) -> None:
    """Chat completions, Responses, bare; one, a list, or under `tools`."""
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(wrap(form)), "utf-8")
    plugin = from_openai(file, {"double": double}, effects="none")
    with Session(
        model=ScriptedModel([]), plugins=[plugin], workspace=tmp_path / "w"
    ) as session:
        call = Call(id="a1", plugin=None, command="double", arguments={"n": 21})
        assert (await session.call(call)).value == 42
        call = Call(id="a2", plugin=None, command="double", arguments={"n": "x"})
        assert (await session.call(call)).status == "failed"


async def test_one_function_may_run_them_all(tmp_path: Path) -> None:
    """It is handed name and arguments."""
    plugin = from_openai([FORMS[0]], dispatch)
    run = plugin.commands["double"].run
    assert run is not None
    assert run(n=1) == "double {'n': 1}"


def test_what_is_no_definition_is_refused(tmp_path: Path) -> None:
    """The file, and what stands there."""
    file = tmp_path / "tools.json"
    file.write_text('[{"type": "function"}]', "utf-8")
    with pytest.raises(ConfigError, match=r"tools\.json: expected a function with a"):
        from_openai(file)
    file.write_text("[", "utf-8")
    with pytest.raises(ConfigError, match="cannot be read as JSON"):
        from_openai(file)


def test_a_schema_that_is_broken_is_told(tmp_path: Path) -> None:
    """The command stays; its parameters are not checked."""
    broken = {"name": "double", "parameters": {"type": "object",
              "properties": {"n": {"type": "whole"}}}}  # fmt: skip
    plugin = from_openai([broken], {"double": double})
    assert "not checked" in plugin.problems[0].message
    assert plugin.commands["double"].parameters.valid({"n": 2})
