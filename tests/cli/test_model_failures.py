"""A model that cannot be had: one sentence, an exit code, and a whole journal."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cli_process import neuraxis

KEY = "sk-wrong-key-0123456789"
WIRES = {
    "openai": "OPENAI",
    "openai-responses": "OPENAI",
    "anthropic": "ANTHROPIC",
    "gemini": "GEMINI",
}


class Refusing(BaseHTTPRequestHandler):
    """Answers by the first part of the path: its status, or silence."""

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        kind = self.path.split("/")[1]
        if kind == "half":
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b": begun\n\n")
            self.wfile.flush()
        if kind in ("stall", "half"):
            time.sleep(3)
            return
        body = json.dumps({"error": {"message": f"no: {KEY}"}}).encode()
        self.send_response(int(kind))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[str]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("401", "HTTP 401: no: [key] (the key of"),
        ("429", "HTTP 429: no: [key]"),
        ("stall", "no answer in 0.5 s"),
        ("half", "the answer stopped for 0.5 s"),
    ],
)
def test_a_server_that_gives_nothing(
    wire: str, kind: str, said: str, server: str, tmp_path: Path
) -> None:
    """A wrong key, a storm of 429 and a stall, through each wire."""
    name = WIRES[wire]
    (tmp_path / "neuraxis.toml").write_text(
        "[models.m]\nfirst_byte_timeout = 0.5\nstall_timeout = 0.5\n"
        "max_retries = 2\nbackoff = 0.01\n"
    )
    done = neuraxis(
        "run", "-m", f"{wire}:m", "--journal", "j.sqlite", "Hello",
        cwd=tmp_path,
        **{f"{name}_BASE_URL": f"{server}/{kind}/v1", f"{name}_API_KEY": KEY},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    told = [line for line in done.stderr.splitlines() if said in line]
    assert len(told) == 1, done.stderr
    assert KEY not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    with sqlite3.connect(tmp_path / "j.sqlite") as journal:
        assert journal.execute("pragma integrity_check").fetchone() == ("ok",)
    journal.close()
    shown = neuraxis("sessions", "list", "--journal", "j.sqlite", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert KEY.encode() not in (tmp_path / "j.sqlite").read_bytes()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("model", "package", "extra"),
    [
        ("local:a.gguf", "xllamacpp", "local"),
        ("local:hf:owner/name/a.gguf", "huggingface_hub", "hf"),
    ],
)
def test_a_missing_extra_is_one_sentence(
    model: str, package: str, extra: str, tmp_path: Path
) -> None:
    """What to install, and no traceback."""
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    (tmp_path / f"{package}.py").write_text("raise ImportError('none')\n")
    done = neuraxis(
        "run", "-m", model, "Hello", cwd=tmp_path, PYTHONPATH=_path(tmp_path)
    )
    assert done.returncode in (1, 2), done.stderr
    assert f"pip install 'neuraxis[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def _path(first: Path) -> str:
    import neuraxis as package

    return f"{first}:{Path(package.__file__).parents[1]}"
