"""Open, crop, resize, convert and save pictures with Pillow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from neuraxis.builtin import workspace
from neuraxis.builtin.images import pillow
from neuraxis.errors import CommandError
from neuraxis.plugins.context import Context
from neuraxis.specs import Json

FILE_BYTES = 50_000_000
MOST_AREAS = 500
Point = tuple[float, float]


def open_image(file_path: str, context: Context) -> Any:
    """Open a picture of the workspace."""
    pillow.pillow()
    limit = workspace.number(context, "images.file_bytes", FILE_BYTES)
    max_pixels = workspace.number(context, "images.pixels", pillow.MOST_PIXELS)
    data = workspace.read(context, file_path, limit)
    return pillow.opened(data, max_pixels, context.warn)


def crop_image(
    img_data: Any,
    cut_polygons: Any = None,
    box: list[float] | None = None,
    context: Context = workspace.NOBODY,
) -> dict[str, Any]:
    """Crop areas out of a picture; returns the same kind."""
    picture = pillow.picture_of(img_data)
    areas = [] if cut_polygons is None else _areas(cut_polygons)
    if box is not None:
        left, top, right, bottom = box
        areas.insert(0, [(left, top), (right, top), (right, bottom), (left, bottom)])
    if not areas:
        raise CommandError("Expected cut_polygons or box: nothing says what to cut.")
    if len(areas) > MOST_AREAS:
        raise CommandError(f"{len(areas)} areas: at most {MOST_AREAS} in one call.")
    beyond = [area for area in areas if not _is_within(picture, area)]
    if beyond:
        context.warn(
            f"{len(beyond)} of {len(areas)} areas reach beyond the picture of "
            f"{picture.width}x{picture.height}, such as {_shown(beyond[0])}: only what "
            "lies in it is cut out."
        )
    cropped: list[Any] = []
    pixels = 0
    for area in areas:
        part = _cut(picture, area)
        pixels += part.width * part.height
        if pixels > pillow.MOST_PIXELS:
            raise CommandError(
                f"The areas have more than {pillow.MOST_PIXELS} pixels together; cut "
                "them in several calls."
            )
        cropped.append(pillow.as_given(part, img_data))
    return {"cropped": cropped}


def _areas(given: Any) -> list[list[Point]]:
    """Return polygons from an array or nested lists, as OCR returns them.

    A row is `x1 y1 x2 y2 …`, or a list of points `[x, y]`.
    """
    rows = given.tolist() if hasattr(given, "tolist") else given
    areas: list[list[Point]] = []
    for row in cast("Sequence[Any]", rows):
        flat = row.tolist() if hasattr(row, "tolist") else row
        if not isinstance(flat, list):
            raise CommandError(
                "cut_polygons: expected a list of polygons; put one polygon into a "
                "list."
            )
        numbers = _flat(cast("list[Any]", flat))
        if len(numbers) < 6 or len(numbers) % 2:
            raise CommandError(
                "cut_polygons: expected polygons of at least three points, each "
                f"x and y, got {len(numbers)} numbers."
            )
        areas.append(list(zip(numbers[::2], numbers[1::2], strict=True)))
    return areas


def _flat(row: list[Any]) -> list[float]:
    numbers: list[float] = []
    for part in row:
        inner = part.tolist() if hasattr(part, "tolist") else part
        for number in cast("list[Any]", inner if isinstance(inner, list) else [inner]):
            if not isinstance(number, int | float) or not abs(number) < 1e6:
                raise CommandError("cut_polygons: expected numbers, in pixels.")
            numbers.append(float(number))
    return numbers


def _cut(picture: Any, area: list[Point]) -> Any:
    """Crop rectangles, straighten quadrilaterals, and mask other shapes."""
    across, down = [x for x, _ in area], [y for _, y in area]
    left, top = max(0, math.floor(min(across))), max(0, math.floor(min(down)))
    right = min(picture.width, math.ceil(max(across)))
    bottom = min(picture.height, math.ceil(max(down)))
    if right <= left or bottom <= top:
        raise CommandError(
            f"The area {_shown(area)} lies outside the picture of "
            f"{picture.width}x{picture.height}."
        )
    if _is_box(area):
        return picture.crop((left, top, right, bottom))
    if len(area) == 4:
        return _straightened(picture, area)
    cut = pillow.eight_bits(picture.crop((left, top, right, bottom)))
    part = cut.convert("RGBA")
    mask = pillow.pillow().new("L", part.size, 0)
    moved = [(x - left, y - top) for x, y in area]
    pillow.pillow("ImageDraw").Draw(mask).polygon(moved, fill=255)
    darker = pillow.pillow("ImageChops").darker
    part.putalpha(darker(mask, part.getchannel("A")))
    return part


def _is_within(picture: Any, area: list[Point]) -> bool:
    return all(
        -1 < x < picture.width + 1 and -1 < y < picture.height + 1 for x, y in area
    )


def _is_box(area: list[Point]) -> bool:
    corners = set(area)
    return len(area) == 4 and corners == {(x, y) for x, _ in area for _, y in area}


def _straightened(picture: Any, area: list[Point]) -> Any:
    """Straighten four corners, from the upper left clockwise, into a rectangle."""
    upper_left, upper_right, lower_right, lower_left = area
    width = max(math.dist(upper_left, upper_right), math.dist(lower_left, lower_right))
    height = max(math.dist(upper_left, lower_left), math.dist(upper_right, lower_right))
    size = (max(1, round(width)), max(1, round(height)))
    pillow.check_size(*size)
    corners = (*upper_left, *lower_left, *lower_right, *upper_right)
    image = pillow.pillow()
    return picture.transform(
        size, image.Transform.QUAD, corners, image.Resampling.BILINEAR
    )


def _shown(area: list[Point]) -> str:
    return ", ".join(f"({x:g}, {y:g})" for x, y in area[:4])


def resize_image(
    img_data: Any, width: int | None = None, height: int | None = None
) -> Any:
    """Resize a picture; one given side preserves the aspect ratio."""
    picture = pillow.picture_of(img_data)
    if width is None and height is None:
        raise CommandError("Expected width, height or both, in pixels.")
    wide = width or max(1, round(picture.width * (height or 1) / picture.height))
    high = height or max(1, round(picture.height * (width or 1) / picture.width))
    pillow.check_size(wide, high)
    # A one-bit picture has no shades to average.
    plain = picture.convert("L") if picture.mode == "1" else picture
    resampling = pillow.pillow().Resampling.LANCZOS
    return pillow.as_given(plain.resize((wide, high), resampling), img_data)


def convert_image(img_data: Any, mode: str) -> Any:
    """Convert the colours: RGB, RGBA, grey, black and white."""
    picture = pillow.eight_bits(pillow.picture_of(img_data))
    if mode == "RGB":
        return pillow.as_given(pillow.on_white(picture), img_data)
    if mode in ("L", "1") and "A" in picture.getbands():
        picture = pillow.on_white(picture)
    return pillow.as_given(picture.convert(mode), img_data)


def save_image(
    img_data: Any, file_path: str, context: Context, quality: int = 90
) -> dict[str, Json]:
    """Save a picture into the workspace; the ending selects the format."""
    picture = pillow.picture_of(img_data)
    data = pillow.encoded(picture, workspace.ending(file_path), quality)
    path = workspace.write(context, file_path, data)
    return {
        "file_path": path,
        "width": picture.width,
        "height": picture.height,
        "bytes": len(data),
    }
