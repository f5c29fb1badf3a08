"""Count a value's keys that a class does not know.

A union needs this to choose: a class of pydantic accepts the value of one with more
fields, and drops what it does not know.
"""

from __future__ import annotations

from typing import Any

from neuraxis.schema.navigate import ANYTHING, Node, arms, child, kinds, resolved


def is_mapping(node: Node) -> bool:
    """Return whether a schema is of objects without fields of their own."""
    only = resolved(node, node)
    return kinds(only) == ("object",) and "properties" not in only


def unknown_keys(value: Any, node: Node, root: Node) -> int:
    """Return how many of a value's keys the schema does not name.

    Args:
        value: a value that the schema accepts.
        node: the schema, or a part of it.
        root: the schema with its definitions.
    """
    if value.__class__ not in (dict, list):
        return 0
    kind = "array" if value.__class__ is list else "object"
    options = arms(resolved(node, root), root)
    fitting = [arm for arm in options if not kinds(arm) or kind in kinds(arm)]
    if len(fitting) != 1:  # to follow several could take exponential time
        return 0
    only = fitting[0]
    # an object without fields is a mapping, which keeps every key
    is_class = "properties" in only and "additionalProperties" not in only
    count = 0
    for key, item in value.items() if kind == "object" else enumerate(value):
        if is_class and key not in only["properties"]:
            count += 1
        elif item.__class__ in (dict, list):
            count += unknown_keys(item, child(only, key, root) or ANYTHING, root)
    return count
