"""Messages about commands, arguments and references that do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from neuraxis.call_errors.asking import INSTEAD
from neuraxis.formatting import (
    MOST_NAME,
    did_you_mean,
    listed,
    named,
    nearest,
    path_text,
    quote,
)
from neuraxis.messages import CallError, Problem

_LISTS = (" Plugins there are: ", " Its commands are: ", " The tools are: ")
"""Texts that precede lists of names, which only a model needs."""
_FOR_MODELS = (*_LISTS, f". {INSTEAD}")


def for_person(message: str) -> str:
    """Return a message without the parts that only a model needs."""
    return min((message.partition(mark)[0] for mark in _FOR_MODELS), key=len)


def unknown_plugin(name: str, known: Sequence[str]) -> CallError:
    """Report that the plugin does not exist (rules B5, B6)."""
    close = nearest(name, known)
    return CallError(
        code="unknown_plugin",
        where="receiver.name",
        candidates=close,
        message=f"The requested plugin {named(name)} does not exist."
        f"{did_you_mean(close)}{_LISTS[0]}{listed(known)}. "
        "If none fits, do the task yourself and answer the user directly.",
    )


def unknown_command(
    name: str, known: Mapping[str, Sequence[str]], plugin: str = ""
) -> CallError:
    """Report an unknown command or tool (rules B5, C4).

    Args:
        name: the name in the call.
        known: the valid names, each with its aliases.
        plugin: the plugin of the command; empty: a tool was named.
    """
    close = _closest(name, known)
    problem = f"plugin {plugin} has no command" if plugin else "there is no tool"
    names = _LISTS[1] if plugin else _LISTS[2]
    return CallError(
        code="unknown_command",
        where="content.command" if plugin else "tool",
        candidates=close,
        message=f"{named(name)}: {problem} of that name.{did_you_mean(close)}"
        f"{names}{listed(list(known))}.",
    )


def _closest(name: str, known: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the names that are similar, or contain all the words."""
    names_of: dict[str, list[str]] = {}
    for main, aliases in known.items():
        for alias in (main, *aliases):
            names_of.setdefault(alias, []).append(main)
    similar, words = nearest(name, names_of), _words(name)
    if len(words) > 1 and (len(similar) != 1 or _words(similar[0]) != words):
        similar = (*(one for one in names_of if words <= _words(one)), *similar)
    return tuple(dict.fromkeys(main for one in similar for main in names_of[one]))[:3]


def _words(name: str) -> set[str]:
    plain = "".join(char if char.isalnum() else " " for char in name[:MOST_NAME])
    return set(plain.casefold().split())


def not_shown(tool: str) -> CallError:
    """Report a command that is not in the prompt (rule B4)."""
    return CallError(
        code="unknown_command",
        where="tool",
        candidates=("find_commands",),
        message=f"{named(tool)} is not listed, so it cannot be called. Call "
        "find_commands with a few words about the task; what it finds can be called "
        "from the next reply on.",
    )


def problem_text(problem: Problem, root: str = "") -> str:
    """Format a problem: `crop.boxes[1].x: expected integer, got "one"`."""
    where = path_text(problem.path, root)
    text = f"{where or 'the arguments'}: expected {problem.expected}"
    if problem.got:
        text += f", got {problem.got}"
    if problem.candidates:
        text += f" (did you mean {' or '.join(problem.candidates)}?)"
    return text


def invalid_param(
    target: str, problems: Sequence[Problem], valid: Sequence[str] = ()
) -> CallError:
    """Report all invalid arguments at once, each with its path (D7)."""
    problems_text = "; ".join(problem_text(problem, target) for problem in problems)
    tail = f" Parameters of {target}: {listed(list(valid))}." if valid else ""
    return CallError(
        code="invalid_param",
        where=path_text(problems[0].path, target) if problems else target,
        problems=tuple(problems),
        message=f"{problems_text}.{tail}",
    )


def reference_not_found(where: str, detail: str) -> CallError:
    """Report a `{{ … }}` whose target is missing or later (C23)."""
    stop = "" if detail.endswith((".", "?", "?)")) else "."
    return CallError(
        code="reference_not_found", where=where, message=f"{where}: {detail}{stop}"
    )


def asset_ref_not_acceptable(where: str) -> CallError:
    """Report a reference where only a value is allowed (rule B44)."""
    return CallError(
        code="asset_ref_not_acceptable",
        where=where,
        message=f"{where}: expected the value itself; this parameter takes no asset "
        "reference. Pass the value.",
    )


def asset_not_found(asset_id: str, known: Sequence[str], where: str = "") -> CallError:
    """Report that no asset has that id (rule B49)."""
    close = nearest(asset_id, known)
    return CallError(
        code="asset_not_found",
        where=where,
        candidates=close,
        message=f"{where + ': ' if where else ''}there is no asset "
        f"{named(asset_id)}.{did_you_mean(close)} "
        f"Assets there are: {listed(known)}.",
    )


def asset_unknown(asset_id: str, known: Sequence[str], where: str = "") -> CallError:
    """Report `asset_not_found` where the known ids are unavailable."""
    if known:
        return asset_not_found(asset_id, known, where)
    return CallError(
        code="asset_not_found",
        where=where,
        message=f"{where + ': ' if where else ''}there is no asset "
        f"{named(asset_id)}. Use the id of an asset that you were shown, or the value.",
    )


def too_many_steps(count: int, most: int) -> CallError:
    """Report more calls than a plan may have (rule D6)."""
    return CallError(
        code="budget_exhausted",
        message=f"The reply has {count} calls; it may have at most {most}. Nothing was "
        "run. Write fewer calls.",
    )


def asset_path_not_found(
    asset_id: str, deepest: str, available: str, hint: str = ""
) -> CallError:
    """Report a path that does not exist, and its existing part (B49)."""
    tail = f" Did you mean {hint}?" if hint else ""
    return CallError(
        code="asset_path_not_found",
        candidates=(hint,) if hint else (),
        message=f"the path is not in asset {asset_id}: it is valid up to {deepest}, "
        f"where there is {available}.{tail}",
    )


def braces_are_text(where: str, braces: str, close: Sequence[str]) -> str:
    """Report braces without a reference (rule C21)."""
    return (
        f"{where}: {quote(braces)} was passed on as text, since it does not begin with "
        f"previous_result, results[n] or a step's name.{did_you_mean(close)}"
    )


def asset_lost(asset_id: str) -> CallError:
    """Report that the object could not be saved with the session (B60)."""
    return CallError(
        code="asset_lost",
        message=f"The asset {asset_id} was lost: its object could not be saved. "
        "Run the command that made it again.",
    )


def unfolding_problem(most: int) -> Problem:
    """Report a value whose shared parts cannot be written out."""
    return Problem(
        expected="a smaller one",
        got="a value that holds the same parts again and again: more than "
        f"{most:,} when written out",
    )


def unfolding_asset(where: str, most: int) -> CallError:
    """Report a referenced value whose shared parts cannot be written out."""
    problem = unfolding_problem(most)
    return invalid_asset_type(
        where, f"{problem.expected}, such as a part of it", problem.got
    )


def invalid_asset_type(where: str, expected: str, got: str) -> CallError:
    """Report that a referenced value has the wrong type (B42)."""
    return CallError(
        code="invalid_asset_type",
        where=where,
        message=f"{where}: the reference leads to {got}, expected {expected}.",
    )
