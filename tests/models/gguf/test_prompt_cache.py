"""What the text model has read, kept between runs: whole, ours, and bounded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from neuraxis import settings
from neuraxis.models.gguf.engine import Engine, Setup
from neuraxis.models.gguf.prompt_cache import States

PAYLOAD = bytes(range(256)) * 40


def states(folder: Path, *, model: str = "m", most: int = 100_000) -> States:
    return States(folder / "states", model, most)


def files(folder: Path) -> list[Path]:
    return sorted((folder / "states").iterdir())


def test_a_state_is_kept_for_its_text_and_model(tmp_path: Path) -> None:
    """The same text and model find it, in a folder that nobody else may enter."""
    kept = states(tmp_path)
    assert kept.load("a text") is None
    assert kept.store("a text", PAYLOAD)
    assert PAYLOAD == states(tmp_path).load("a text")
    assert states(tmp_path).load("a text ") is None
    assert states(tmp_path, model="other").load("a text") is None
    assert 0o700 == kept.folder.stat().st_mode & 0o777
    assert 1 == len(files(tmp_path))


def test_nothing_is_taken_that_is_not_whole(tmp_path: Path) -> None:
    """Any byte changed, any length but its own: it is removed and made again."""
    kept = states(tmp_path)
    assert kept.store("text", PAYLOAD)
    (path,) = files(tmp_path)
    right = path.read_bytes()
    damaged = [right[:n] for n in (0, 1, 16, 40, 80, 81, len(right) - 1)]
    damaged += [right + b"\0", PAYLOAD, b"\0" * len(right)]
    for place in (0, 20, 50, 81, len(right) // 2, len(right) - 1):
        damaged.append(right[:place] + bytes([right[place] ^ 1]) + right[place + 1 :])
    for wrong in damaged:
        path.write_bytes(wrong)
        assert kept.load("text") is None
        assert not path.exists()
    path.write_bytes(right)
    assert PAYLOAD == kept.load("text")


def test_a_state_of_another_text_is_foreign(tmp_path: Path) -> None:
    """A whole file under another's name is not that other's state."""
    kept = states(tmp_path)
    assert kept.store("one", PAYLOAD)
    (one,) = files(tmp_path)
    assert kept.store("two", PAYLOAD[1:])
    two = next(path for path in files(tmp_path) if path != one)
    two.write_bytes(one.read_bytes())
    assert kept.load("two") is None
    assert PAYLOAD == kept.load("one")


@pytest.mark.skipif(os.name != "posix", reason="access rights as POSIX has them")
def test_a_folder_that_others_may_enter_is_left_alone(tmp_path: Path) -> None:
    """Nothing is read from it and nothing is put there; nor through a link."""
    kept = states(tmp_path)
    assert kept.store("text", PAYLOAD)
    kept.folder.chmod(0o755)
    assert kept.load("text") is None
    assert not kept.store("other", PAYLOAD)
    assert 1 == len(files(tmp_path))
    kept.folder.chmod(0o700)
    assert PAYLOAD == kept.load("text")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "states").symlink_to(kept.folder, target_is_directory=True)
    assert states(tmp_path / "link").load("text") is None


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    """All of them stay within the limit; one alone above it is not kept."""
    kept = states(tmp_path, most=25_000)
    for number, text in enumerate("abc"):
        assert kept.store(text, PAYLOAD)  # some ten thousand bytes each
        for path in files(tmp_path):
            then = time.time() - 1000 + 10 * number
            if path.stat().st_mtime > then + 500:
                os.utime(path, (then, then))
        if text == "b":
            assert PAYLOAD == kept.load("a")  # used just now
    assert [True, False, True] == [kept.load(text) is not None for text in "abc"]
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 25_000
    assert not kept.store("d", PAYLOAD * 3)
    assert not kept.store("e", b"")
    assert kept.load("c") is not None


def test_what_dead_processes_leave_is_removed(tmp_path: Path) -> None:
    """A passing file goes with its use; one of long ago with the next state."""
    kept = states(tmp_path)
    with kept.passing() as mine:
        mine.write_bytes(b"x")
    assert [] == files(tmp_path)
    old, new = kept.folder / "a.passing", kept.folder / "b.passing"
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    os.utime(old, (1000, 1000))
    assert kept.store("text", PAYLOAD)
    assert (False, True) == (old.exists(), new.exists())


def test_a_folder_that_cannot_be_had_is_no_error(tmp_path: Path) -> None:
    """Then nothing is kept."""
    (tmp_path / "states").write_text("a file stands there")
    assert states(tmp_path).load("text") is None
    assert not states(tmp_path).store("text", PAYLOAD)


_DIE = """
import os, pathlib, sys
from neuraxis.models.gguf.prompt_cache import States
kept = States(pathlib.Path(sys.argv[1]), "m", 100_000)
with kept.lent("text") as file:
    print(len(file.read_bytes()), flush=True)
    os._exit(6)
"""


def test_a_state_that_ends_the_process_does_so_once(tmp_path: Path) -> None:
    """llama.cpp may end it in reading: the next process finds none, and makes one."""
    kept = states(tmp_path)
    assert kept.store("text", PAYLOAD)
    with kept.lent("text") as file:
        assert file is not None
        assert PAYLOAD == file.read_bytes()
        assert kept.load("text") is None  # another process, meanwhile
    assert PAYLOAD == kept.load("text")
    command = [sys.executable, "-c", _DIE, str(kept.folder)]
    died = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (6, str(len(PAYLOAD))) == (died.returncode, died.stdout.strip())
    with kept.lent("text") as file:
        assert file is None
    for path in files(tmp_path):
        os.utime(path, (1000, 1000))
    assert kept.store("text", PAYLOAD)
    assert 1 == len(files(tmp_path))
    with kept.lent("text") as file:
        assert file is not None


def test_many_writers_at_once(tmp_path: Path) -> None:
    """Whoever reads finds a whole state, or none."""
    wrong: list[bytes] = []

    def work(number: int) -> None:
        kept = states(tmp_path)
        for turn in range(20):
            kept.store(f"text {turn % 3}", bytes([number]) * 5000)
            found = kept.load(f"text {turn % 3}")
            if found is not None and len(set(found)) != 1:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong
    assert {".state"} == {path.suffix for path in files(tmp_path)}


class Llama:
    """Stands for the binding's server: what it was asked, by call and by HTTP."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.known = ""
        self.folder = Path()
        self.key = ""
        self.status = 200
        self.refuses = False
        self.cached = 0

    def complete(self, request: dict[str, Any], take: Any = None) -> Any:
        prompt = "".join(said["content"] for said in request["messages"])
        is_read = request.get("max_tokens") == 0
        self.asked.append(("read" if is_read else "answer", prompt))
        if is_read:
            if self.refuses:
                take({"error": {"message": "too long"}})
                return None
            self.known = prompt
            take([{"choices": [], "prompt_progress": {}}])
            take({"choices": [{"delta": {}}]})
            return None
        self.cached = len(self.known) if prompt.startswith(self.known) else 0
        take("ok")
        self.known = prompt
        return None

    def slot(self, path: str, key: str, said: dict[str, str]) -> int:
        assert f"Bearer {self.key}" == key
        action = path.rpartition("=")[2]
        self.asked.append((action, ""))
        assert path.startswith("/slots/0?action=")
        if self.status == 200 and action == "save":
            (self.folder / said["filename"]).write_text(self.known)
        elif self.status == 200:
            self.known = (self.folder / said["filename"]).read_text()
        return self.status

    @property
    def kinds(self) -> list[str]:
        kinds = [kind for kind, _ in self.asked]
        self.asked.clear()
        return kinds


@pytest.fixture
def llama(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Llama]:
    """The binding replaced by one that reads and writes states as it would."""
    monkeypatch.setattr(settings, "user_dir", lambda kind: tmp_path)
    made = Llama()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status = made.slot(self.path, self.headers["authorization"], said)
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()

    class CommonParams:
        def __init__(self) -> None:
            self.model = types.SimpleNamespace()
            self.cpuparams = types.SimpleNamespace()
            self.cpuparams_batch = types.SimpleNamespace()

    class Server:
        listening_address = f"http://127.0.0.1:{listening.server_address[1]}"
        handle_chat_completions = staticmethod(made.complete)

        def __init__(self, params: Any) -> None:
            made.known = ""  # a process that has read nothing
            made.key = params.api_keys[0]
            made.folder = Path(getattr(params, "slot_save_path", ""))

    module = types.ModuleType("xllamacpp")
    module.CommonParams = CommonParams  # type: ignore[attr-defined]
    module.Server = Server  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    yield made
    listening.shutdown()
    listening.server_close()
    thread.join()


def write(folder: Path, body: Any = None, constant: int = 1, most: int = 1) -> str:
    """Have a fresh process answer."""
    file = folder / "model.gguf"
    if not file.exists():
        file.write_bytes(b"GGUF")
    engine = Engine(file, Setup(threads=1, states_mb=most))
    said: list[str] = []
    for _ in range(2 if body is None else 1):
        engine.ask(body or BODY, constant, lambda text: bool(said.append(text)))
    return said[-1]


BODY = {
    "messages": [
        {"role": "system", "content": "You are kind. "},
        {"role": "user", "content": "Hello"},
    ]
}


def test_the_constant_part_is_read_once_between_runs(
    llama: Llama, tmp_path: Path
) -> None:
    """One process saves it, the next brings it back; no word of a request is in it."""
    write(tmp_path)
    assert ["read", "save", "answer", "answer"] == llama.kinds
    (kept,) = files(tmp_path)
    assert b"Hello" not in kept.read_bytes()
    write(tmp_path, BODY)
    assert ["restore", "answer"] == llama.kinds
    assert llama.cached == len("You are kind. ")


def test_without_a_constant_part_nothing_is_kept(llama: Llama, tmp_path: Path) -> None:
    """Nor where the person wants nothing on the disk."""
    write(tmp_path, BODY, constant=0)
    write(tmp_path, BODY, most=0)
    assert ["answer", "answer"] == llama.kinds
    assert not (tmp_path / "states").exists()


def test_a_damaged_state_never_reaches_the_model(llama: Llama, tmp_path: Path) -> None:
    """It is made again, and the next run has it."""
    write(tmp_path, BODY)
    (path,) = files(tmp_path)
    right = path.read_bytes()
    path.write_bytes(right[:-3])
    assert ["read", "save", "answer"] == llama.kinds
    write(tmp_path, BODY)
    assert ["read", "save", "answer"] == llama.kinds
    assert right == path.read_bytes()


def test_a_state_that_the_model_refuses_is_made_again(
    llama: Llama, tmp_path: Path
) -> None:
    """A server that answers an error is asked the plain way."""
    write(tmp_path, BODY)
    llama.asked.clear()
    llama.status = 400
    assert "ok" == write(tmp_path, BODY)
    assert ["restore", "read", "save", "answer"] == llama.kinds


def test_what_could_not_be_read_is_not_saved(llama: Llama, tmp_path: Path) -> None:
    """After a refusal the model still knows another prompt, perhaps a person's."""
    llama.refuses = True
    assert "ok" == write(tmp_path, BODY)
    assert ["read", "answer"] == llama.kinds
    assert not (tmp_path / "states").exists()


def test_a_folder_that_cannot_be_had_costs_nothing(
    llama: Llama, tmp_path: Path
) -> None:
    """The answer comes as if nothing were kept."""
    (tmp_path / "states").write_text("a file stands there")
    assert "ok" == write(tmp_path, BODY)
    assert "answer" == llama.kinds[-1]
