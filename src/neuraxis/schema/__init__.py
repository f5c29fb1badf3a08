"""Schemas of parameters and responses: translation from YAML, and validation.

The YAML notation of both plugin protocols becomes JSON Schema 2020-12: the same dict is
shown to a model and enforced by `Schema` (rules B28-B50). Every mistake of a tree is
appended to `problems` at once.

    notation/         the YAML notation: nodes, types, values, `_type_ref`, writing
    builders.py       the schemas that type names stand for
    annotations.py    what a parameter says of trust, secrets and files
    schema.py         `Schema`: verdicts, problems, sub-schemas
    explain.py        a validator's error in words
    python_values.py  objects behind references
    formats.py        dates, times and other formats of text
    coerce.py         the lossless leniencies
    navigate.py       finding a place in a schema, and how deep a tree is
    describe.py       a schema as a short text

The names are imported on first use: where no manifest is read, nothing that reads one
is loaded.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuraxis.schema.builders import REFERENCE, without_reference
    from neuraxis.schema.describe import FULL, type_text
    from neuraxis.schema.notation.nodes import (
        parameter_schema,
        parameters_schema,
        response_schema,
    )
    from neuraxis.schema.notation.type_refs import collect_types
    from neuraxis.schema.notation.types import NotationProblem, TypeTable
    from neuraxis.schema.notation.write import node_from_schema
    from neuraxis.schema.schema import Schema

_WHERE = {
    "FULL": "describe",
    "NotationProblem": "notation.types",
    "REFERENCE": "builders",
    "Schema": "schema",
    "TypeTable": "notation.types",
    "collect_types": "notation.type_refs",
    "node_from_schema": "notation.write",
    "parameter_schema": "notation.nodes",
    "parameters_schema": "notation.nodes",
    "response_schema": "notation.nodes",
    "type_text": "describe",
    "without_reference": "builders",
}

__all__ = [
    "FULL",
    "REFERENCE",
    "NotationProblem",
    "Schema",
    "TypeTable",
    "collect_types",
    "node_from_schema",
    "parameter_schema",
    "parameters_schema",
    "response_schema",
    "type_text",
    "without_reference",
]


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'neuraxis.schema' has no attribute {name!r}")
    module = importlib.import_module(f"neuraxis.schema.{where}")
    value = globals()[name] = getattr(module, name)
    return value
