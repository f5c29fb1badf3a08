"""Render the Markdown of a streaming answer, block by block."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from neuraxis.cli.display.text import columns, folded, inert
from neuraxis.cli.standard_output import stdout

if TYPE_CHECKING:
    from neuraxis.cli.display.markdown_tables import Markdown

_MARKDOWN = re.compile(
    r"^ {0,3}(?:#{1,6} |[-*+] |\d{1,9}[.)] |\||>|```|~~~)|\*\*[^\s*]|`[^`\n]", re.M
)
"""Signs of Markdown; any other text is not rendered."""
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)")


def complete_blocks(text: str) -> int:
    """Return the length of the blocks that are complete."""
    end, position, fenced = 0, 0, False
    for line in text.splitlines(keepends=True):
        position += len(line)
        if _FENCE.match(line):
            fenced = not fenced
        if not fenced and not line.strip() and line.endswith("\n"):
            end = position
    return end


def print_markdown(text: str, *, after: bool = False) -> None:
    """Print text to standard output: Markdown rendered on a terminal.

    Line breaks are kept, since models intend them; links are shown with their address.

    Args:
        text: whole blocks.
        after: whether a blank line comes first, since another block precedes.
    """
    text = inert("\n" * after + text.strip("\n"))
    out = stdout()
    rendered = _rendered(text) if out.isatty() else None
    if rendered is None:
        if out.isatty():
            text = "\n".join(folded(text, columns(), indented=0))
        out.write(f"{text}\n")
        out.flush()
        return
    if after:
        out.write("\n")
        out.flush()
    from rich.console import Console  # slow to import
    from rich.segment import Segment, Segments

    console = Console(file=out, highlight=False)
    lines = console.render_lines(rendered, pad=False)
    # a list or table brings blank lines of its own
    for end in (0, -1):
        while lines and not any(part.text.strip() for part in lines[end]):
            lines.pop(end)
    # entities such as &#8238; become characters only in the rendering
    parts = [part for line in lines for part in (*line, Segment.line())]
    console.print(
        Segments(Segment(inert(part.text), part.style, part.control) for part in parts)
    )


def _rendered(text: str) -> Markdown | None:
    """Return a text as Markdown; None: the text is shown unchanged."""
    if not _MARKDOWN.search(text):
        return None
    from neuraxis.cli.display.markdown_tables import Markdown  # imports rich

    rendered = Markdown(_with_breaks(text))
    return None if rendered.is_cut else rendered


def _with_breaks(text: str) -> str:
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        fence = bool(_FENCE.match(line))
        fenced = fenced != fence
        is_plain = not (fenced or fence or line.lstrip().startswith("|"))
        lines.append(f"{line}  " if is_plain and line.strip() else line)
    return "\n".join(lines)
