"""Warn of manifest types that name a class of the plugin wrongly."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import cast

from neuraxis.errors import ManifestProblem
from neuraxis.formatting import class_name, did_you_mean, identifier, nearest
from neuraxis.messages import Path as Place
from neuraxis.parsing.yaml import read_yaml
from neuraxis.schema.notation.type_refs import collect_types
from neuraxis.schema.python_values import imported_classes
from neuraxis.specs import Json, PluginSpec

_NAME = re.compile(r""""[^"]*"|'[^']*'|([^\W\d][\w.]*)""")
_DATA = frozenset({"enum", "example", "examples", "example_output", "default"})


def misnamed(spec: PluginSpec, module: ModuleType) -> Iterator[ManifestProblem]:
    """Yield a warning for each such type of a manifest."""
    prefix = f"{identifier(spec.name)}."
    classes = {
        key: class_name(value)
        for key, value in vars(module).items()
        if isinstance(value, type) and value.__module__.startswith(module.__name__)
    }
    own_types = collect_types(spec.raw, problems=[])
    for place, name in _named(spec.raw.get("commands"), ("commands",)):
        last = name.rpartition(".")[2]
        if name in own_types or name in classes.values() or imported_classes(name):
            continue
        if last in classes:
            message = f"the class {last} of the plugin's file is written "
            message += f"{classes[last]}, got {name}"
        elif name.startswith(prefix) and not _is_installed(prefix[:-1]):
            close = did_you_mean(nearest(name, classes.values(), 1))
            message = f"the plugin's file has no class {name.removeprefix(prefix)!r}."
            message += close
        else:
            continue
        text = Path(spec.source).read_text(encoding="utf-8-sig")
        yield ManifestProblem(
            file=spec.source,
            line=read_yaml(text, spec.source).line(place),
            message=message,
            severity="warning",
        )


def _named(value: Json, place: Place) -> Iterator[tuple[Place, str]]:
    """Yield each name in a `type:`, with its place."""
    if isinstance(value, list):
        for index, item in enumerate(cast("list[Json]", value)):
            yield from _named(item, (*place, index))
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Json]", value).items():
            below = (*place, key)
            if key == "type" and isinstance(item, str):
                for name in _NAME.findall(item):
                    yield below, name
            elif key not in _DATA:
                yield from _named(item, below)


def _is_installed(package: str) -> bool:
    if package in sys.modules:
        return True
    found = importlib.util.find_spec(package)
    # A folder that happens to lie on the path has no origin.
    return found is not None and found.origin is not None
