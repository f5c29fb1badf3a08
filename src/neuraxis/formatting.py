"""Format values, types, paths and names for messages: one short line.

`call_errors` builds its messages with these functions, and so do the checks of a
program's arguments.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn, cast

from msgspec import StructMeta

from neuraxis.errors import ConfigError
from neuraxis.messages import Path
from neuraxis.specs import Json

QUOTED = 60
"""Maximum characters of a value that an error quotes."""

MOST_NAME = 120
"""Maximum characters of a name that are quoted and compared."""

DIGITS = 6
"""Significant digits shown of a number with a fraction."""

_LINE_BREAKS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}
"""Line breaks that JSON may leave unescaped, and their escapes."""
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)
"""Blank characters outside of the hidden categories."""


def quote(value: Any, most: int = QUOTED) -> str:
    """Return a one-line quotation of a JSON value, else its type."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return f"<{type_name(value)}>"
    if not text.isascii():
        # half a character stands for a byte of a file's name that is not UTF-8
        encoded = text.translate(_LINE_BREAKS).encode(errors="backslashreplace")
        text = encoded.decode()
    return text if len(text) <= most else text[: most - 1] + "…"


def named(name: str) -> str:
    """Return a model's name for something, cut if long."""
    return json.dumps(name if len(name) <= MOST_NAME else name[: MOST_NAME - 1] + "…")


_FILE_NAME = re.compile(r"\w[\w .:@+=,-]{0,99}")


def visible(text: str) -> str:
    """Return a text with invisible characters replaced by their code points."""
    return text if text.isascii() and text.isprintable() else "".join(map(_seen, text))


def _seen(char: str) -> str:
    hidden = unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")
    return f"\\u{{{ord(char):x}}}" if hidden or char in _BLANK else char


def file_name(given: str) -> str:
    """Return an id as the name of one file or folder.

    An ordinary id stays as it is. Any other, such as one with a slash, becomes a
    digest after a character with which no ordinary id begins.
    """
    encoded = given.encode(errors="surrogatepass")
    if _FILE_NAME.fullmatch(given) and len(encoded) <= MOST_NAME:
        return given
    return f"@{sha256(encoded)}"


def sha256(data: bytes | bytearray | memoryview) -> str:
    """Return the SHA-256 digest of the bytes in hexadecimal."""
    import hashlib  # loads OpenSSL, which takes as long as fifteen of our modules

    return hashlib.sha256(data).hexdigest()


FILE_MODULE = "_neuraxis_plugin_"
"""Begin of the names of modules that are a plugin's own file."""
_OF_FILE = re.compile(r"_neuraxis_plugin_[0-9a-f]{12}_")


def identifier(name: str) -> str:
    """Return a plugin's name as Python can write it."""
    plain = re.sub(r"\W", "_", name)
    return f"_{plain}" if name[:1].isdecimal() else plain


def file_module(digest: str, plugin: str) -> str:
    """Return the module name of a plugin's file.

    It is unique by the file's digest; people and models read the plugin's name only.
    """
    return f"{FILE_MODULE}{digest[:12]}_{identifier(plugin)}"


def public_names(text: str) -> str:
    """Return a text with plugins' names for the modules of their files."""
    return _OF_FILE.sub("", text) if FILE_MODULE in text else text


def class_name(cls: type[Any]) -> str:
    """Return `module.Class`; for a class in a plugin's file, `plugin.Class`."""
    return public_names(f"{cls.__module__}.{cls.__qualname__}")


def type_name(value: Any) -> str:
    """Return JSON's name of the value's type, or the class name."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return class_name(value.__class__)


_IN_YAML = {"array": "list", "object": "mapping", "string": "text"}


def yaml_type(value: Any) -> str:
    """Return the name of the value's type in the words of YAML."""
    name = type_name(value)
    return _IN_YAML.get(name, name)


def path_text(path: Path, root: str = "") -> str:
    """Return `boxes[1].x`; unusual keys are bracketed and quoted."""
    text = root
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("_", "a").replace("-", "a").isalnum():
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]"
    return text


def nearest(name: str, names: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Return the names closest to `name`, ignoring case and punctuation.

    One that differs in nothing else is the only one.
    """
    import difflib  # Imported for error messages only.

    known = list(dict.fromkeys(names))
    folded: dict[str, list[str]] = {}
    for item in known:
        folded.setdefault(_fold(item), []).append(item)
    wanted = _fold(name[:MOST_NAME])
    close = difflib.get_close_matches(wanted, folded, n=most, cutoff=0.6)
    close = [wanted] if wanted in close else close
    return tuple(item for key in close for item in folded[key])[:most]


def _fold(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())


def listed(names: Sequence[str], most: int = 20) -> str:
    """Return the first names and the number of others, or `none`."""
    first = ", ".join(names[:most])
    rest = len(names) - most
    return f"{first} and {rest} more" if rest > 0 else first or "none"


def did_you_mean(candidates: Sequence[str]) -> str:
    """Return a question with a space before it, or nothing."""
    return f" Did you mean {' or '.join(candidates)}?" if candidates else ""


def describe_given(value: Any) -> str:
    """Describe a given value in a few words."""
    if isinstance(value, str | int | float | PathLike | type(None)):
        return f"{value!r:.80}"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    return with_article(type(value).__name__)


def with_article(name: str) -> str:
    """Return a noun behind `a` or `an`."""
    is_open = name.lower().startswith((*"aeio", "hour"))
    return f"an {name}" if is_open else f"a {name}"


TEXT = 500
"""Maximum characters of a text or a key."""
ITEMS = 16
"""Maximum entries of an object."""
_LARGE = 10**300


def is_short_json(value: Any) -> bool:
    """Check whether a value is a text or small, flat JSON."""
    kind = value.__class__
    if kind is str:
        return len(value) <= TEXT
    if kind is not dict or len(value) > ITEMS:
        return False
    for key, item in value.items():
        kind = item.__class__
        if kind is str:
            if len(item) > TEXT:
                return False
        elif kind is float:
            if item - item != 0.0:
                return False  # NaN or infinite.
        elif kind is int:
            if not -_LARGE < item < _LARGE:
                return False  # Python refuses to write an integer of too many digits.
        elif kind is not bool and item is not None:
            return False
        if key.__class__ is not str or len(key) > TEXT:
            return False
    return True


def digits(value: float) -> str:
    """Return a number for people: six significant digits, thousands separated."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    most = max(0, min(12, DIGITS - 1 - math.floor(math.log10(abs(value)))))
    places = len(f"{value:.{most}f}".rstrip("0").partition(".")[2])
    return f"{value:,.{places}f}"


def in_seconds(seconds: float) -> str:
    """Return a time with its unit: `1 second`, `0.5 seconds`."""
    return f"{seconds:g} second{'' if seconds == 1 else 's'}"


def preview(
    arguments: Json,
    *,
    text: int = 500,
    items: int = 10,
    levels: int = 50,
    show_object: Callable[[Any], str] = lambda value: f"<{type_name(value)}>",
) -> Json:
    """Return a short form of resolved arguments, for people.

    Args:
        arguments: or any part of them.
        text: characters of a text that are shown.
        items: entries of a list that are shown.
        levels: how deep it is looked into: an object may hold itself.
        show_object: returns the text for an object that is no JSON.
    """
    if levels < 0:
        return "…"
    part = partial(
        preview, text=text, items=items, levels=levels - 1, show_object=show_object
    )
    if isinstance(arguments, dict):
        named = cast("dict[str, Json]", arguments)
        # the journal is JSON, and an object's keys may be dates or pairs
        return {str(key): part(it) for key, it in named.items()}
    if isinstance(arguments, str):
        cut = len(arguments) - text
        return arguments if cut <= 0 else f"{arguments[:text]}… (+{cut} characters)"
    if isinstance(arguments, int) and arguments.bit_length() > 1_000:
        return f"<int of {arguments.bit_length()} bits>"  # it may have no text
    if arguments is None or isinstance(arguments, bool | int | float):
        return arguments
    if isinstance(arguments, list):
        given = cast("list[Json]", arguments)
        shown = [part(item) for item in given[:items]]
        return shown if len(given) <= items else [*shown, f"… ({len(given)} items)"]
    return show_object(arguments)


# --- a program's arguments ------------------------------------------------------


def counted(number: int, what: str) -> str:
    """Return `1 step`, `1,200 steps`, `2 replies`."""
    if number != 1:
        ends_in_y = what.endswith("y") and what[-2:-1] not in "aeiou"
        what = f"{what[:-1]}ies" if ends_in_y else f"{what}s"
    return f"{number:,} {what}"


def size_text(count: int) -> str:
    """Return a size such as `512 bytes`, `1.5 kB`, `50 MB`."""
    if count < 1000:
        return counted(count, "byte")
    for unit, factor in (("kB", 1e3), ("MB", 1e6)):
        if count < 999.5 * factor:  # A value that rounds to 1000 is 1 of the next unit.
            return f"{count / factor:.3g} {unit}"
    large = count / 1e9
    return f"{large:.3g} GB" if large < 999.5 else f"{large:.0f} GB"


def why_unusable(error: OSError | UnicodeDecodeError) -> str:
    """Return why a file is unusable, without the system's error number."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return error.strerror or str(error)


def refuse(name: str, expected: str, value: Any) -> NoReturn:
    """Raise the `ConfigError` of an argument of a wrong type."""
    raise ConfigError(f"{name}: expected {expected}, got {describe_given(value)}")


def check_word(name: str, value: Any, words: Sequence[str]) -> None:
    """Check that a value is one of an argument's words.

    Raises:
        ConfigError: it is not.
    """
    if value not in words:
        refuse(name, f"one of {', '.join(words)}", value)


def check_flag(name: str, value: Any) -> None:
    """Check that a value is a boolean: any text would be true.

    Raises:
        ConfigError: it is not.
    """
    if not isinstance(value, bool):
        refuse(name, "True or False", value)


def no_argument(name: str, known: Iterable[str], close: Sequence[str] = ()) -> str:
    """Return the error of an argument that does not exist."""
    known = sorted(known)
    hint = did_you_mean(close or nearest(name, known)[:1])
    return f"there is no argument {name!r}.{hint} Arguments are: {', '.join(known)}"


class Named(StructMeta):
    """Makes the errors of a Struct's constructor name it and its fields.

    A Struct has no `__init__` that could do so.
    """

    if not TYPE_CHECKING:  # it takes what the fields say

        def __call__(cls, *args: Any, **given: Any) -> Any:  # noqa: D102
            try:
                return super().__call__(*args, **given)
            except TypeError as error:
                known = cls.__struct_fields__
                message = next(
                    (no_argument(n, known) for n in given if n not in known), ""
                )
                if args:
                    message = f"write the names, such as {cls.__name__}({known[0]}=...)"
                raise TypeError(f"{cls.__name__}: {message or error}") from None
