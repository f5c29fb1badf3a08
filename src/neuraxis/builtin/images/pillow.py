"""Convert between pictures, arrays and picture files with Pillow.

An array is a picture if it has bytes of height x width, or height x width x 1, 3 or 4.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from neuraxis.assets.pictures import eight_bits as eight_bits
from neuraxis.assets.pictures import on_white as on_white
from neuraxis.errors import CommandError, needed
from neuraxis.formatting import type_name

MOST_PIXELS = 64_000_000
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""Formats that are read: common ones with safe decoders."""
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
_SAVED = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}


def pillow(part: str = "Image") -> Any:
    """Import a module of Pillow.

    Raises:
        MissingExtra: it is not installed.
    """
    return needed(f"PIL.{part}", "images", "Working with pictures")


def numpy() -> Any:
    """Import NumPy.

    Raises:
        MissingExtra: it is not installed.
    """
    return needed("numpy", "images", "Working with arrays")


def opened(
    data: bytes, most_pixels: int, warn: Callable[[str], None] = lambda text: None
) -> Any:
    """Open a picture file: upright, first frame only.

    The size is checked before decoding: a small file may contain a huge picture.

    Raises:
        CommandError: it is not a picture, or too large.
    """
    image = pillow()
    problems = (
        *(OSError, ValueError, SyntaxError, EOFError, MemoryError, OverflowError),
        *(image.DecompressionBombError, image.DecompressionBombWarning),
    )
    try:
        picture = image.open(io.BytesIO(data), formats=FORMATS)
        width, height = picture.size
        check_size(width, height, most_pixels)
        picture.load()
        frames: int = getattr(picture, "n_frames", 1)
        upright = pillow("ImageOps").exif_transpose(picture)
    except problems as error:
        first = str(error).partition("\n")[0].replace(" <_io.BytesIO object", "")
        formats = ", ".join(FORMATS)
        if isinstance(error, image.UnidentifiedImageError):
            first = "it is none"
        raise CommandError(
            f"The file cannot be read as a picture ({formats}): {first[:200]}."
        ) from None
    if frames > 1:
        warn(f"The file is a film of {frames} pictures; only the first is opened.")
    # A copy drops the reference to the file.
    return upright.copy() if upright.mode != "P" else upright.convert("RGBA")


def check_size(width: int, height: int, most: int = MOST_PIXELS) -> None:
    """Check the size of a picture.

    Raises:
        CommandError: it is too large.
    """
    if width < 1 or height < 1 or width * height > most:
        raise CommandError(
            f"A picture of {width}x{height} is refused: at least 1x1, at most {most} "
            "pixels."
        )


def picture_of(value: Any) -> Any:
    """Return a picture or array as a picture.

    Raises:
        CommandError: it is neither.
    """
    image = pillow()
    if isinstance(value, image.Image):
        return value
    shape, kind = getattr(value, "shape", None), str(getattr(value, "dtype", ""))
    if shape is None:
        raise CommandError(f"Expected a picture or an array, got {type_name(value)}.")
    if kind == "bool":
        value, kind = value.astype("uint8") * 255, "uint8"
    bands = 1 if len(shape) == 2 else shape[2] if len(shape) == 3 else 0
    if kind != "uint8" or bands not in _MODES:
        raise CommandError(
            "Expected an array of uint8 with the shape (height, width) or (height, "
            f"width, 1, 3 or 4), got {kind} with the shape {shape}."
        )
    check_size(shape[1], shape[0])
    data = numpy().ascontiguousarray(value)
    return image.frombytes(_MODES[bands], (shape[1], shape[0]), data.tobytes())


def as_given(picture: Any, given: Any) -> Any:
    """Return the picture in the input's form: array or picture."""
    if isinstance(given, pillow().Image):
        return picture
    return numpy().asarray(picture).copy()


def encoded(picture: Any, ending: str, quality: int) -> bytes:
    """Encode the picture as file bytes; JPEG gets a white background.

    Raises:
        CommandError: the ending's format is not supported.
    """
    kind = _SAVED.get(ending)
    if kind is None:
        raise CommandError(
            f"Expected a name that ends in {', '.join(_SAVED)}, got "
            f"{ending or 'a name without an ending'}."
        )
    if kind != "PNG":
        picture = eight_bits(picture)
    if kind == "JPEG" and picture.mode not in ("RGB", "L"):
        picture = on_white(picture)
    elif kind == "WEBP" and picture.mode not in ("RGB", "RGBA"):
        picture = picture.convert("RGBA" if "A" in picture.getbands() else "RGB")
    elif picture.mode in ("CMYK", "YCbCr", "LAB", "HSV", "F"):
        picture = picture.convert("RGB")
    sink = io.BytesIO()
    options = {} if kind == "PNG" else {"quality": quality}
    try:
        picture.save(sink, kind, **options)
    except (OSError, ValueError) as error:
        raise CommandError(f"The picture cannot be written: {error}.") from None
    return sink.getvalue()
