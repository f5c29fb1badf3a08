"""Validate the arguments of `Session`, its methods, and settings.

Without it, a wrong type would be reported late, by code that cannot name the argument,
or not at all: a text is a sequence of letters, and nothing reads a misspelt setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import wraps
from inspect import iscoroutinefunction
from os import PathLike
from pathlib import Path
from types import FunctionType, ModuleType, NoneType
from typing import Any, TypeVar, cast, get_args

from neuraxis.errors import ConfigError, NoSuchSession
from neuraxis.execution.budget import Budget
from neuraxis.formatting import (
    check_flag,
    check_word,
    describe_given,
    no_argument,
    refuse,
)
from neuraxis.messages import Call, Message
from neuraxis.planning.plan import OnError
from neuraxis.plugins.registry import Command
from neuraxis.policy.rules import DEFAULT, Policy, Rule, policy_from
from neuraxis.session.options import Options
from neuraxis.session.visible_results import ShowResults
from neuraxis.settings import Settings
from neuraxis.specs import Json

Init = TypeVar("Init", bound=FunctionType)
_PATH = (str, PathLike, type(None))
_ID = "the id of a session, a text that can be printed"
_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "workspace": (_PATH, "a path"),
    "deps": ((type, type(None)), "a class, such as deps=Shop"),
    "id": ((str, type(None)), _ID),
    "settings": (
        (Settings, type(None)),
        "a Settings, such as Settings().override({...}, 'program')",
    ),
    "budget": ((Budget, type(None)), "a Budget, such as Budget(steps=10)"),
    "policy": ((Policy, type(None)), "a neuraxis.Policy"),
    "options": ((Options, type(None)), "a neuraxis.Options"),
}
_SHAPES: Mapping[str, tuple[tuple[type, ...], str, str]] = {
    "instructions": (
        (str, type(None)),
        "__call__",
        "a string, or a function of a Context that returns one",
    ),
    "dialect": ((str,), "decode", "a dialect's name, such as 'intents', or a Dialect"),
    "journal": (_PATH, "append", 'a path, "memory", None or a Journal'),
    "approve": (
        (type(None),),
        "__call__",
        "a function that returns True to approve, 'later', or None",
    ),
}
"""Accepted types, and the method that an object of another type must have."""
_MODEL = "a model's name, such as 'local:', a Model, or a list of these"
_PARTS = ("name", "stream", "close")
_ELSEWHERE: Mapping[str, str] = {
    "tools": "plugins",
    "toolsets": "plugins",
    "functions": "plugins",
    "system": "instructions",
    "system_prompt": "instructions",
    "output_type": "output",
    "response_format": "output",
    "deps_type": "deps",
    "usage_limits": "budget",
    "max_turns": "budget",
    "max_iterations": "budget",
    "recursion_limit": "budget",
    "session_id": "id",
}
"""What other libraries call an argument."""
_WORDS = {"on_error": get_args(OnError), "show_results": get_args(ShowResults)}


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Check the types of a session's arguments.

    Raises:
        ConfigError: an argument has a wrong type.
    """
    arguments_given = {
        name: value for name, value in arguments.items() if name != "self"
    }
    _check_plugins(arguments_given.get("plugins", ()))
    for name in _KINDS.keys() & arguments_given:
        types, phrase = _KINDS[name]
        if not isinstance(arguments_given[name], types):
            refuse(name, phrase, arguments_given[name])
    for name in _SHAPES.keys() & arguments_given:
        types, method, phrase = _SHAPES[name]
        value = arguments_given[name]
        if name == "approve" and value == "later":
            continue
        if not isinstance(value, types) and not (
            callable(getattr(value, method, None))
            # a class instead of its instance
            and (name in ("approve", "instructions") or not isinstance(value, type))
        ):
            refuse(name, phrase, value)
    _check_model(arguments_given.get("model", ""))
    _check_approve(arguments_given.get("approve"))
    _check_options(arguments_given.get("options"))
    _check_policy(arguments_given.get("policy"))
    _check_budget(arguments_given.get("budget"))
    id = arguments_given.get("id")
    if id is not None and (not id or not id.isprintable()):
        refuse("id", _ID, id)
    if getattr(arguments.get("self"), "_earlier", False):  # `Session.open`
        _check_journal_named(
            arguments_given["id"],
            arguments_given["journal"],
            arguments_given["options"],
        )


def named_arguments(init: Init) -> Init:
    """Make `Session.__init__` suggest the name of an unknown argument."""
    code = init.__code__
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    @wraps(init)
    def checked(*args: Any, **given: Any) -> None:
        for name in given:
            if name not in known:
                raise TypeError(f"Session: {_no_argument(name, known)}")
        if len(args) > code.co_argcount:
            raise TypeError(
                "Session: only the model goes without a name; write the others' names, "
                "such as plugins=[...]"
            )
        init(*args, **given)

    return cast("Init", checked)


def _no_argument(name: str, known: Iterable[str]) -> str:
    close: tuple[str, ...] = ()
    if name in _ELSEWHERE:
        close = (_ELSEWHERE[name],)
    elif name in Options.__struct_fields__:
        close = (f"options=Options({name}=...)",)
    return no_argument(name, known, close)


def _check_model(model: Any) -> None:
    """Refuse an object that is no model, also within a list."""
    if isinstance(model, list | tuple):
        for item in cast("Sequence[Any]", model):
            _check_model(item)
        return
    missing = [part for part in _PARTS if not hasattr(model, part)]
    if isinstance(model, str) or not (missing or isinstance(model, type)):
        return
    if isinstance(model, FunctionType):
        hint = f"; a function is a plugin: write plugins=[{model.__name__}]"
    elif isinstance(model, type):
        hint = f"; write {model.__name__}(...)"
    else:
        hint = (
            f", which has no {' or '.join(missing)}; docs/models.md shows a model of "
            "your own"
        )
    raise ConfigError(f"model: expected {_MODEL}, got {describe_given(model)}{hint}")


def _check_approve(approve: Any) -> None:
    """Refuse a function that cannot take the question."""
    if approve in (None, "later"):
        return
    # few sessions have such a function
    from neuraxis.plugins.functions.deferred_annotations import signature_of

    try:
        parameters = signature_of(approve)
    except (TypeError, ValueError):
        return  # a function in C may have no readable signature
    try:
        parameters.bind(None)
    except TypeError:
        raise ConfigError(
            "approve: expected a function of one argument, the question, such as "
            f"`def approve(asked)`, got one that takes {parameters}"
        ) from None


def _check_options(options: Options | None) -> None:
    if options is None:
        return
    for name in ("template", "asset_folder", "versions_folder"):
        _check_path(f"options.{name}", getattr(options, name))
    _check_texts("options.always_shown", options.always_shown)
    for name, words in _WORDS.items():
        check_word(f"options.{name}", getattr(options, name), words)
    for name in ("strict", "early_start", "reopen", "raise_errors"):
        check_flag(f"options.{name}", getattr(options, name))
    if options.embed is not None and not callable(options.embed):
        refuse("options.embed", "a function from texts to vectors", options.embed)
    seconds, tokens = options.approval_seconds, options.prompt_tokens
    if not _is_number(seconds):
        refuse("options.approval_seconds", "a number, 0 or above", seconds)
    if tokens is not None and (not isinstance(cast("Any", tokens), int) or tokens < 1):
        refuse("options.prompt_tokens", "a whole number above 0, or None", tokens)
    limit: Any = options.catalog_limit
    if limit not in (None, "provider") and (not isinstance(limit, int) or limit < 1):
        expected = "a number of characters, 'provider', or None"
        refuse("options.catalog_limit", expected, limit)


def _check_path(name: str, value: Any) -> None:
    if not isinstance(value, _PATH):
        refuse(name, "a path", value)


def _check_texts(name: str, value: Any) -> None:
    if isinstance(value, str) or not isinstance(value, Iterable):
        refuse(name, "a list of texts", value)


def _check_plugins(value: Any) -> None:
    is_text = isinstance(value, str | Path)
    is_callable = callable(value)  # a function, a class
    if isinstance(value, Iterable) and not (
        is_text or is_callable or isinstance(value, Mapping)
    ):
        return
    hint = ""
    if is_text:
        hint = f"; write plugins=[{str(value)!r}]"
    elif is_callable or isinstance(value, ModuleType):
        name = str(getattr(value, "__name__", "..."))
        hint = f"; write plugins=[{name.rpartition('.')[2]}]"
    raise ConfigError(f"plugins: expected a list, got {describe_given(value)}{hint}")


def _check_policy(policy: Policy | None) -> None:
    """Refuse unknown words, which would allow what they were meant to stop."""
    if policy is None or policy is DEFAULT:
        return
    _check_texts("policy.yes_to", policy.yes_to)
    for pattern in policy.yes_to:
        _check_target("policy.yes_to", pattern)
    _check_texts("policy.allow_hosts", policy.allow_hosts)
    for host in policy.allow_hosts:
        if not isinstance(cast("Any", host), str) or {*"/@?#* "}.intersection(host):
            refuse("policy.allow_hosts (--allow-host)", "HOST or HOST:PORT", host)
    _check_path("policy.lock", policy.lock)
    if policy.lock is not None and not Path(policy.lock).is_file():
        raise ConfigError(
            f"policy.lock: {policy.lock}: there is no such file; "
            f"`neuraxis plugins lock --file {policy.lock}` writes it"
        )
    rules: Any = policy.rules
    if not isinstance(rules, Sequence):
        refuse("policy.rules", "a list of rules", rules)
    listed: list[dict[str, Json]] = []
    for rule in cast("Sequence[Any]", rules):
        if not isinstance(rule, Rule):
            refuse("policy.rules", "a list of Rule", rule)
        _check_target("policy.rules: target", rule.target)
        kinds: Any = rule.effects
        if not isinstance(kinds, Set | Sequence) or isinstance(kinds, str):
            refuse("policy.rules: effects", 'a set, such as {"once"}', kinds)
        if not isinstance(cast("Any", rule.arguments), Mapping):
            refuse("policy.rules: arguments", "a pattern by name", rule.arguments)
        for name, pattern in rule.arguments.items():
            if not isinstance(cast("Any", pattern), str):
                refuse(f"policy.rules: arguments: {name}", "a string", pattern)
        listed.append({"verdict": rule.verdict, "effects": [*cast("Set[str]", kinds)]})
    policy_from(
        {
            "default": policy.default,
            "undeclared": policy.undeclared,
            "rules": listed,
        }
    )


def _check_target(name: str, target: Any) -> None:
    if not isinstance(target, str):
        plugin = target.__name__ if isinstance(target, FunctionType) else "files"
        refuse(name, f'a string, such as "{plugin}.*"', target)


def _check_budget(budget: Budget | None) -> None:
    if budget is None:
        return
    for name in budget.__struct_fields__:
        value: Any = getattr(budget, name)
        if name in ("usd", "tokens") and value is None:
            continue
        if not _is_number(value):
            refuse(f"budget.{name}", "a number, 0 or above", value)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and value >= 0


_FIELDS = (
    ("id", str, "a string"),
    ("command", str, "a string"),
    ("plugin", str | None, "a string, or None"),
    ("name", str | None, "a string, or None"),
    ("max_items", int | None, "a whole number, or None"),
)
"""Required types of a call's names; planning checks its arguments."""


def _check_journal_named(session: str, journal: Any, options: Any) -> None:
    """Check that the journal of an earlier session is there.

    Opening it would make the file.

    Raises:
        ConfigError: the journal is in memory.
        NoSuchSession: there is no such file.
    """
    if journal in (None, "memory"):
        raise ConfigError(
            f"Session.open: to go on with {session!r}, name the journal that holds it: "
            "journal=PATH (`neuraxis doctor` says where the command line's is)"
        )
    reopens = getattr(options, "reopen", False)
    if isinstance(journal, str | Path) and not (reopens or Path(journal).exists()):
        raise NoSuchSession(
            f"session {session!r} is not in the journal {Path(journal).absolute()}: "
            "there is no such file; name the one that holds it, or begin a session "
            "with Session(id=…)"
        )


def check_request(
    text: Any, watch: Any = None, attach: Any = (), history: Sequence[Any] = ()
) -> None:
    """Check a request's text, its `watch` function and its `attach` list.

    Of the session's `history` the last message is checked: the runtime made the others.

    Raises:
        ConfigError: one has a wrong type, or the request is empty.
    """
    if not isinstance(text, str):
        refuse("the request", "a string", text)
    if not text.strip():
        raise ConfigError(
            "the request is empty: write a question or a task, such as "
            '"Which files are there?"'
        )
    kind = cast("type[Any]", type(attach))
    if isinstance(attach, str | bytes) or not hasattr(kind, "__iter__"):
        is_path = isinstance(attach, str | Path)
        hint = f"; write attach=[{str(attach)!r}]" if is_path else ", [...]"
        raise ConfigError(
            "attach: expected a list of paths or objects, got "
            f"{describe_given(attach)}{hint}"
        )
    if history and not isinstance(history[-1], Message):
        expected = "each item as a Message(role=..., content=...) of neuraxis.messages"
        refuse("session.history", expected, history[-1])
    _check_watch(watch)


def check_calls(calls: Any, watch: Any = None, on_error: Any = None) -> None:
    """Check that `calls` is a list of calls; planning checks their contents.

    Raises:
        ConfigError: an item is no `Call`, or a field of it has a wrong type.
    """
    if calls.__class__ is list:
        for call in calls:
            if call.__class__ is not Call or not (
                call.command.__class__ is call.id.__class__ is str
                and (call.plugin is None or call.plugin.__class__ is str)
                and call.name is call.max_items is None
            ):
                break
        else:
            if watch is None and on_error is None:
                return
    _check_watch(watch)
    if on_error is not None:
        check_word("on_error", on_error, get_args(OnError))
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        hint = "; write call_all([...]) for several, call(...) for one"
        raise ConfigError(
            f"calls: expected a list of Call, got {describe_given(calls)}{hint}"
        )
    for call in cast("Sequence[Any]", calls):
        if not isinstance(call, Call):
            hint = _suggest_call(call)
            raise ConfigError(
                f"call: expected a Call, got {describe_given(call)}; {hint}"
            )
        for name, kinds, phrase in _FIELDS:
            if not isinstance(value := getattr(call, name), kinds):
                refuse(f"Call.{name}", phrase, value)


def check_deps(
    deps: Any, deps_class: type[Any] | None, commands: Iterable[Command | None]
) -> None:
    """Check that a run's `deps` fit the session and its commands.

    Raises:
        ConfigError: `deps` is missing or of another class.
    """
    how = "as in run(text, deps=...) or resume(deps=...)"
    if deps_class is not None and not _is_of(deps, deps_class):
        refuse("deps", f"{deps_class.__name__}, {how}", deps)
    for command in commands:
        if command is not None and not isinstance(deps, command.deps):
            kinds = get_args(command.deps) or (command.deps,)
            name = " or ".join(
                "None" if each is NoneType else each.__name__ for each in kinds
            )
            target = f"{command.plugin.name}.{command.spec.name}"
            refuse("deps", f"{name}, for the Context of {target}, {how}", deps)


def _is_of(deps: Any, deps_class: type[Any]) -> bool:
    try:
        return isinstance(deps, deps_class)
    except TypeError:  # Any, or a protocol or mapping that is not checked when run
        return True


def check_description(text: Any) -> None:
    """Check that the description of an attachment is a text.

    Raises:
        ConfigError: it is no text.
    """
    if not isinstance(text, str):
        refuse("description", "a string", text)


def _check_watch(watch: Any) -> None:
    if watch is None:
        return
    if not callable(watch):
        refuse("watch", "a function that takes an event, or None", watch)
    if iscoroutinefunction(watch) or iscoroutinefunction(type(watch).__call__):
        raise ConfigError(
            "watch: expected a plain `def`, got an `async def`, which nobody awaits; "
            "in async code write `async for event in session.run(...)`"
        )


def _suggest_call(given: Any) -> str:
    """Suggest a correct call instead of an object that is no `Call`."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        return "for several calls write session.call_all([...])"
    name, arguments = "TOOL", "..."
    if isinstance(given, str):
        name = given
    elif isinstance(given, Mapping):
        fields = dict(cast("Mapping[str, Any]", given))
        name = fields.pop("tool", None) or fields.pop("command", "TOOL")
        arguments = f"{fields.get('arguments', fields)!r:.60}"
    return (
        "write Call(id='a1', plugin=None, "
        f"command={str(name)!r:.40}, arguments={arguments}), from neuraxis import Call"
    )
