"""Free files need no approval: documents, and new scripts that nothing loads."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable, Sequence
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
from neuraxis.policy.provenance.file_labels import KnowsFiles, is_written
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.provenance.words import tokens
from neuraxis.sandbox.files.named_files import (
    PATH,
    is_called,
    is_named,
    is_named_alone,
    words_of,
)
from neuraxis.sandbox.files.paths import normal

_SIGN = re.compile(r"[-_/.\d]")
"""Characters that tell a folder's name from a word of a sentence."""
_MOST_IN_FOLDER = 200
"""Maximum files of a folder that are compared with the request's words."""


def is_free_file_use(facts: Facts) -> bool:
    """Whether everything that a call does to files is free."""
    marks = facts.marks
    copied = [normal(path) for path in facts.named("read", "move", "remove")]
    uses = [(path, use) for _, path, use in facts.uses if use != "read"]
    places = {place for place, use in marks.files if use != "read"}
    return (
        bool(uses)
        and places.issuperset(marks.trusted_only)
        and all(_is_free(path, use, facts, copied) for path, use in uses)
    )


def _is_free(path: str, use: str, facts: Facts, copied: Sequence[str]) -> bool:
    origins, workspace, name = facts.origins, facts.workspace, normal(path)
    request, words = origins.own_words, naming_words(origins)
    own, is_builtin = is_written(name, facts), facts.step.command.is_builtin
    is_there = os.path.lexists(workspace / name)
    written = name in origins.fresh or (own and name in origins.earlier)
    if is_there and not is_builtin:
        return False  # no old version of it is stored
    match use:
        case "folder":
            return _is_free_name(path, words)
        case "run":
            named = is_named(name, request) or is_named_alone(name, request, workspace)
            # the sandbox is around the scripts that the runtime itself runs
            return origins.walls and is_builtin and (named or (written and own))
        case "move" | "remove" if not is_there:
            return is_builtin  # it fails with a reason
        case "remove":
            new = facts.files is not None and facts.files.is_new(name)
            return new or (own and name in origins.earlier)
        case "move":
            known = written or is_named(name, request)
            ours = own or name in origins.files
            return known and ours and is_document(name, request)
        case "change" if is_there:
            known = written or _is_meant(name, request, workspace)
            return known and is_document(name, words)
        case _ if is_new_script(path, words, workspace):
            return not is_there or (written and own)
        case _:
            return is_free_document(path, facts, copied)


def is_free_document(path: str, known: KnowsFiles, copied: Sequence[str] = ()) -> bool:
    """Whether a document may be written: new, or the runtime's own.

    An existing one must belong to this request or the previous one: its words name it,
    or one of its calls wrote it. `copied`: the files that it is a copy of, with content
    that the model did not write.
    """
    origins, workspace, name = known.origins, known.workspace, normal(path)
    own, is_there = is_written(name, known), os.path.lexists(workspace / name)
    request, words = origins.own_words, naming_words(origins)
    if not is_document(path, words):
        return False
    if own and not copied and (name in origins.fresh or name in origins.earlier):
        return True
    if is_there and not (
        (name in origins.fresh or _is_meant(name, request, workspace))
        and (own or name in origins.files)
    ):
        return False
    folder, last = os.path.split(name)
    said = {token.rstrip("/") for text in words for token in tokens(text)}
    # the request spells out its name; for a copy that is enough only at the top
    if last in said and (workspace / folder).is_dir() and not (copied and folder):
        return True
    if copied:
        has_it = any(
            os.path.basename(one) == last and _is_pointed_at(one, request)
            for one in copied
        )
        return _is_free_name(path, words, addresses=True, has_it=has_it)
    # a new folder that the request names, told from a plain word by a sign
    is_spelled = folder in said and _SIGN.search(folder) is not None
    if is_spelled and known.files is not None and known.files.wrote_all_of(folder):
        return True
    is_in_meant = _is_folder_meant(folder, words, workspace)
    return _is_free_name(path, words, addresses=True, is_in_meant=is_in_meant)


def naming_words(origins: Origins) -> tuple[str, ...]:
    """Return the texts whose words new files may have as names.

    They are this request, the previous one, and the names of the files that it wrote.
    """
    return (*origins.own_words, *origins.before, *origins.earlier)


def _is_meant(name: str, request: Iterable[str], workspace: File) -> bool:
    """Whether the request names a file, or calls it by words.

    The words "the agent" do not mean `AGENT.md`, which programs load.
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
        return False  # only signs, which no word names
    folders = {word.removesuffix("s") for word in words_of(folder)}
    return folders.issubset(word.removesuffix("s") for word in words)


def is_new_script(path: str, request: Iterable[str], workspace: File) -> bool:
    """Whether a new script's name is free: nothing imports or loads it."""
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
        path: of the file or folder.
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
