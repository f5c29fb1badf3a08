"""The plugin `images`: pictures and arrays in, pictures and arrays out."""

from __future__ import annotations

import contextlib
import io
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from neuraxis.builtin.images import pillow, plugin
from neuraxis.errors import CommandError
from neuraxis.messages import Result
from neuraxis.plugins.context import Context
from neuraxis.testing import call

Image: Any = pytest.importorskip("PIL.Image")
numpy: Any = pytest.importorskip("numpy")


def _call(command: str, workspace: Path = Path(), **arguments: Any) -> Result:
    return call("neuraxis:images", command, arguments, workspace=workspace)


def _picture(mode: str = "RGB") -> Any:
    """100x60, its left half red and its right half blue."""
    picture = Image.new("RGB", (100, 60), "red")
    picture.paste("blue", (50, 0, 100, 60))
    return picture.convert(mode)


@pytest.mark.parametrize("ending", ["png", "jpg", "jpeg", "webp"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "1", "LA", "CMYK"])
def test_save_and_open(ending: str, mode: str, tmp_path: Path) -> None:
    """Each format takes each kind of picture; it is opened again."""
    context = Context(workspace=tmp_path)
    told = plugin.save_image(_picture(mode), f"a/p.{ending}", context)
    assert (told["width"], told["height"]) == (100, 60)
    opened = _call("open_image", tmp_path, file_path=f"a/p.{ending}")
    assert opened.stored
    assert opened.value.size == (100, 60)


def test_png_is_exact(tmp_path: Path) -> None:
    """Saved and opened: the same pixels."""
    plugin.save_image(_picture(), "p.png", Context(workspace=tmp_path))
    opened = _call("open_image", tmp_path, file_path="p.png").value
    assert opened.tobytes() == _picture().tobytes()


def test_a_picture_is_turned_upright(tmp_path: Path) -> None:
    """A camera's note on how it was held is followed."""
    exif = Image.Exif()
    exif[0x0112] = 6
    _picture().save(tmp_path / "p.jpg", exif=exif)
    opened = _call("open_image", tmp_path, file_path="p.jpg").value
    assert opened.size == (60, 100)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"no picture", "cannot be read as a picture"),
        (b"", "cannot be read as a picture"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "cannot be read as a picture"),
    ],
)
def test_a_broken_file_is_told(data: bytes, said: str, tmp_path: Path) -> None:
    """In one sentence."""
    (tmp_path / "p.png").write_bytes(data)
    error = _call("open_image", tmp_path, file_path="p.png").error
    assert error is not None
    assert said in error.message


def test_every_cut_of_a_file_is_an_error_or_a_picture() -> None:
    """Never another exception."""
    for kind in ("PNG", "JPEG", "GIF", "BMP", "WEBP"):
        sink = io.BytesIO()
        _picture().save(sink, kind)
        data = sink.getvalue()
        for end in range(0, len(data), max(1, len(data) // 60)):
            with contextlib.suppress(CommandError):
                assert pillow.opened(data[:end], 10_000).size == (100, 60)


@pytest.mark.parametrize("side", [9_000, 60_000])
def test_a_bomb_is_refused_before_it_is_unpacked(side: int, tmp_path: Path) -> None:
    """A tiny file that says it is huge: its header is enough."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    data += chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    (tmp_path / "p.png").write_bytes(data)
    error = _call("open_image", tmp_path, file_path="p.png").error
    assert error is not None
    assert "pixels" in error.message


def test_crop_a_box() -> None:
    """Pixels of the place asked for; clipped to the picture."""
    (part,) = plugin.crop_image(_picture(), box=[40, 10, 60, 30])["cropped"]
    assert part.size == (20, 20)
    assert part.getpixel((0, 0)) == (255, 0, 0)
    assert part.getpixel((19, 0)) == (0, 0, 255)
    (part,) = plugin.crop_image(_picture(), box=[90, 50, 900, 900])["cropped"]
    assert part.size == (10, 10)


RECTANGLE = [10, 10, 30, 10, 30, 20, 10, 20]


@pytest.mark.parametrize(
    "polygons",
    [
        [RECTANGLE],
        [[[10, 10], [30, 10], [30, 20], [10, 20]]],
        numpy.array([RECTANGLE]),
        numpy.array([RECTANGLE]).reshape(1, 4, 2),
        [numpy.array(RECTANGLE, dtype="float32")],
        [numpy.array(RECTANGLE).reshape(4, 2)],
    ],
    ids=["rows", "points", "array2", "array3", "list of rows", "list of points"],
)
def test_crop_polygons_in_each_form(polygons: Any) -> None:
    """As OCR plugins give them: arrays or lists, of two or three dimensions."""
    (part,) = plugin.crop_image(_picture(), polygons)["cropped"]
    assert part.size == (20, 10)


def test_four_corners_are_straightened() -> None:
    """A slanted area is an upright picture of its own size."""
    slanted = [[20, 0, 60, 30, 45, 50, 5, 20]]
    (part,) = plugin.crop_image(_picture(), slanted)["cropped"]
    assert part.size == (50, 25)


def test_another_shape_is_cut_out() -> None:
    """Outside its edge there is nothing."""
    (part,) = plugin.crop_image(_picture(), [[0, 0, 40, 0, 0, 40]])["cropped"]
    assert (part.mode, part.size) == ("RGBA", (40, 40))
    assert part.getpixel((2, 2)) == (255, 0, 0, 255)
    assert part.getpixel((39, 39))[3] == 0


def test_B41_an_array_gives_arrays() -> None:
    """The kind that came in goes out."""
    array = numpy.asarray(_picture())
    result = _call("crop_image", img_data=[1], box=[0, 0, 1, 1])
    assert result.error is not None
    parts = plugin.crop_image(array, [RECTANGLE], [0, 0, 5, 6])["cropped"]
    assert [(6, 5, 3), (10, 20, 3)] == [part.shape for part in parts]
    assert plugin.resize_image(array, width=50).shape == (30, 50, 3)
    assert plugin.convert_image(array, "L").shape == (60, 100)


@pytest.mark.parametrize(
    ("polygons", "said"),
    [
        (None, "Expected cut_polygons or box"),
        ([[500, 500, 600, 500, 600, 600]], "outside the picture"),
        ([[1, 2, 3, 4]], "at least three points"),
        ([[1, 2, 3, 4, 5, 6, 7]], "at least three points"),
        ([1, 2, 3, 4, 5, 6], "put one polygon into a list"),
        ([[float("nan")] * 6], "expected numbers"),
        ([["a"] * 6], "expected numbers"),
        ([[0, 0, 1e9, 0, 0, 5]], "expected numbers"),
        ([RECTANGLE] * 501, "at most 500"),
    ],
)
def test_a_wrong_area_is_told(polygons: Any, said: str) -> None:
    """With what is wrong of it."""
    with pytest.raises(CommandError, match=said):
        plugin.crop_image(_picture(), polygons)


def test_resize_keeps_the_ratio() -> None:
    """With one side; both sides are taken as they are."""
    assert plugin.resize_image(_picture(), width=50).size == (50, 30)
    assert plugin.resize_image(_picture("1"), height=6).size == (10, 6)
    assert plugin.resize_image(_picture(), 7, 8).size == (7, 8)
    with pytest.raises(CommandError, match="Expected width"):
        plugin.resize_image(_picture())
    with pytest.raises(CommandError, match="at most"):
        plugin.resize_image(_picture(), 20_000, 20_000)


def test_convert() -> None:
    """Transparency becomes white, not black."""
    clear = Image.new("RGBA", (2, 2), (0, 0, 0, 0))
    assert plugin.convert_image(clear, "RGB").getpixel((0, 0)) == (255, 255, 255)
    assert plugin.convert_image(clear, "L").getpixel((0, 0)) == 255
    assert plugin.convert_image(_picture(), "1").mode == "1"


def test_grey_of_16_bits_stays_grey(tmp_path: Path) -> None:
    """Scans have it; everything above 255 of 65,535 became white."""
    scan = Image.new("I;16", (4, 4), 40_000)
    assert plugin.convert_image(scan, "L").getpixel((0, 0)) == 156
    assert plugin.convert_image(scan, "RGB").getpixel((0, 0)) == (156, 156, 156)
    context = Context(workspace=tmp_path)
    for name in ("s.jpg", "s.webp"):
        plugin.save_image(scan, name, context)
        shade = plugin.open_image(name, context).convert("L").getpixel((0, 0))
        assert abs(shade - 156) < 4
    plugin.save_image(scan, "s.png", context)
    assert plugin.open_image("s.png", context).getpixel((0, 0)) == 40_000


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (numpy.zeros((2, 2)), "got float64"),
        (numpy.zeros((2, 2, 5), dtype="uint8"), "shape"),
        (numpy.zeros(7, dtype="uint8"), "shape"),
        (numpy.zeros((0, 4), dtype="uint8"), "refused"),
        ("x", "got string"),
    ],
)
def test_what_is_no_picture_is_told(value: Any, said: str) -> None:
    """With the shapes that are taken."""
    with pytest.raises(CommandError, match=said):
        pillow.picture_of(value)
    black = numpy.zeros((4, 4), dtype="bool")
    assert pillow.picture_of(black).getpixel((0, 0)) == 0


@pytest.mark.parametrize("path", ["../p.png", "p.exe", "p", ".p.png"])
def test_a_wrong_name_is_told(path: str, tmp_path: Path) -> None:
    """No file is written."""
    with pytest.raises(CommandError):
        plugin.save_image(_picture(), path, Context(workspace=tmp_path))
    assert [] == list(tmp_path.iterdir())


def test_many_large_areas_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole picture five hundred times would be a hundred gigabytes."""
    monkeypatch.setattr(pillow, "MOST_PIXELS", 10_000)
    whole = [0, 0, 100, 0, 100, 60, 0, 60]
    assert len(plugin.crop_image(_picture(), [whole])["cropped"]) == 1
    with pytest.raises(CommandError, match="pixels together"):
        plugin.crop_image(_picture(), [whole] * 3)


def test_only_the_first_of_several_pictures_is_told(tmp_path: Path) -> None:
    """An animation is one no more when it is saved again."""
    told: list[str] = []
    context = Context(workspace=tmp_path, warn=told.append)
    frames = [Image.new("L", (4, 4), shade) for shade in (0, 99, 200)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    frames[0].save(tmp_path / "a.png")
    plugin.open_image("a.png", context)
    assert not told
    plugin.open_image("a.gif", context)
    assert told == ["The file is a film of 3 pictures; only the first is opened."]


def test_an_area_beyond_the_picture_is_told(tmp_path: Path) -> None:
    """What is cut out is smaller than asked."""
    told: list[str] = []
    context = Context(workspace=tmp_path, warn=told.append)
    picture = Image.new("L", (10, 10))
    cut = plugin.crop_image(picture, box=[5, 0, 10, 10], context=context)["cropped"][0]
    assert (cut.size, told) == ((5, 10), [])
    cut = plugin.crop_image(picture, box=[5, 5, 50, 9], context=context)["cropped"][0]
    assert cut.size == (5, 4)
    assert "1 of 1 areas reach beyond the picture of 10x10" in told[0]


def test_a_polygon_keeps_transparency_and_16_bits() -> None:
    """What was invisible stays so; grey of 16 bits does not become white."""
    image: Any = pytest.importorskip("PIL.Image")
    triangle = [[0, 0, 8, 0, 0, 8]]
    clear = image.new("RGBA", (8, 8), (255, 0, 0, 128))
    (cut,) = plugin.crop_image(clear, triangle)["cropped"]
    assert cut.getpixel((1, 1)) == (255, 0, 0, 128)
    assert cut.getpixel((7, 7))[3] == 0
    (grey,) = plugin.crop_image(image.new("I;16", (8, 8), 25600), triangle)["cropped"]
    assert grey.getpixel((1, 1)) == (100, 100, 100, 255)
