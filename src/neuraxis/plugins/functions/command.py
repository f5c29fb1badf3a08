"""Create plugins from Python functions and classes marked with `@command`.

`@command` only attaches data to a function and returns the function. Type hints become
the schema, the docstring the descriptions; arguments are converted to the hinted types
before the call. An author's mistakes are reported at registration; schemas and texts
are built on first use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeVar, cast, overload

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.errors import ConfigError, ManifestError, ManifestProblem, error_of
from neuraxis.formatting import did_you_mean, listed, nearest
from neuraxis.plugins.effects_and_examples import no_flag, parse_effects, parse_examples
from neuraxis.plugins.functions.caller import Caller, caller_of
from neuraxis.plugins.functions.deferred_annotations import annotations_of
from neuraxis.plugins.functions.docstring import Docstring, read_docstring
from neuraxis.plugins.functions.hint_errors import bad_function
from neuraxis.plugins.functions.hint_kinds import UNREADABLE, Hint
from neuraxis.plugins.functions.hints import (
    Defs,
    inlined,
    may_be_stored,
    put_default,
    schema_of,
    understand,
)
from neuraxis.plugins.functions.instances import close_of, make_instance
from neuraxis.plugins.functions.source_location import (
    Spot,
    is_function,
    place_of,
    spot_of,
    where_of,
)
from neuraxis.plugins.functions.validate import (
    attach,
    check_functions,
    check_marking,
    no_method,
    none_marked,
    starred,
    unbound,
    untyped,
    wrongly_documented,
)
from neuraxis.plugins.registry import Command, Plugin
from neuraxis.schema.annotations import (
    FILE_KEY,
    FILE_USES,
    FILE_WORD,
    FLAGS,
    no_file_use,
)
from neuraxis.specs import CommandSpec, EffectKind, Effects, Json, PluginSpec

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__neuraxis_command__"
_EMPTY: Any = inspect.Parameter.empty
_NO_DOC = Docstring()
_CHECKED = (str, int, float, bool)
"""Types whose defaults are checked."""
_NAMING = ("asset_refs", *FLAGS, FILE_WORD)
"""Options of `@command` that name parameters."""


class Options(Struct, frozen=True, kw_only=True):
    """Options given to `@command(...)` besides hints and docstring."""

    name: str | None = None
    description: str | None = None
    effects: Effects
    tool_name: str | None = None
    time_limit: float | None = None
    blocking: bool = True
    concurrency: int | None = None
    examples: Sequence[Json] = ()
    example_output: Json = None
    failure_field: str | None = None
    asset_refs: tuple[str, ...] = ()
    trusted_only: Iterable[str] = ()
    sends_out: Iterable[str] = ()
    secret_ok: Iterable[str] = ()
    names_file: Mapping[str, str] = {}


@overload
def command(fn: F, /) -> F: ...
@overload
def command(
    fn: None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effects: EffectKind | Mapping[str, Json] | Effects = "once",
    tool_name: str | None = None,
    time_limit: float | None = None,
    blocking: bool = True,
    concurrency: int | None = None,
    examples: Sequence[Json] = (),
    example_output: Json = None,
    failure_field: str | None = None,
    asset_refs: Iterable[str] = (),
    trusted_only: Iterable[str] = (),
    sends_out: Iterable[str] = (),
    secret_ok: Iterable[str] = (),
    names_file: Mapping[str, str] = ...,
) -> Callable[[F], F]: ...
def command(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    effects: EffectKind | Mapping[str, Json] | Effects = "once",
    asset_refs: Iterable[str] = (),
    **options: Any,
) -> Any:
    """Mark a function or method as a command; return the same function.

    The function itself keeps the mark, in every session, and a second one replaces it.
    For two commands of one function, write a `def` that calls it.

    Args:
        fn: the function, if you write the decorator without brackets.
        effects: `none`, `read`, `idempotent` or `once`, or a mapping with
            `kind`, `destructive`, `others_write`, `public`, `needs_approval`.
        asset_refs: further parameters that take an asset reference, such as a long
            text (lists, mappings, objects and bytes take one anyway); `"*"` stands for
            all parameters at once.
        **options: `name`, `description`, `tool_name`, `time_limit` (seconds),
            `blocking` (False: needs no thread), `concurrency` (maximum calls at once),
            `examples`, `example_output`, `failure_field`; and names of parameters:
            `trusted_only` (recipients, paths, code), `sends_out` (URLs), `secret_ok`
            (takes `secret://NAME`); `names_file` maps a parameter to `read`, `write`,
            `change`, `remove`, `run` or `folder`.

    Raises:
        ConfigError: an option does not exist or has an invalid value.
    """
    check_marking(fn, options, tuple(Options.__struct_fields__))
    is_mapping = isinstance(cast("Any", effects), Mapping)
    parsed = parse_effects(dict(cast("Any", effects)) if is_mapping else effects)
    if isinstance(parsed, str):
        raise ConfigError(f"@command: {parsed}")
    names = (asset_refs,) if isinstance(asset_refs, str) else tuple(asset_refs)
    marked = Options(effects=parsed, asset_refs=names, **options)

    def mark(function: F) -> F:
        attach(function, _MARK, marked)
        return function

    return mark(fn) if fn is not None else mark


def is_command(value: Any) -> bool:
    """Return whether `@command` marked this function or method."""
    return callable(value) and isinstance(getattr(value, _MARK, None), Options)


def plugin_from(
    source: Any, *, name: str | None = None, config: Mapping[str, Json] | None = None
) -> Plugin:
    """Create a plugin from a function, class, instance, module or list.

    Two objects of one class need two names:
    `plugins=[plugin_from(Db(a), name="sales"), plugin_from(Db(b), name="stock")]`.

    Args:
        source: an object of a class is made here, without arguments or with `config`
            if its constructor takes one, and sessions do not close it; a list has
            functions.
        name: default: the name of the function, class or module.
        config: the plugin's configuration.

    Raises:
        ManifestError: a hint cannot be understood, a name is taken twice.
        ConfigError: the source is none of these, or marks no command; the name is
            no text of one line.
    """
    if name is not None and not (name.strip() and name.isprintable()):
        raise ConfigError(
            f"plugin_from: name: expected a text of one line, got {name!r:.80}"
        )
    if isinstance(source, Plugin):
        if name in (None, source.spec.name) and not config:
            return source
        raise ConfigError(
            "plugin_from: expected a function, object, class or module, got a plugin: "
            f"{source.spec.name!r} has its name and its configuration"
        )
    if isinstance(source, list | tuple):
        functions = list(cast("Sequence[Callable[..., Any]]", source))
        check_functions(functions)
        first = functions[0].__module__.rpartition(".")[2] if functions else ""
        title = name or (first if first.strip("_") != "main" else "functions")
        return _plugin(title, None, functions, "", None)
    if isinstance(source, ModuleType):
        marked = [value for value in vars(source).values() if is_command(value)]
        if not marked:
            file = getattr(source, "__file__", None) or source.__name__
            raise error_of(file, none_marked(source, is_command), 1)
        title = name or source.__name__.rpartition(".")[2]
        return _plugin(
            title, source.__doc__, marked, place_of(source.__name__), None, source
        )
    if is_command(source) or is_function(source):
        function = cast("Callable[..., Any]", source)
        options = options_of(function)
        title = name or options.name or function.__name__
        return _plugin(title, None, [function], where_of(function), None, source)
    return _from_object(source, name, config)


def _from_object(
    source: Any, name: str | None, config: Mapping[str, Json] | None
) -> Plugin:
    """Create a plugin from the marked methods of an object or class."""
    instance = (
        make_instance(source, lambda: config or {})
        if isinstance(source, type)
        else source
    )
    cls = cast("type[Any]", type(instance))
    methods = [
        getattr(instance, key)
        for key in dir(cls)
        if is_command(getattr(cls, key, None))
    ]
    order = {key: index for index, key in enumerate(_attributes(cls))}
    methods.sort(key=lambda method: order.get(method.__name__, 0))
    if not methods:
        raise ConfigError(no_method(source, cls))
    where = f"{place_of(cls.__module__)}:{cls.__qualname__}"
    made = _plugin(name or cls.__name__, cls.__doc__, methods, where, config, instance)
    if not isinstance(source, type):  # the program closes the objects that it passes
        return made
    own = ("close",) if is_command(getattr(instance, "close", None)) else ()
    return replace(made, close=close_of(instance, own))


def _attributes(cls: type[Any]) -> list[str]:
    return [key for base in reversed(cls.__mro__) for key in vars(base)]


def _plugin(
    name: str,
    doc: str | None,
    functions: Sequence[Callable[..., Any]],
    source: str,
    config: Mapping[str, Json] | None,
    holder: Any = None,
) -> Plugin:
    """The plugin of functions; `holder` may answer for earlier calls (`reconcile`)."""
    reconcile = getattr(holder, "reconcile", None)
    read = _read(functions)
    description = read_docstring(doc).text if doc else ""
    if not doc and len(read) == 1:
        # A single function is its own plugin, and its text describes both.
        description = read[0].spec.description
    spec = PluginSpec(
        name=name,
        title=name,
        description=description,
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
                run=built.caller.run,
                is_async=built.caller.is_async,
                context_name=built.caller.context_name,
                deps=built.caller.deps,
                reconcile=reconcile if callable(reconcile) else None,
                function=built.function,
            )
            for built in read
        },
        problems=tuple([problem for built in read for problem in built.problems]),
    )


def _read(functions: Sequence[Callable[..., Any]]) -> list[Built]:
    """Read functions; the error has the mistakes of all of them."""
    read: dict[str, Built] = {}
    problems: list[ManifestProblem] = []
    for function in functions:
        try:
            built = read_function(function)
            if built.spec.name in read:
                message = f"the command {built.spec.name!r} is declared twice"
                raise bad_function(spot_of(function), message)
        except ManifestError as error:
            problems += error.problems
        else:
            read[built.spec.name] = built
    if problems:
        raise ManifestError(tuple(problems))
    return list(read.values())


class Built(Struct, frozen=True, kw_only=True):
    """A function that was read: its spec and how to call it."""

    spec: CommandSpec
    caller: Caller
    function: Callable[..., Any]
    problems: tuple[ManifestProblem, ...] = ()


def options_of(function: Callable[..., Any]) -> Options:
    """Return the options attached by `@command`, or the defaults."""
    options = getattr(function, _MARK, None)
    return options if isinstance(options, Options) else Options(effects=Effects())


def read_function(function: Callable[..., Any]) -> Built:
    """Return the spec of one function, and how to call it.

    Raises:
        ManifestError: a hint or an option of `@command` is invalid.
    """
    options = options_of(function)
    caller = caller_of(function)
    _check(function, options, caller)
    doc = read_docstring(function.__doc__) if function.__doc__ else _NO_DOC
    name = options.name or getattr(function, "__name__", "") or type(function).__name__
    examples, wrong = (
        parse_examples(options.examples, options.tool_name or name)
        if options.examples
        else ((), ())
    )
    if wrong:
        raise bad_function(spot_of(function), f"examples: {wrong[0][1]}")
    if name == "<lambda>":
        message = "expected a function with a name: write it with def"
        raise bad_function(spot_of(function), message)
    spec = CommandSpec(
        name=name,
        effects=options.effects,
        examples=examples,
        example_output=options.example_output,
        tool_name=options.tool_name,
        time_limit=options.time_limit,
        blocking=options.blocking,
        concurrency=options.concurrency,
        failure_field=options.failure_field,
        **_described(caller, options, doc),
    )
    names = {*caller.hints, caller.context_name}
    problems: tuple[ManifestProblem, ...] = ()
    if not caller.open and not names.issuperset(doc.names):
        warned = wrongly_documented(function, doc.names, tuple(caller.hints))
        problems = _warnings(function, warned)
    bare = caller.hints.keys() - annotations_of(function).keys()
    if bare and hasattr(function, "__code__"):
        problems += _warnings(function, untyped(bare))
    flag = options.failure_field
    if flag and (wrong := no_flag(flag, spec.response)):
        raise bad_function(spot_of(function), wrong)
    return Built(spec=spec, caller=caller, function=function, problems=problems)


def _described(caller: Caller, options: Options, doc: Docstring) -> dict[str, Json]:
    """Return the descriptions from a function's docstring and hints."""
    defs = Defs()
    properties: dict[str, Json] = {}
    for name, hint in caller.hints.items():
        schema = schema_of(hint, defs)
        if text := doc.names.get(name):
            schema["description"] = text
        if name in caller.defaults:
            put_default(schema, caller.defaults[name])
        if name in options.asset_refs or may_be_stored(schema, defs):
            schema["x-asset-ref"] = True
        mark(schema, name, options)
        properties[name] = schema
    parameters: dict[str, Json] = {"type": "object", "properties": properties}
    if caller.required:
        parameters["required"] = list(caller.required)
    parameters["additionalProperties"] = (
        (schema_of(caller.rest, defs) or True) if caller.open else False
    )
    if "*" in options.asset_refs:
        parameters["x-asset-ref"] = True
    return {
        "description": options.description or doc.text,
        "parameters": inlined(parameters, defs) if defs.schemas else parameters,
        "response": _response(caller.returns, doc),
    }


def _warnings(
    function: Callable[..., Any], texts: Iterable[str]
) -> tuple[ManifestProblem, ...]:
    spot = spot_of(function)
    return tuple(
        replace(problem, severity="warning")
        for text in texts
        for problem in bad_function(spot, text).problems
    )


def _unreadable(spot: Spot, name: str, hint: Hint) -> Iterator[ManifestError]:
    try:
        understand(hint, parameter=name != "return")
    except UNREADABLE as error:
        # Imported for error messages only.
        from neuraxis.plugins.functions.hint_errors import fault

        yield fault(spot, name, hint, error)


def _check(function: Callable[..., Any], options: Options, caller: Caller) -> None:
    """Report a function's mistakes now, though its schema is built later."""
    spot = spot_of(function)
    if more := starred(function):
        instead = f"a list, such as {more}: list[str]"
        if inspect.isbuiltin(function):
            instead = f"a function of your own, which calls {function.__name__}"
        raise bad_function(
            spot, f"*{more}: a call gives each argument by its name; write {instead}"
        )
    if wrong := unbound(function, caller.hints):
        raise bad_function(spot, wrong)
    errors = [*_wrong_hints(spot, caller), *_wrong_names(spot, options, caller)]
    if errors:
        raise ManifestError(
            tuple(problem for error in errors for problem in error.problems)
        )


def _wrong_hints(spot: Spot, caller: Caller) -> Iterator[ManifestError]:
    for name, hint in caller.hints.items():
        yield from _unreadable(spot, name, hint)
        default = caller.defaults.get(name)
        checked = next((item for item in _CHECKED if item is hint), object)
        accepted = (int, float) if checked is float else checked
        if default is not None and not isinstance(default, accepted):
            yield bad_function(
                spot,
                f"parameter {name!r}: expected a default of the type "
                f"{checked.__name__}, got {default!r:.40}; change the default or the "
                "type",
            )
    if caller.open:
        yield from _unreadable(spot, "**", caller.rest)
    if caller.returns is not _EMPTY:
        yield from _unreadable(spot, "return", caller.returns)


def _wrong_names(
    spot: Spot, options: Options, caller: Caller
) -> Iterator[ManifestError]:
    for word in _NAMING:
        for name in getattr(options, word):
            if name not in caller.hints and (word, name) != ("asset_refs", "*"):
                close = did_you_mean(nearest(name, caller.hints))
                yield bad_function(
                    spot,
                    f"{word}: there is no parameter {name!r}.{close} There are: "
                    f"{listed(list(caller.hints))}",
                )
    for name, use in options.names_file.items():
        if use not in FILE_USES:
            yield bad_function(spot, f"{FILE_WORD}: {name}: {no_file_use(use)}")


def mark(schema: dict[str, Json], name: str, options: Options) -> None:
    """Add the trust markers of `@command` to a parameter's schema."""
    for word, key in FLAGS.items():
        if name in getattr(options, word):
            schema[key] = True
    if name in options.names_file:
        schema[FILE_KEY] = options.names_file[name]


def _response(hint: Hint, doc: Docstring) -> dict[str, Json] | None:
    if hint is _EMPTY:
        return None
    defs = Defs()
    schema = schema_of(hint, defs)
    if defs.schemas:
        schema = inlined(schema, defs)
    if doc.returns and "description" not in schema:
        schema["description"] = doc.returns
    return schema
