"""Find out how the next page of an answer is requested."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from neuraxis.bridges.openapi_client.parameters import Parameter

_WORDS = frozenset(
    {"page", "pageno", "pagenumber", "pagetoken", "pageafter", "cursor", "startcursor"}
    | {"offset", "skip", "after", "startingafter", "continuationtoken", "nexttoken"}
    | {"marker", "start", "continue", "lastkey", "since", "until", "before"}
)
_NEXT = frozenset(
    {"next", "nextpage", "nextcursor", "nextpagetoken", "nexttoken", "nextlink"}
    | {"nexturl", "nextpageurl", "continuationtoken", "nextmarker", "nextoffset"}
    | {"continue", "endcursor", "cursor", "nextlinkurl", "odatanextlink"}
)
_AROUND = ("meta", "metadata", "paging", "pagination", "links", "_links", "page_info")
_LINK = re.compile(r"<([^<>]{1,2000})>([^<>]{0,300})")
_TOKEN = re.compile(r"[A-Za-z0-9+/=_.:%~-]{1,300}")


def paging(parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """Return the arguments that choose a page of the answer."""
    return tuple(
        item.argument
        for item in parameters
        if item.place == "query" and _plain(item.name) in _WORDS
    )


def next_page(
    parameters: Sequence[Parameter], answer: Any, links: str
) -> dict[str, str] | str | None:
    """Return the arguments of the next page, or its place.

    None: there is none. The server's text is repeated only if it is a plain token,
    since the model sees it.
    """
    query = {item.name: item.argument for item in parameters if item.place == "query"}
    for address, attributes in _LINK.findall(links):
        if re.search(r'\brel="?next\b', attributes):
            return _from_address(address, query) or None
    for field, value in _named(answer):
        if isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value).get("href")
        if (
            not isinstance(value, str | int)
            or isinstance(value, bool)
            or value in ("", 0)
        ):
            continue
        text = str(value)
        if "?" in text:
            return _from_address(text, query) or field
        fits = _argument(field, query)
        if fits is None:
            continue
        return {fits: text} if _TOKEN.fullmatch(text) else field
    return None


def _from_address(address: str, query: Mapping[str, str]) -> dict[str, str]:
    try:
        given = parse_qsl(urlsplit(address).query)
    except ValueError:
        return {}
    return {
        query[name]: value
        for name, value in given
        if name in query and _plain(name) in _WORDS and _TOKEN.fullmatch(value)
    }


def _named(answer: Any) -> list[tuple[str, Any]]:
    """Return the fields of an answer that may name a next page."""
    if not isinstance(answer, Mapping):
        return []
    fields = cast("Mapping[str, Any]", answer)
    cursors = [(key, fields[key]) for key in fields if _plain(key) in _NEXT]
    for key in fields:
        if key.lower() in _AROUND and isinstance(fields[key], Mapping):
            inner = cast("Mapping[str, Any]", fields[key])
            cursors += [(name, inner[name]) for name in inner if _plain(name) in _NEXT]
    return cursors


def _argument(field: str, query: Mapping[str, str]) -> str | None:
    wanted = _plain(field).removeprefix("next").removeprefix("end") or "page"
    wanted = "token" if wanted == "pagetoken" else wanted
    for name, argument in query.items():
        plain = _plain(name)
        if plain in _WORDS and (plain.endswith(wanted) or plain == _plain(field)):
            return argument
    return None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())
