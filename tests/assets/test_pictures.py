"""Pictures and PDF files in the size in which models are sent them."""

from __future__ import annotations

import io
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from neuraxis.assets.attachments import read_attachment
from neuraxis.assets.pictures import PDF_BYTES, PICTURE_BYTES, media_type, part_of
from neuraxis.errors import CommandError

image: Any = pytest.importorskip("PIL.Image")

PDF = b"%PDF-1.4\n1 0 obj <</Type /Pages /Count 2>>\n<</Type/Page>> <</Type /Page >>\n"


def written(kind: str, size: tuple[int, int] = (60, 40), mode: str = "RGB") -> bytes:
    sink = io.BytesIO()
    image.new(mode, size, 0).save(sink, kind)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("kind", "told"),
    [("PNG", "png"), ("JPEG", "jpeg"), ("GIF", "gif"), ("WEBP", "webp")],
)
def test_a_file_of_a_kind_that_servers_take_is_sent_as_it_is(
    kind: str, told: str
) -> None:
    """By its first bytes, whatever it is called; also as MCP servers answer it."""
    data = written(kind)
    for value in (data, bytearray(data), {"mime_type": "x/y", "data": data}):
        part = part_of(value)
        assert (part.media_type, part.data) == (f"image/{told}", data)
        assert part.about == "60x40 pixels"


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"])
def test_a_picture_of_any_mode_is_sent_as_png(mode: str) -> None:
    """As one that can be opened again, in its own size."""
    part = part_of(image.new(mode, (30, 20)))
    assert part.media_type == "image/png"
    assert image.open(io.BytesIO(part.data)).size == (30, 20)


def test_a_scan_of_16_bits_keeps_its_shades() -> None:
    """A plain conversion makes all of them white."""
    scan = image.frombytes("I;16", (3, 1), b"\x00\x00\x00\x80\xff\xff")
    shown = image.open(io.BytesIO(part_of(scan).data))
    assert [shown.getpixel((x, 0)) for x in range(3)] == [0, 128, 255]


def test_a_large_picture_is_sent_smaller_and_told_in_its_own_size() -> None:
    """The longer side has 2000 pixels; a photo becomes a JPEG file within the limit."""
    noise = random.Random(1).randbytes(3000 * 2500 * 3)
    part = part_of(image.frombytes("RGB", (3000, 2500), noise))
    assert part.media_type == "image/jpeg"
    assert len(part.data) <= PICTURE_BYTES
    assert image.open(io.BytesIO(part.data)).size == (2000, 1667)
    assert part.about == "3000x2500 pixels"
    assert part_of(written("PNG", (2400, 10))).data != written("PNG", (2400, 10))


def test_the_same_picture_gives_the_same_bytes() -> None:
    """A server's prompt cache lasts."""
    assert part_of(image.new("RGB", (9, 9))) == part_of(image.new("RGB", (9, 9)))


def test_a_pdf_file_tells_its_pages(tmp_path: Path) -> None:
    """An attached one stays bytes, also where all of it is plain text."""
    path = tmp_path / "a.pdf"
    path.write_bytes(PDF)
    part = part_of(read_attachment(path))
    assert (part.media_type, part.about) == ("application/pdf", "2 pages")
    with pytest.raises(CommandError, match=f"at most {PDF_BYTES} are sent"):
        part_of(PDF + bytes(PDF_BYTES))


@pytest.mark.parametrize("value", ["text", b"bytes", 7, {"data": b""}, [1]])
def test_what_is_no_picture_is_refused(value: object) -> None:
    """In a sentence, with what would be one."""
    assert media_type(value) == ""
    with pytest.raises(CommandError, match=r"Expected a picture .* or a PDF file, got"):
        part_of(value)


def test_a_broken_picture_is_refused() -> None:
    """Its end is missing."""
    with pytest.raises(CommandError, match="cannot be shown"):
        part_of(written("PNG", (300, 300))[:60])


def test_without_pillow_a_small_file_is_sent_and_a_large_one_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the extra that helps."""
    data = written("PNG")
    for name in ("PIL", "PIL.Image", "PIL.ImageOps"):
        monkeypatch.setitem(sys.modules, name, None)
    assert part_of(data).data == data
    with pytest.raises(CommandError, match=r"neuraxis\[images\] makes it smaller"):
        part_of(data + bytes(PICTURE_BYTES))


def test_a_large_picture_of_sixteen_bits_is_no_white_page() -> None:
    """It is made smaller after its range was fitted to eight bits."""
    picture = image.new("I;16", (3000, 30), 20_000)
    shown = image.open(io.BytesIO(part_of(picture).data))
    assert max(shown.size) == 2000
    assert shown.convert("L").getpixel((0, 0)) == 20_000 // 256
