"""Markdown of a model's answer, shown block by block as it comes."""

from __future__ import annotations

import re
import sys

_MARKDOWN = re.compile(
    r"^ {0,3}(?:#{1,6} |[-*+] |\d{1,9}[.)] |\||>|```|~~~)|\*\*[^\s*]|`[^`\n]", re.M
)
"""What makes a text Markdown; any other text is shown as it is."""
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)")


def complete_blocks(text: str) -> int:
    """Return the length of the blocks that cannot change."""
    end, position, fenced = 0, 0, False
    for line in text.splitlines(keepends=True):
        position += len(line)
        if _FENCE.match(line):
            fenced = not fenced
        if not fenced and not line.strip() and line.endswith("\n"):
            end = position
    return end


def print_markdown(text: str, *, after: bool = False) -> None:
    """Print inert text to standard output: Markdown rendered on a terminal.

    Line breaks stay, since models mean them; links are shown with their address.

    Args:
        text: whole blocks.
        after: a blank line comes first, since another block stands above.
    """
    text = "\n" * after + text.strip("\n")
    if not sys.stdout.isatty() or not _MARKDOWN.search(text):
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        return
    if after:
        sys.stdout.write("\n")
        sys.stdout.flush()
    from rich.console import Console  # slow to import
    from rich.markdown import Markdown

    console = Console(file=sys.stdout, highlight=False)
    shown = Markdown(_with_breaks(text), hyperlinks=False, code_theme="ansi_dark")
    console.print(shown)


def _with_breaks(text: str) -> str:
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        fence = bool(_FENCE.match(line))
        fenced = fenced != fence
        is_plain = not (fenced or fence or line.lstrip().startswith("|"))
        lines.append(f"{line}  " if is_plain and line.strip() else line)
    return "\n".join(lines)
