"""Standard output is for answers: what plugins print goes to standard error."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator
from functools import wraps
from typing import ParamSpec, TextIO, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_kept: list[TextIO] = []
"""The stream of answers while plugins may print."""


def stdout() -> TextIO:
    """Return the stream of answers."""
    return _kept[-1] if _kept else sys.stdout


@contextlib.contextmanager
def kept_for_answers() -> Generator[None]:
    """Send what plugins and their processes print to standard error."""
    if _kept:
        yield
        return
    stdout = sys.stdout
    stdout.flush()
    with contextlib.ExitStack() as after:
        _kept.append(after.enter_context(_beside(stdout)))
        sys.stdout = sys.stderr
        try:
            yield
        finally:
            sys.stdout = stdout
            _kept.pop().flush()


@contextlib.contextmanager
def _beside(stdout: TextIO) -> Generator[TextIO]:
    """Return a stream beside standard output, which leads to standard error.

    A process that a plugin starts has its descriptor. On a terminal both are one.
    """
    try:
        descriptor = stdout.fileno()
    except (AttributeError, OSError, ValueError):
        descriptor = -1  # as in a test
    if descriptor != 1 or stdout.isatty():
        yield stdout
        return
    duplicate = os.dup(1)
    with open(duplicate, "w", encoding=stdout.encoding, errors=stdout.errors) as stream:
        os.dup2(2, 1)
        try:
            yield stream
        finally:
            stdout.flush()  # what a plugin wrote to a stream that it had kept
            os.dup2(duplicate, 1)


def answers_alone(command: Callable[P, R]) -> Callable[P, R]:
    """Run a command of the command line within `kept_for_answers`."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with kept_for_answers():
            return command(*args, **kwargs)

    return run
