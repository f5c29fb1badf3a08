"""Values that a call sends out, and the hosts of addresses."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit

from neuraxis.messages import Path
from neuraxis.schema.annotations import ANY
from neuraxis.specs import Json


def sent_values(
    arguments: Json, places: tuple[Path, ...]
) -> Iterator[tuple[Path, Json]]:
    """Yield the values at these places, each list item by itself.

    A null carries information, too, where it replaces a default.
    """
    for place in places:
        found: list[tuple[Path, Json]] = [((), arguments)]
        for mark in place:
            parts = [part for one in found for part in parts_of(*one)]
            found = [(path, part) for path, part in parts if mark in (path[-1], ANY)]
        for path, value in found:
            if isinstance(value, list | tuple):
                yield from parts_of(path, value) or [(path, value)]
            else:
                yield path, value


def parts_of(path: Path, value: Json) -> list[tuple[Path, Json]]:
    """Return the parts of a list or mapping, with their paths."""
    if isinstance(value, dict):
        named = cast("dict[Any, Json]", value)
        return [((*path, str(key)), part) for key, part in named.items()]
    items = cast("list[Json]", value) if isinstance(value, list | tuple) else ()
    return [((*path, index), part) for index, part in enumerate(items)]


def is_web_address(value: Json) -> bool:
    """Whether a value begins with `http://` or `https://`."""
    return isinstance(value, str) and value[:8].lower().startswith(
        ("http://", "https://")
    )


def host_of(value: Json, *, port: bool = True) -> str:
    """Return the host of a web address; empty if unclear.

    Programs read a backslash, and a name before the host, differently.
    """
    text = str(value)
    if not text.isprintable() or any(char in text for char in " \\"):
        return ""
    try:
        found = urlsplit(text if "://" in text else f"//{text}")
        host = found.netloc.lower() if port else found.hostname
    except ValueError:
        return ""
    is_web = found.scheme in ("", "http", "https") and "@" not in found.netloc
    return host or "" if is_web else ""


def is_inner(value: Json, allowed: Collection[str]) -> bool:
    """Whether an address is on a private host that the user allowed."""
    if not allowed:
        return False
    from neuraxis.sandbox.http.urls import RequestRefused, parse  # rarely needed

    names = {name.strip().lower().rstrip(".") for name in allowed}
    hosts = {host_of(value), host_of(value, port=False).rstrip(".")}
    if not hosts.isdisjoint(names):  # as it is written, also where `parse` refuses it
        return True
    for text in (str(value), f"http://{value}"):
        with suppress(RequestRefused):
            if any(url.named for url in parse(text, allowed)):
                return True
    return False
