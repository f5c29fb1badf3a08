"""Files of the Hugging Face hub, from a mirror on loopback."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from neuraxis.errors import ConfigError, MissingExtra, ModelUnavailable
from neuraxis.models.gguf import files

BODY = b"GGUF" + bytes(range(256)) * 64
COMMIT = "a" * 40
asked: list[str] = []


class Mirror(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        asked.append(f"{self.command} {self.path}")
        if self.path != "/own/small/resolve/main/sub/a.gguf":
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha256(BODY).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        if body:
            self.wfile.write(BODY)


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    constants = pytest.importorskip("huggingface_hub.constants")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(
        constants,
        "HUGGINGFACE_CO_URL_TEMPLATE",
        address + "/{repo_id}/resolve/{revision}/{filename}",
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    asked.clear()
    yield
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.usefixtures("mirror")
def test_a_file_is_fetched_once() -> None:
    """The second time nobody is asked: there may be no network."""
    find = files.file_of("hf:own/small/sub/a.gguf")
    path = find()
    assert path.read_bytes() == BODY
    assert asked
    asked.clear()
    assert find() == path
    assert asked == []


@pytest.mark.usefixtures("mirror")
def test_what_is_not_there_is_one_sentence() -> None:
    """Also where fetching is forbidden."""
    with pytest.raises(ModelUnavailable, match=r"hf:own/small/b\.gguf: cannot be f"):
        files.file_of("hf:own/small/b.gguf")()
    with pytest.raises(ModelUnavailable, match=r"models fetch hf:own/small/b\.gguf"):
        files.file_of("hf:own/small/b.gguf", may_fetch=False)()


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has not got it learns how to."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"pip install 'neuraxis\[hf\]'"):
        files.file_of("hf:own/small/a.gguf")()


def test_known_models_say_what_they_need() -> None:
    """The list is dated, and each fits into what it says."""
    assert files.AS_OF >= "2026-11"
    sizes = [known.download_gb for known in files.KNOWN.values()]
    assert sizes == sorted(sizes)
    assert all(known.memory_gb > known.download_gb for known in files.KNOWN.values())
    with pytest.raises(ConfigError, match="Did you mean qwen3-4b"):
        files.file_of("qwen3-4bb")
