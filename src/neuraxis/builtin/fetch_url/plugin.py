"""Fetch a public web page as Markdown, through `sandbox.http` only."""

from __future__ import annotations

import codecs
import importlib
import re
from html import unescape
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote

from neuraxis.builtin.fetch_url.tags import links_shown, most_attributes
from neuraxis.errors import CommandError, MissingExtra
from neuraxis.plugins.context import Context
from neuraxis.sandbox.http import client

_PACKAGES = ("trafilatura", "lxml_html_clean", "html_to_markdown")
"""The packages of the extra `web`."""
PAGE_BYTES = 10 * client.MIB
"""Maximum bytes of a page; a longer one is refused, never cut."""

MOST_TAGS, MOST_CHARACTERS = 20_000, 1_000_000
"""Maximum tags and characters of a page whose main content is extracted.

A larger page (without scripts) is converted whole: extraction takes quadratic time,
conversion does not.
"""

MOST_ATTRIBUTES = 2000
"""Words in one tag above which a page is converted whole.

The extractor's parser compares each attribute with all earlier ones.
"""

MOST_ENTITIES = 50_000
"""Maximum entities parsed in place: parsing takes quadratic time; see `_read_html`."""

_TYPES = (*client.TEXT_TYPES, "")
"""Content types; if missing, the body decides, as in a browser."""
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_META = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*+=\s*+["']?+\s*+([A-Za-z0-9_:.-]{1,40})""",
    re.IGNORECASE,
)
_XML = re.compile(
    rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*+=\s*+["']([A-Za-z0-9_:.-]{1,40})""",
)
# Comments first: a tag in a comment opens nothing. `<svg/>` has no end tag.
_DROPPED = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<svg\b[^<>]*/>"
    r"|<(script|style|template|svg)\b.*?(</\1\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_MEANINGLESS = range(0xE000, 0xF8FF)
_HEAD = 200_000
"""Characters of a page that are searched for its title."""
_TITLE = re.compile(r"<title\b[^<>]*>([^<]{1,2000})", re.IGNORECASE)
# No blank and no comment is tried twice: a page must not cause quadratic time.
_BEGINS_AS_HTML = re.compile(
    rb"(?:\s++|<!--(?>.*?-->))*+"
    rb"<(?:!doctype html|html|head|body|meta|title|script|div|p|h1|table)\b",
    re.IGNORECASE | re.DOTALL,
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Encodings that browsers use for these names (WHATWG).
_ALIASES = {"iso-8859-1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252"}
_NO_CHARSET = frozenset(
    {"utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape"}
)


def fetch(url: str, context: Context) -> dict[str, str]:
    """Fetch a whole page; its text is data, stored and passed on."""
    context.progress(f"fetching {url[:200]}", None)
    try:
        answer = client.fetch(
            url,
            limits=client.Limits(body_bytes=PAGE_BYTES, content_types=_TYPES),
            allowed_hosts=context.allowed_hosts,
            cancelled=context.cancelled,
        )
    except (client.RequestRefused, client.RequestFailed) as error:
        raise CommandError(str(error)) from None
    if answer.status >= 400:
        raise CommandError(
            f"{_host(answer)} answered {answer.status} {answer.reason}".rstrip() + "."
        )
    if answer.truncated:
        raise CommandError(
            f"The page has more than {PAGE_BYTES} bytes, and is handed on whole or not "
            "at all. Fetch another page with less, or a part of it."
        )
    is_html = _is_html(answer)
    text = _decode(answer, is_html)
    if not is_html and "\0" in text:
        raise CommandError(
            f"{_host(answer)} sent {len(answer.body)} bytes that are no text, as "
            f"{answer.content_type or 'something without a type'}."
        )
    if answer.status == 206:
        context.warn("The server sent a part of the page only.")
    if not is_html:
        if not text.strip():
            context.warn(f"{_host(answer)} sent no text ({answer.status}).")
        return {"output": text}
    return _page(text, answer, context)


def _page(html: str, answer: client.Response, context: Context) -> dict[str, str]:
    """Return the page as Markdown and its title, if any."""
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        names = [name.replace("_", "-") for name in missing]
        raise MissingExtra(names, "web", "Reading a web page")
    text = _read_html(html, answer.url).strip()
    if not text:
        scripts = "<script" in html.lower()
        context.warn(
            "The page holds no text"
            + (
                "; scripts may make it in a browser, and are not run."
                if scripts
                else "."
            )
        )
    found = _TITLE.search(_DROPPED.sub(" ", html[:_HEAD]))
    title = " ".join(unescape(found[1]).split()) if found else ""
    return {"output": text, "title": title} if title else {"output": text}


def _is_html(answer: client.Response) -> bool:
    if answer.content_type:
        return answer.content_type in _HTML
    return _BEGINS_AS_HTML.match(answer.body[:4096]) is not None


def _host(answer: client.Response) -> str:
    return answer.url.split("/")[2]


def _decode(answer: client.Response, is_html: bool) -> str:
    """Decode the body: byte order mark, header, declaration, then UTF-8."""
    body = answer.body
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body.decode(name, errors="replace")
    names = [answer.charset]
    if is_html and (declaration := _META.search(body[:4096])):
        name = declaration[1].decode("ascii")
        # A declaration that is readable here cannot mean UTF-16 (WHATWG).
        names.append("utf-8" if name.lower().startswith("utf-16") else name)
    if answer.content_type.endswith("xml") and (declaration := _XML.match(body[:400])):
        names.append(declaration[1].decode("ascii"))
    for name in names:
        if (text := _decoded(body, name)) is not None:
            return text
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:  # Old pages declare no encoding.
        return body.decode("cp1252", errors="replace")


def _decoded(body: bytes, name: str | None) -> str | None:
    """Decode the body with the charset `name` if the web uses it."""
    try:
        codec = codecs.lookup(_ALIASES.get((name or "").lower(), name or "")).name
        # Python has other codecs: rot13 and hex do not decode bytes to text.
        return None if codec in _NO_CHARSET else body.decode(codec, errors="replace")
    except (LookupError, UnicodeError, ValueError):
        return None


def _read_html(html: str, url: str) -> str:
    """Convert HTML to Markdown; replaces entities afterwards if too many."""
    if html.count("&") <= MOST_ENTITIES:
        return _from_html(html, url)
    # A private-use letter stands for `&` during the conversion.
    characters = set(html)
    mark = next((sign for sign in map(chr, _MEANINGLESS) if sign not in characters), "")
    if not mark:
        raise CommandError(
            "The page cannot be read: it uses every private-use character."
        )
    text = _from_html(html.replace("&", mark), url)
    # URLs use percent-encoding.
    return unescape(text.replace(mark, "&").replace(quote(mark), "&"))


def _from_html(html: str, url: str) -> str:
    """Return the main content if found, else the whole page."""
    trafilatura: Any = importlib.import_module("trafilatura")
    converter: Any = importlib.import_module("html_to_markdown")
    # Frames become links, as iframes do.
    html = links_shown(_DROPPED.sub(" ", html))
    options = converter.ConversionOptions(
        base_url=url,
        extract_metadata=False,
        skip_images=True,
        max_depth=200,
        # some sites put a whole page into a form
        preprocessing=converter.PreprocessingOptions(remove_forms=False),
    )
    markdown = str(converter.convert(html, options).content or "")
    if html.count("<") > MOST_TAGS or len(html) > MOST_CHARACTERS:
        return markdown
    if most_attributes(html) > MOST_ATTRIBUTES:
        return markdown
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
    # On a short page the extractor drops too much.
    if main and len(main) >= max(400, len(markdown) // 20):
        return main
    return markdown or main or ""
