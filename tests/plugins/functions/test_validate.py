"""What an author may write in `@command(...)`, and what is told of the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis import agent, command
from neuraxis.errors import ConfigError, ManifestError
from neuraxis.plugins.functions.command import Options, plugin_from
from neuraxis.plugins.functions.validate import check_marking
from neuraxis.testing import check_plugin

KNOWN = tuple(Options.__slots__)
ANY = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.lists(st.text())
    | st.dictionaries(st.text(), st.text())
)


def _told(**options: Any) -> str:
    with pytest.raises(ConfigError) as told:
        check_marking(None, options, KNOWN)
    text = str(told.value)
    assert text.startswith("@command: ")
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    "options",
    [
        {},
        dict.fromkeys(KNOWN),
        {"time_limit": 0.001, "concurrency": 1},
        {"time_limit": 10**9, "concurrency": 10**9},
        {"name": "a", "tool_name": "A", "description": "", "failure_field": "ok"},
        {"names_file": {"path": "read"}, "examples": [], "example_output": 5},
        {"trusted_only": ["to"], "sends_out": ("url",), "secret_ok": {"key"}},
    ],
)
def test_what_can_be_meant_is_taken(options: dict[str, Any]) -> None:
    """None stands for an option that is not written."""
    check_marking(None, options, KNOWN)
    check_marking(lambda: None, options, KNOWN)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("time_limit", it) for it in (0, -1, math.nan, True, "5", [5])],
        *[("time_limit", it) for it in (math.inf, 10**400)],
        *[("concurrency", it) for it in (0, -1, 1.0, 1.5, True, "2")],
        *[("name", it) for it in (5, ["a"])],
        *[("tool_name", it) for it in (True, b"a")],
        *[("description", it) for it in ({}, 1.5)],
        *[("failure_field", it) for it in (False, ["ok"])],
        *[("names_file", it) for it in ("path", ["path"])],
        *[(it, "recipient") for it in ("trusted_only", "sends_out", "secret_ok")],
    ],
)
def test_a_value_of_a_wrong_kind_is_told(name: str, value: Any) -> None:
    """Which option, what is expected; with no calls at once a run would never end."""
    text = _told(**{name: value})
    assert f"{name}: expected " in text
    assert ", got " in text


@given(st.sampled_from(KNOWN), ANY)
def test_any_value_is_taken_or_told(name: str, value: Any) -> None:
    """No value makes another error; what is taken can be counted with."""
    told = ""
    try:
        check_marking(None, {name: value}, KNOWN)
    except ConfigError as error:
        told = str(error)
    if told:
        assert name in told
    elif value is not None and name in ("time_limit", "concurrency"):
        assert 0 < value < math.inf
    elif value is not None and name == "names_file":
        assert isinstance(value, Mapping)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("time_limt", "time_limit"), ("Tool-Name", "tool_name"), ("example", "examples")],
)
def test_an_unknown_option_is_told_with_the_nearest(written: str, meant: str) -> None:
    """And with all there are."""
    text = _told(**{written: 1})
    assert f"{written!r}" in text
    assert f"Did you mean {meant}?" in text
    assert all(name in text for name in KNOWN)


def test_an_option_that_is_like_none_has_no_suggestion() -> None:
    """A guess would lead astray."""
    assert "Did you mean" not in _told(zzz=1)


@pytest.mark.parametrize("effects", ["none", "read", "idempotent", "once"])
def test_effects_without_their_word_are_told(effects: str) -> None:
    """The commonest slip: `@command("read")`."""
    with pytest.raises(ConfigError) as told:
        command(effects)  # type: ignore[call-overload]
    assert f"@command(effects={effects!r})" in str(told.value)


@pytest.mark.parametrize("given_", ["often", 5, [], {"effects": "read"}])
def test_what_is_no_function_is_told(given_: Any) -> None:
    """Nothing is marked that cannot be called."""
    with pytest.raises(ConfigError, match="@command: expected a function, got"):
        command(given_)


@pytest.mark.parametrize("effects", [["read"], {"read"}, None, 3, ("once",)])
def test_effects_of_another_type_are_told(effects: Any) -> None:
    """As a misspelt word is, and not as an error of Python's."""
    with pytest.raises(ConfigError, match="@command: effects: expected one of none"):
        command(effects=effects)


@pytest.mark.parametrize("name", ["", "  ", "a\nb\n# New rules", "a\u202eb"])
def test_a_name_that_a_prompt_cannot_show_is_refused(name: str) -> None:
    """A line of its own would be read as part of the prompt."""
    for option in ("name", "tool_name"):
        assert f"{option}: expected a name on one line" in _told(**{option: name})
    with pytest.raises(ConfigError, match="agent: name: expected a name on one line"):
        agent(name, "Asks.")


def test_a_method_without_an_object_is_refused() -> None:
    """`Shop.stock` would ask the model for self; a static method needs none."""
    with pytest.raises(ManifestError, match=r"method of the class Shop.*Shop\(\)\]"):
        plugin_from(Shop.stock)
    assert plugin_from(Shop.open_today).spec.name == "open_today"
    assert plugin_from(Shop().stock).spec.name == "stock"


class Said(TypedDict):
    """What is said."""

    done: bool


class Shop:
    """A shop."""

    @command(effects="read")
    def stock(self, article: str) -> int:
        """Pieces in stock."""
        return len(article)

    @staticmethod
    @command(effects="read")
    def open_today() -> bool:
        """Whether it is open."""
        return True


def test_a_parameter_without_a_hint_is_told() -> None:
    """The model is asked for it, also where it was meant for the runtime."""

    def look(place, context, *, deep: bool = False) -> int:  # type: ignore[no-untyped-def]
        """Look."""
        return 1

    told = [problem.message for problem in plugin_from(look).problems]
    assert [text.split()[3] for text in told] == ["context", "place"]
    assert "write `context: Context`" in told[0]


def test_a_failure_field_that_is_not_there_is_refused() -> None:
    """As in a manifest; a response of unknown fields may have it."""

    def one() -> Said:
        """Do it."""
        return {"done": True}

    def other() -> dict[str, Any]:
        """Do it."""
        return {}

    for name, function in (("done", one), ("ok", other)):
        assert plugin_from(command(failure_field=name)(function)).commands

    def number() -> int:
        """Do it."""
        return 1

    for function in (one, number):
        with pytest.raises(ManifestError, match="no boolean field 'ok'"):
            plugin_from(command(failure_field="ok")(function))


def test_a_context_without_an_annotation_is_one_warning() -> None:
    """The model would have to give it."""

    def short(ctx, number: int) -> int:  # type: ignore[no-untyped-def]
        """Look."""
        return number

    def long(context, number: int) -> int:  # type: ignore[no-untyped-def]
        """Look."""
        return number

    for function, name in ((short, "ctx"), (long, "context")):
        (told,) = [text for text in check_plugin(function) if ": Context" in text]
        assert f"the parameter {name} has no type hint, so that the model" in told
        assert told.endswith(f"write `{name}: Context` for the runtime's")
