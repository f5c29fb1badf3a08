"""Names of documents, and names of files that programs load.

A document is a text, a table or a picture, unless tools load files of its name. Both
lists are in docs/security.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from neuraxis.policy.provenance.words import tokens
from neuraxis.sandbox.files.named_files import words_of
from neuraxis.sandbox.files.paths import normal

DOCUMENTS = (
    *(".md", ".txt", ".rst", ".csv", ".tsv", ".parquet", ".pdf", ".ics"),
    *(".xlsx", ".docx", ".pptx", ".ods", ".odt", ".odp"),
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff"),
)
DATA = (".json", ".jsonl", ".ndjson", ".xml", ".log", ".svg", ".zip")
"""Documents only if the request names the file, or another of the same stem."""
LOADED = frozenset(
    (
        *("agents", "claude", "cmakelists", "constraints", "conventions", "copilot"),
        *("crush", "gemini", "package", "packages", "qwen", "requirements"),
        *("robots", "runtime", "skill", "tsconfig", "warp"),
    )
)
"""Words in the names of documents that programs load by themselves."""
SCRIPTS = frozenset(
    (
        *("admin", "app", "apps", "asgi", "bootstrap", "build", "celeryconfig"),
        *("commands", "composer", "conf", "config", "conftest", "dags", "deno"),
        *("dodo", "extensions", "fabfile", "hooks", "hubconf", "init", "lambda"),
        *("locustfile", "main", "manage", "management", "mcp", "migrations"),
        *("models", "noxfile", "pages", "pavement", "pelicanconf", "plugin"),
        *("plugins", "pom", "settings", "setup", "sitecustomize", "snakefile"),
        *("streamlit", "tasks", "templatetags", "test", "urls", "usercustomize"),
        *("versioneer", "versions", "views", "wsgi"),
    )
)
"""Words in names of `.py .json .xml` files that tools load, and of folders of such
`.py` files; those of `.py` files also in `test…`."""
_NO_CODE = (*DOCUMENTS, ".jsonl", ".ndjson", ".log", ".html", ".svg", ".zip")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""The beginning of the next word of a name in `camelCase`."""


def is_document(path: str, request: Iterable[str]) -> bool:
    """Whether a path is that of a document that nothing loads."""
    name, suffix = os.path.splitext(os.path.basename(normal(path)))
    stem, suffix = name.lower(), suffix.lower()
    if not is_plain(path) or not LOADED.isdisjoint(name_words(name)):
        return False
    if suffix in (".txt", ".rst") and stem.startswith("test"):
        return False  # pytest runs the tests in it
    if suffix in (".json", ".xml") and not SCRIPTS.isdisjoint(name_words(name)):
        return False
    if suffix in DATA:  # by its name, or as a form of a file: sales.csv as sales.json
        named = [os.path.splitext(token) for text in request for token in tokens(text)]
        return any(ends and os.path.basename(of).lower() == stem for of, ends in named)
    return suffix in DOCUMENTS


def runs_nothing(name: str) -> bool:
    """Whether no program runs the content of a file of this name."""
    stem, suffix = os.path.splitext(name)
    return suffix.lower() in _NO_CODE and LOADED.isdisjoint(name_words(stem))


def in_capitals(path: str) -> bool:
    """Whether a name is in capitals, like files that programs look for."""
    stem = os.path.splitext(os.path.basename(path))[0]
    return stem.isupper() and not any(map(str.isdigit, stem))


def is_plain(path: str) -> bool:
    """Whether a path stays in the workspace and has no hidden part."""
    name = normal(path)
    return "\\" not in path and not (
        any(one.startswith(("/", "~")) for one in (path.strip(), name))
        or any(part.startswith(".") for part in name.split("/"))
    )


def name_words(stem: str) -> list[str]:
    """Return the words of a name, also of one in `camelCase`."""
    return [*words_of(stem), *words_of(_HUMP.sub(" ", stem))]
