"""Sentences of the policy: why it asks, and the way out.

A reason is read by the person asked and by the model, so that it names neither. What
only the person reads says "you", what only the model reads says "the user".
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
"""How the answer of a person who refused begins."""
INSTEAD = (
    "Do not do the same in another way: go on without it, or ask the user what they "
    "want instead."
)
"""What a model is told after a no."""
NOBODY = "it needs the user's yes, and nobody can be asked"


def refused(why: str, way_out: str = "") -> str:
    """Return why a call may not run, and the way out.

    Args:
        why: the person's no, or why nobody answered.
        way_out: what helps where nobody answered; who said no is not asked again.
    """
    if why.startswith(SAID_NO):
        way_out = INSTEAD
    return f"{why.rstrip('.')}. {way_out}" if way_out else why


def said_no_often(times: int, reason: str) -> str:
    """Say that a person is not asked any more in this run."""
    return f"{SAID_NO} {times} times in this run and is not asked again ({reason})"


def no_from(by: str) -> str:
    """Say that the user said no, or why nobody answered."""
    if by == "user":
        return SAID_NO
    return f"it needs the user's yes, and {by.removeprefix('nobody: ')}"


def asks_out(path: Path, label: str, private: str) -> str:
    """Why something that is sent is asked about (rule Out).

    Args:
        path: the argument that says where it is sent.
        label: what was read, in words.
        private: what of it is private.
    """
    things = "private things that were read"
    if private:
        things = f"private things from {'there' if private == label else private}"
    return (
        f"this would send {_place(path)} to others; what was read ({label}) may have "
        f"chosen it, and {things} could leave with it"
    )


def out_way_out(target: str) -> str:
    """Return what to do where nothing may leave."""
    return (
        "Use an address that stands in the user's request, as it stands there and "
        "once; or tell the user which address you would open, so that they ask for it "
        f"({yes_ahead(target)})."
    )


def asks_guarded(path: Path, traced: str) -> str:
    """Why a value from outside is asked about (rule Deeds)."""
    return f"{_place(path)} is {traced}, so others may have chosen it"


def asks_repeated(label: str) -> str:
    """Why a loop is asked about that passes no item (rule Deeds)."""
    return f"how often it happens is decided by a list from {label}"


def _place(path: Path) -> str:
    return quote(path_text(path)) if path else "the argument"


def asks_path(path: str, use: str, *, is_new: bool) -> str:
    """Why a path that the model chose is asked about (rule Deeds).

    Args:
        path: of the file or folder.
        use: what would be done with it.
        is_new: nothing is there yet.
    """
    does = {**DOES, "write": "write", "folder": "make"}.get(use, use)
    whole = " by its whole path" if "/" in path else ""
    new = f": a new {'folder' if use == 'folder' else 'file'}"
    new = new if is_new and use in ("write", "change", "folder") else ""
    return (
        f"this would {does} {quote(path)}, which the request does not name{whole}{new}"
    )


DOES = {"write": "replace", "change": "change", "move": "move", "remove": "delete"}
"""What would be done to a file, in words."""


def asks_code(label: str) -> str:
    """Why running code from outside is asked about (rule Deeds)."""
    return f"this would run code from {label}"


def asks_deed(label: str, code: Sequence[str] = ()) -> str:
    """Why an effect after reading is asked about (rule Deeds).

    Args:
        label: what the model read, in words.
        code: files that it would write which are no documents.
    """
    why = f"the model chose to do this {_after(label)}"
    if code:
        files = listed([quote(path) for path in code])
        kind = "is not a plain document" if len(code) == 1 else "are no plain documents"
        which = "it" if len(code) == 1 else "them"
        why += f"; {files} {kind}: programs may run or load {which}"
    return why


def _after(label: str) -> str:
    return f"after it read {label}, and what others wrote there may be why"


def deed_way_out(target: str, uses: Collection[str | None]) -> str:
    """Return what to do where a deed may not be done.

    `uses`: what the command does to the files that it names.
    """
    may_write = not {"write", "change"}.isdisjoint(uses)
    first = (
        "Write a new document (.md, .txt, .csv, .png) or script under a name with a "
        "word of the request, at the top of the workspace, or tell"
        if may_write and {"remove", "run"}.isdisjoint(uses)
        else "Tell"
    )
    named = " and name the file" if uses else " by itself"
    return (
        f"{first} the user what you would do, so that they ask for it{named} "
        f"({yes_ahead(target)})."
    )


def undeclared_way_out(target: str, command: str) -> str:
    """Return what to do where a command declares none of its parameters."""
    return (
        f"{command} declares none of its parameters, so nothing that others wrote may "
        "stand in any of them. Its author can name those that take the user's own "
        "values only (trusted_only), or declare that it destroys nothing "
        f"(effects: destructive false). {yes_way_out(target)}"
    )


def yes_way_out(target: str) -> str:
    """Say that approval is the only way."""
    return f"Tell the user that it needs their approval ({yes_ahead(target)})."


def yes_ahead(target: str) -> str:
    """Say how a person approves a command before it is called."""
    return (
        f'to approve it beforehand: Policy(yes_to=["{target}"]) in a program, '
        f"--yes-to {target} on the command line"
    )


def offer_calls(
    target: str, values: Sequence[Json] = (), *, own: bool | None = None
) -> str:
    """Offer a yes for every call of a command.

    Args:
        target: the command.
        values: those that each call must have; empty: none.
        own: whether also for calls that change files of the person's own; None: it
            changes no files.
    """
    shown = visible(json.dumps([*values], ensure_ascii=False, default=str)[1:-1])
    which, rest = (f" with {shown}", "other ") if values else ("", "")
    offer = (
        f"every call of {target}{which} in this session, whatever its {rest}arguments"
    )
    return offer if own is None else offer + (_OWN if own else _NOT_OWN)


_OWN, _NOT_OWN = ", also on files of your own", ", but not on files of your own"


def also_own(offer: str) -> str:
    """The same offer, also for files of the person's own."""
    return (
        f"{offer.removesuffix(_NOT_OWN)}{_OWN}" if offer.endswith(_NOT_OWN) else offer
    )


def offer_host(host: str) -> str:
    """Offer a yes for every address of a host."""
    return (
        f"everything sent to {host} in this session, by any command and whatever the "
        "other arguments"
    )


def too_long_to_ask(most: int) -> str:
    """Why a call is too long to be asked about."""
    return (
        f"it needs the user's yes, and holds more than the {most:,} characters that "
        "they can be shown. Do it in smaller parts"
    )


def held_back(files: Mapping[str, Sequence[str]], label: str, whose: str) -> str:
    """Why a person is asked about what a script did to files.

    Args:
        files: those that it changed, moved, deleted or made.
        label: what the model read before it ran, in words.
        whose: who did not write them, if nothing was read.
    """
    does = {"changed": "change", "moved": "move", "deleted": "delete", "made": "make"}
    changes = " and ".join(
        f"{does[done]} {listed([quote(path) for path in paths])}"
        for done, paths in files.items()
        if paths
    )
    why = f"; the model ran it {_after(label)}" if label else f", which {whose}"
    return f"the script would {changes}{why}"


def summary(target: str, arguments: Json, reason: str = "") -> str:
    """One line of a question: what, whose words, why; cuts are counted."""
    given: dict[str, Any] = {"": arguments}
    if isinstance(arguments, dict):
        given = cast("dict[str, Any]", arguments)
    shown = (f"{name}={_counted(value)}".lstrip("=") for name, value in given.items())
    why = f": {reason}" if reason else ""
    return visible(" ".join(f"{target}({', '.join(shown)}){why}".split()))


def _counted(value: Json) -> str:
    """Quote a value, with the number of items or characters left out."""
    text = quote(value, sys.maxsize)
    if len(text) <= QUOTED:
        return text
    items = cast("list[Json]", value) if isinstance(value, list) else []
    if len(items) < 2:
        # closed, so that the model's text does not run into the reason
        end = '"' if isinstance(value, str) else ""
        more = counted(len(text) - QUOTED, "more character")
        return f"{text[:QUOTED]}…{end} ({more})"
    shown: list[str] = []
    for item in items:
        shown.append(quote(item))
        if sum(map(len, shown)) > QUOTED:
            break
    shown = shown[:-1] or shown
    return f"[{', '.join(shown)}, … {len(items) - len(shown):,} more]"
