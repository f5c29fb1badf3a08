"""A prompt shows what fits the request; the rest is found, and then can be called."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Options, Session, command
from neuraxis.bridges.frameworks import from_openai
from neuraxis.errors import ConfigError
from neuraxis.messages import CallError
from neuraxis.models.anthropic.model import AnthropicModel
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.registry import Plugin

DIALECTS = ("intents", "native", "envelope_v2", "envelope_v1")


@command(effects="none")
def convert_currency(amount: float, to: str) -> str:
    """Convert an amount of money to another currency."""
    return f"{amount} {to}"


@command(effects="none")
def water_plants(minutes: int) -> str:
    """Water the plants of the garden."""
    return f"watered for {minutes} minutes"


def many(count: int = 300) -> Plugin:
    """A plugin with many commands that are about nothing in these tests."""
    definitions = [
        {
            "name": f"job_{number}",
            "description": f"Start the batch job number {number} of the cluster.",
            "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
        }
        for number in range(count)
    ]
    return from_openai(definitions, lambda name, given: name, name="jobs")


def session(model: Any, tmp_path: Path, **options: Any) -> Session:
    given = {"options": Options(catalog_limit=6000), **options}
    return Session(
        model=model,
        plugins=[many(), convert_currency, water_plants],
        workspace=tmp_path,
        **given,
    )


def system(given: Session) -> str:
    prompt = given.prompt()
    return prompt.messages[0].content + json.dumps(prompt.native_tools or ())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_prompt_stays_in_its_budget(dialect: str, tmp_path: Path) -> None:
    """It shows what fits the request and how to find the rest, in every dialect."""
    model = ScriptedModel(["Done."])
    with session(model, tmp_path, dialect=dialect) as small:
        small.run_sync("How much money is 5 dollars in another currency?")
        text = system(small)
    assert "convert_currency" in text
    assert "find_commands" in text
    assert "water_plants" not in text
    with session(
        ScriptedModel([]),
        tmp_path,
        dialect=dialect,
        options=Options(catalog_limit=None),
    ) as w:
        assert len(text) < 0.4 * len(system(w))


def test_what_is_not_listed_cannot_be_called_until_it_is_found(tmp_path: Path) -> None:
    """The error says how to find it (rule B4)."""
    replies = [
        json.dumps([{"tool": "water_plants", "minutes": 3}]),
        json.dumps([{"tool": "find_commands", "query": "water the garden"}]),
        json.dumps([{"tool": "water_plants", "minutes": 3}]),
        "Watered.",
    ]
    model = ScriptedModel(replies)
    with session(model, tmp_path) as small:
        answer = small.run_sync("How much money is 5 dollars in another currency?")
        history = "\n".join(item.content for item in small.history)
    assert answer.text == "Watered."
    assert "water_plants is not listed" in history.replace("'", "").replace('\\"', "")
    assert "find_commands" in history
    values = [result.value for result in answer.calls if result.status == "done"]
    assert values[0][0]["tool"] == "water_plants"
    assert values[1] == "watered for 3 minutes"


def test_a_small_registry_is_shown_whole(tmp_path: Path) -> None:
    """Nothing is searched where there is room for all."""
    with Session(
        model=ScriptedModel(["Done."]),
        plugins=[convert_currency, water_plants],
        workspace=tmp_path,
        options=Options(catalog_limit=6000),
    ) as small:
        small.run_sync("Hello")
        assert "find_commands" not in system(small)
        assert "water_plants" in system(small)


def test_some_plugins_are_always_on(tmp_path: Path) -> None:
    """Whatever is asked for."""
    with session(
        ScriptedModel(["Done."]),
        tmp_path,
        options=Options(catalog_limit=6000, always_shown=["water_*"]),
    ) as small:
        small.run_sync("How much money is 5 dollars in another currency?")
        assert "water_plants" in system(small)


def test_names_stay_what_they_were(tmp_path: Path) -> None:
    """A hidden command keeps its tool name, so that no other gets it."""
    with session(ScriptedModel(["Done."]), tmp_path) as small:
        before: Callable[..., Any] = small.registry.tool_name
        command_ = small.registry.command("jobs", "job_7")
        name = before(command_)
        small.run_sync("How much money is 5 dollars in another currency?")
        assert before(command_) == name
        for plugin, tool in ((None, name), ("jobs", "job_7"), (None, "jobs.job_7")):
            found = small.registry.find(plugin, tool)
            if isinstance(found, CallError):
                assert "not listed" in found.message
                break
        else:
            pytest.fail("every command of the cluster is shown")


def test_a_provider_finds_what_is_not_always_shown(tmp_path: Path) -> None:
    """Every tool is sent, and marked; what the provider finds can be called."""
    options = Options(catalog_limit="provider", always_shown=["water_*"])
    given: dict[str, Any] = {"dialect": "native", "options": options}
    with session(AnthropicModel("m"), tmp_path, **given) as whole:
        tools = whole.prompt().native_tools
        found = whole.registry.find("jobs", "job_7")
    assert len(tools) == 302
    shown = [tool["function"]["name"] for tool in tools if "defer_loading" not in tool]
    assert shown == ["water_plants"]
    assert not isinstance(found, CallError)


@pytest.mark.parametrize(
    ("model", "dialect"),
    [(AnthropicModel("m"), "intents"), (ScriptedModel([]), "native")],
)
def test_a_provider_that_cannot_find_is_told(
    model: Any, dialect: str, tmp_path: Path
) -> None:
    """By the dialect and the model, before anything is asked."""
    with pytest.raises(ConfigError, match="'provider' needs dialect='native'"):
        session(
            model,
            tmp_path,
            dialect=dialect,
            options=Options(catalog_limit="provider"),
        )
