"""A plugin's class and its settings in; the object that has its commands out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from neuraxis.errors import ConfigError
from neuraxis.specs import Json

_EMPTY: Any = inspect.Parameter.empty


def make_instance(cls: type[Any], config: Mapping[str, Json]) -> Any:
    """An instance; with the plugin's own settings where its constructor takes them.

    Raises:
        ConfigError: the constructor needs more than that.
    """
    taken = [
        parameter
        for parameter in inspect.signature(cls).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    if not taken:
        return cls()
    needed = [
        parameter.name
        for parameter in taken
        if parameter.default is _EMPTY
        and parameter.kind is not parameter.VAR_POSITIONAL
    ]
    has_config = any(parameter.name == "config" for parameter in taken)
    if len(needed) > 1 or (has_config and needed and needed != ["config"]):
        raise ConfigError(
            f"the class {cls.__qualname__}: expected a constructor that takes nothing, "
            f"or only `config`, and it needs {', '.join(needed)}. In Python, make the "
            f"object yourself: plugins=[{cls.__qualname__}(...)]"
        )
    if has_config:
        return cls(config=config)
    return cls(config) if taken[0].default is _EMPTY else cls()
