"""What a person gives a session or writes as settings flows in; what is wrong, out.

A wrong kind of thing would else be told much later, by code that knows nothing of it,
or not at all: a text is a list of letters, and nobody reads a misspelt setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, cast, get_args

from neuraxis.errors import ConfigError
from neuraxis.plan import OnError
from neuraxis.policy import DEFAULT, Policy, Rule, policy_from
from neuraxis.quoting import did_you_mean
from neuraxis.runtime import Budget
from neuraxis.sentences import nearest
from neuraxis.settings import Settings
from neuraxis.specs import Json
from neuraxis.telling import Tell

_PATH = (str, PathLike, type(None))
_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "workspace": (_PATH, "a path"),
    "asset_folder": (_PATH, "a path"),
    "template": (_PATH, "the path of a file"),
    "lock": (_PATH, "the path of a file"),
    "session": ((str, type(None)), "the id of a session, a text"),
    "settings": (
        (Settings, type(None)),
        "a Settings, such as Settings().override({...}, 'program')",
    ),
    "budget": ((Budget, type(None)), "a Budget, such as Budget(steps=10)"),
    "policy": ((Policy, type(None)), "a neuraxis.policy.Policy"),
}
_SHAPES: Mapping[str, tuple[tuple[type, ...], str, str]] = {
    "model": ((str,), "stream", "a model's name, such as 'local:', or a Model"),
    "dialect": ((str,), "decode", "a dialect's name, such as 'intents', or a Dialect"),
    "journal": (_PATH, "append", 'a path, "memory", None or a Journal'),
    "approve": (
        (type(None),),
        "__call__",
        "a function that gives True for a yes, or None",
    ),
}
"""The types that are taken, and the method that anything else must have."""
_WORDS = {
    "on_error": get_args(OnError),
    "tell": get_args(Tell),
    "on_failure": ("tell", "raise"),
}

_TEXTS = ("model", "dialect", "workspace", "journal")
_TOP = (*_TEXTS, "plugins")
_BY_VARIABLE = "weights"
"""Read from its environment variable only, where it says which file is run."""
_SECTIONS: Mapping[str, Sequence[str]] = {
    "openai": ("base_url", "key_env"),
    "local": ("threads", "fetch", "states_mb", "weights_unchecked"),
    "search": (
        "provider", "key_env", "engine", "google_url", "url", "folder", "results",
    ),
    "sandbox": (
        "mode", "wasm", "seconds", "memory", "network", "uid", "allow_none",
    ),
    "policy": (),
    "models": (),
}  # fmt: skip
"""What stands in each; those of none are checked where they are read. A section that
is not here is a plugin's own."""
_VARIABLE = "environment variable"


def check_arguments(given: Mapping[str, Any]) -> None:
    """Say what of a session's arguments cannot be meant so.

    Raises:
        ConfigError: one is of a wrong kind.
    """
    _check_plugins(given["plugins"])
    for name in ("yes_to", "allow_hosts"):
        value = given[name]
        if isinstance(value, str) or not isinstance(value, Iterable):
            refuse(name, "a list of texts", value)
    for name, (types, phrase) in _KINDS.items():
        if not isinstance(given[name], types):
            refuse(name, phrase, given[name])
    for name, (types, method, phrase) in _SHAPES.items():
        value = given[name]
        if not isinstance(value, types) and not (
            callable(getattr(value, method, None))
            # of a class that was not made into an object
            and (name == "approve" or not isinstance(value, type))
        ):
            refuse(name, phrase, value)
    for name, words in _WORDS.items():
        if given[name] not in words:
            refuse(name, f"one of {', '.join(words)}", given[name])
    _check_policy(given["policy"])
    _check_budget(given["budget"])
    if given["session"] is not None and given["journal"] in (None, "memory"):
        raise ConfigError(
            f"session: to go on with {given['session']!r}, name the journal that holds "
            "it: journal=PATH (`neuraxis doctor` says where the command line's is)"
        )
    if given["lock"] is not None and not Path(given["lock"]).is_file():
        raise ConfigError(
            f"lock: {given['lock']}: there is no such file; "
            f"`neuraxis plugins lock --file {given['lock']}` writes it"
        )


def _check_plugins(value: Any) -> None:
    is_text = isinstance(value, str | Path)
    is_one = callable(value)  # a function, a class
    if isinstance(value, Iterable) and not (
        is_text or is_one or isinstance(value, Mapping)
    ):
        return
    hint = ""
    if is_text:
        hint = f"; write plugins=[{str(value)!r}]"
    elif is_one:
        hint = f"; write plugins=[{getattr(value, '__name__', '...')}]"
    raise ConfigError(f"plugins: expected a list, got {shown(value)}{hint}")


def _check_policy(policy: Policy | None) -> None:
    """A word that is none of ours would allow what it was meant to stop."""
    if policy is None or policy is DEFAULT:
        return
    rules: Any = policy.rules
    if not isinstance(rules, Sequence):
        refuse("policy.rules", "a list of rules", rules)
    listed: list[dict[str, Json]] = []
    for rule in cast("Sequence[Any]", rules):
        if not isinstance(rule, Rule):
            refuse("policy.rules", "a list of Rule", rule)
        kinds: Any = rule.effects
        if not isinstance(kinds, Set | Sequence) or isinstance(kinds, str):
            refuse("policy.rules: effects", 'a set, such as {"once"}', kinds)
        if not isinstance(cast("Any", rule.arguments), Mapping):
            refuse("policy.rules: arguments", "a pattern by name", rule.arguments)
        listed.append({"verdict": rule.verdict, "effects": [*cast("Set[str]", kinds)]})
    policy_from(
        {
            "default": policy.default,
            "undeclared": policy.undeclared,
            "rules": listed,
        }
    )


def _check_budget(budget: Budget | None) -> None:
    if budget is None:
        return
    for name in budget.__slots__:
        value: Any = getattr(budget, name)
        if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
            refuse(f"budget.{name}", "a number", value)


def refuse(name: str, expected: str, value: Any) -> NoReturn:
    """Raise the `ConfigError` of an argument of a wrong kind."""
    raise ConfigError(f"{name}: expected {expected}, got {shown(value)}")


def shown(value: Any) -> str:
    """What was given, in a few words."""
    if isinstance(value, str | int | float | PathLike | type(None)):
        return f"{value!r:.80}"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    return f"a {type(value).__name__}"


def check_settings(settings: Settings) -> None:
    """Say what is wrong with the settings that a person wrote into a file.

    Raises:
        ConfigError: a key is none of ours, or its value of a wrong kind.
    """
    if found := faults_of(settings):
        raise ConfigError("\n".join(found))


def faults_of(settings: Settings, *, variables: bool = False) -> list[str]:
    """What is wrong with them, each in a sentence.

    With `variables` also the names of environment variables that look like a slip;
    other programs may have some that begin like ours, so none of these ends a run.
    """
    found: list[str] = []
    for key, setting in settings.values.items():
        if setting.source.startswith(_VARIABLE):
            message = _slip(key) if variables else ""
        else:
            message = _unknown(key) or _wrong_value(key, setting.value)
        if message:
            found.append(f"{setting.source}: {message}")
    return found


def _unknown(key: str) -> str:
    head, dot, rest = key.partition(".")
    if key == _BY_VARIABLE:
        return f"{key}: no setting of a file; set NEURAXIS_{key.upper()} instead"
    if not dot and head in _SECTIONS:
        return f"{head}: expected a table, written [{head}]"
    if head == "models" and "." not in rest:
        return f"{key}: expected a table for one model, written [models.NAME]"
    if dot and head in _TOP:
        return f"{key}: expected no table of that name, but {head} = ..."
    if dot and (keys := _SECTIONS.get(head, ())) and rest not in keys:
        close = nearest(rest, keys)[:1]
        hint = did_you_mean([f"{head}.{key}" for key in close])
        listed = ", ".join(keys)
        return f"{key}: there is no such setting.{hint} In [{head}] are: {listed}"
    if not dot and head not in _TOP:
        close = nearest(head, (*_TOP, *_SECTIONS, _BY_VARIABLE))
        hint = did_you_mean(close[:1])
        return (
            f"{key}: there is no such setting.{hint} Those without a section are: "
            f"{', '.join(_TOP)}"
        )
    return ""


def _slip(key: str) -> str:
    """A variable is told only where one of ours has nearly its name."""
    message = _unknown(key)
    return message if "Did you mean" in message else ""


def section_meant(key: str) -> str:
    """The section of ours that a plugin's own (`serch.provider`) nearly is, or ""."""
    head, dot, _ = key.partition(".")
    is_ours = not dot or head in _SECTIONS or head in _TOP
    close = () if is_ours else nearest(head, _SECTIONS)
    # `my_search` is a name of its own
    return close[0] if close and abs(len(close[0]) - len(head)) < 2 else ""


def _wrong_value(key: str, value: Json) -> str:
    if key in _TEXTS and not isinstance(value, str):
        return f"{key}: expected a text in quotes, got {shown(value)}"
    if key == "plugins" and not isinstance(value, str):
        items = cast("list[Json]", value) if isinstance(value, list) else [value]
        if wrong := [item for item in items if not isinstance(item, str)]:
            got = shown(wrong[0])
            return f"plugins: expected a list of texts in quotes, got {got}"
    return ""
