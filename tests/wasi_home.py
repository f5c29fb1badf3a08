"""The machine code that `wasi` runs, compiled once for all tests of one run."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from neuraxis.sandbox.process.backends.wasi import find
from neuraxis.sandbox.process.job import CannotStart

_ONE = threading.Lock()


def wasi_home() -> Path:
    """A folder for NEURAXIS_HOME; skips where wasmtime or its Python is missing."""
    try:
        find.find()
    except CannotStart as error:
        pytest.skip(str(error))
    with _ONE:
        return _compiled()


@functools.cache
def _compiled() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="neuraxis-wasi-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    code = (
        "from neuraxis.sandbox import wasi_code, wasi_parts\n"
        "wasi_code.compiled(wasi_parts.find())"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NEURAXIS_HOME": str(folder)},
        check=True,
    )
    return folder
