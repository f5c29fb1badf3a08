"""The exceptions of the package, for authors and operators; models get `CallError`.

NeuraxisError
  ConfigError        a setting, name or file that a person gave is wrong
    ManifestError    a plugin's description: carries every problem with its line
    TemplateError    a user's own prompt template
    NoSuchSession    the journal holds no session of that id
    NoOpenQuestion   the call does not wait for approval: unknown, answered, expired
  ModelError         the model could not be reached
    ModelUnavailable no server, no weights, no key
    ModelRefused     the server said no (4xx)
    ModelTimeout     no answer in time
    ModelBroken      the stream broke off or was not understood
  NoAnswer           a run ended without an answer: `Answer.check`
  SessionBusy        the session is open elsewhere, or answering a request
  StorageError       journal or assets could not be written or read
  MissingExtra       an optional package is not installed
  CommandError       raised by a plugin to speak to the model
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct


class NeuraxisError(Exception):
    """Base class of all exceptions that Neuraxis raises on purpose."""


class ConfigError(NeuraxisError):
    """Error: a setting, name or file that the user gave is invalid."""


class ManifestProblem(Struct, frozen=True, kw_only=True):
    """One error in a plugin's description, with its place."""

    file: str
    """The file's path."""
    message: str
    """What was expected, and what was found."""
    line: int = 0
    """Line, from 1; 0 if the file has no such place."""
    severity: str = "error"
    """`error`: nothing of the file is loaded. `warning`: it is loaded."""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.severity}: {self.message}"


def warnings_in(file: str, texts: Iterable[str]) -> tuple[ManifestProblem, ...]:
    """Return texts as problems with which a plugin is still loaded."""
    return tuple(
        ManifestProblem(file=file, message=text, severity="warning") for text in texts
    )


class ManifestError(ConfigError):
    """Error: a plugin's description has mistakes; `problems` lists all."""

    def __init__(self, problems: tuple[ManifestProblem, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


def error_of(file: str, message: str, line: int = 0) -> ManifestError:
    """Return the error of a file with one problem."""
    return ManifestError((ManifestProblem(file=file, line=line, message=message),))


class TemplateError(ConfigError):
    """Error: a user's own prompt template cannot be filled."""


class NoSuchSession(ConfigError):
    """Error: the journal holds no session of that id."""


class NoOpenQuestion(ConfigError):
    """Error: the call does not wait for approval.

    There is no question of that id, or it was answered already, or it expired.
    """


class ModelError(NeuraxisError):
    """Error: no reply from the model.

    `status` is the HTTP status, if there is one. `again` is True if the server failed
    in the middle of its reply, so that the same request may succeed.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.again = False


class ModelUnavailable(ModelError):
    """Error: no server, no weights or no key."""


class ModelRefused(ModelError):
    """Error: the server refused the request."""


class ModelTimeout(ModelError):
    """Error: no response in time."""


class ModelBroken(ModelError):
    """Error: the stream broke off or violated the protocol."""


class NoAnswer(NeuraxisError):
    """Error: the run has no answer, though its model could be asked."""


class SessionBusy(NeuraxisError):
    """Error: the session is open elsewhere, or is answering a request."""


class StorageError(NeuraxisError):
    """Error: the journal or an asset could not be written or read."""


class MissingExtra(NeuraxisError):
    """Error: an optional package, or several, is not installed."""

    def __init__(self, package: str | Sequence[str], extra: str, purpose: str) -> None:
        names = [package] if isinstance(package, str) else package
        self.package = ", ".join(names)
        self.extra = extra
        listing = ", ".join(map(repr, names))
        which, them = ("which is", "it") if len(names) == 1 else ("which are", "them")
        super().__init__(
            f"{purpose} needs the package{'s' * (len(names) > 1)} {listing}, {which} "
            f"not installed. Install {them} with: pip install 'neuraxis[{extra}]'"
        )


_INSTALLED_AS = {"PIL": "pillow"}


def needed(module: str, extra: str, purpose: str) -> Any:
    """Import an optional package, untyped, where it is first needed.

    Raises:
        MissingExtra: it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        # an installed package may lack one of its own dependencies
        missing = (error.name or module).partition(".")[0]
        name = _INSTALLED_AS.get(missing, missing.replace("_", "-"))
        raise MissingExtra(name, extra, purpose) from None


class CommandError(NeuraxisError):
    """Error that a command raises to explain a failure to the model."""
