"""Find scripts that code in the workspace may run by their names."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from neuraxis.sandbox.files.walk import walk_tree

_INSTALLED = (".git", "node_modules", "__pycache__")
_MOST_FILES, _MOST_BYTES, _BEGINNING = 2_000, 50_000_000, 1_000
_CONTROLS = bytes((*range(1, 7), *range(14, 27), *range(28, 32), 127))
"""Characters that are rare in texts, but one in ten of random bytes."""


def is_mentioned(
    stem: str, workspace: Path, is_data: Callable[[str], bool] = lambda name: False
) -> bool:
    """Whether code in the workspace may mention the script `stem`.py.

    A name that is not ASCII has too many spellings to search for, so it counts as
    mentioned. `is_data`: whether a file of this name runs nothing.
    """
    if not stem.isascii():
        return True
    name = stem.lower().encode()
    try:
        size = 0
        for number, file in enumerate(_code(workspace, is_data)):
            size += file.stat().st_size
            if number >= _MOST_FILES or size > _MOST_BYTES:
                return True
            code = b"" if file.name == f"{stem}.py" else _letters(file.read_bytes())
            if name in code.lower() or b"*.py" in code:
                return True
    except OSError:
        return True
    return False


def _letters(text: bytes) -> bytes:
    """Return a text without NULs, so that ASCII in UTF-16 is found.

    In names, Python reads full-width letters as ASCII, too.
    """
    text = text.replace(b"\0", b"")
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.decode(errors="replace")).encode()


def _code(workspace: Path, is_data: Callable[[str], bool]) -> Iterator[Path]:
    """Yield the text files that are not data, without installed packages.

    Raises:
        OSError: something cannot be searched.
    """
    hooks = workspace / ".git" / "hooks"
    for folder, folders, names in chain(walk_tree(workspace), walk_tree(hooks)):
        if "pyvenv.cfg" in names and Path(folder) != workspace:
            folders.clear()
            continue
        folders[:] = [name for name in folders if name not in _INSTALLED]
        for name in names:
            file = Path(folder, name)
            if file.is_dir() and not (
                name in _INSTALLED or (file / "pyvenv.cfg").exists()
            ):
                raise OSError(f"{file} leads to a folder, which is not searched")
            if not is_data(name) and file.is_file() and _is_text(file):
                yield file


def _is_text(file: Path) -> bool:
    with file.open("rb") as opened:
        # NULs come from UTF-16; decoding would make three letters of a bad byte
        beginning = opened.read(_BEGINNING).replace(b"\0", b"")
    if beginning.startswith(b"#!"):
        return True  # a shell script may carry data behind it
    controls = len(beginning) - len(beginning.translate(None, _CONTROLS))
    return controls * 20 <= len(beginning)
