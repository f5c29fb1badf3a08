"""Create the instance of a plugin class, with its configuration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping
from typing import Any, Protocol

from neuraxis.errors import ConfigError
from neuraxis.plugins.functions.deferred_annotations import signature_of
from neuraxis.specs import Json

_EMPTY: Any = inspect.Parameter.empty


class FillsSecrets(Protocol):
    """Replaces `secret://NAME` by the value, and values by the name again."""

    def config(self, config: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return a plugin's configuration with the values in it."""
        ...

    def scrub(self, value: Any) -> Any:
        """Return a text without the values."""
        ...


def make_instance(cls: type[Any], config: Callable[[], Mapping[str, Json]]) -> Any:
    """Create an instance, with the configuration if it takes `config`.

    Only then the configuration is read.

    Raises:
        ConfigError: the constructor needs more than that.
    """
    try:
        parameters = signature_of(cls).parameters.values()
    except ValueError:
        return cls()  # A class in C, as `dict`, has no readable signature.
    accepted = [
        parameter
        for parameter in parameters
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    needed = [parameter for parameter in accepted if parameter.default is _EMPTY]
    named = [parameter for parameter in accepted if parameter.name == "config"]
    if any(parameter not in named for parameter in needed):
        names = ", ".join([parameter.name for parameter in needed])
        raise ConfigError(
            f"the class {cls.__qualname__}: expected a constructor that takes nothing, "
            f"or only `config`, and it needs {names}. In Python, make the "
            f"object yourself: plugins=[{cls.__qualname__}(...)]"
        )
    for parameter in named:
        if parameter.kind is not parameter.POSITIONAL_ONLY:
            return cls(**{parameter.name: config()})
        if parameter is accepted[0]:
            return cls(config())
    return cls()


def close_of(instance: Any, commands: Container[str]) -> Callable[[], Any] | None:
    """Return the `close` of an object, unless it is a command."""
    close = getattr(instance, "close", None)
    return close if callable(close) and "close" not in commands else None
