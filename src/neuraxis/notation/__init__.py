"""The YAML notation of both plugin protocols <-> JSON Schema 2020-12, and enforcement.

A `parameter:`, `parameters:` or `response:` tree flows in, as the manifest loader read
it; a JSON Schema flows out: the same dict is shown to a model and enforced by `Schema`
(rules B28-B50). Every mistake of a tree is appended to `problems` at once.

    nodes.py      a node of the YAML, and the whole of a parameter or response
    values.py     what stands beside a type: enum, limits, example, default
    types.py      type texts, `List[int]`; shapes.py: the schemas they make
    table.py      the `_type_ref` types of a file
    schema.py     `Schema`: verdicts, problems, sub-schemas
    problems.py   a validator's error in words; native.py: objects behind references
    formats.py    dates, times and other formats of text
    coercion.py   the lossless leniencies; walk.py: finding a place in a schema
    text.py       a schema said shortly; written.py: a schema as a node again
"""

from neuraxis.notation.nodes import (
    parameter_schema,
    parameters_schema,
    response_schema,
)
from neuraxis.notation.schema import Schema
from neuraxis.notation.table import collect_types
from neuraxis.notation.text import type_text
from neuraxis.notation.types import NotationProblem, TypeTable
from neuraxis.notation.written import node_from_schema

__all__ = [
    "NotationProblem",
    "Schema",
    "TypeTable",
    "collect_types",
    "node_from_schema",
    "parameter_schema",
    "parameters_schema",
    "response_schema",
    "type_text",
]
