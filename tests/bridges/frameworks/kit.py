"""Commands of ours that are offered to other frameworks."""

from typing import Any

from neuraxis import command


@command(effects="none")
def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: the first.
        b: the second.
    """
    return a + b


@command(effects="none")
def series(length: int) -> list[int]:
    """Make the first numbers."""
    return list(range(length))


@command(effects="once")
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


def offered(make: Any, tmp_path: Any, **options: Any) -> dict[str, Any]:
    """The tools by name."""
    made = make([add, series, send], workspace=tmp_path, **options)
    return {tool.name: tool for tool in made}
