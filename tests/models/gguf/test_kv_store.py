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

from neuraxis.models.gguf import weights
from neuraxis.models.gguf.kv_store import States
from neuraxis.models.gguf.lazy import LazyWriter
from neuraxis.models.gguf.llama import Ask, LlamaWriter

CHAT = "<|im_start|>system\nYou are a helpful assistant. Be short.<|im_end|>\n"
PROGRAM = "# Print hello\n```python\nprint('hello')\n```\n\n" * 4
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
from neuraxis.models.gguf.kv_store import States
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
        self.remembers = True

    def complete(self, request: dict[str, Any], take: Any = None) -> Any:
        prompt = request["prompt"]
        kind = "read" if take is None else "answer"
        self.asked.append((kind, prompt))
        if take is None:
            if self.refuses:
                return {"error": {"message": "too long"}}
            self.known = prompt
            return {"choices": [{"text": ""}]}
        cached = len(self.known) if prompt.startswith(self.known) else 0
        usage = {
            "prompt_tokens": len(prompt),
            "prompt_tokens_details": {"cached_tokens": cached * self.remembers},
        }
        take({"choices": [{"text": "ok", "finish_reason": "stop"}], "usage": usage})
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
def llama(monkeypatch: pytest.MonkeyPatch) -> Iterator[Llama]:
    """The binding replaced by one that reads and writes states as it would."""
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
        handle_completions = staticmethod(made.complete)

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


def writer(folder: Path | None) -> LlamaWriter:
    kept = None if folder is None else states(folder)
    return LlamaWriter(Path("model.gguf"), threads=1, states=kept)


ASK = Ask(prompt="You are kind. Hello", constant=len("You are kind. "))


async def test_the_constant_part_is_read_once_between_runs(
    llama: Llama, tmp_path: Path
) -> None:
    """Read and saved alone at first; brought back in the next process; never again."""
    first = writer(tmp_path)
    await first.write(ASK)
    assert ("read", "You are kind. ") == llama.asked[0]
    assert ["read", "save", "answer"] == llama.kinds
    await first.write(ASK)
    assert ["answer"] == llama.kinds
    (kept,) = files(tmp_path)
    assert b"Hello" not in kept.read_bytes()  # no word of the request
    second = writer(tmp_path)
    written = await second.write(ASK)
    assert ["restore", "answer"] == llama.kinds
    assert written.usage.cached_tokens == ASK.constant
    second.close()  # its memory is given back: what it had read is gone
    await second.write(ASK)
    assert ["restore", "answer"] == llama.kinds


async def test_without_a_constant_part_nothing_is_kept(
    llama: Llama, tmp_path: Path
) -> None:
    """Nor where the person wants nothing on the disk."""
    await writer(tmp_path).write(Ask(prompt="Hello"))
    await writer(None).write(ASK)
    assert ["answer", "answer"] == llama.kinds
    assert not (tmp_path / "states").exists()


async def test_a_damaged_state_never_reaches_the_model(
    llama: Llama, tmp_path: Path
) -> None:
    """It is made again, and the next run has it."""
    await writer(tmp_path).write(ASK)
    (path,) = files(tmp_path)
    right = path.read_bytes()
    path.write_bytes(right[:-3])
    assert ["read", "save", "answer"] == llama.kinds
    await writer(tmp_path).write(ASK)
    assert ["read", "save", "answer"] == llama.kinds
    assert right == path.read_bytes()


async def test_a_state_that_the_model_refuses_is_made_again(
    llama: Llama, tmp_path: Path
) -> None:
    """A server that answers an error is asked the plain way."""
    await writer(tmp_path).write(ASK)
    llama.asked.clear()
    llama.status = 400
    assert "ok" == (await writer(tmp_path).write(ASK)).text
    assert ["restore", "read", "save", "answer"] == llama.kinds


async def test_what_could_not_be_read_is_not_saved(
    llama: Llama, tmp_path: Path
) -> None:
    """After a refusal the model still knows another prompt, perhaps a person's."""
    llama.refuses = True
    assert "ok" == (await writer(tmp_path).write(ASK)).text
    assert ["read", "answer"] == llama.kinds
    assert not (tmp_path / "states").exists()


async def test_what_was_forgotten_is_brought_back(llama: Llama, tmp_path: Path) -> None:
    """Many other prompts may push the constant part out of the model's memory."""
    one = writer(tmp_path)
    llama.remembers = False
    await one.write(ASK)
    assert ["read", "save", "answer"] == llama.kinds
    await one.write(ASK)
    assert ["restore", "answer"] == llama.kinds


async def test_a_folder_that_cannot_be_had_costs_nothing(
    llama: Llama, tmp_path: Path
) -> None:
    """The answer comes as if nothing were kept."""
    (tmp_path / "states").write_text("a file stands there")
    assert "ok" == (await writer(tmp_path).write(ASK)).text
    assert "answer" == llama.kinds[-1]


@pytest.fixture
def real() -> None:
    """Skips without the binding or the file (no test downloads it)."""
    pytest.importorskip("xllamacpp")
    if weights.find() is None:
        pytest.skip("NEURAXIS_WEIGHTS does not name the model file")


@pytest.mark.local_model
@pytest.mark.usefixtures("real")
async def test_the_real_model_goes_on_from_a_kept_state() -> None:
    """The same words, of a constant part that it did not read; damage is survived.

    llama.cpp ends the whole process where such a file is cut off.
    """
    prompt = f"{CHAT}<|im_start|>user\nName three colours.<|im_end|>\n"
    ask = Ask(prompt=prompt, constant=len(CHAT), max_tokens=12)
    folder = weights.folder().parent / "states"

    async def fresh() -> tuple[str, int]:
        model = LazyWriter(threads=1)
        try:
            written = await model.write(ask)
        finally:
            model.close()
        return written.text, written.usage.cached_tokens

    first, read = await fresh()
    assert first
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    assert len(whole) > 100_000
    assert (first, read) == await fresh()
    assert read > 15
    path.write_bytes(whole[: len(whole) // 2])
    assert (first, read) == await fresh()
    assert len(whole) == path.stat().st_size


@pytest.mark.local_model
@pytest.mark.usefixtures("real")
async def test_the_real_model_remembers_between_calls() -> None:
    """Other prompts stand between; also where nothing is kept on the disk."""
    model = LazyWriter(threads=1, states_mb=0)
    asked = [
        Ask(prompt=f"{CHAT}Hi", constant=len(CHAT), max_tokens=1),
        Ask(prompt=f"{PROGRAM}# Add", constant=len(PROGRAM), max_tokens=1),
        Ask(prompt=f"{CHAT}Why?", constant=len(CHAT), max_tokens=1),
        Ask(prompt=f"{PROGRAM}# Sort", constant=len(PROGRAM), max_tokens=1),
    ]
    try:
        found = [(await model.write(ask)).usage.cached_tokens for ask in asked]
    finally:
        model.close()
    assert [0, 0] == found[:2]
    assert found[2] > 10
    assert found[3] > 40
    assert not (weights.folder().parent / "states").exists()
