"""What a person asks of a session flows in; that it cannot be meant so, out.

A dict for a `Call` would else be told much later, by code that knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from neuraxis.arguments import refuse, shown
from neuraxis.errors import ConfigError
from neuraxis.messages import Call
from neuraxis.plan import OnError

_ON_ERROR = get_args(OnError)
_FIELDS = (
    ("id", str, "a text"),
    ("command", str, "a text"),
    ("plugin", str | None, "a text, or None"),
    ("name", str | None, "a text, or None"),
    ("max_items", int | None, "a whole number, or None"),
)
"""What else a call may have is a model's to write, and checked with its arguments."""


def check_request(text: Any, watch: Any = None) -> None:
    """Say that a request is no text, or cannot be watched so.

    Raises:
        ConfigError: it is none.
    """
    if not isinstance(text, str):
        refuse("the request", "a text", text)
    _check_watch(watch)


def check_calls(calls: Any, watch: Any = None, on_error: Any = None) -> None:
    """Say that something is no list of calls; what they call is checked later.

    Raises:
        ConfigError: one is no `Call`, or has a name of a wrong kind.
    """
    if calls.__class__ is list:  # mostly all is right, and this is on every call's way
        for one in calls:
            if one.__class__ is not Call or not (
                one.command.__class__ is one.id.__class__ is str
                and (one.plugin is None or one.plugin.__class__ is str)
                and one.name is one.max_items is None
            ):
                break
        else:
            if watch is None and on_error is None:
                return
    _check_watch(watch)
    if on_error is not None and on_error not in _ON_ERROR:
        refuse("on_error", f"one of {', '.join(_ON_ERROR)}", on_error)
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        hint = "; write call_all([...]) for several, call(...) for one"
        raise ConfigError(f"calls: expected a list of Call, got {shown(calls)}{hint}")
    for one in cast("Sequence[Any]", calls):
        if not isinstance(one, Call):
            raise ConfigError(f"call: expected a Call, got {shown(one)}; {_call(one)}")
        for name, kinds, phrase in _FIELDS:
            if not isinstance(value := getattr(one, name), kinds):
                refuse(f"Call.{name}", phrase, value)


def check_description(text: Any) -> None:
    """Say that the description of what is attached is no text.

    Raises:
        ConfigError: it is none.
    """
    if not isinstance(text, str):
        refuse("description", "a text", text)


def _check_watch(watch: Any) -> None:
    if watch is not None and not callable(watch):
        refuse("watch", "a function that takes an event, or None", watch)


def _call(given: Any) -> str:
    """What to write instead of something that is no `Call`."""
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
