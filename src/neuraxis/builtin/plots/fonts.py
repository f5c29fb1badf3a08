"""Choose fonts that can draw the texts of a figure.

Matplotlib's own font has no Chinese, Japanese or Korean glyphs. A system font that has
them is added; a character without any font is drawn as a box and reported, instead of
matplotlib's warning on the terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from neuraxis.errors import needed

OWN = "DejaVu Sans"
_FAMILIES = (
    *("CJK", "Noto Sans", "Arial Unicode", "YaHei", "SimHei", "Yu Gothic", "Meiryo"),
    *("PingFang", "Hiragino", "Malgun", "AppleGothic", "WenQuanYi", "Nirmala"),
    *("Segoe UI", "Arial", "Tahoma", "Symbola", "Unifont", "Droid Sans Fallback"),
)
"""Name parts of system fonts with many glyphs."""
_MOST_FONTS = 80
_BOX = "\u25a1"


def fit(figure: Any, warn: Callable[[str], None]) -> None:
    """Set fonts that can draw each text of the figure."""
    texts: list[Any] = figure.findobj(
        needed("matplotlib.text", "plots", "Drawing").Text
    )
    own_signs = _signs_of(OWN)
    lacking: set[str] = set()
    for text in texts:
        lacking |= {char for char in text.get_text() if _is_seen(char, own_signs)}
    if not lacking:
        return
    families, missing = _others(frozenset(lacking))
    for text in texts:
        text_content: str = text.get_text()
        if lacking.intersection(text_content):
            text.set_fontfamily([OWN, *families])
            text.set_text(_boxed(text_content, missing))
    for axes in figure.axes:
        # Tick labels are created again when the figure is drawn.
        if type(axes.xaxis.get_major_formatter()).__name__ == "FuncFormatter":
            labels = [text.get_text() for text in axes.get_xticklabels()]
            axes.set_xticks(
                axes.get_xticks(),
                [_boxed(text_content, missing) for text_content in labels],
            )
    if missing:
        missing_text = "".join(sorted(missing)[:20])
        warn(
            f"No font of this computer has the signs {missing_text}: they are drawn "
            "as boxes."
        )


def _boxed(text: str, missing: frozenset[str]) -> str:
    return "".join(_BOX if char in missing else char for char in text)


def _is_seen(char: str, signs: frozenset[int]) -> bool:
    return ord(char) not in signs and not char.isspace()


@lru_cache(maxsize=64)
def _others(lacking: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return fonts with these characters, and the characters without a font."""
    fonts = needed("matplotlib.font_manager", "plots", "Drawing a plot")
    families = dict.fromkeys(str(font.name) for font in fonts.fontManager.ttflist)
    likely = [
        name
        for name in families
        if any(part in name for part in _FAMILIES) and "Color" not in name
    ]
    used: list[str] = []
    missing = set(lacking)
    for name in likely[:_MOST_FONTS]:
        has = {char for char in missing if ord(char) in _signs_of(name)}
        if has:
            used.append(name)
            missing -= has
        if not missing:
            break
    return tuple(used), frozenset(missing)


@lru_cache(maxsize=_MOST_FONTS)
def _signs_of(family: str) -> frozenset[int]:
    fonts = needed("matplotlib.font_manager", "plots", "Drawing a plot")
    try:
        path = fonts.findfont(family, fallback_to_default=False)
        return frozenset(fonts.get_font(path).get_charmap())
    except (
        OSError,
        RuntimeError,
        ValueError,
    ):  # A broken font, or one without outlines.
        return frozenset()
