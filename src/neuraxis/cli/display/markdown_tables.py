"""Show the tables of a Markdown text without cutting numbers."""

from __future__ import annotations

import re
from typing import ClassVar

from markdown_it import MarkdownIt
from rich import box, markdown
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from neuraxis.cli.display.text import least_width

_BORDER = 3
"""Maximum characters between two columns."""
_WHOLE = re.compile(r"[-+\d.,:%]{0,40}")
"""Cells that are never broken: numbers, dates and times."""


class _Table(markdown.TableElement):
    """Table of a text; columns without room follow in another one.

    Each of these begins with the first column.
    """

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        header = self.header.row.cells if self.header and self.header.row else []
        rows = [row.cells for row in self.body.rows] if self.body else []
        is_whole: list[bool] = []
        parts: list[list[int]] = [[]]
        room, first = options.max_width, 0
        for place, head in enumerate(header):
            cells = [row[place].content.plain for row in rows]
            whole = bool(cells) and all(map(_WHOLE.fullmatch, cells))
            is_whole.append(whole)
            texts = [head.content.plain, *cells]
            least = least_width(texts, is_whole=whole) + _BORDER
            first = first or least
            if room < least and len(parts[-1]) > 1:
                parts.append([0])
                room = options.max_width - first
            parts[-1].append(place)
            room -= least
        for part in parts:
            table = Table(
                box=box.SIMPLE,
                pad_edge=False,
                style="markdown.table.border",
                collapse_padding=True,
            )
            for place in part:
                heading = header[place].content.copy()
                heading.stylize("markdown.table.header")
                table.add_column(heading, no_wrap=is_whole[place])
            for row in rows:
                table.add_row(*[row[place].content for place in part])
            yield table


class Markdown(markdown.Markdown):
    """Markdown text whose tables fit the terminal.

    Nothing of the text is left out: what looks like HTML, such as `List<int>`, and
    references to addresses in other blocks are shown as they are written.
    """

    elements: ClassVar[dict[str, type[markdown.MarkdownElement]]] = {
        **markdown.Markdown.elements,
        "table_open": _Table,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False, code_theme="ansi_dark")
        parser = MarkdownIt("commonmark", {"html": False})
        parser.enable(["strikethrough", "table"]).disable(["image", "reference"])
        self.parsed = parser.parse(text)
        deepest = parser.options.maxNesting - 1
        self.is_cut = any(token.level >= deepest for token in self.parsed)
        """Whether the text is nested so deep that its end may be missing."""
