"""Messages of the policy: why it asks, and the alternative.

The user and the model both read a reason, so it addresses neither. Text for the user
says "you", text for the model "the user".
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from neuraxis.formatting import QUOTED, counted, listed, path_text, quote, visible
from neuraxis.messages import Path
from neuraxis.specs import Json

SAID_NO = "the user said no"
"""Beginning of the message when the user refused."""
INSTEAD = (
    "Do not do the same in another way: go on without it, or ask the user what they "
    "want instead."
)
"""Advice to the model after a refusal."""
MOST_OFFER = 300
"""Maximum characters of an offer that a person reads as one line."""
NOBODY = "there is no one to ask for approval"


def refused(why: str, way_out: str = "") -> str:
    """Return why a call may not run, and an alternative.

    Args:
        why: the user's refusal, or why nobody answered.
        way_out: what helps if nobody answered; a user who refused is not asked again.
    """
    if why.startswith(SAID_NO):
        way_out = INSTEAD
    return f"{why.rstrip('.')}. {way_out}" if way_out else why


def said_no_often(times: int, reason: str) -> str:
    """Return that the user is no longer asked in this run."""
    return f"{SAID_NO} {times} times in this run and is not asked again ({reason})"


def no_from(by: str) -> str:
    """Return the user's refusal, or why nobody answered."""
    if by == "user":
        return SAID_NO
    return f"it needs approval, and {by.removeprefix('nobody: ')}"


def asks_out(
    paths: Sequence[Path], host: str, label: str, private: str, *, is_said: bool
) -> str:
    """Return why sending values needs an approval (rule Out).

    Args:
        paths: the arguments that name the destination, or go there.
        host: the host that they lead to; empty if unclear.
        label: what was read, in words.
        private: the private part of it.
        is_said: whether all are the user's words, but not in their order.
    """
    places = listed([_place(path) for path in paths])
    where = f"a request to {host}" if host else f"{places} to others"
    what = f"its address ({places})" if host else "what is sent"
    which = "that were read" if private in ("", label) else f"from {private}"
    order = _OTHER_ORDER if is_said else ""
    return (
        f"this would send {where}; text from {label} may have chosen {what}, and "
        f"private things {which} could leave with it{order}"
    )


_OTHER_ORDER = (
    "; the user wrote this address, but it was used before, or a later one in the "
    "request was"
)


def out_way_out(target: str) -> str:
    """Return what to do if nothing may be sent."""
    return (
        "Use an address from the user's request, exactly as it is written there, and "
        "once; or tell the user which address you would open, so that they ask for it "
        f"({yes_ahead(target)})."
    )


def asks_guarded(path: Path, traced: str) -> str:
    """Return why an untrusted value needs an approval (rule Deeds)."""
    return f"{_place(path)} is {traced}, so others may have chosen it"


def asks_repeated(label: str) -> str:
    """Return why a loop without `item` needs an approval (rule Deeds)."""
    return f"how often it happens is decided by a list from {label}"


def _place(path: Path) -> str:
    return quote(path_text(path)) if path else "the argument"


def asks_path(path: str, use: str, *, is_new: bool) -> str:
    """Return why the model's path needs an approval (rule Deeds).

    Args:
        path: the path of the file or folder.
        use: the use of the file.
        is_new: whether nothing is there yet.
    """
    kind_of_name = "path" if "/" in path else "name"
    place = f"{quote(path)}, whose {kind_of_name} is not in the request"
    if is_new and use in ("write", "change", "folder"):
        kind = "folder" if use == "folder" else "file"
        return f"this would make a new {kind}, {place}"
    return f"this would {DOES.get(use, use)} {place}"


DOES = {
    "write": "replace",
    "change": "change",
    "move": "move",
    "remove": "delete",
}
"""Verb for each use of a file."""


def asks_code(label: str) -> str:
    """Return why running untrusted code needs an approval (rule Deeds)."""
    return f"this would run code from {label}"


def asks_deed(label: str, code: Sequence[str] = ()) -> str:
    """Return why an effect after reading needs an approval (rule Deeds).

    Args:
        label: what the model read, in words.
        code: the files that it would write, except documents.
    """
    why = f"the model was shown what may come from {label}, {_MAY_BE_WHY}"
    return f"{why}; {may_be_loaded(code)}" if code else why


_MAY_BE_WHY = "and text that others wrote there may have led it to this"


def may_be_loaded(paths: Sequence[str]) -> str:
    """Return why files that are no documents need an approval."""
    return f"{listed([quote(path) for path in paths])} may be run or loaded by programs"


def deed_way_out(target: str, uses: Collection[str | None]) -> str:
    """Return what to do if an effect is not allowed.

    `uses`: the command's uses of the files that it names.
    """
    may_write = not {"write", "change"}.isdisjoint(uses)
    first = (
        "Write a new document (.md, .txt, .csv, .png) or script (but no test) under a "
        "name with a word of the request, at the top of the workspace, or tell"
        if may_write and {"remove", "run"}.isdisjoint(uses)
        else "Tell"
    )
    addition = " and name the file" if uses else " in a request of its own"
    return (
        f"{first} the user what you would do, so that they ask for it{addition} "
        f"({yes_ahead(target)})."
    )


def undeclared_way_out(target: str, command: str) -> str:
    """Return what to do if a command declares no parameter's trust."""
    return (
        f"{command} declares none of its parameters, so none of them may hold anything "
        "that others wrote. Its author can name those that take the user's own "
        "values only (trusted_only), or declare that it destroys nothing "
        f"(effects: destructive false). {yes_way_out(target)}"
    )


def yes_way_out(target: str) -> str:
    """Return that only an approval helps."""
    return f"Tell the user that it needs their approval ({yes_ahead(target)})."


def yes_ahead(target: str) -> str:
    """Return how a user approves a command in advance."""
    return (
        f'to approve it beforehand: Policy(yes_to=["{target}"]) in a program, '
        f"--yes-to {target} on the command line"
    )


def plan_way_out(why: str, targets: Sequence[str]) -> str:
    """Return why a guessed plan needs approval, and how to give it."""
    if why.startswith(SAID_NO):
        return why
    options = " ".join(f"--yes-to {target}" for target in targets)
    return (
        f"{why.rstrip('.')}. To approve it beforehand: {options} on the command line, "
        f"Policy(yes_to={json.dumps(list(targets))}) in a program"
    )


def only_reads(command: str, *, of_server: bool = False) -> str:
    """Return how a program declares that a command changes nothing.

    Args:
        command: its name.
        of_server: whether it is an MCP server's.
    """
    how = '@command(effects="read")'
    if of_server:
        how = f'mcp(..., effects={{"{command}": "read"}})'
    return f" If {command} only reads, declare it in the program: {how}."


def unknown_way_out(calls: Sequence[str]) -> str:
    """Return how a program settles calls of unknown outcome."""
    settled = ", ".join(f'session.settle("{call}", happened)' for call in calls)
    return (
        f"Tell the user, who can find out what it did. In a program, {settled} "
        "records that (True or False), and Session(approve=...) asks a person."
    )


def offer_calls(
    target: str,
    values: Sequence[tuple[Path, Json]] = (),
    *,
    others: bool = False,
    own: bool | None = None,
) -> str:
    """Return the offer of every call of a command, if readable.

    Args:
        target: the command.
        values: the values that each call must have, with their places; empty: any.
        others: whether the call has other values, which are free.
        own: whether it covers calls that change the user's files; None: it changes
            none.
    """
    try:
        named = [
            f"{path_text(path) or 'the argument'}={_whole(value)}"
            for path, value in values
        ]
    except (TypeError, ValueError, RecursionError):
        return ""  # an object is not told from another by its text
    with_values = f" with {', '.join(named)}" if values else ""
    other = ", whatever its other arguments" if values and others else ""
    offer = f"every call of {target}{with_values} in this session{other}"
    return _readable(offer if own is None else offer + (_OWN if own else _NOT_OWN))


def _whole(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _readable(offer: str) -> str:
    """Return an offer, or nothing if it is too long.

    The text is the key of the yes, so it is never cut.
    """
    seen = visible(offer[: MOST_OFFER + 1])
    return seen if len(seen) <= MOST_OFFER else ""


_OWN, _NOT_OWN = ", also on your own files", ", but not on your own files"


def also_own(offer: str) -> str:
    """Return the same offer, also for the user's own files."""
    return (
        f"{offer.removesuffix(_NOT_OWN)}{_OWN}" if offer.endswith(_NOT_OWN) else offer
    )


def offer_changes(target: str, paths: Sequence[str]) -> str:
    """Return the offer of all changes to files, if readable."""
    files_text = ", ".join(map(_whole, paths))
    return _readable(
        f"every change that {target} makes to {files_text} in this session"
    )


def offer_every_change(target: str, *, own: bool) -> str:
    """Return the offer of all that scripts do to files.

    It is none of running them: another script may have been copied from outside.
    """
    suffix = _OWN if own else _NOT_OWN
    return _readable(f"every change that {target} makes in this session{suffix}")


def offer_host(host: str) -> str:
    """Return the offer of every address of a host, if readable."""
    return _readable(
        f"everything sent to {host} in this session, by any command and with any "
        "other arguments"
    )


def too_long_to_ask(most: int) -> str:
    """Return why a call is too long for a question."""
    return (
        "that needs the user's approval, and contains more than the "
        f"{most:,} characters that a question can show. Do it in smaller parts"
    )


def held_back(
    files: Mapping[str, Sequence[str]], label: str, code: Sequence[str] = ()
) -> str:
    """Return why a script's changes to files need an approval.

    Args:
        files: the files that it changed, moved, deleted or made.
        label: what the model read before it ran, in words; empty: nothing.
        code: the files that it would make, except documents.
    """
    does = {"changed": "change", "moved": "move", "deleted": "delete", "made": "make"}
    changes = " and ".join(
        f"{does[done]} {listed([quote(path) for path in paths])}"
        for done, paths in files.items()
        if paths
    )
    why = (
        f"; the model was shown what may come from {label}, {_MAY_BE_WHY}"
        if label
        else ""
    )
    load = f"; {may_be_loaded(code)}" if code else ""
    return f"the script would {changes}{why}{load}"


def summary(target: str, arguments: Json, reason: str = "") -> str:
    """Return one line of a question: call, origins and reason."""
    entries: dict[str, Any] = {"": arguments}
    if isinstance(arguments, dict):
        entries = cast("dict[str, Any]", arguments)
    parts = (f"{name}={_counted(value)}".lstrip("=") for name, value in entries.items())
    why = f": {reason}" if reason else ""
    return visible(" ".join(f"{target}({', '.join(parts)}){why}".split()))


def _counted(value: Json) -> str:
    """Quote a value, with the number of items or characters left out."""
    text = quote(value, sys.maxsize)
    if len(text) <= QUOTED:
        return text
    items = cast("list[Json]", value) if isinstance(value, list) else []
    if len(items) < 2:
        # closed, so that the model's text does not run into the reason
        end = '"' if isinstance(value, str) else ""
        remainder = counted(len(text) - QUOTED, "more character")
        return f"{text[:QUOTED]}…{end} ({remainder})"
    fitting: list[str] = []
    for item in items:
        fitting.append(quote(item))
        if sum(map(len, fitting)) > QUOTED:
            break
    fitting = fitting[:-1] or fitting
    return f"[{', '.join(fitting)}, … {len(items) - len(fitting):,} more]"
