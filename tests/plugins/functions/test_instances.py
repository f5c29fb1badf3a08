"""A plugin's class is made with nothing, or with its settings."""

from __future__ import annotations

from typing import Any

import pytest

from neuraxis import Session, command, plugin_from
from neuraxis.errors import ConfigError
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.functions.instances import make_instance

CONFIG: dict[str, Any] = {"region": "eu"}
NOTHING = object()


class Plain:
    got: Any = NOTHING


class Rest:
    """What a subclass writes that hands everything on."""

    def __init__(self, *args: Any, **rest: Any) -> None:
        self.got = (args, rest)


class Usual:
    def __init__(self, retries: int = 3, *, region: str = "us") -> None:
        self.got = (retries, region)


class Word:
    def __init__(self, *, config: Any) -> None:
        self.got = config


class Maybe:
    def __init__(self, retries: int = 3, config: Any = None) -> None:
        self.got = config


class First:
    def __init__(self, config: Any, /) -> None:
        self.got = config


class OtherName:
    def __init__(self, settings: Any, retries: int = 3) -> None: ...


class OtherWord:
    def __init__(self, *args: Any, retries: int = 3, settings: Any) -> None: ...


class Both:
    def __init__(self, retries: int, config: Any) -> None: ...


class Two:
    def __init__(self, host: str, *, port: int) -> None: ...


class NotFirst:
    def __init__(self, retries: int = 3, config: Any = NOTHING, /) -> None:
        self.got = config
        assert retries == 3


class Own(dict[str, Any]):
    got: Any = NOTHING


class Failing:
    def __init__(self) -> None:
        raise KeyError("own")


@pytest.mark.parametrize(
    ("cls", "got"),
    [
        (Plain, NOTHING),
        (Own, NOTHING),
        (NotFirst, NOTHING),
        (Rest, ((), {})),
        (Usual, (3, "us")),
    ],
)
def test_a_constructor_that_needs_nothing_gets_nothing(cls: Any, got: Any) -> None:
    """Its defaults are its own; a class in C does not say what it takes."""
    made = make_instance(cls, lambda: CONFIG)
    assert type(made) is cls
    assert made.got == got


@pytest.mark.parametrize("cls", [Word, Maybe, First])
def test_the_settings_go_where_they_are_taken(cls: Any) -> None:
    """As `config`, by name or by place, as it is written."""
    assert make_instance(cls, lambda: CONFIG).got is CONFIG


@pytest.mark.parametrize(
    ("cls", "needs"),
    [
        (Both, "retries, config"),
        (Two, "host, port"),
        (OtherName, "settings"),
        (OtherWord, "settings"),
    ],
)
def test_a_constructor_that_needs_more_is_told(cls: Any, needs: str) -> None:
    """Which class, what it needs, and what to write instead."""
    with pytest.raises(ConfigError) as told:
        make_instance(cls, lambda: CONFIG)
    assert f"the class {cls.__qualname__}" in str(told.value)
    assert f"it needs {needs}." in str(told.value)
    assert f"plugins=[{cls.__qualname__}(...)]" in str(told.value)


def test_what_the_constructor_raises_comes_out() -> None:
    """It is the author's own."""
    with pytest.raises(KeyError, match="own"):
        make_instance(Failing, lambda: CONFIG)


class Shelf:
    """A shelf."""

    def __init__(self, goods: str) -> None:
        self.goods = goods

    @command(effects="none")
    def look(self) -> str:
        """Look at it."""
        return self.goods


def test_two_objects_of_one_class_have_names_of_their_own() -> None:
    """A program connects to two databases of one kind; each call reaches its own."""
    plugins = [
        plugin_from(Shelf("apples"), name="fruit"),
        plugin_from(Shelf("bread"), name="bakery"),
    ]
    reply = '[{"tool": "fruit.look"}, {"tool": "bakery.look"}]'
    with Session(model=ScriptedModel([reply, "done"]), plugins=plugins) as session:
        answer = session.run_sync("Look.")
    assert [result.value for result in answer.calls] == ["apples", "bread"]


def test_the_refusal_of_two_objects_says_how_to_name_them() -> None:
    """The person who lists both sees what to write."""
    with pytest.raises(ConfigError, match=r"plugin_from\(OBJECT, name="):
        Session(model=ScriptedModel([]), plugins=[Shelf("a"), Shelf("b")])


def test_a_plugin_keeps_its_name() -> None:
    """A second name is refused, not ignored."""
    made = plugin_from(Shelf("a"), name="one")
    assert plugin_from(made) is made
    with pytest.raises(ConfigError, match="got a plugin: 'one' has its name"):
        plugin_from(made, name="two")
    with pytest.raises(ConfigError, match="got a plugin"):
        plugin_from(made, config={"a": 1})


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_a_name_is_a_text_of_one_line(name: str) -> None:
    """It stands in the prompt; an empty one was the class's, in silence."""
    with pytest.raises(ConfigError, match="name: expected a text of one line"):
        plugin_from(Shelf("a"), name=name)
