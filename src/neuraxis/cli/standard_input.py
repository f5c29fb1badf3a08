"""Standard input: the text of a request, or attached to one."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from neuraxis.cli.display.text import echo
from neuraxis.errors import ConfigError

if TYPE_CHECKING:
    from neuraxis.session.session import Session

FIRST_BYTE_SECONDS = 1.0
"""Seconds that a pipe has for its first byte, where nobody asked for it."""
NAME = "standard input"


def read_text() -> str:
    """Return the text on standard input.

    Raises:
        ConfigError: it is too large, or no text.
    """
    return _text(_at_most(sys.stdin.buffer.read))


def read_lines() -> Generator[str]:
    """Yield each line on standard input.

    Raises:
        ConfigError: a line is too long, or no text.
    """
    while data := _at_most(sys.stdin.buffer.readline):
        yield _text(data)


def attach_piped(session: Session, *, is_asked_for: bool) -> str | None:
    """Attach what is piped in; return its id, or None.

    Args:
        session: that of the request.
        is_asked_for: whether a pipe is waited for (`--attach -`); else one that stays
            idle is none: services and schedulers leave such ones open.

    Raises:
        ConfigError: it is too large, or was asked for and is not there.
    """
    data = _read(is_asked_for=is_asked_for)
    if not data:
        if is_asked_for:
            raise ConfigError("--attach -: nothing came on standard input")
        return None
    from neuraxis.parsing.encodings import text_of

    decoded = text_of(data)
    return session.attach(data if decoded is None else decoded[0], NAME)


def _read(*, is_asked_for: bool) -> bytes:
    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor).st_mode
    except (AttributeError, OSError, ValueError):
        return b""  # closed, or no file at all
    is_pipe = stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)
    if not (is_pipe or stat.S_ISREG(kind)):
        return b""  # a terminal, or /dev/null
    if is_pipe and not is_asked_for and not _has_begun(descriptor):
        echo(
            f"neuraxis: nothing came on standard input for {FIRST_BYTE_SECONDS:g} s, "
            "so it is ignored; --attach - waits for it",
            err=True,
        )
        return b""
    return _at_most(sys.stdin.buffer.read)


def _at_most(read: Callable[[int], bytes]) -> bytes:
    from neuraxis.assets.attachments import MOST_BYTES

    data = read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ConfigError(f"{NAME} is too large: at most {MOST_BYTES} bytes are read")
    return data


def _text(data: bytes) -> str:
    from neuraxis.parsing.encodings import text_of

    decoded = text_of(data)
    if decoded is None:
        raise ConfigError(
            f"{NAME}: expected text in UTF-8, UTF-16, UTF-32 or Windows-1252, got "
            "bytes that are no text"
        )
    return decoded[0].replace("\r\n", "\n")


def _has_begun(descriptor: int) -> bool:
    """Return whether a byte, or the end, comes in a moment."""
    if sys.platform == "win32":
        return True  # pipes cannot be waited for there
    return bool(select.select([descriptor], [], [], FIRST_BYTE_SECONDS)[0])
