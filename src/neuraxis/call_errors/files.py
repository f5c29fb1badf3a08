"""Sentences about files of the user's."""

from __future__ import annotations

from collections.abc import Sequence

from neuraxis.call_errors.asking import yes_ahead
from neuraxis.formatting import listed, quote


def file_of_the_user(path: str, use: str) -> str:
    """Why a change of a file needs an approval (finding N1)."""
    if use == "change":
        return (
            f"{quote(path)} is a file of the user's that the request does not name, "
            "and it would be changed"
        )
    done = "moved or deleted" if use == "remove" else "replaced as a whole"
    return (
        f"{quote(path)} is a file of the user's, or was changed by them; it would be "
        f"{done}"
    )


def file_way_out(use: str) -> str:
    """What to do instead of changing a file of the user's."""
    if use == "write":
        first = "Write to another name, append to it, or change a passage of it"
    elif use == "change":
        first = "Write the result to another name"
    else:
        first = "Copy it to another name and leave it where it is"
    return (
        f"{first}; or tell the user that it needs their approval "
        f"({yes_ahead('PLUGIN.COMMAND')})."
    )


def skill_file_changed(path: str) -> str:
    """A skill's file is not the one that was accepted."""
    return (
        f"{quote(path)} is not as it was when the session began: somebody changed this "
        "skill's files since. Tell the user, who must look at the change and begin a "
        "new session"
    )


def file_was_made(path: str, near: Sequence[str]) -> str:
    """A text was appended to a file that did not exist."""
    told = f"{quote(path)} is a new file: there was none of that name."
    if near:
        names = " and ".join(quote(name) for name in near)
        told += f" There is {names}: tell the user if that was meant."
    return told


def version_stored(path: str, *, durable: bool) -> str:
    """A file was replaced, moved or deleted, and can be brought back."""
    how = (
        "`neuraxis undo` or `session.undo()`"
        if durable
        else "`session.undo()`, until the program ends,"
    )
    return f"The old version of {quote(path)} is stored; {how} brings it back."


def script_changes_refused(paths: Sequence[str]) -> str:
    """Report changes of a script that were not brought back."""
    some = listed([quote(path) for path in paths])
    return (
        f"The script changed, deleted or made files that need the user's yes: {some}. "
        "They are as they were before, since nobody approved it. Let the script write "
        "to other names; or tell the user that it needs their approval "
        f"({yes_ahead('PLUGIN.COMMAND')})."
    )
