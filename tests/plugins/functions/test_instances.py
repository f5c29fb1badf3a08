"""A plugin's class is made with nothing, or with its settings."""

from __future__ import annotations

from typing import Any

import pytest

from neuraxis.errors import ConfigError
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
