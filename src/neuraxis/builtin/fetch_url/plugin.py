"""Fetching a page of the public web as Markdown, through `sandbox.requests` only."""

from __future__ import annotations

import codecs
import importlib
import re
from html import unescape
from typing import Any
from urllib.parse import quote

from neuraxis.errors import CommandError, MissingExtra
from neuraxis.plugins.context import Context
from neuraxis.sandbox import requests

MOST_BYTES = 10 * requests.MIB
"""Bytes of a page; what is handed on is whole, so a longer one is refused."""

MOST_TAGS, MOST_CHARACTERS = 20_000, 1_000_000
"""Beyond them (without scripts) a page is converted whole: the time to find the main
part grows with the square of the page, that of the conversion does not."""

MOST_ENTITIES = 50_000
"""Beyond them the time to read them would grow with their square; see `_read_html`."""

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_META = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""",
    re.IGNORECASE,
)
_XML = re.compile(
    rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z0-9_:.-]{1,40})""",
)
# A comment first: a tag in it opens nothing. `<svg/>` has no end tag to look for.
_DROPPED = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<svg\b[^<>]*/>"
    r"|<(script|style|template|svg)\b.*?(</\1\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_FRAMESET = re.compile(r"</?frameset\b[^<>]*>", re.IGNORECASE)
_FRAME = re.compile(
    r"""<frame\b[^<>]*?\ssrc\s*=\s*["']?([^"'\s<>]+)[^<>]*>""", re.IGNORECASE
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What browsers read under these names (WHATWG Encoding).
_ALIASES = {"iso-8859-1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252"}
_NO_CHARSET = frozenset(
    {"utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape"}
)


def fetch(url: str, context: Context) -> dict[str, str]:
    """Fetch a page, whole: its text is data, which is kept and handed on."""
    context.progress(f"fetching {url[:200]}", None)
    try:
        answer = requests.fetch(
            url,
            limits=requests.Limits(body_bytes=MOST_BYTES),
            allowed_hosts=context.allowed_hosts,
            cancelled=context.cancelled,
        )
    except (requests.RequestRefused, requests.RequestFailed) as error:
        raise CommandError(str(error)) from None
    if answer.status >= 400:
        raise CommandError(
            f"{_host(answer)} answered {answer.status} {answer.reason}".rstrip() + "."
        )
    if answer.truncated:
        raise CommandError(
            f"The page has more than {MOST_BYTES} bytes, and is handed on whole or not "
            "at all. Fetch another page with less, or a part of it."
        )
    try:
        text = _markdown(answer)
    except MissingExtra as error:
        raise CommandError(str(error)) from None
    return {"output": text}


def _host(answer: requests.Response) -> str:
    return answer.url.split("/")[2]


def _markdown(answer: requests.Response) -> str:
    text = _decode(answer)
    if answer.content_type in _HTML:
        return _read_html(text, answer.url).strip()
    return text


def _decode(answer: requests.Response) -> str:
    """The body as text: byte order mark, header, what it says itself, then UTF-8."""
    body = answer.body
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body.decode(name, errors="replace")
    names = [answer.charset]
    if answer.content_type in _HTML and (found := _META.search(body[:4096])):
        names.append(found[1].decode("ascii"))
    if answer.content_type.endswith("xml") and (found := _XML.match(body[:400])):
        names.append(found[1].decode("ascii"))
    for name in names:
        if (text := _decoded(body, name)) is not None:
            return text
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:  # an old page
        return body.decode("cp1252", errors="replace")


def _decoded(body: bytes, name: str | None) -> str | None:
    """The body read as the charset `name`, if that is one of the web's."""
    try:
        found = codecs.lookup(_ALIASES.get((name or "").lower(), name or "")).name
        # Python knows more codecs: rot13 and hex give no text from bytes.
        return None if found in _NO_CHARSET else body.decode(found, errors="replace")
    except (LookupError, UnicodeError, ValueError):
        return None


def _read_html(html: str, url: str) -> str:
    """A page as Markdown; of very many entities each is read after the conversion."""
    if html.count("&") <= MOST_ENTITIES:
        return _from_html(html, url)
    # a letter that stands for `&` meanwhile: one of those that mean nothing
    mark = next(chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in html)
    text = _from_html(html.replace("&", mark), url)
    # in an address it is written in the way of addresses
    return unescape(text.replace(mark, "&").replace(quote(mark), "&"))


def _from_html(html: str, url: str) -> str:
    """The main content where the page has one, else the whole page."""
    try:
        trafilatura: Any = importlib.import_module("trafilatura")
        converter: Any = importlib.import_module("html_to_markdown")
    except ImportError as error:
        raise MissingExtra(
            (error.name or "trafilatura").replace("_", "-"), "web", "Reading a web page"
        ) from None
    html = _DROPPED.sub(" ", html)
    # the pages of a frameset are links, as that of an iframe is
    html = _FRAME.sub(r'<p><a href="\1">frame</a></p>', _FRAMESET.sub(" ", html))
    options = converter.ConversionOptions(
        base_url=url, extract_metadata=False, skip_images=True, max_depth=200
    )
    whole = str(converter.convert(html, options).content or "")
    if html.count("<") > MOST_TAGS or len(html) > MOST_CHARACTERS:
        return whole
    main: str | None = trafilatura.extract(
        html,
        url=url,
        output_format="markdown",
        include_links=True,
        include_formatting=True,
        include_tables=True,
        include_comments=False,
        with_metadata=False,
    )
    # A short page has no "main part": what the extractor keeps of it is too little.
    if main and len(main) >= max(400, len(whole) // 20):
        return main
    return whole or main or ""
