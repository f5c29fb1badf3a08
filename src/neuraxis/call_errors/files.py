"""Messages about the user's files."""

from __future__ import annotations

from collections.abc import Sequence

from neuraxis.call_errors.asking import DOES, refused, yes_ahead
from neuraxis.formatting import counted, listed, quote

_NAMED = 10
"""Maximum changes that a message names."""


def file_of_the_user(path: str, use: str, *, was_ours: bool) -> str:
    """Return why a change of a file needs an approval (finding N1).

    Args:
        path: the file's path.
        use: the use of the file.
        was_ours: whether the runtime wrote it, and somebody changed it since.
    """
    file_text = f"the user's file {quote(path)}"
    if was_ours:
        file_text = f"{quote(path)}, which was changed since Neuraxis wrote it"
    if use == "change":
        file_text += f", {'and ' if was_ours else ''}which the request does not name"
    return f"this would {DOES[use]} {file_text}"


def files_undone(paths: Sequence[str]) -> str:
    """Return what stands before the first request after an undo, or nothing."""
    if not paths:
        return ""
    return (
        "[Since your last answer the user undid your changes to files. These are as "
        f"they were before: {listed([quote(path) for path in paths])}.]\n\n"
    )


def can_be_undone(*, durable: bool) -> str:
    """Return how a change of a file can be undone."""
    how = "`neuraxis undo`" if durable else "`session.undo()`"
    return f"{how} can revert it"


def file_way_out(use: str, target: str, *, is_text: bool) -> str:
    """Return what to do instead of changing the user's file."""
    tell = "tell the user that it needs their approval"
    parts = ", append to it, or change a passage of it" if is_text else ""
    first = {
        "write": f"Write to another name{parts}; or ",
        "change": "Write the result to another name; or ",
        "move": "Copy it to the other name and leave it where it is; or ",
        "remove": "Leave it as it is, and ",
    }[use]
    return f"{first}{tell} ({yes_ahead(target)})."


def lost_of(path: str, gone: int, lines: int, blank: int) -> str:
    """Return how many lines a file would lose; the lines follow."""
    count = f"all {lines:,}" if gone == lines > 1 else f"{gone:,} of {lines:,}"
    empty = f", {blank:,} of them blank" if blank else ""
    return f"lines lost from {path} ({count}{empty}):"


def new_in(path: str, new: int) -> str:
    """Return how many lines a file would gain; the lines follow."""
    return f"lines new in {path} ({new:,}):"


def more_lines(count: int) -> str:
    """Return how many of the lines are not shown."""
    return f"… {counted(count, 'more line')}"


def lines_not_shown(path: str, why: str) -> str:
    """Return that a file's lines are not shown, and why."""
    return f"lines of {path}: not shown, {why}"


def more_files(paths: Sequence[str]) -> str:
    """Return which of a script's files have lines that are not shown."""
    names = listed([quote(path) for path in paths])
    return f"… lines of {counted(len(paths), 'more file')} not shown: {names}"


def replaced_by(path: str, lines: int, objects: Sequence[str]) -> str:
    """Return which objects replace a file, if their lines are unknown."""
    by = "; ".join(objects)
    heading = " with its heading" if path.lower().endswith((".csv", ".tsv")) else ""
    has = f"{counted(lines, 'line')}{heading}"
    return f"{path} ({has}) would be replaced by {by}"


def skill_file_changed(path: str) -> str:
    """Report that a skill's file differs from the accepted one."""
    return (
        f"{quote(path)} is not as it was when the session began: somebody changed this "
        "skill's files since. Tell the user, who must look at the change and begin a "
        "new session"
    )


def skill_copy_blocked(path: str) -> str:
    """Report that the user's file blocks a skill's copy."""
    return (
        f"{quote(path)} is the user's file, where the skill's own copy would be, "
        "so the script was not run. Tell the user, who may move or delete it"
    )


def file_was_made(path: str, near: Sequence[str]) -> str:
    """Report that an appended text created its file."""
    text = f"{quote(path)} is a new file: there was none of that name."
    if near:
        names = " and ".join(quote(name) for name in near)
        text += f" There is {names}: tell the user if that was meant."
    return text


def version_stored(path: str, *, durable: bool) -> str:
    """Report that a changed file's old version is stored."""
    how = "`neuraxis undo`" if durable else "`session.undo()`"
    until = "" if durable else " until the program ends"
    return f"The old version of {quote(path)} is stored{until}; {how} brings it back."


def script_changes_refused(paths: Sequence[str], why: str, target: str) -> str:
    """Report changes of a script that were not brought back.

    Args:
        paths: the files' paths.
        why: the user's refusal, or why nobody answered.
        target: the command that ran the script.
    """
    way_out = (
        "Let the script write to other names; or tell the user that it needs their "
        f"approval ({yes_ahead(target)})."
    )
    some = listed([quote(path) for path in paths])
    return (
        f"The script changed, deleted or made files that need the user's approval: "
        f"{some}. They are unchanged: {refused(why, way_out)}"
    )


def script_changes_outdated(paths: Sequence[str]) -> str:
    """Report script changes to files that changed during the question."""
    some = listed([quote(path) for path in paths])
    return (
        "While the user was asked, something else changed, deleted or made these "
        f"files: {some}. The script's changes to them were not made. Tell the user, "
        "and run the script again if they still want that."
    )


def script_changes_not_kept(not_kept: Sequence[str]) -> str:
    """Report changes of a script that could not be kept.

    Args:
        not_kept: each place, and why, without a full stop.
    """
    first = "; ".join(not_kept[:_NAMED])
    rest = f"; and {len(not_kept) - _NAMED} more" if len(not_kept) > _NAMED else ""
    return (
        f"Not all that the script did was kept: {first}{rest}. What was there in the "
        "workspace is unchanged."
    )
