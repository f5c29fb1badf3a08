"""What an author writes in `@command(...)` in; a `ConfigError` of what is wrong out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from neuraxis.errors import ConfigError
from neuraxis.marks import FLAGS
from neuraxis.plugins.additions import KINDS
from neuraxis.sentences import nearest, quote


def check_marking(
    function: Any, options: Mapping[str, Any], known: Sequence[str]
) -> None:
    """Tell what cannot be meant; with a limit of no calls a run would never end.

    Args:
        function: what is marked; None: it is not there yet.
        options: what was written beside `effects` and `asset_refs`.
        known: the options there are.

    Raises:
        ConfigError: an option is none of ours, or a value of a wrong kind.
    """
    if function is not None and not callable(function):
        hint = f"; write @command(effects={function!r})" if function in KINDS else ""
        raise ConfigError(f"@command: expected a function, got {quote(function)}{hint}")
    for name, value in options.items():
        if name not in known:
            close = nearest(name, known)
            hint = f" Did you mean {close[0]}?" if close else ""
            listed = ", ".join(known)
            raise ConfigError(
                f"@command: there is no option {name!r}.{hint} Options are: {listed}"
            )
        if value is not None and (wrong := _wrong(name, value)):
            raise ConfigError(f"@command: {name}: expected {wrong}, got {quote(value)}")


def _wrong(name: str, value: Any) -> str:
    """What is expected instead of the value; nothing: it is right."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name == "time_limit" and not (is_number and value > 0 and math.isfinite(value)):
        return "seconds above 0"
    if name == "concurrency" and not (
        is_number and isinstance(value, int) and value > 0
    ):
        return "a whole number above 0"
    if name in ("name", "tool_name", "description", "failure_field") and not (
        isinstance(value, str)
    ):
        return "a text"
    if name == "names_file" and not isinstance(value, Mapping):
        return "a mapping of parameters to read, write or run"
    if name in FLAGS and isinstance(value, str):
        return "a list of names of parameters"
    return ""
