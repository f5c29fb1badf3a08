"""Build JSON Schema 2020-12 from Python type hints.

A class without a JSON form becomes an opaque type, which only a reference supplies
(rule B41). Classes with fields are placed under `$defs`, so that they may be recursive.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast
from weakref import WeakKeyDictionary

import msgspec.structs
from msgspec import Struct

from neuraxis.formatting import class_name, public_names
from neuraxis.plugins.functions.docstring import read_docstring
from neuraxis.plugins.functions.hint_kinds import (
    LISTS,
    MAPPINGS,
    SETS,
    SIMPLE,
    UNIONS,
    Hint,
    NoType,
    check_count,
    enum_values,
    field_hints,
    foreign_context,
    is_generic_with_fields,
    is_named_tuple,
    required_keys,
    text_class,
)
from neuraxis.plugins.functions.mapping_keys import key_schema
from neuraxis.plugins.functions.pydantic_hints import is_pydantic, json_schema
from neuraxis.schema.annotations import CLASS_KEY, KEYS_KEY
from neuraxis.schema.builders import json_names, literal_of, tag_of, union_of
from neuraxis.schema.navigate import arms, as_node, kinds, resolved
from neuraxis.specs import Json

_PLAIN = ("string", "integer", "number", "boolean", "null")
_REMARKS = frozenset({"title", "description", "default", "examples"})
"""Schema keys that leave a value of any type."""
_PARTS = frozenset({*UNIONS, *LISTS, *SETS, *MAPPINGS, tuple})
"""Generics of which only the parts can be invalid."""
_SAID = (str, int, float, bytes, enum.Enum)
_FORMS = ("typing", "typing_extensions", "types")
"""Modules of the hint classes that are no types themselves."""
_BARE = (typing.Union, typing.Optional, typing.Literal)
"""Forms that mean nothing without brackets."""
_flat: WeakKeyDictionary[type[Any], dict[str, Json]] = WeakKeyDictionary()
"""Cached schemas of classes without nested classes; shared, never changed."""
_BOUNDS = {
    "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum",
    "lt": "exclusiveMaximum", "multiple_of": "multipleOf", "pattern": "pattern",
}  # fmt: skip


class Defs(Struct):
    """Schemas of the classes with fields found so far."""

    schemas: dict[str, dict[str, Json]] = {}
    names: dict[Hint, str] = {}
    foreign: bool = False
    """Whether pydantic made some of them, in its own order."""

    def name(self, hint: Hint) -> str:
        """Return the class's name, made unique."""
        if (used_name := self.names.get(hint)) is not None:
            return used_name
        # a reference is a URI, which `Page[int]` and `Größe` cannot be part of
        name = re.sub(r"\W", "_", hint.__name__, flags=re.ASCII)
        while name in self.schemas:
            name += "_"
        self.names[hint] = name
        return name


def understand(hint: Hint, parameter: bool = False) -> None:
    """Validate a hint now, so that its schema can be built later.

    A `parameter` must also be of a type that a model can supply.
    """
    try:
        # Checked first: often another framework's own hints cannot be resolved.
        refused = _refused(hint) if parameter else None
        if refused is None:
            _understood(hint)
    except TypeError:  # The hint is unhashable, or invalid for that reason.
        refused = _refused.__wrapped__(hint) if parameter else None
        if refused is None:
            schema_of(hint, Defs())
    if refused is not None:
        part, why = refused
        raise NoType(part, why=why)


@lru_cache(maxsize=1024)
def _refused(hint: Hint) -> tuple[Hint, str] | None:
    """Return the part that no call can contain, and why."""
    if foreign_context(hint) is not None:
        return hint, ""
    part = _no_data(hint)
    if part is None:
        return None
    kind = "a complex number" if part is complex else "a function"
    return part, f"a model cannot write {kind}; write a type with a form in JSON"


def _no_data(hint: Hint) -> Hint | None:
    """Return the part of a hint that has no form in JSON."""
    plain = typing.get_origin(hint) or hint
    if any(plain is cls for cls in (complex, Callable, typing.Callable)):
        return hint
    parts = map(_no_data, typing.get_args(hint))
    return next((part for part in parts if part is not None), None)


@lru_cache(maxsize=1024)
def _understood(hint: Hint) -> None:
    parts = typing.get_args(hint)
    origin = typing.get_origin(hint) if parts else None
    if origin in _PARTS:
        check_count(hint, origin, parts)
        # A schema does not describe keys.
        skipped = 1 if origin in MAPPINGS and isinstance(parts[0], type) else 0
        for part in parts[skipped:]:
            understand(part)
    else:
        schema_of(hint, Defs())


def schema_of(hint: Hint, defs: Defs) -> dict[str, Json]:
    """Return the schema of a hint; add classes with fields to `defs`."""
    try:
        simple = SIMPLE.get(hint)
    except TypeError:  # An unhashable hint.
        if typing.get_origin(hint) is None:
            raise NoType(hint) from None
        simple = None
    if simple is not None:
        return dict(simple)
    if is_pydantic(hint):
        return _pydantic(hint, defs)
    origin = typing.get_origin(hint)
    if origin is not None:
        if not hasattr(hint, "__args__"):  # `List` without brackets.
            return schema_of(origin, defs)
        return _generic(hint, origin, typing.get_args(hint), defs)
    if isinstance(hint, typing.NewType):
        return schema_of(hint.__supertype__, defs)
    if isinstance(hint, typing.TypeVar):
        return schema_of(hint.__bound__ or Any, defs)
    if hasattr(hint, "__value__"):  # A `type X = …` statement.
        return schema_of(hint.__value__, defs)
    if hint in LISTS:
        return {"type": "array"}
    if hint in SETS:
        return {"type": "array", "uniqueItems": True}
    if hint in MAPPINGS:
        return {"type": "object"}
    if isinstance(hint, type):
        return _class(cast("type[Any]", hint), defs)
    return _opaque(hint)


def inlined(schema: dict[str, Json], defs: Defs) -> dict[str, Json]:
    """Return a root schema: no bare `$ref`, and the `$defs` it needs.

    `defs` holds the classes that were found while the schema was built.
    """
    ref = schema.get("$ref")
    if isinstance(ref, str) and ref.rpartition("/")[2] in defs.schemas:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**defs.schemas[ref.rpartition("/")[2]], **rest}
    elif not defs.foreign:  # All of them are used, in this order.
        return {**schema, "$defs": defs.schemas} if defs.schemas else schema
    used: dict[str, Json] = {}
    _used_defs(schema, defs.schemas, used)
    return {**schema, "$defs": used} if used else schema


def _used_defs(value: Json, defs: Mapping[str, Json], used: dict[str, Json]) -> None:
    if isinstance(value, list):
        for item in cast("list[Json]", value):
            _used_defs(item, defs, used)
    elif isinstance(value, dict):
        entries = cast("dict[str, Json]", value)
        ref = entries.get("$ref")
        if isinstance(ref, str):
            name = ref.rpartition("/")[2]
            if name not in used and name in defs:
                used[name] = defs[name]
                _used_defs(defs[name], defs, used)
        for item in entries.values():
            _used_defs(item, defs, used)


def _generic(
    hint: Hint, origin: Hint, args: tuple[Hint, ...], defs: Defs
) -> dict[str, Json]:
    check_count(hint, origin, args)
    if origin in UNIONS:
        return _union(args, defs)
    if origin is typing.Literal:
        if not all(value is None or isinstance(value, _SAID) for value in args):
            raise NoType(hint)
        return literal_of([_literal(value) for value in args])
    if origin is typing.Annotated:
        return _annotated(schema_of(args[0], defs), args[1:])
    if origin in (typing.Required, typing.NotRequired, typing.Final, typing.ClassVar):
        return schema_of(args[0], defs)
    if origin in LISTS:
        return {"type": "array", "items": schema_of(args[0], defs)}
    if origin in SETS:
        items = schema_of(args[0], defs)
        return {"type": "array", "items": items, "uniqueItems": True}
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return {"type": "array", "items": schema_of(args[0], defs)}
        if not args:  # `tuple[()]`
            return {"type": "array", "maxItems": 0}
        return {
            "type": "array",
            "prefixItems": [schema_of(arg, defs) for arg in args],
            "items": False,
            "minItems": len(args),
            "maxItems": len(args),
        }
    if origin in MAPPINGS:
        if not isinstance(args[0], type):
            schema_of(args[0], Defs())  # A schema does not describe the keys.
        values = schema_of(args[1], defs)
        key_flag: dict[str, Json] = {} if args[0] in (str, Any) else {KEYS_KEY: True}
        if keys := key_schema(args[0]):
            key_flag["propertyNames"] = keys
        return {"type": "object", "additionalProperties": values, **key_flag}
    return _class_with_types(hint, origin, defs)


def _class_with_types(hint: Hint, origin: Hint, defs: Defs) -> dict[str, Json]:
    if is_generic_with_fields(origin):
        return _class(hint, defs)
    return schema_of(origin, defs) if isinstance(origin, type) else _opaque(hint)


def _union(args: tuple[Hint, ...], defs: Defs) -> dict[str, Json]:
    schemas = [schema_of(arg, defs) for arg in args]
    united = dict(union_of(schemas))
    if any(schema.get("x-asset-ref") for schema in schemas):
        united["x-asset-ref"] = True
    return united


def _literal(value: Any) -> Json:
    if isinstance(value, enum.Enum):
        values = {member: text for text, member in enum_values(type(value)).items()}
        return values[value]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _annotated(schema: dict[str, Json], extras: tuple[Any, ...]) -> dict[str, Json]:
    """Return the schema with `Annotated` texts and bounds (pydantic's `Field`, too)."""
    for extra in extras:
        if isinstance(extra, str):
            schema["description"] = extra
            continue
        if text := getattr(extra, "description", None):
            schema["description"] = str(text)
        for part in (extra, *getattr(extra, "metadata", ())):
            for name, keyword in _BOUNDS.items():
                if (bound := getattr(part, name, None)) is not None:
                    schema[keyword] = bound
            length = "Length" if schema.get("type") == "string" else "Items"
            for name in ("min", "max"):
                if (bound := getattr(part, f"{name}_length", None)) is not None:
                    schema[name + length] = bound
    return schema


def _class(hint: Hint, defs: Defs) -> dict[str, Json]:
    cls: Any = typing.get_origin(hint) or hint
    if cls is hint and hint in _flat:
        return _object(hint, (), (), defs)
    if issubclass(cls, enum.Flag):
        return _flags(cls)
    if issubclass(cls, enum.Enum):
        return literal_of(list(enum_values(cls)))
    if dataclasses.is_dataclass(cls):
        fields = dataclasses.fields(cls)
        required = [
            item.name
            for item in fields
            if item.init
            and item.default is dataclasses.MISSING
            and item.default_factory is dataclasses.MISSING
        ]
        inside = {item.name for item in fields if not item.init}
        return _object(hint, [item.name for item in fields], required, defs, inside)
    if typing.is_typeddict(cls):
        keys = required_keys(cls)
        names = list(cls.__annotations__)
        return _object(hint, names, [name for name in names if name in keys], defs)
    if issubclass(cls, Struct):
        if cls.__struct_config__.array_like:
            why = "has array_like=True, and a model writes the names of fields; leave"
            raise NoType(cls, why=f"{cls.__qualname__} {why} it out")
        struct_fields = msgspec.structs.fields(cls)
        needed = [item.name for item in struct_fields if item.required]
        return _object(hint, [item.name for item in struct_fields], needed, defs)
    if is_named_tuple(cls):
        defaults: Any = getattr(cls, "_field_defaults", {})
        names: list[str] = list(getattr(cls, "_fields", ()))
        required = [name for name in names if name not in defaults]
        return _object(hint, names, required, defs)
    if (text := text_class(cls)) is not None:
        return text
    bases = [base for base in cls.__mro__[1:-1] if base in SIMPLE]
    known = bases and bases[0] not in (int, float)  # A subclass of a JSON type.
    return dict(SIMPLE[bases[0]]) if known else _opaque(cls)


def _flags(hint: type[enum.Flag]) -> dict[str, Json]:
    """Return the schema of flags: their sum is the value."""
    values: dict[str, int] = {str(item.name): item.value for item in hint}
    listed = ", ".join(f"{value} ({name})" for name, value in values.items())
    bounds = {"minimum": 0, "maximum": sum(values.values())}
    return {"type": "integer", **bounds, "description": f"a sum of {listed}"}


def _pydantic(hint: Hint, defs: Defs) -> dict[str, Json]:
    """Return pydantic's schema of a hint, with unique class names."""
    defs.foreign = True
    schema = json_schema(hint, "#/$defs/{model}")
    inner = cast("dict[str, dict[str, Json]]", schema.pop("$defs", {}))
    is_named = isinstance(hint, type) and schema.get("type") == "object"
    if any(defs.schemas.get(key, value) != value for key, value in inner.items()):
        # Two classes share a name: those of this hint are renamed first.
        prefix = f"{defs.name(hint) if is_named else len(defs.schemas)}."
        schema = json_schema(hint, f"#/$defs/{prefix}{{model}}")
        inner = {prefix + key: value for key, value in schema.pop("$defs").items()}
    defs.schemas.update(inner)
    if "$ref" in schema or not is_named:
        return schema
    name = defs.name(hint)
    defs.schemas[name] = schema
    return {"$ref": f"#/$defs/{name}"}


def _object(
    hint: Hint,
    names: Sequence[str],
    required: Sequence[str],
    defs: Defs,
    inside: Collection[str] = (),
) -> dict[str, Json]:
    cls: Any = typing.get_origin(hint) or hint
    name = defs.name(hint)
    ref: dict[str, Json] = {"$ref": f"#/$defs/{name}"}
    if name in defs.schemas:
        return ref
    if cls is hint and (known := _flat.get(hint)) is not None:
        defs.schemas[name] = known
        return ref
    schema: dict[str, Json] = {"type": "object"}
    defs.schemas[name] = schema
    hints = field_hints(hint)
    own_doc = cls.__dict__.get("__doc__")
    # a dataclass writes its signature there, in Python 3.15 when it is read
    is_own = isinstance(own_doc, str) and not own_doc.startswith(f"{cls.__name__}(")
    doc = read_docstring(own_doc if is_own else "")
    if doc.text:
        schema["description"] = doc.text
    json_keys, tag = json_names(cls), tag_of(cls)
    properties: dict[str, Json] = {key: literal_of([tag[key]]) for key in tag}
    for field_name in names:
        key = json_keys.get(field_name, field_name)
        try:
            properties[key] = schema_of(hints.get(field_name, Any), defs)
        except NoType as error:
            path = f"{cls.__qualname__}.{field_name}: {error.path}"
            raise NoType(error.hint, path, error.why) from error
        # The class sets this field itself: it appears in results only.
        if field_name in inside:
            properties[key]["readOnly"] = True
        if text := doc.names.get(field_name):
            properties[key]["description"] = text
    schema["properties"] = properties
    if required or tag:
        schema["required"] = [*tag, *(json_keys.get(name, name) for name in required)]
    schema["additionalProperties"] = False
    used: dict[str, Json] = {}
    _used_defs(properties, defs.schemas, used)
    if not typing.is_typeddict(cls) and _has_opaque([properties, used]):
        # No JSON value can create such an object completely.
        schema[CLASS_KEY] = class_name(cls)
    if cls is hint and "$ref" not in repr(properties):
        _flat[hint] = schema
    return ref


def _has_opaque(value: Json) -> bool:
    """Return whether a schema contains an opaque type; texts may mention "x-type"."""
    if isinstance(value, dict):
        entries = cast("dict[str, Json]", value)
        if "x-type" in entries and isinstance(entries["x-type"], str):
            return True
        return any(map(_has_opaque, entries.values()))
    return isinstance(value, list) and any(map(_has_opaque, cast("list[Json]", value)))


def _opaque(hint: Hint) -> dict[str, Json]:
    if hint in _BARE:  # Python 3.14 made a class of `Union`
        raise NoType(hint)
    if isinstance(hint, type):
        cls = cast("type[Any]", hint)
        try:
            isinstance(None, cls)
        except TypeError:
            why = "is a Protocol that no value can be checked against; write"
            above = "@runtime_checkable (from typing import runtime_checkable) above it"
            raise NoType(cls, why=f"{cls.__qualname__} {why} {above}") from None
        name = class_name(cls)
    else:
        if type(hint).__module__ not in _FORMS:
            raise NoType(hint)
        name = public_names(str(hint))
    return {"x-type": name, "not": {}, "x-asset-ref": True}


def put_default(schema: dict[str, Json], default: Any) -> None:
    """Add the default if it is JSON that the type accepts."""
    if default is None:
        kind = schema.get("type")
        if isinstance(kind, list) or any(
            part == {"type": "null"} for part in schema.get("anyOf", ())
        ):
            schema["default"] = None
        return
    plain = getattr(default, "value", default)
    if isinstance(plain, str | int | float | bool):
        schema["default"] = plain
    elif isinstance(plain, list | tuple | dict) and not plain:
        schema["default"] = {} if isinstance(plain, dict) else []


def may_be_stored(schema: Mapping[str, Json], defs: Defs) -> bool:
    """Return whether a parameter's values may be too large to be shown.

    The model sees only a reference to such a list, mapping or object.
    """
    if schema.get("type") in _PLAIN and "format" not in schema:
        return False
    root: dict[str, Json] = {"$defs": defs.schemas}
    schemas = arms(resolved(schema, root), root)
    items = [resolved(as_node(node.get("items")) or {}, root) for node in schemas]
    if any("asset_id" in node.get("properties", ()) for node in (*schemas, *items)):
        return False  # its own field would be read as a reference
    return any(
        node.get("format") == "byte"
        or not {"array", "object"}.isdisjoint(kinds(node))
        or node.keys() <= _REMARKS
        for node in schemas
    )
