"""Read a file that the user attaches (rule B61).

Attachments enter the same store as command results. The file's ending selects a
picture, a table or a text; if its library is not installed, and for any other file, the
object is the file's text or bytes.
"""

from __future__ import annotations

import importlib
import io
import logging
from pathlib import Path
from typing import Any

from neuraxis.assets.readers.limits import SHEETS
from neuraxis.errors import CommandError, ConfigError, MissingExtra
from neuraxis.formatting import why_unusable
from neuraxis.parsing.encodings import text_of

MOST_BYTES = 200_000_000
MOST_PIXELS = 64_000_000
_log = logging.getLogger(__name__)
_PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")


def read_attachment(path: Path) -> Any:
    """Return the object that a file contains.

    Raises:
        ConfigError: the file is missing, too large, or broken.
    """
    try:
        with path.open("rb") as file:  # A pipe or a device reports no size.
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {why_unusable(error)}") from error
    if len(data) > MOST_BYTES:
        raise ConfigError(
            f"{path} is too large: at most {MOST_BYTES} bytes can be attached"
        )
    ending = path.suffix.casefold()
    try:
        if ending in _PICTURES:
            return read_picture(data)
        if ending in (".csv", ".tsv", ".parquet"):
            return _table(data, path.name, ending)
    except ImportError:
        # The text or the bytes are still useful.
        _log.warning("%s; it is attached as it is", _missing(path.name, ending))
    except (OSError, ValueError, ArithmeticError) as error:
        first = str(error).partition("\n")[0]
        raise ConfigError(f"{path} cannot be read as {ending}: {first[:200]}") from None
    if ending in SHEETS:
        # no command that accepts a table can use bytes
        _log.warning(
            "%s: a spreadsheet is attached as its bytes; to attach its table write "
            "attach=[pandas.read_excel(%r)], or save it as CSV", path.name, str(path),
        )  # fmt: skip
    text = None if ending in (*_PICTURES, ".pdf") else text_of(data)
    return data if text is None else text[0]


def _missing(name: str, ending: str) -> MissingExtra:
    is_picture = ending in _PICTURES
    package, extra = ("pillow", "images") if is_picture else ("polars", "tables")
    kind = "picture" if is_picture else "table"
    return MissingExtra(package, extra, f"Attaching {name} as a {kind}")


def read_picture(data: bytes) -> Any:
    """Return a picture, upright.

    Raises:
        ImportError: Pillow is not installed.
        OSError, ValueError: it is broken, or too large.
    """
    image: Any = importlib.import_module("PIL.Image")
    try:
        picture = image.open(io.BytesIO(data))
        width, height = picture.size
        if width * height > MOST_PIXELS:
            raise ValueError(f"{width}x{height} pixels, at most {MOST_PIXELS}")
        # Rotated as the camera was held, like `open_image` does.
        return importlib.import_module("PIL.ImageOps").exif_transpose(picture)
    except image.UnidentifiedImageError:
        raise ValueError("its content is no picture") from None
    except (
        image.DecompressionBombError,
        image.DecompressionBombWarning,
        SyntaxError,
    ) as error:
        raise ValueError(str(error)) from None


def _table(data: bytes, name: str, ending: str) -> Any:
    """Return the same table as `read_table` does for this file."""
    polars: Any = importlib.import_module("polars")
    from neuraxis.assets.readers.tables import read_frame

    def warn(text: str) -> None:
        _log.warning("%s: %s", name, text)

    try:
        return read_frame(polars, data, ending, warn=warn)
    except CommandError as error:
        raise ValueError(str(error)) from None
