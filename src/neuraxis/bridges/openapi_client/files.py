"""Assets as files of a request: PNG, CSV, or plain bytes."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import msgspec

from neuraxis.assets.embed import png_of
from neuraxis.errors import CommandError
from neuraxis.formatting import with_article

_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class FilePart(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of one part of a body, with their type."""

    data: bytes
    media_type: str
    filename: str = ""
    """File name; empty: it is a field."""


def file_part(value: Any, name: str) -> FilePart:
    """Return an object as a file.

    Raises:
        CommandError: such an object has no file format.
    """
    stem = _NAME.sub("_", name).strip("_")[:40] or "file"
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(cast("bytes", value))
        return _made(data, "application/octet-stream", stem, "bin")
    if isinstance(value, str):
        return _made(value.encode("utf-8"), "text/plain", stem, "txt")
    package = type(value).__module__.partition(".")[0]
    if package == "PIL":
        return _made(png_of(value), "image/png", stem, "png")
    if package in ("polars", "pandas"):
        write = getattr(value, "write_csv", None)
        text = write() if write is not None else value.to_csv(index=False)
        return _made(str(text).encode("utf-8"), "text/csv", stem, "csv")
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        raise CommandError(
            f"{name}: {with_article(type(value).__name__)} cannot be sent as a file; "
            "send bytes, text, a picture or a table"
        ) from None
    return _made(text.encode("utf-8"), "application/json", stem, "json")


def _made(data: bytes, media: str, stem: str, ending: str) -> FilePart:
    return FilePart(data=data, media_type=media, filename=f"{stem}.{ending}")
