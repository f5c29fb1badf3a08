"""Search a folder of text files with a SQLite FTS5 index.

The setting `search.folder` names the folder. Files are read through `sandbox.files`, so
links, dot names and huge files are omitted. The index is in the user's cache and
follows the files' times and sizes; if it cannot be written, or is broken, it is built
in memory. URLs are paths relative to the workspace if the folder is in it, so that
`file_reader` accepts them, else relative to the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import re
import sqlite3
from pathlib import Path, PurePosixPath

from neuraxis.builtin.web_search.providers import Hit
from neuraxis.errors import CommandError
from neuraxis.formatting import listed, quote
from neuraxis.parsing.encodings import text_of
from neuraxis.plugins.context import Context
from neuraxis.sandbox.files import workspace as files
from neuraxis.settings import user_dir

MOST_FILES = 20_000
BUSY_SECONDS = 2.0
DOCUMENT_BYTES = 2 * 1024 * 1024
_SUFFIXES = (".txt", ".md", ".markdown", ".rst", ".html", ".htm")
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[^<>]*>")
_DROPPED = re.compile(
    r"<(script|style|template|noscript)\b.*?(</\1\s*>|\Z)|<!--.*?(-->|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_TITLE = re.compile(r"<title[^<>]*>([^<]{1,300})", re.IGNORECASE)
_TABLES = """
create table if not exists file (
    id integer primary key, path text unique not null,
    changed integer not null, size integer not null
);
create virtual table if not exists page using fts5 (title, name, body);
"""


def search(query: str, most: int, context: Context) -> list[Hit]:
    """Return the files that contain words of the query, best first."""
    folder = _folder(context)
    words = list(dict.fromkeys(_WORD.findall(query.casefold())))[:32]
    if not words:
        raise CommandError(f"The query {query[:60]!r} holds no word to search for.")
    try:
        with contextlib.closing(_open_index(folder)) as index:
            rows = _rows(index, folder, words, most, context)
    except (OSError, sqlite3.Error):
        # The cache is not writable, broken, or locked by another process.
        with contextlib.closing(_prepare(sqlite3.connect(":memory:"))) as index:
            rows = _rows(index, folder, words, most, context)
    prefix = _prefix(folder, context.workspace)
    return [
        Hit(title=title, url=prefix + path, snippet=" ".join(snippet.split()))
        for path, title, snippet in rows
    ]


def _rows(
    index: sqlite3.Connection,
    folder: Path,
    words: list[str],
    most: int,
    context: Context,
) -> list[tuple[str, str, str]]:
    _refresh(index, folder, context)
    # Quoted words only: no part of the query is read as FTS syntax.
    expression = " OR ".join(f'"{word}"' for word in words)
    return index.execute(
        "select file.path, page.title, snippet(page, 2, '', '', ' … ', 40) from page "
        "join file on file.id = page.rowid where page match ? "
        "order by bm25(page, 8.0, 4.0, 1.0), file.path limit ?",
        (expression, most),
    ).fetchall()


def _folder(context: Context) -> Path:
    setting = context.settings.get("search.folder")
    if not setting:
        raise CommandError(
            "Searching documents needs the setting search.folder: a folder with text, "
            "Markdown or HTML files."
        )
    # Relative to the working directory, like every path of a setting.
    folder = Path(str(setting)).expanduser().resolve()
    if not folder.is_dir():
        raise CommandError(
            f"The folder of the setting search.folder ({setting}) is not there."
        )
    return folder


def _prefix(folder: Path, workspace: Path) -> str:
    try:
        relative = folder.relative_to(workspace.resolve())
    except ValueError:
        return ""
    return f"{relative.as_posix()}/" if relative.parts else ""


def _open_index(folder: Path) -> sqlite3.Connection:
    """Open the folder's index in the user's cache."""
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:32]
    place = user_dir("cache") / "search"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _prepare(sqlite3.connect(place / f"{name}.sqlite", timeout=BUSY_SECONDS))


def _prepare(index: sqlite3.Connection) -> sqlite3.Connection:
    try:
        index.executescript(_TABLES)
    except sqlite3.Error:
        index.close()
        raise
    return index


def _refresh(index: sqlite3.Connection, folder: Path, context: Context) -> None:
    """Update the index: read new and changed files, drop deleted ones."""
    listing = files.list_files(folder, most=MOST_FILES)
    if listing.more:
        context.warn(
            f"The folder has more than {MOST_FILES} files; those beyond were not "
            "searched."
        )
    names = [name for name in listing.files if name.lower().endswith(_SUFFIXES)]
    large: list[str] = []
    indexed = {
        path: (number, changed, size)
        for number, path, changed, size in index.execute(
            "select id, path, changed, size from file"
        )
    }
    with index:
        for path in indexed.keys() - set(names):
            _drop(index, indexed[path][0])
        for done, name in enumerate(names):
            if context.cancelled.is_set():
                raise CommandError("The search was stopped.")
            try:
                status = (folder / name).lstat()
            except OSError:
                continue
            state = (status.st_mtime_ns, status.st_size)
            if status.st_size > DOCUMENT_BYTES:
                large.append(quote(name))
            if name in indexed and indexed[name][1:] == state:
                continue
            if name in indexed:
                _drop(index, indexed[name][0])
            if done % 200 == 199:
                context.progress(f"indexing {folder.name}", done / len(names))
            _add(index, folder, name, state)
    if large:
        context.warn(
            f"Not searched, since they have more than {DOCUMENT_BYTES} bytes: "
            f"{listed(large, 5)}."
        )


def _drop(index: sqlite3.Connection, number: int) -> None:
    index.execute("delete from page where rowid = ?", (number,))
    index.execute("delete from file where id = ?", (number,))


def _add(
    index: sqlite3.Connection, folder: Path, name: str, state: tuple[int, int]
) -> None:
    try:
        decoded = text_of(files.read_bytes(folder, name, limit=DOCUMENT_BYTES))
    except files.FileRefused:
        decoded = None
    # Binary, too large or linked files are recorded, so that they are not read again.
    text = decoded[0] if decoded else ""
    title, body = _title_and_body(name, text)
    number = index.execute(
        "insert into file (path, changed, size) values (?, ?, ?)", (name, *state)
    ).lastrowid
    index.execute(
        "insert into page (rowid, title, name, body) values (?, ?, ?, ?)",
        (number, title, name, body),
    )


def _title_and_body(name: str, text: str) -> tuple[str, str]:
    stem = PurePosixPath(name).stem.replace("_", " ").replace("-", " ")
    if name.lower().endswith((".html", ".htm")):
        match = _TITLE.search(text)
        plain = html.unescape(_TAG.sub(" ", _DROPPED.sub(" ", text)))
        title = html.unescape(match[1]) if match else ""
        return " ".join(title.split()) or stem, plain
    first = next((line for line in text.splitlines() if line.strip()), "")
    heading = first.startswith("#") or len(first) <= 80
    return (first.lstrip("# ").strip() if heading else "") or stem, text
