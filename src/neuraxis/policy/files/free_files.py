"""Free files: documents, and new scripts that nothing loads."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path as File

from neuraxis.policy.decision import Facts
from neuraxis.policy.files.code_mentions import is_mentioned
from neuraxis.policy.files.file_names import (
    LOADED,
    SCRIPTS,
    in_capitals,
    is_document,
    is_plain,
    name_words,
    runs_nothing,
)
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.provenance.words import tokens
from neuraxis.sandbox.files.history import FileHistory
from neuraxis.sandbox.files.named_files import (
    PATH,
    is_called,
    is_named,
    is_named_alone,
    words_of,
)
from neuraxis.sandbox.files.paths import normal

_SIGN = re.compile(r"[-_/.\d]")
"""What a folder's name has that a word of a sentence has not."""
_MOST_IN_FOLDER = 200
"""Files of a folder that a request may call by words, so that it means the folder."""


def is_free_file_use(facts: Facts) -> bool:
    """Whether all that a call does to files is free."""
    marks, request = facts.marks, facts.origins.own_words
    taken = [normal(path) for path in facts.named("read", "move", "remove")]
    kept = {os.path.basename(path) for path in taken if _is_pointed_at(path, request)}
    uses = [(path, use) for _, path, use in facts.uses if use != "read"]
    places = {place for place, use in marks.files if use != "read"}
    return (
        bool(uses)
        and places.issuperset(marks.trusted_only)
        and all(_is_free(path, use, facts, kept) for path, use in uses)
    )


def _is_free(path: str, use: str, facts: Facts, kept: Collection[str]) -> bool:
    origins, files, workspace = facts.origins, facts.files, facts.workspace
    name, request = normal(path), origins.own_words
    own = _is_own(name, files)
    written = name in origins.fresh or (own and name in origins.earlier)
    if os.path.lexists(workspace / name) and not facts.step.command.is_builtin:
        return False  # no old version of it is stored
    match use:
        case "folder":
            return _is_free_name(path, naming_words(origins))
        case "run":
            named = is_named(name, request) or is_named_alone(name, request, workspace)
            known = (written and own) or named
            # the walls are round the scripts that the runtime itself runs
            return origins.walls and facts.step.command.is_builtin and known
        case "move" | "remove" if not os.path.lexists(workspace / name):
            return facts.step.command.is_builtin  # it fails, and says why
        case "remove":
            new = files is not None and files.is_new(name)
            return new or (own and name in origins.earlier)
        case "move":
            known = written or is_named(name, request)
            ours = own or name in origins.files
            return known and ours and is_document(name, request)
        case "change" if os.path.lexists(workspace / name):
            known = written or _is_meant(name, request, workspace)
            return known and is_document(name, naming_words(origins))
        case _:
            if is_new_script(path, naming_words(origins), workspace):
                is_there = os.path.lexists(workspace / name)
                return not is_there or (written and own)
            copied = bool(facts.named("read", "move", "remove"))
            return is_free_document(
                path, origins, workspace, files, kept, copied=copied
            )


def is_free_document(
    path: str,
    origins: Origins,
    workspace: File,
    files: FileHistory | None,
    kept: Collection[str] = (),
    *,
    copied: bool = False,
) -> bool:
    """Whether a document may be written: new, or the runtime's own.

    That one must be this request's, by its words or because a call of it wrote the
    file, or of the request that it goes on with.

    Args:
        path: of the document.
        origins: the user's words, and which request wrote which file.
        workspace: where it is.
        files: what is known of the workspace's files.
        kept: names of files that the call copies.
        copied: it is a copy, which holds more than the model writes.
    """
    name, words = normal(path), naming_words(origins)
    own = _is_own(name, files)
    if own and not copied and (name in origins.fresh or name in origins.earlier):
        return is_document(name, words)
    if os.path.lexists(workspace / name):
        known = _is_meant(name, origins.own_words, workspace)
        if not (known or name in origins.fresh) or not (own or name in origins.files):
            return False
    return is_new_document(path, words, workspace, files, kept, copied=copied)


def naming_words(origins: Origins) -> tuple[str, ...]:
    """Return the words that free new files' names.

    They are those of this request and of the one that it goes on with, and the names of
    the files which that one wrote.
    """
    return (*origins.own_words, *origins.before, *origins.earlier)


def _is_meant(name: str, request: Iterable[str], workspace: File) -> bool:
    """Whether the request names a file, or calls it by words.

    `AGENT.md` is a program's file: "the agent" is a person.
    """
    called = not in_capitals(name) and is_called(name, request, workspace)
    return called or is_named(name, request)


def _is_folder_meant(folder: str, request: Iterable[str], workspace: File) -> bool:
    """Check whether a folder is meant, also by a file in it."""
    if _are_said(os.path.basename(folder), _spoken(request)):
        return (workspace / folder).is_dir()
    with suppress(OSError):
        names = sorted(os.listdir(workspace / folder))[:_MOST_IN_FOLDER]
        return any(_is_meant(f"{folder}/{one}", request, workspace) for one in names)
    return False


def _is_own(name: str, files: FileHistory | None) -> bool:
    """Whether the runtime wrote a file as a whole, unchanged since."""
    return files is not None and files.is_own(name)


def _is_pointed_at(path: str, request: Iterable[str]) -> bool:
    """Whether the request names a file, or the folder of it."""
    folder = os.path.dirname(path)
    in_named = folder != "" and (
        is_named(folder, request) or _are_said(folder, _spoken(request, paths=False))
    )
    return in_named or is_named(path, request)


def _are_said(folder: str, words: Iterable[str]) -> bool:
    """Whether all folders of a path were named (`letters` by "letter")."""
    if not all(words_of(part) for part in folder.split("/") if part):
        return False  # of signs alone, which no word names
    folders = {word.removesuffix("s") for word in words_of(folder)}
    return folders.issubset(word.removesuffix("s") for word in words)


def is_new_document(
    path: str,
    request: Iterable[str],
    workspace: File,
    files: FileHistory | None,
    kept: Collection[str] = (),
    copied: bool = False,
) -> bool:
    """Whether a document may have this name.

    Args:
        path: of the document.
        request: the user's words.
        workspace: where it would be.
        files: what is known of the workspace's files.
        kept: names of files that the call copies.
        copied: it is a copy, which holds more than the model writes.
    """
    folder, name = os.path.split(normal(path))
    written = {token.rstrip("/") for text in request for token in tokens(text)}
    # a folder for what is asked for: with a sign that no plain word has
    is_spelled = folder in written and _SIGN.search(folder) is not None
    is_there = name in written and (workspace / folder).is_dir()
    is_new = is_spelled and files is not None and files.wrote_all_of(folder)
    return is_document(path, request) and (
        (is_there and not folder)
        or (not copied and (is_there or is_new))
        or _is_free_name(
            path,
            request,
            addresses=True,
            has_it=name in kept,
            is_in_meant=not copied and _is_folder_meant(folder, request, workspace),
        )
    )


def is_new_script(path: str, request: Iterable[str], workspace: File) -> bool:
    """Whether a new script's name is free, imported and loaded by nothing."""
    folder, name = os.path.split(normal(path))
    stem, suffix = os.path.splitext(name)
    parts = [*filter(None, folder.split("/")), stem]
    is_in_meant = folder != "" and _is_folder_meant(folder, request, workspace)
    return (
        suffix == ".py"
        and stem.isidentifier()
        and (is_in_meant or not folder)
        and _is_free_name(path, request, is_in_meant=is_in_meant)
        and not any(part.lower().startswith("test") for part in parts)
        and (LOADED | SCRIPTS).isdisjoint(name_words(" ".join(parts)))
        and importlib.util.find_spec(stem.lower()) is None
        and not any(is_mentioned(part, workspace, runs_nothing) for part in parts)
    )


def _is_free_name(
    path: str,
    request: Iterable[str],
    *,
    addresses: bool = False,
    has_it: bool = False,
    is_in_meant: bool = False,
) -> bool:
    """Whether a new file or folder may have this path.

    The request names it; or its folders (`letters` by "letter"), and a word of its name
    or how one begins.

    Args:
        path: the path.
        request: the user's words.
        addresses: words of the request's addresses count for the name.
        has_it: the file has its name already, so that a folder is enough.
        is_in_meant: the request means its folder.
    """
    if not is_plain(path) or is_named(path, request):
        return is_plain(path)
    folder, last = os.path.split(normal(path))
    stem = os.path.splitext(last)[0]
    if in_capitals(last) or not (is_in_meant or _are_said(folder, _spoken(request))):
        return False
    begins = {word[:4] for word in _spoken(request, addresses=addresses)}
    return (has_it and folder != "") or any(w[:4] in begins for w in words_of(stem))


def _spoken(
    request: Iterable[str], *, paths: bool = True, addresses: bool = False
) -> set[str]:
    """Return the words of a request, for addresses of their last part."""
    found: set[str] = set()
    for token in (token for text in request for token in tokens(text)):
        if "://" not in token and (paths or not PATH.search(token)):
            found.update(words_of(token))
        elif addresses:
            found.update(words_of(token.rpartition("/")[2]))
    return found
