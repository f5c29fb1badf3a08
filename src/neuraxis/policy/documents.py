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

from neuraxis.policy.provenance.tracker import normal
from neuraxis.policy.provenance.words import is_own_address, tokens

DOCUMENTS = (
    *(".md", ".txt", ".rst", ".csv", ".tsv", ".parquet", ".xlsx", ".pdf"),
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff"),
)
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


def is_plain(path: str) -> bool:
    """Whether a path stays in the workspace and has no hidden part."""
    parts = normal(path).split("/")
    return bool(path) and not (
        "\\" in path
        or path.startswith(("/", "~"))
        or any(part.startswith(".") or not part for part in parts)
    )


def is_free_script(path: str, workspace: File) -> bool:
    """Whether a new script's name is imported and loaded by nothing."""
    name = normal(path)
    stem, suffix = os.path.splitext(name)
    low = stem.lower()
    return (
        suffix == ".py"
        and is_plain(path)
        and "/" not in name
        and all(char.isalnum() or char in "_-" for char in stem)
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
    """Whether code in the workspace may hold the name."""
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
                    if wanted in file.read():
                        return True
            except OSError:
                return True
    return False
