"""Readable, unique, legal names for the commands of a document."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection

from neuraxis.bridges.openapi_client.tolerant_access import as_text
from neuraxis.specs import Json

LONGEST = 56
"""Maximum characters of a command's name; servers accept 64 with the plugin's."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_WORDS = re.compile(r"[A-Za-z0-9]+")


def command_name(
    operation_id: Json, method: str, path: str, taken: Collection[str]
) -> str:
    """Return a legal name from the operation's id, or its path."""
    identifier = _UNSAFE.sub("_", as_text(operation_id)).strip("_")
    identifier = _without_path(identifier, method, path)
    name = identifier or _from_path(method, path)
    if name[0].isdigit():
        name = f"{method}_{name}"
    if len(name) > LONGEST or name in taken:
        mark = hashlib.sha256(f"{method} {path}".encode()).hexdigest()[:6]
        name = f"{name[: LONGEST - 7].rstrip('_')}_{mark}"
    number = 2
    while name in taken:
        name, number = f"{name[: LONGEST - 7]}_{number}", number + 1
    return name


def plugin_name(title: str, fallback: str) -> str:
    """Return a short name for the plugin from the document's title."""
    words = [word.lower() for word in _WORDS.findall(title)]
    noise = {"api", "the", "openapi", "swagger", "rest", "specification", "spec"}
    remaining = [word for word in words if word not in noise] or words
    name = "_".join(remaining[:4])[:32].strip("_")
    name = name or "_".join(_WORDS.findall(fallback))[:32].lower() or "api"
    return f"api_{name}" if name[0].isdigit() else name


def _without_path(name: str, method: str, path: str) -> str:
    """Return `read_item` for the `read_item_items__item_id__get` of a framework."""
    # FastAPI replaces every non-letter of the path with an underscore
    suffix = re.sub(r"\W", "_", f"{path}").strip("_") + f"_{method}"
    squeezed, tail = re.sub("_+", "_", name), re.sub("_+", "_", suffix)
    if squeezed.endswith(f"_{tail}") and len(squeezed) > len(tail) + 2:
        return squeezed[: -len(tail) - 1]
    return name


def _from_path(method: str, path: str) -> str:
    words: list[str] = [method]
    for part in path.split("/"):
        for piece in re.split(r"(\{[^{}]*\})", part):
            piece_words = _WORDS.findall(piece)
            if piece.startswith("{") and piece_words:
                words.append("by")
            words += piece_words
    return "_".join(words)
