"""New files that need no yes: documents, and scripts that nothing loads.

A document is a text, a table or a picture. Names that a tool loads by itself are none;
both lists stand in docs/security.md.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path as File

from neuraxis.policy.provenance.tracker import Origins, normal
from neuraxis.policy.provenance.words import is_own_address, tokens

DOCUMENTS = (
    *(".md", ".txt", ".rst", ".csv", ".tsv", ".parquet", ".xlsx", ".pdf"),
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff"),
)
TEXTS = (".md", ".txt", ".rst")
"""Documents that tools load by their name, and show or run."""
NAMED_DOCUMENTS = (".json", ".jsonl", ".ndjson", ".xml", ".log")
"""Free only where the request names the file, or another of that stem."""
LOADED = frozenset(
    (
        *("agents", "claude", "gemini", "qwen", "warp", "crush", "skill"),
        *("copilot-instructions", "conventions", "cmakelists", "robots"),
    )
)
"""Stems of documents that programs load by themselves."""
LOADED_DATA = frozenset(
    (
        *("package", "package-lock", "composer", "tsconfig", "jsconfig", "deno"),
        *("nodemon", "devcontainer", "launch", "tasks", "settings", "mcp", "nx"),
        *("angular", "firebase", "vercel", "turbo", "lerna", "biome", "babel"),
        *("renovate", "appsettings", "global", "pyrightconfig", "cypress", "pom"),
    )
)
SCRIPTS = frozenset(
    (
        *("__init__", "__main__", "admin", "app", "apps", "asgi", "bootstrap"),
        *("build", "celeryconfig", "conf", "config", "conftest", "dodo", "fabfile"),
        *("function_app", "hatch_build", "hubconf", "ipython_config", "main"),
        *("lambda_function", "locustfile", "manage", "models", "noxfile", "plugin"),
        *("pavement", "pelicanconf", "settings", "setup", "sitecustomize", "tasks"),
        *("snakefile", "streamlit_app", "tests", "urls", "usercustomize", "views"),
        *("versioneer", "wsgi"),
    )
)
"""Stems of Python files that tools load by themselves; also `test*`, `*_test`."""
_CODE = (
    *(".py", ".pyw", ".pyi", ".ipynb", ".toml", ".cfg", ".ini", ".sh", ".yml"),
    *(".yaml", ".json", "makefile", "dockerfile", "justfile", ".mk", ".bat"),
)
_ALL = tuple(
    mark + b"*.py" for mark in (b" ", b"'", b'"', b"(", b" ./", b"'./", b'"./')
)
"""How code names every script of a folder."""
_MOST_FILES, _MOST_BYTES = 2_000, 1_000_000


def is_document(path: str, request: Iterable[str] = ()) -> bool:
    """Whether a path is that of a document nothing loads."""
    name = normal(path)
    if not is_plain(path):
        return False
    stem, suffix = os.path.splitext(name.rpartition("/")[2].lower())
    if stem in LOADED or "requirements" in stem or "constraints" in stem:
        return False
    if suffix in NAMED_DOCUMENTS:
        said = [token.lower() for text in request for token in tokens(text)]
        # by its name, or as a form of a file that is named: sales.csv as sales.json
        known = any(
            os.path.splitext(os.path.basename(t))[0] == stem for t in said if "." in t
        )
        return stem not in LOADED_DATA and "." not in stem and known
    return suffix in DOCUMENTS


def is_new_document(path: str, origins: Origins, workspace: File) -> bool:
    """Whether a new document has a free name in a free folder.

    The folder is one that the request names, or that holds nothing of the user's; the
    name of a text has a word of the request, since tools load texts by fixed names.
    """
    name, said = normal(path), origins.own_words
    if not is_document(path, said) or is_named(path, said):
        return is_document(path, said)
    folder, _, last = name.rpartition("/")
    if folder and not (
        _spoken(said).issuperset(_words(folder))
        or origins.holds_own(name.partition("/")[0], workspace)
    ):
        return False
    stem, suffix = os.path.splitext(last)
    odd = stem.isupper() or "." in stem or stem.lower().startswith("test")
    return suffix.lower() not in TEXTS or (not odd and _is_of_request(stem, said))


def _is_of_request(stem: str, request: Iterable[str]) -> bool:
    """Whether a name has a word of the request."""
    said = {word[:4] for word in _spoken(request)}
    return any(word[:4] in said for word in _words(stem))


def _spoken(request: Iterable[str]) -> set[str]:
    every = (token for text in request for token in tokens(text))
    return {word for token in every if "://" not in token for word in _words(token)}


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.lower()).split()


def is_plain(path: str) -> bool:
    """Whether a path stays in the workspace and has no hidden part."""
    parts = normal(path).split("/")
    return bool(path) and not (
        "\\" in path
        or path.startswith(("/", "~"))
        or any(part.startswith(".") or not part for part in parts)
    )


def is_free_script(path: str, request: Iterable[str], workspace: File) -> bool:
    """Whether a new script's name is imported and loaded by nothing.

    It has a word of the request, as that of a text.
    """
    name = normal(path)
    stem, suffix = os.path.splitext(name)
    low = stem.lower()
    return (
        suffix == ".py"
        and is_plain(path)
        and "/" not in name
        and all(char.isalnum() or char in "_-" for char in stem)
        and _is_of_request(stem, request)
        and low not in SCRIPTS
        and not low.startswith("test")
        and not low.endswith(("_test", "_settings", "_config"))
        and low not in sys.stdlib_module_names
        and (not stem.isidentifier() or importlib.util.find_spec(stem) is None)
        and not _is_mentioned(stem, name, workspace)
    )


def is_named(path: str, request: Iterable[str]) -> bool:
    """Whether the request names a file, by its path."""
    name, texts = normal(path), list(request)
    return any(
        token.removeprefix("./") == name for text in texts for token in tokens(text)
    ) or is_own_address(name, texts)


def _is_mentioned(stem: str, own: str, workspace: File) -> bool:
    """Whether code in the workspace may name the script."""
    wanted, seen = stem.encode(), 0
    for folder, folders, names in os.walk(workspace):
        folders[:] = [one for one in folders if one not in (".git", "node_modules")]
        for name in names:
            if not name.lower().endswith(_CODE):
                continue
            full = os.path.join(folder, name)
            seen += 1
            try:
                if seen > _MOST_FILES or os.path.getsize(full) > _MOST_BYTES:
                    return True
                if os.path.relpath(full, workspace) == own:
                    continue
                with open(full, "rb") as file:
                    text = file.read()
                if wanted in text or any(one in text for one in _ALL):
                    return True
            except OSError:
                return True
    return False
