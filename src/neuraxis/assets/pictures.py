"""Prepare pictures and PDF files for models."""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Mapping
from typing import Any, cast

from neuraxis.assets.attachments import read_picture
from neuraxis.assets.embed import is_picture
from neuraxis.errors import CommandError
from neuraxis.formatting import type_name
from neuraxis.messages import Part

SIDE = 2_000
"""Maximum pixels of a picture's longer side; larger pictures are scaled down."""
PICTURE_BYTES = 3_500_000
"""Maximum bytes of a picture; as base64 below the strictest server's 5 MB."""
PDF_BYTES = 10_000_000
_SMALL = 1_000_000
"""Bytes above which a JPEG is sent instead of a PNG."""
_PDF = "application/pdf"
_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF-": _PDF,
}
_PAGE = re.compile(rb"/Type\s{0,9}/Page\b")


def media_type(value: Any) -> str:
    """Return the media type of a picture or PDF file, else nothing."""
    if is_picture(value):
        return "image/png"
    head = bytes(_data(value)[:16])
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for mark, kind in _KINDS.items() if head.startswith(mark)), "")


def _data(value: Any) -> bytes:
    """Return a file's bytes, including MCP servers' files."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        value = fields["data"] if set(fields) == {"mime_type", "data"} else b""
    is_file = isinstance(value, bytes | bytearray | memoryview)
    return cast("bytes", value) if is_file else b""


def part_of(value: Any) -> Part:
    """Return a picture or PDF file in the form that is sent.

    Raises:
        CommandError: it is neither, or broken, or too large.
    """
    kind = media_type(value)
    if not kind:
        raise CommandError(
            "Expected a picture (PNG, JPEG, WebP, GIF) or a PDF file, got "
            f"{type_name(value)}."
        )
    try:
        if is_picture(value):
            return _smaller(value)
        data = bytes(_data(value))
        if kind == _PDF:
            return _pdf(data)
        picture = read_picture(data)
    except ImportError:
        return _checked(Part(media_type=kind, data=bytes(_data(value))), PICTURE_BYTES)
    except (OSError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise CommandError(f"The picture cannot be shown: {first[:200]}.") from None
    if len(data) > PICTURE_BYTES or max(picture.size) > SIDE:
        return _smaller(picture)
    return Part(media_type=kind, data=data, about=_pixels(picture))


def _pdf(data: bytes) -> Part:
    pages = len(_PAGE.findall(data))  # compressed page objects are not counted
    page_count = f"{pages} pages" if pages > 1 else "1 page" if pages else ""
    return _checked(Part(media_type=_PDF, data=data, about=page_count), PDF_BYTES)


def _checked(part: Part, most_bytes: int) -> Part:
    size = len(part.data)
    if size <= most_bytes:
        return part
    hint = "" if part.media_type == _PDF else "; neuraxis[images] makes it smaller"
    raise CommandError(
        f"It is too large to be shown: {size} bytes, at most {most_bytes} are "
        f"sent{hint}."
    )


def _pixels(picture: Any) -> str:
    return "{}x{} pixels".format(*picture.size)


def _smaller(picture: Any) -> Part:
    """Return a picture as PNG; a large file as JPEG."""
    size, small = _pixels(picture), eight_bits(picture)
    if max(picture.size) > SIDE:
        contain = importlib.import_module("PIL.ImageOps").contain
        small = contain(small, (SIDE, SIDE))
    if small.mode not in ("1", "L", "LA", "RGB", "RGBA"):
        small = small.convert("RGBA" if small.mode in ("P", "PA") else "RGB")
    data = _written(small, "PNG")
    if len(data) <= _SMALL:
        return Part(media_type="image/png", data=data, about=size)
    plain = on_white(small)
    for quality in (85, 40):
        data = _written(plain, "JPEG", quality=quality)
        if len(data) <= PICTURE_BYTES:
            break
    return Part(media_type="image/jpeg", data=data, about=size)


def _written(picture: Any, kind: str, **more: Any) -> bytes:
    sink = io.BytesIO()
    picture.save(sink, kind, **more)
    return sink.getvalue()


def eight_bits(picture: Any) -> Any:
    """Return 16-bit grey (scans) as 8 bits; `convert` makes it white."""
    if not picture.mode.startswith("I;16"):
        return picture

    def high_byte(shade: Any) -> Any:
        return shade * (1 / 256)

    return picture.point(high_byte).convert("L")


def on_white(picture: Any) -> Any:
    """Return the picture on white, without transparency."""
    if "A" not in picture.getbands():
        return picture.convert("RGB")
    full = picture.convert("RGBA")
    ground = importlib.import_module("PIL.Image").new("RGB", full.size, "white")
    ground.paste(full, mask=full.getchannel("A"))
    return ground
