"""Load a user's own instruction text, with one place to fill.

The place is a literal token (`{{ message }}`, `{plugins}`): nothing else between
braces is touched, and what is filled in is never read for tokens again (rule A1).
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from msgspec import Struct

from neuraxis.call_errors import left_out
from neuraxis.errors import TemplateError

MESSAGE = "{{ message }}"
PLUGINS = "{plugins}"
LEFT_OUT = "{left_out}"

# the published intents template ends its raw part with a typo, rule C1
_RAW_TAG = re.compile(r"\{%-?\s*+(?:end)?raw\s*+`?\s*+-?%\}\n?")
_MESSAGE = re.compile(r"\{\{-?\s*message\s*-?\}\}")


class Template(Struct, frozen=True, kw_only=True):
    """Text before and after the place to fill."""

    before: str
    after: str

    def fill(self, text: str) -> str:
        """Return the whole text with `text` in its place."""
        return f"{self.before}{text}{self.after}"


@cache
def own_text(name: str) -> str:
    """Return the built-in instruction text of that name."""
    # `importlib.resources` would import zipfile, tempfile and their dependencies
    return read_text(Path(__file__).parent / "prompts" / name)


def instruction_text(name: str, *, goes_on: bool) -> str:
    """Return the built-in instruction text for a session's `on_error`.

    `goes_on`: steps that do not depend on a failed step still run.
    """
    return own_text(name).replace(LEFT_OUT, left_out(goes_on=goes_on))


def read_text(path: Path) -> str:
    """Return the file's text.

    Raises:
        TemplateError: it cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TemplateError(
            f"template {path}: cannot be read ({error.strerror})"
        ) from error
    except UnicodeDecodeError as error:
        raise TemplateError(
            f"template {path}: expected text in UTF-8, got other bytes at {error.start}"
        ) from error


def load_message_template(path: Path) -> Template:
    """Load a template with place `{{ message }}`; remove raw tags (C1)."""
    text = _RAW_TAG.sub("", read_text(path))
    matches = list(_MESSAGE.finditer(text))
    if not matches:
        raise TemplateError(
            f"template {path}: expected {MESSAGE} where the user's message goes, "
            "found none"
        )
    # examples of the text may mention the token; the last one is the real place
    return Template(before=text[: matches[-1].start()], after=text[matches[-1].end() :])


def load_plugins_template(path: Path) -> Template:
    """Load a template whose place is `{plugins}` (rule A1)."""
    text = read_text(path)
    if PLUGINS not in text:
        raise TemplateError(
            f"template {path}: expected {PLUGINS} where the plugins go, found none"
        )
    before, _, after = text.partition(PLUGINS)
    return Template(before=before, after=after)
