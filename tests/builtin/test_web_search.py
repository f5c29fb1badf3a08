"""GOOGLE with each provider; servers are real ones on loopback."""

from __future__ import annotations

import importlib
import json
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from builtin.pages import serving
from neuraxis.builtin.web_search import documents, plugin
from neuraxis.errors import CommandError, MissingExtra
from neuraxis.plugins.context import Context
from neuraxis.settings import Setting, Settings


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)


def _context(workspace: Path, allowed: tuple[str, ...] = (), **search: Any) -> Context:
    values = {
        f"search.{key}": Setting(value=value, source="test")
        for key, value in search.items()
    }
    return Context(
        workspace=workspace, settings=Settings(values=values), allowed_hosts=allowed
    )


def _docs(folder: Path) -> Path:
    texts = {
        "tea.md": "# Green tea\n\nTea is made of leaves. Brew it for two minutes.\n",
        "coffee.txt": "Coffee is made of beans. Some people prefer tea.\n",
        "sub/page.html": "<html><head><title>Kettles</title><script>tea()</script>"
        "</head><body><p>A kettle boils &amp; whistles.</p></body></html>",
        "picture.png": "tea tea tea",
        ".env": "tea secret",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_C16_without_a_provider_the_sentence_says_how(tmp_path: Path) -> None:
    """A failed call that a person can mend."""
    with pytest.raises(CommandError) as caught:
        plugin.search("tea", _context(tmp_path))
    for word in ("neuraxis.toml", "documents", "searxng", "google", "ddgs"):
        assert word in str(caught.value)


def test_unknown_provider_is_told(tmp_path: Path) -> None:
    """With those there are."""
    with pytest.raises(CommandError, match="google, searxng, documents, ddgs"):
        plugin.search("tea", _context(tmp_path, provider="bing"))


@pytest.mark.parametrize("query", ["", "   "])
def test_empty_query_is_told(query: str, tmp_path: Path) -> None:
    """Before any provider is asked."""
    with pytest.raises(CommandError, match="empty"):
        plugin.search(query, _context(tmp_path))


# --- documents -----------------------------------------------------------------


def test_documents_are_found_best_first(tmp_path: Path) -> None:
    """The folder lies outside the workspace: paths are relative to the folder."""
    docs = _docs(tmp_path / "docs")
    answer = plugin.search("green tea", _context(tmp_path / "w", folder=str(docs)))
    assert ["tea.md", "coffee.txt"] == answer["urls"]
    assert ("Green tea", "tea.md") == (
        answer["results"][0]["title"],
        answer["results"][0]["url"],
    )
    assert "leaves" in answer["results"][0]["snippet"]


def test_documents_in_the_workspace_can_be_read_on(tmp_path: Path) -> None:
    """A URL is then a path that file_reader takes."""
    from neuraxis.builtin.files.plugin import read_file

    _docs(tmp_path / "docs")
    context = _context(tmp_path, folder=str(tmp_path / "docs"))
    url = plugin.search("kettle", context)["urls"][0]
    assert "docs/sub/page.html" == url
    assert "whistles" in read_file(url, context)["contents"]


def test_html_is_searched_by_its_text(tmp_path: Path) -> None:
    """Titles and text, no script."""
    context = _context(tmp_path, folder=str(_docs(tmp_path / "docs")))
    hit = plugin.search("whistles", context)["results"][0]
    assert "Kettles" == hit["title"]
    assert "boils & whistles" in hit["snippet"]
    assert "docs/sub/page.html" not in plugin.search("tea", context)["urls"]


def test_the_index_follows_the_files(tmp_path: Path) -> None:
    """New, changed and deleted files; nothing else is read again."""
    docs = _docs(tmp_path / "docs")
    context = _context(tmp_path, folder=str(docs))
    assert ["docs/coffee.txt"] == plugin.search("beans", context)["urls"]
    (docs / "coffee.txt").unlink()
    (docs / "new.txt").write_text("Beans on toast, every day.", encoding="utf-8")
    (docs / "tea.md").write_text("# Cocoa\n\nCocoa beans.\n", encoding="utf-8")
    found = plugin.search("beans", context)["urls"]
    assert ["docs/new.txt", "docs/tea.md"] == sorted(found)
    assert [] == plugin.search("leaves", context)["urls"]


@pytest.mark.parametrize(
    "query",
    ['tea" OR "x', "tea*", "NEAR(tea)", "title:tea", "tea AND", "-tea", "(tea", "tea;"],
)
def test_the_query_is_never_syntax(query: str, tmp_path: Path) -> None:
    """Quotes and operators of the index are words like others."""
    context = _context(tmp_path, folder=str(_docs(tmp_path / "docs")))
    assert "docs/tea.md" in plugin.search(query, context)["urls"]


def test_links_out_of_the_folder_are_not_read(tmp_path: Path) -> None:
    """A link in the folder does not open another one."""
    docs = _docs(tmp_path / "docs")
    (tmp_path / "private.txt").write_text("unicorn", encoding="utf-8")
    (docs / "link.txt").symlink_to(tmp_path / "private.txt")
    context = _context(tmp_path, folder=str(docs))
    assert [] == plugin.search("unicorn", context)["urls"]
    assert [] == plugin.search("secret", context)["urls"]


def test_a_broken_index_is_built_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory, where the cache cannot be used."""
    monkeypatch.setenv("NEURAXIS_HOME", str(tmp_path / "home"))
    context = _context(tmp_path, folder=str(_docs(tmp_path / "docs")))
    plugin.search("tea", context)
    (index,) = (tmp_path / "home" / "cache" / "search").iterdir()
    index.write_bytes(b"no database" * 1000)
    assert "docs/tea.md" in plugin.search("tea", context)["urls"]


def test_missing_folder_and_wordless_query_are_told(tmp_path: Path) -> None:
    """Sentences, no tracebacks of SQLite."""
    with pytest.raises(CommandError, match="is not there"):
        plugin.search("tea", _context(tmp_path, folder="nowhere"))
    with pytest.raises(CommandError, match=r"search\.folder"):
        plugin.search("tea", _context(tmp_path, provider="documents"))
    context = _context(tmp_path, folder=str(_docs(tmp_path / "docs")))
    with pytest.raises(CommandError, match="no word"):
        plugin.search("?!", context)


def test_a_locked_index_is_told_or_avoided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that holds the index does not stop the search."""
    monkeypatch.setenv("NEURAXIS_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(documents, "BUSY_SECONDS", 0.1)
    docs = _docs(tmp_path / "docs")
    context = _context(tmp_path, folder=str(docs))
    plugin.search("tea", context)
    (index,) = (tmp_path / "home" / "cache" / "search").iterdir()
    other = sqlite3.connect(index, isolation_level=None)
    other.execute("begin exclusive")
    try:
        (docs / "more.txt").write_text("more tea", encoding="utf-8")
        assert "docs/more.txt" in plugin.search("tea", context)["urls"]
    finally:
        other.close()


# --- servers -------------------------------------------------------------------


def test_searxng(tmp_path: Path) -> None:
    """One's own server is allowed by naming it; only web addresses are kept."""
    body = {
        "results": [
            {"title": "A", "url": "https://a.example/", "content": "about\n a"},
            {"title": "A again", "url": "https://a.example/", "content": ""},
            {"title": "B", "url": "javascript:alert(1)", "content": ""},
            {"url": "http://c.example/x"},
            "odd",
        ]
    }
    asked: list[str] = []
    pages = {"/search": (200, "application/json", json.dumps(body).encode())}
    with serving(pages, asked) as server:
        context = _context(tmp_path, url=f"http://{server}")
        answer = plugin.search("green tea & more", context)
    assert ["https://a.example/", "http://c.example/x"] == answer["urls"]
    assert {"title": "A", "url": "https://a.example/", "snippet": "about a"} == answer[
        "results"
    ][0]
    assert ["/search?q=green+tea+%26+more&format=json"] == asked


def test_a_server_that_a_project_names_is_reached_as_any_other(tmp_path: Path) -> None:
    """A project's file may come from anybody: it opens no address of the inside."""
    with serving({}, []) as server:
        url = Setting(value=f"http://{server}", source="file", of_project=True)
        settings = Settings(values={"search.url": url})
        context = Context(workspace=tmp_path, settings=settings)
        with pytest.raises(CommandError, match="search with searxng failed"):
            plugin.search("tea", context)


def test_google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key comes from the environment; the number asked for is bounded."""
    monkeypatch.setenv("MY_KEY", "s3cret")
    items = [{"title": "T", "link": "https://t.example/", "snippet": "S"}]
    asked: list[str] = []
    pages = {"/v1": (200, "application/json", json.dumps({"items": items}).encode())}
    with serving(pages, asked) as server:
        context = _context(
            tmp_path,
            (server,),
            key_env="MY_KEY",
            engine="e1",
            google_url=f"http://{server}/v1",
            results=3,
        )
        assert ["https://t.example/"] == plugin.search("tea", context)["urls"]
    assert ["/v1?key=s3cret&cx=e1&q=tea&num=3"] == asked


@pytest.mark.parametrize(
    ("status", "kind", "body", "message"),
    [
        (403, "application/json", b"{}", "refuses the request"),
        (429, "application/json", b"{}", "too many searches"),
        (500, "text/html", b"oops", "answered 500"),
        (200, "application/json", b"[1]", "did not answer in JSON"),
        (200, "application/json", b"{", "did not answer in JSON"),
        (200, "text/html", b"<p>", "sent text/html; only application/json is read"),
        (302, "application/json", b"", "answered 302"),
    ],
)
def test_failures_never_show_the_key(
    status: int,
    kind: str,
    body: bytes,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sentences for the model; the request's address holds the key and is not told."""
    monkeypatch.setenv("GOOGLE_API_KEY", "s3cret")
    with serving({"/v1": (status, kind, body)}, []) as server:
        url = f"http://{server}/v1"
        context = _context(tmp_path, (server,), engine="e1", google_url=url)
        with pytest.raises(CommandError, match=message) as caught:
            plugin.search("tea", context)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "ftp://x/v1", "http://a b/"])
def test_refused_addresses_never_show_the_key(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard quotes addresses; this one holds the key."""
    monkeypatch.setenv("GOOGLE_API_KEY", "s3cret")
    with pytest.raises(CommandError, match="google failed") as caught:
        plugin.search("tea", _context(tmp_path, engine="e1", google_url=url))
    assert "s3cret" not in str(caught.value)


def test_google_without_a_key_is_told(tmp_path: Path) -> None:
    """By the name of the variable."""
    with pytest.raises(CommandError, match="GOOGLE_API_KEY"):
        plugin.search("tea", _context(tmp_path, provider="google", engine="e"))
    with pytest.raises(CommandError, match=r"search\.url"):
        plugin.search("tea", _context(tmp_path, provider="searxng"))


def test_ddgs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is used only where it is named; what it raises is a sentence."""

    class Engine:
        def __init__(self, timeout: int) -> None: ...

        def text(self, query: str, max_results: int) -> list[dict[str, str]]:
            if query == "fail":
                raise RuntimeError("202 Ratelimit https://secret")
            return [{"title": "T", "href": "https://t.example/", "body": "B"}]

    package = SimpleNamespace(DDGS=Engine)
    monkeypatch.setattr(importlib, "import_module", lambda name: package)
    context = _context(tmp_path, provider="ddgs")
    assert ["https://t.example/"] == plugin.search("tea", context)["urls"]
    with pytest.raises(CommandError, match=r"ddgs failed \(RuntimeError\)"):
        plugin.search("fail", context)


def test_ddgs_without_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence names the extra."""

    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingExtra, match=r"neuraxis\[search\]"):
        plugin.search("tea", _context(tmp_path, provider="ddgs"))


@pytest.mark.parametrize("files", [20_000, 2])
def test_what_is_not_searched_is_told(
    files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that are too large, each time; and those beyond the most."""
    monkeypatch.setattr(documents, "MOST_FILES", files)
    for name, text in (("a", "tea"), ("b", "tea " * 1_000_000), ("c", "tea")):
        (tmp_path / f"{name}.txt").write_text(text, "utf-8")
    for _ in range(2):
        told: list[str] = []
        context = replace(_context(tmp_path, folder=str(tmp_path)), warn=told.append)
        found = plugin.search("tea", context)
        assert found["urls"] == (["a.txt", "c.txt"] if files > 2 else ["a.txt"])
        assert '"b.txt"' in told[-1]
        assert len(told) == (1 if files > 2 else 2)
    if files == 2:
        assert "more than 2 files" in told[0]


def test_a_text_of_windows_is_searched(tmp_path: Path) -> None:
    """As `file_reader` reads it."""
    (tmp_path / "a.txt").write_bytes("Größe und Länge".encode("cp1252"))
    context = _context(tmp_path, folder=str(tmp_path))
    assert plugin.search("länge", context)["urls"] == ["a.txt"]
