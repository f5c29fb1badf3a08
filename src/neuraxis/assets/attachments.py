"""A file that a person attaches flows in; the object a command works with flows out.

Rule B61: what a person gives enters the same store as what commands answer. A picture,
a table or a text by the file's ending; where the library for it is not installed, and
for any other file, its text or its bytes.
"""

from __future__ import annotations

import importlib
import io
from pathlib import Path
from typing import Any

from neuraxis.assets.readers.tables import read_frame
from neuraxis.errors import CommandError, ConfigError
from neuraxis.parsing.encodings import text_of

MOST_BYTES = 200_000_000
MOST_PIXELS = 64_000_000
_PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")


def read_attachment(path: Path) -> Any:
    """The object that a file is.

    Raises:
        ConfigError: it is not there, too large, or broken.
    """
    try:
        with path.open("rb") as file:  # a pipe or a device says no size
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be attached: {error.strerror or error}"
        ) from error
    if len(data) > MOST_BYTES:
        raise ConfigError(
            f"{path} is too large: at most {MOST_BYTES} bytes can be attached"
        )
    ending = path.suffix.casefold()
    try:
        if ending in _PICTURES:
            return _picture(data)
        if ending in (".csv", ".tsv", ".parquet"):
            return _table(data, ending)
    except ImportError:
        pass  # the text, or the bytes, are still of use
    except (OSError, ValueError, ArithmeticError) as error:
        first = str(error).partition("\n")[0]
        raise ConfigError(f"{path} cannot be read as {ending}: {first[:200]}") from None
    found = None if ending in _PICTURES else text_of(data)
    return data if found is None else found[0]


def _picture(data: bytes) -> Any:
    image: Any = importlib.import_module("PIL.Image")
    try:
        picture = image.open(io.BytesIO(data))
        width, height = picture.size
        if width * height > MOST_PIXELS:
            raise ValueError(f"{width}x{height} pixels, at most {MOST_PIXELS}")
        # upright, as a camera was held and as `open_image` gives it
        return importlib.import_module("PIL.ImageOps").exif_transpose(picture)
    except (
        image.DecompressionBombError,
        image.DecompressionBombWarning,
        SyntaxError,
    ) as error:
        raise ValueError(str(error)) from None


def _table(data: bytes, ending: str) -> Any:
    """The same table as `read_table` gives of this file."""
    polars: Any = importlib.import_module("polars")
    try:
        return read_frame(polars, data, ending)
    except CommandError as error:
        raise ValueError(str(error)) from None
