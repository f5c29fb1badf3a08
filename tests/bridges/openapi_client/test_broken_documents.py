"""Documents with anything in the place of anything: read, or refused in words."""

import copy
import random
from math import inf
from typing import Any

import pytest

from bridges.openapi_client.documents import PETS
from neuraxis.bridges import openapi
from neuraxis.errors import ConfigError
from neuraxis.specs import CommandSpec

JUNK: tuple[Any, ...] = (
    None, True, "", "x", -1, 1.5, [], {}, [None], {"a": []}, {"$ref": "#"},
    {"$ref": "#/paths"}, {"$ref": 7}, [[]], {"type": []}, {"type": {"a": 1}},
    {"enum": {}}, {"properties": []}, {"allOf": {}}, {"schema": {"$ref": "x.json#/a"}},
    {"type": "string", "maxLength": "9" * 5000}, {"type": "array", "minItems": inf},
    {"$ref": "#/tags/" + "9" * 5000},
)  # fmt: skip


def places(node: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    items = (
        node.items() if isinstance(node, dict)
        else enumerate(node) if isinstance(node, list) else ()
    )  # fmt: skip
    for key, inner in items:
        found += places(inner, (*at, key))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_no_mistake_of_an_author_ends_in_an_exception(seed: int) -> None:
    """Every field in turn is something else; what stays is checked by a good schema."""
    chance = random.Random(seed)
    every = places(PETS)
    for place in chance.sample(every, 60):
        document = copy.deepcopy(PETS)
        here: Any = document
        for key in place[:-1]:
            here = here[key]
        here[place[-1]] = chance.choice(JUNK)
        try:
            plugin = openapi(document)
        except ConfigError:
            continue
        for command in plugin.commands.values():
            assert isinstance(command.spec, CommandSpec)
            assert command.parameters.defect is None, (place, command.spec.name)
