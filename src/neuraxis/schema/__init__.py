"""Schemas of parameters and responses: translate from YAML, and validate.

The YAML notation of both plugin protocols becomes JSON Schema 2020-12: the same dict is
shown to a model and enforced by `Schema` (rules B28-B50). Every mistake of a tree is
appended to `problems` at once.

    notation/         the YAML notation: nodes, types, values, `_type_ref`, writing
    builders.py the schemas of type names
    annotations.py    what a parameter says of trust, secrets and files
    schema.py         `Schema`: verdicts, problems, sub-schemas
    explain.py        a validator's error in words
    python_values.py  objects behind references
    formats.py        dates, times and other formats of text
    coerce.py         the lossless leniencies
    navigate.py       finding a place in a schema, and how deep a tree is
    describe.py       a schema as a short text
"""
