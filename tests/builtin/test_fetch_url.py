"""FETCH_URL against a real server on loopback, allowed by name."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builtin.pages import Page, serving
from neuraxis.builtin.fetch_url import plugin, tags
from neuraxis.errors import CommandError, MissingExtra
from neuraxis.plugins.context import Context

PARTS = "".join(
    f"<h2>Part {n}</h2><p>Tea is a drink that is made of leaves and hot water, and the "
    f"part number {n} of this text says <a href='/more/{n}'>more</a> about it.</p>"
    for n in range(8)
)
ARTICLE = f"""<!doctype html><html><head><title>Tea</title><style>p {{}}</style></head>
<body><nav><a href="/">Home</a> <a href="/shop">Shop</a></nav><article><h1>Tea</h1>
{PARTS}<ul><li>green</li><li>black</li></ul>
<table><tr><th>Kind</th><th>Minutes</th></tr><tr><td>green</td><td>2</td></tr></table>
</article><script>alert("x")</script><footer>Imprint</footer></body></html>"""
ENTITIES = b"<p>a &amp; b &lt; c</p>" * 150_000
PAGES: dict[str, Page] = {
    "/article": (
        200,
        "text/html; charset=utf-8",
        ARTICLE.encode(),
    ),
    "/short": (
        200,
        "text/html",
        b"<html><body><h1>Hi</h1><p>A <a href='x'>short</a> page.</p></body></html>",
    ),
    "/plain": (200, "text/plain", b"plain <b>text</b> {{ 7*7 }}"),
    "/data": (200, "application/json", b'{"a": [1, 2]}'),
    "/readme": (200, "text/markdown", b"# Read me\n"),
    "/latin": (200, "text/plain; charset=ISO-8859-1", "grüß – €".encode("cp1252")),
    "/meta": (200, "text/html", '<meta charset="cp1252"><p>grüß'.encode("cp1252")),
    "/nocharset": (200, "text/plain", "grüß".encode("cp1252")),
    "/utf16": (200, "text/plain", "grüß".encode("utf-16")),
    "/odd": (200, "text/plain; charset=nonsense", "grüß".encode()),
    "/rot": (200, "text/plain; charset=rot13", b"uryyb"),
    "/hex": (200, "text/plain; charset=hex", b"6869"),
    "/utf7": (200, "text/plain; charset=utf-7", b"+ADw-script+AD4-"),
    "/image": (200, "image/png", b"\x89PNG"),
    "/large": (200, "text/plain", b"word " * 100_000),
    "/huge": (200, "text/plain", b"word\n" * 1_200_000),
    "/feed": (
        200,
        "application/rss+xml",
        '<?xml version="1.0" encoding="windows-1251"?><a>Чай</a>'.encode("cp1251"),
    ),
    "/frames": (
        200,
        "text/html",
        b'<html><frameset cols="1,2"><frame name=a src="a.html">'
        b"<FRAME SRC='b.html'></frameset></html>",
    ),
    "/comment": (200, "text/html", b"<p>a</p><!-- a <script> --><p>b</p><!--><p>c"),
    "/icon": (200, "text/html", b'<p>a</p><svg class="i"/><p>b</p>'),
    "/form": (
        200,
        "text/html",
        b"<form><label>Name<input name=n></label>"
        b"<select><option>Red<option>Blue</select></form>",
    ),
    "/in_form": (200, "text/html", b"<form>" + b"<p>a long page</p>" * 11000),
    "/entities": (200, "text/html", b"<a href='/x?a&amp;b'>&#252;</a>" + ENTITIES),
    "/meta16": (200, "text/html", '<meta charset="utf-16"><p>grüß'.encode()),
    "/untyped": (200, "", "<!-- x --> <!DOCTYPE html><p>grüß".encode()),
    "/bare": (200, "", b"1 < 2"),
    "/script": (200, "text/html", b"<title>An\n app</title><script>x()</script>"),
    "/nothing": (204, "", b""),
    "/part": (206, "text/plain", b"wo"),
    "/noise": (200, "text/plain", b"\x89PNG\0\0"),
    "/on": (
        200,
        "text/html",
        b'<meta http-equiv="refresh" content="0; URL=\'b.html\'"><p>',
    ),
    "/empty": (200, "text/html", b""),
    "/broken": (200, "text/html", b"<html><p>open <b>never <closed <<>> &#x0; &bogus"),
}


@pytest.fixture
def fetch(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """FETCH_URL of a path of the server."""
    with serving(PAGES, []) as server:
        context = Context(workspace=tmp_path, allowed_hosts=(server,))

        def get(path: str) -> str:
            return plugin.fetch(f"http://{server}{path}", context)["output"]

        yield get


def test_C10_article_becomes_markdown(fetch: Callable[[str], str]) -> None:
    """Headings, lists, tables, links; no script, no style, no navigation."""
    pytest.importorskip("trafilatura")
    pytest.importorskip("html_to_markdown")
    text = fetch("/article")
    for wanted in ("# Tea", "## Part 3", "- green", "Minutes", "/more/3)"):
        assert wanted in text
    for unwanted in ("alert", "p {}", "Shop"):
        assert unwanted not in text


def test_C10_short_page_is_kept_whole(fetch: Callable[[str], str]) -> None:
    """Links are made absolute."""
    pytest.importorskip("trafilatura")
    pytest.importorskip("html_to_markdown")
    text = fetch("/short")
    assert text.startswith("# Hi\n\nA [short](http://127.0.0.1:")
    assert text.endswith("/x) page.")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/plain", "plain <b>text</b> {{ 7*7 }}"),
        ("/data", '{"a": [1, 2]}'),
        ("/readme", "# Read me\n"),
        ("/latin", "grüß – €"),
        ("/nocharset", "grüß"),
        ("/utf16", "grüß"),
        ("/odd", "grüß"),
        ("/rot", "uryyb"),
        ("/hex", "6869"),
        ("/utf7", "+ADw-script+AD4-"),
        ("/bare", "1 < 2"),
        ("/feed", '<?xml version="1.0" encoding="windows-1251"?><a>Чай</a>'),
    ],
)
def test_text_is_handed_on_as_it_is(
    path: str, text: str, fetch: Callable[[str], str]
) -> None:
    """Byte order mark, header, then UTF-8, then what browsers assume."""
    assert text == fetch(path)


def test_charset_of_the_page_itself(fetch: Callable[[str], str]) -> None:
    """`<meta charset>` counts where the header says nothing."""
    pytest.importorskip("trafilatura")
    pytest.importorskip("html_to_markdown")
    assert "grüß" == fetch("/meta")
    assert "grüß" == fetch("/meta16")  # it was read, so it is not in UTF-16
    assert "grüß" == fetch("/untyped")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/comment", "a\n\nb\n\nc"),
        ("/icon", "a\n\nb"),
        ("/form", "Name Red Blue"),
        ("/in_form", "\n\n".join(["a long page"] * 11000)),
    ],
)
def test_nothing_is_dropped_but_what_a_browser_hides(
    path: str, text: str, fetch: Callable[[str], str]
) -> None:
    """A tag in a comment opens nothing; a form, or a page in one, has words."""
    pytest.importorskip("trafilatura")
    pytest.importorskip("html_to_markdown")
    assert text == fetch(path)


def test_a_page_that_only_leads_on_is_a_link(fetch: Callable[[str], str]) -> None:
    """A browser would go there by itself."""
    pytest.importorskip("trafilatura")
    pytest.importorskip("html_to_markdown")
    assert fetch("/on").startswith("[The page leads on](http://127.0.0.1:")
    assert fetch("/on").endswith("/b.html)")


def test_the_title_is_told(tmp_path: Path) -> None:
    """It stands in the tab of a browser, and often nowhere else."""
    pytest.importorskip("trafilatura")
    pytest.importorskip("html_to_markdown")
    with serving(PAGES, []) as server:
        context = Context(workspace=tmp_path, allowed_hosts=(server,))
        assert plugin.fetch(f"http://{server}/article", context)["title"] == "Tea"
        assert "title" not in plugin.fetch(f"http://{server}/short", context)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/script", "no text; scripts"),
        ("/empty", "no text."),
        ("/nothing", r"sent no text \(204\)"),
        ("/part", "a part of the page only"),
    ],
)
def test_why_there_is_little_is_told(path: str, said: str, tmp_path: Path) -> None:
    """An empty answer alone says nothing."""
    pytest.importorskip("trafilatura")
    pytest.importorskip("html_to_markdown")
    told: list[str] = []
    with serving(PAGES, []) as server:
        context = Context(workspace=tmp_path, allowed_hosts=(server,), warn=told.append)
        answer = plugin.fetch(f"http://{server}{path}", context)
    assert answer["output"] == ("wo" if path == "/part" else "")
    assert len(told) == 1
    assert re.search(said, told[0])


def test_bytes_under_the_name_of_text_are_refused(
    fetch: Callable[[str], str],
) -> None:
    """Half of a picture as letters helps nobody."""
    with pytest.raises(CommandError, match="6 bytes that are no text, as text/plain"):
        fetch("/noise")


@pytest.mark.parametrize(
    "page", ["<!---->" * 5_000, "<meta content=" + " " * 100_000, "<meta " * 50_000]
)
def test_no_page_holds_the_reader_up(page: str) -> None:
    """What looks for the title and the like tries nothing twice."""
    began = time.perf_counter()
    plugin._BEGINS_AS_HTML.match(page.encode())  # pyright: ignore[reportPrivateUsage]
    assert "The page leads on" not in tags.links_shown(page)
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "page",
    [
        "<html><body><frame" + " src=a" * 80_000,
        "<html><body><frame" + " src=a" * 80_000 + ">",
        '<html><body><meta content="0;url=' + " content=0;url=a" * 30_000,
        "<html><body><a " + " ".join(f"a{n}=b" for n in range(40_000)) + ">x</a>",
    ],
    ids=["open frame", "frame", "meta", "attributes"],
)
def test_h1_a_page_of_one_tag_is_read_in_bounded_time(page: str) -> None:
    """H1: a page of 480 kB held the process for three minutes."""
    pytest.importorskip("trafilatura")
    pytest.importorskip("html_to_markdown")
    began = time.perf_counter()
    plugin._read_html(page, "http://a.example/")  # pyright: ignore[reportPrivateUsage]
    assert time.perf_counter() - began < 3


def test_h1_links_are_read_as_browsers_read_tags() -> None:
    """An attribute's value may hold what ends a tag, and only the first one counts."""
    page = """<FRAME title='>' src = "a?b&amp;c" src=d><meta content='0; url="e"'>"""
    shown = tags.links_shown(page)
    assert '<a href="a?b&amp;c">frame</a>' in shown
    assert '<a href="e">The page leads on</a>' in shown
    assert "<meta content='20; url=e'>" in tags.links_shown(
        "<meta content='20; url=e'>"
    )


def test_many_entities_are_read_in_bounded_time(fetch: Callable[[str], str]) -> None:
    """None is left out, however many there are."""
    pytest.importorskip("trafilatura")
    pytest.importorskip("html_to_markdown")
    start = time.monotonic()
    text = fetch("/entities")
    assert time.monotonic() - start < 20
    assert text.count("a & b < c") == 150_000
    assert "/x?a&b" in text.splitlines()[0]
    assert text.startswith("[ü]")


def test_the_pages_of_frames_are_links(fetch: Callable[[str], str]) -> None:
    """Not an empty text that looks like an empty page."""
    pytest.importorskip("trafilatura")
    pytest.importorskip("html_to_markdown")
    text = fetch("/frames")
    assert "/a.html)" in text
    assert "/b.html)" in text


def test_a_long_text_is_whole(fetch: Callable[[str], str]) -> None:
    """What the model is told is cut by the runtime; what is handed on is not."""
    assert PAGES["/huge"][2].decode() == fetch("/huge")


def test_a_text_that_would_be_cut_is_refused(
    fetch: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of it would be written to a file as if it were all."""
    monkeypatch.setattr(plugin, "PAGE_BYTES", 499_999)
    with pytest.raises(CommandError, match="more than 499999 bytes"):
        fetch("/large")
    monkeypatch.setattr(plugin, "PAGE_BYTES", 500_000)
    assert len(fetch("/large")) == 500_000


@pytest.mark.parametrize("path", ["/empty", "/broken"])
def test_odd_html_is_read(path: str, fetch: Callable[[str], str]) -> None:
    """What a browser shows somehow is no crash."""
    pytest.importorskip("trafilatura")
    pytest.importorskip("html_to_markdown")
    assert isinstance(fetch(path), str)


@pytest.mark.parametrize(
    ("path", "message"),
    [("/image", "only text .* is read"), ("/none", "answered 404 Not Found")],
)
def test_failures_are_sentences(
    path: str, message: str, fetch: Callable[[str], str]
) -> None:
    """A failed call says what the server did."""
    with pytest.raises(CommandError, match=message):
        fetch(path)


def test_C13_inner_hosts_are_refused(tmp_path: Path) -> None:
    """Without --allow-host nothing inside is reached."""
    asked: list[str] = []
    with serving(PAGES, asked) as server:
        for url in (f"http://{server}/plain", server, "localhost", "file:///etc/hosts"):
            with pytest.raises(CommandError):
                plugin.fetch(url, Context(workspace=tmp_path))
    assert [] == asked


def test_C13_no_scheme_is_needed(tmp_path: Path) -> None:
    """The document's own example has none."""
    with serving(PAGES, []) as server:
        context = Context(workspace=tmp_path, allowed_hosts=(server,))
        assert "# Read me\n" == plugin.fetch(f"{server}/readme", context)["output"]


def test_without_the_extra_only_html_fails(
    fetch: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text works; for HTML one sentence names all that is missing, and the extra."""
    monkeypatch.setattr(plugin, "find_spec", lambda name: None)
    assert "# Read me\n" == fetch("/readme")
    with pytest.raises(MissingExtra) as raised:
        fetch("/short")
    assert str(raised.value) == (
        "Reading a web page needs the packages 'trafilatura', 'lxml-html-clean', "
        "'html-to-markdown', which are not installed. Install them with: pip install "
        "'neuraxis[web]'"
    )


def test_a_huge_page_is_converted_in_time(
    fetch: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding the main part is left out where it would take minutes."""
    pytest.importorskip("trafilatura")
    pytest.importorskip("html_to_markdown")
    body = b"<article>" + b"<p>Some text <a href='/x'>y</a>.</p>" * 60_000
    monkeypatch.setitem(PAGES, "/many", (200, "text/html", body))
    began = time.monotonic()
    assert fetch("/many").startswith("Some text [y](http")
    assert time.monotonic() - began < 10
