"""Access JSON of other programs, which may have wrong types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from neuraxis.specs import Json


def as_map(value: Any) -> Mapping[str, Json]:
    """Return the value if it is an object, else an empty one."""
    return cast("Mapping[str, Json]", value) if isinstance(value, Mapping) else {}


def as_list(value: Any) -> list[Json]:
    """Return the value if it is a list, else an empty one."""
    return cast("list[Json]", value) if isinstance(value, list) else []
