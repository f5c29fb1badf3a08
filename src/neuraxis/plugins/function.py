"""Python functions and classes in; plugins out, with the spec a manifest would give.

`@command` only attaches data to a function and gives the function back. Type hints
become the schema, the docstring the descriptions; arguments are turned into the hinted
types before the call.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar, cast, overload

from neuraxis.errors import ConfigError, ManifestError, ManifestProblem
from neuraxis.plugins.additions import parse_effects, parse_examples
from neuraxis.plugins.context import Context
from neuraxis.plugins.convert import Convert, converter
from neuraxis.plugins.docstring import Docstring, read_docstring
from neuraxis.plugins.hints import Defs, Hint, inlined, schema_of
from neuraxis.plugins.registry import Command, Plugin
from neuraxis.specs import CommandSpec, Effects, Json, PluginSpec

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__neuraxis_command__"
_EMPTY: Any = inspect.Parameter.empty
_NO_DOC = Docstring()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `@command(...)` says beside hints and docstring."""

    name: str | None = None
    description: str | None = None
    effects: Effects = Effects()
    tool_name: str | None = None
    time_limit: float | None = None
    blocking: bool = True
    examples: Sequence[Json] = ()
    example_output: Json = None
    failure_field: str | None = None
    asset_refs: tuple[str, ...] = ()


@overload
def command(fn: F, /) -> F: ...
@overload
def command(
    fn: None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effects: str | Mapping[str, Json] | Effects = "once",
    tool_name: str | None = None,
    time_limit: float | None = None,
    blocking: bool = True,
    examples: Sequence[Json] = (),
    example_output: Json = None,
    failure_field: str | None = None,
    asset_refs: Iterable[str] = (),
) -> Callable[[F], F]: ...
def command(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    effects: str | Mapping[str, Json] | Effects = "once",
    asset_refs: Iterable[str] = (),
    **options: Any,
) -> Any:
    """Mark a function or method as a command; it stays what it is.

    Args:
        fn: the function, where the decorator is written without brackets.
        effects: `none`, `read`, `idempotent` or `once`, or a mapping with
            `kind`, `destructive`, `open_world`.
        asset_refs: names of parameters that take an asset reference; `"*"` stands
            for all parameters at once.
        **options: `name`, `description`, `tool_name`, `time_limit` (seconds),
            `blocking` (False: needs no thread), `examples`, `example_output`,
            `failure_field`.

    Raises:
        ConfigError: `effects` says nothing known.
    """
    parsed = parse_effects(
        effects if isinstance(effects, str | Effects) else dict(effects)
    )
    if isinstance(parsed, str):
        raise ConfigError(f"@command: {parsed}")
    names = (asset_refs,) if isinstance(asset_refs, str) else tuple(asset_refs)
    marked = Options(effects=parsed, asset_refs=names, **options)

    def mark(function: F) -> F:
        setattr(function, _MARK, marked)
        return function

    return mark(fn) if fn is not None else mark


def is_command(value: Any) -> bool:
    """Whether `@command` marked this function or method."""
    return callable(value) and isinstance(getattr(value, _MARK, None), Options)


def plugin_from(
    source: Any, *, name: str | None = None, config: Mapping[str, Json] | None = None
) -> Plugin:
    """The plugin that a function, class, instance, module or list of functions is.

    A class is made without arguments, or with `config` where its constructor takes
    one.

    Raises:
        ManifestError: a hint cannot be understood, a name is taken twice.
        ConfigError: the source is none of these, or marks no command.
    """
    if isinstance(source, Plugin):
        return source
    if isinstance(source, list | tuple):
        functions = list(cast("Sequence[Callable[..., Any]]", source))
        first = functions[0].__module__.rpartition(".")[2] if functions else ""
        title = name or (first if first.strip("_") != "main" else "functions")
        return _plugin(title, None, functions, "", None)
    if isinstance(source, ModuleType):
        return _plugin(
            name or source.__name__.rpartition(".")[2],
            source.__doc__,
            [value for value in vars(source).values() if is_command(value)],
            source.__name__,
            None,
        )
    if inspect.isroutine(source) or is_command(source):
        function = cast("Callable[..., Any]", source)
        options = options_of(function)
        title = name or options.name or function.__name__
        return _plugin(title, function.__doc__, [function], _where(function), None)
    instance = make_instance(source, config or {}) if isinstance(source, type) else source
    cls = type(instance)
    methods = [
        getattr(instance, key) for key in dir(cls) if is_command(getattr(cls, key, None))
    ]
    order = {key: index for index, key in enumerate(_attributes(cls))}
    methods.sort(key=lambda method: order.get(method.__name__, 0))
    if not methods:
        raise ConfigError(
            f"{cls.__module__}.{cls.__qualname__}: expected a function, or a class with "
            "methods marked by @command, and found no such method. "
            "Mark what a model may call with @command"
        )
    where = f"{cls.__module__}:{cls.__qualname__}"
    return _plugin(name or cls.__name__, cls.__doc__, methods, where, config)


def make_instance(cls: type[Any], config: Mapping[str, Json]) -> Any:
    """An instance; with the plugin's own settings where its constructor takes them."""
    taken = [
        parameter
        for parameter in inspect.signature(cls).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    if not taken:
        return cls()
    if any(parameter.name == "config" for parameter in taken):
        return cls(config=config)
    return cls(config) if taken[0].default is _EMPTY else cls()


def _attributes(cls: type[Any]) -> list[str]:
    return [key for base in reversed(cls.__mro__) for key in vars(base)]


def _plugin(
    name: str,
    doc: str | None,
    functions: Sequence[Callable[..., Any]],
    source: str,
    config: Mapping[str, Json] | None,
) -> Plugin:
    read = [read_function(function) for function in functions]
    taken: dict[str, str] = {}
    for built in read:
        if built.spec.name in taken:
            raise _error(source or name, f"the command {built.spec.name!r} stands twice")
        taken[built.spec.name] = ""
    spec = PluginSpec(
        name=name,
        title=name,
        description=read_docstring(doc).text,
        generation="python",
        commands=tuple(built.spec for built in read),
        config=dict(config or {}),
        source=source or name,
    )
    return Plugin(
        spec=spec,
        commands={
            built.spec.name: Command(
                plugin=spec,
                spec=built.spec,
                run=built.run,
                is_async=built.is_async,
                context_name=built.context_name,
            )
            for built in read
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """One function, read: its spec and how to call it."""

    spec: CommandSpec
    run: Callable[..., Any]
    is_async: bool
    context_name: str
    """The parameter annotated `Context`, or an empty text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """How a function is called with JSON values."""

    run: Callable[..., Any]
    is_async: bool
    context_name: str
    names: tuple[str, ...]
    required: tuple[str, ...]
    open: bool
    """Whether it takes any other name (`**kwargs`)."""


def options_of(function: Callable[..., Any]) -> Options:
    """What `@command` attached, or the defaults."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, Options) else Options()


def read_function(function: Callable[..., Any]) -> Built:
    """The spec of one function, and how to call it."""
    options = options_of(function)
    where = _where(function)
    parameters, hints = _signature(function, where)
    doc = read_docstring(function.__doc__) if function.__doc__ else _NO_DOC
    defs = Defs()
    properties: dict[str, Json] = {}
    required: list[str] = []
    context_name = ""
    extra: Json = False
    for parameter in parameters:
        name = parameter.name
        hint = hints.get(name, Any)
        if is_context(hint):
            context_name = name
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            extra = schema_of(hint, defs) or True
            continue
        schema = schema_of(hint, defs)
        if text := doc.names.get(name):
            schema["description"] = text
        if parameter.default is _EMPTY:
            required.append(name)
        else:
            _put_default(schema, parameter.default)
        if name in options.asset_refs:
            schema["x-asset-ref"] = True
        properties[name] = schema
    for name in options.asset_refs:
        if name not in properties and name != "*":
            raise _error(where, f"asset_refs: there is no parameter {name!r}")
    whole: dict[str, Json] = {"type": "object", "properties": properties}
    if required:
        whole["required"] = required
    whole["additionalProperties"] = extra
    if "*" in options.asset_refs:
        whole["x-asset-ref"] = True
    response = hints.get("return", _EMPTY)
    answer = None if response is _EMPTY else _response(response, doc)
    name = options.name or function.__name__
    examples, wrong = parse_examples(options.examples, options.tool_name or name)
    if wrong:
        raise _error(where, f"examples: {wrong[0][1]}")
    caller = _caller(function, parameters, hints, context_name)
    return Built(
        spec=CommandSpec(
            name=name,
            description=options.description or doc.text,
            parameters=inlined(whole, defs) if defs.schemas else whole,
            response=answer,
            effects=options.effects,
            examples=examples,
            example_output=options.example_output,
            tool_name=options.tool_name,
            time_limit=options.time_limit,
            blocking=options.blocking,
            failure_field=options.failure_field,
        ),
        run=caller.run,
        is_async=caller.is_async,
        context_name=context_name,
    )


def caller_of(function: Callable[..., Any]) -> Caller:
    """How to call a function whose spec a manifest gives."""
    parameters, hints = _signature(function, _where(function))
    context_name = next(
        (item.name for item in parameters if is_context(hints.get(item.name))), ""
    )
    return _caller(function, parameters, hints, context_name)


def is_context(hint: Hint) -> bool:
    """Whether a parameter is `Context`, or `Context | None`."""
    return hint is Context or (Context in typing.get_args(hint))


def _response(hint: Hint, doc: Docstring) -> dict[str, Json]:
    defs = Defs()
    schema = inlined(schema_of(hint, defs), defs)
    if doc.returns and "description" not in schema:
        schema["description"] = doc.returns
    return schema


def _signature(
    function: Callable[..., Any], where: str
) -> tuple[list[inspect.Parameter], Mapping[str, Hint]]:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise _error(where, f"its parameters cannot be read: {error}") from error
    target = inspect.unwrap(function)
    annotations = getattr(target, "__annotations__", None)
    if annotations is None:
        target = type(target).__call__
        annotations = target.__annotations__
    hints: Mapping[str, Hint] = annotations
    # Resolving costs twice what reading does, and is only needed for hints in quotes.
    if any(type(hint) is str or _has_forward(hint) for hint in annotations.values()):
        try:
            hints = typing.get_type_hints(target, include_extras=True)
        except (NameError, TypeError, SyntaxError, AttributeError) as error:
            raise _error(
                where,
                f"a type hint cannot be resolved: {error}. Define or import the name in "
                "the function's module, not inside another function",
            ) from error
    return list(signature.parameters.values()), hints


def _has_forward(hint: Hint) -> bool:
    args = getattr(hint, "__args__", ())
    return any(isinstance(arg, str | typing.ForwardRef) or _has_forward(arg) for arg in args)


def _caller(
    function: Callable[..., Any],
    parameters: Sequence[inspect.Parameter],
    hints: Mapping[str, Hint],
    context_name: str,
) -> Caller:
    changes: dict[str, Convert] = {}
    positional: list[str] = []
    names: list[str] = []
    required: list[str] = []
    is_open = False
    for item in parameters:
        if item.kind is item.VAR_KEYWORD:
            is_open = True
            continue
        if item.kind is item.VAR_POSITIONAL or item.name == context_name:
            continue
        names.append(item.name)
        if item.default is _EMPTY:
            required.append(item.name)
        if item.kind is item.POSITIONAL_ONLY:
            positional.append(item.name)
        change = converter(hints.get(item.name, Any))
        if change is not None:
            changes[item.name] = change
    return Caller(
        run=_converting(function, changes, names, positional),
        is_async=_is_async(function),
        context_name=context_name,
        names=tuple(names),
        required=tuple(required),
        open=is_open,
    )


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object that is awaited
    )


def _converting(
    function: Callable[..., Any],
    changes: Mapping[str, Convert],
    names: Sequence[str],
    positional: Sequence[str],
) -> Callable[..., Any]:
    """The function itself where nothing is converted, else one that converts first."""
    if not changes and not positional:
        return function

    def run(*values: Any, **arguments: Any) -> Any:
        given = [
            changes[name](value) if name in changes else value
            for name, value in zip(names, values, strict=False)
        ]
        named = {
            name: changes[name](value) if name in changes else value
            for name, value in arguments.items()
        }
        given += [named.pop(name) for name in positional if name in named]
        return function(*given, **named)

    return run


def _put_default(schema: dict[str, Json], default: Any) -> None:
    """The default, where JSON can say it; a None that the type does not take is not."""
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


def _where(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '')}:{name}"


def _error(where: str, message: str) -> ManifestError:
    return ManifestError((ManifestProblem(file=where, line=0, message=message),))


