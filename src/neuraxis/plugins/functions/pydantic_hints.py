"""Hints that pydantic reads: its models, its types, and validators in `Annotated`.

Classes and types of pydantic have pydantic's schema, check and error message.
pydantic is never imported for a program that does not use it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, cast

from neuraxis.errors import CommandError
from neuraxis.formatting import FILE_MODULE, public_names, quote
from neuraxis.specs import Json

_HOOK = "__get_pydantic_core_schema__"
_BOUNDS = frozenset({
    "Gt", "Ge", "Lt", "Le", "Interval", "MinLen", "MaxLen", "Len", "MultipleOf",
    "FieldInfo",
})  # fmt: skip
"""Metadata that JSON Schema expresses, so that pydantic is not needed for it."""


def is_pydantic(hint: Any) -> bool:
    """Return whether pydantic reads this hint, and not only its parts."""
    if isinstance(hint, type):
        return hasattr(hint, _HOOK) or hasattr(hint, "__pydantic_validator__")
    extras = getattr(hint, "__metadata__", ())
    return any(map(_is_validator, extras))


def reads_other_keys(hint: Any) -> bool:
    """Return whether a model may read keys beyond its schema's."""
    decorators = getattr(hint, "__pydantic_decorators__", None)
    if decorators is None:
        return False
    fields = getattr(hint, "model_fields", {}).values()
    return bool(decorators.model_validators) or any(
        field.validation_alias is not None for field in fields
    )


def _is_validator(extra: Any) -> bool:
    """Return whether an annotation checks more than JSON Schema can."""
    if hasattr(extra, _HOOK):
        return True
    cls: Any = extra.__class__ if not isinstance(extra, type) else extra
    if cls.__module__.partition(".")[0] not in ("pydantic", "annotated_types"):
        return False
    parts: Any = getattr(extra, "metadata", ())
    if cls.__name__ == "FieldInfo":
        return any(map(_is_validator, parts))
    return cls.__name__ not in _BOUNDS and [*getattr(extra, "__dict__", ())] != [
        "pattern"
    ]


def json_schema(hint: Any, template: str) -> dict[str, Json]:
    """Return pydantic's schema of the hint; its classes are under `$defs`.

    Args:
        hint: a hint that pydantic reads.
        template: form of a reference to a class, with `{model}` for its name.
    """
    schema = _adapter(hint).json_schema(ref_template=template)
    # Two classes of one name are told apart by their modules.
    if FILE_MODULE in str(schema):
        schema = json.loads(public_names(json.dumps(schema)))
    return cast("dict[str, Json]", schema)


def converter(hint: Any) -> Callable[[Any], Any]:
    """Return a function that has pydantic check and convert a value."""

    def convert(value: Any) -> Any:
        adapter = _adapter(hint)
        validation_error: Any = sys.modules["pydantic"].ValidationError
        try:
            return adapter.validate_python(value)
        except validation_error as error:
            messages = [_message(item) for item in error.errors(include_url=False)]
            raise CommandError("; ".join(messages)) from None

    return convert


def field_of(hint: Any, default: Any) -> Any:
    """Return the `Field(...)` of a parameter, if it has one."""
    fields: Any = sys.modules.get("pydantic.fields")
    if fields is None:
        return None
    found = (default, *getattr(hint, "__metadata__", ()))
    return next((item for item in found if isinstance(item, fields.FieldInfo)), None)


def fill_fields(
    function: Callable[..., Any], fields: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return the function with the defaults of `Field(...)` filled in.

    Each call gets a new object of a `default_factory`.
    """

    @functools.wraps(function)
    def run(*values: Any, **arguments: Any) -> Any:
        for name, item in fields.items():
            if name not in arguments:
                arguments[name] = item.get_default(call_default_factory=True)
        return function(*values, **arguments)

    return run


def _message(item: Mapping[str, Any]) -> str:
    where = ".".join(map(str, item["loc"]))
    return f"{where + ': ' if where else ''}{item['msg']}, got {quote(item['input'])}"


@functools.lru_cache(maxsize=1024)
def _made(hint: Any) -> Any:
    import pydantic  # only programs that use it come here

    adapter: Any = pydantic.TypeAdapter
    cls: Any = hint if isinstance(hint, type) else object
    own = issubclass(cls, pydantic.BaseModel) or dataclasses.is_dataclass(cls)
    if own:  # it has its own configuration
        return adapter(hint)
    return adapter(hint, config=pydantic.ConfigDict(arbitrary_types_allowed=True))


def _adapter(hint: Any) -> Any:
    try:
        return _made(hint)
    except TypeError:  # metadata without a hash
        return _made.__wrapped__(hint)
