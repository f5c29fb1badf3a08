"""Module or object with the commands of a plugin's code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from neuraxis.errors import error_of
from neuraxis.plugins.functions.instances import FillsSecrets, make_instance
from neuraxis.plugins.registry import FILE_NAME
from neuraxis.plugins.source_files import line_of, making_raised
from neuraxis.specs import Json, PluginSpec


def holder_of(
    spec: PluginSpec, module: ModuleType, code: Path, secrets: FillsSecrets | None
) -> Any:
    """Return the commands' holder: the module or its plugin object.

    Raises:
        ManifestError: the plugin's constructor failed.
    """
    config = spec.config

    def filled() -> Mapping[str, Json]:
        nonlocal config
        if secrets is not None:
            config = secrets.config(spec.config)
        return config

    try:
        return _holder(spec, module, code, filled)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - author's code
        message = making_raised(error, spec.config)
        if secrets is not None:
            message = secrets.scrub(message)
        # the traceback of what was given a secret may hold it
        cause = error if config is spec.config else None
        raise error_of(str(code), message, line_of(error, code)) from cause


def is_bare(code: Path, module: ModuleType) -> bool:
    """Return whether an `__init__.py` only makes the folder a package."""
    return code.name == "__init__.py" and _maker(module) is None


def _holder(
    spec: PluginSpec,
    module: ModuleType,
    code: Path,
    config: Callable[[], Mapping[str, Json]],
) -> Any:
    # `config` reads secrets: it is called only for a constructor that takes them
    if isinstance(cls := getattr(module, "Plugin", None), type):
        return make_instance(cls, config)
    if all(
        callable(getattr(module, re.sub(r"\W", "_", item.name), None))
        for item in spec.commands
    ):
        return module
    maker = _maker(module)
    if maker is None:
        return module
    where = {"config_folder": str(code.parent), "config_file": FILE_NAME}

    def manifest() -> dict[str, Json]:
        given = config()
        filled = {"config": {**spec.raw["config"], **given}} if given else {}
        return {**spec.raw, **filled, "_config_info": where}

    return maker(manifest)


def _maker(
    module: ModuleType,
) -> Callable[[Callable[[], Mapping[str, Json]]], Any] | None:
    """Return the factory of an older plugin, which takes the manifest's reader."""
    constructor: Any = getattr(module, "constructor", None)
    if callable(constructor):
        make: Callable[..., Any] = constructor
        return lambda manifest: make(manifest())
    own_classes: list[type[Any]] = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and callable(getattr(value, "command", None))
    ]
    return partial(make_instance, own_classes[0]) if len(own_classes) == 1 else None
