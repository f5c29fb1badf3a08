"""Run the model file in this process with llama.cpp.

`Writer` is what the planner needs of a model; `LlamaWriter` is the real one, tests
bring their own. The work happens in a thread (the binding releases the GIL), pieces
of text come back through a callback, and a set `stop` event ends it at the next piece.
The constant beginning of a prompt is read once: between the calls of a run llama.cpp
remembers it, between runs `states.py` does.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from msgspec import Struct, field

from neuraxis.errors import MissingExtra, ModelBroken, ModelUnavailable
from neuraxis.messages import Usage
from neuraxis.models.gguf import kv_slot
from neuraxis.models.gguf.kv_store import States

CONTEXT = 2048
REMEMBERED = 128
"""MiB of prompts that llama.cpp remembers; its own limit is eight GiB."""


class Written(Struct, frozen=True, kw_only=True):
    """One completion: its text, how it ended, and its tokens."""

    text: str
    complete: bool
    """False: the token limit or a stop event ended it."""
    usage: Usage = field(default_factory=Usage)


class Ask(Struct, frozen=True, kw_only=True):
    """One completion that is wanted. `grammar` is llguidance's Lark form."""

    prompt: str
    constant: int = 0
    """How many characters of the prompt are the same in later requests."""
    max_tokens: int = 128
    grammar: str | None = None
    stop: tuple[str, ...] = ()
    temperature: float = 0.0
    repeat_penalty: float = 1.0


class Writer(Protocol):
    """A text model, as far as the planner needs one."""

    async def write(
        self, ask: Ask, on_text: Callable[[str], None] | None = None
    ) -> Written:
        """One completion; `on_text` gets its pieces."""
        ...

    def close(self) -> None:
        """Give memory back."""
        ...


def default_threads() -> int:
    """Two threads where two cores are free for us, else one.

    Each thread waits for the other by spinning: where others use the cores, two took
    ten times the processor's time of one, and as much longer.
    """
    cores = (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return 2 if cores - busy > 1 else 1


def binding_version() -> str:
    """The version of the binding; empty: it is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version("xllamacpp")
    except PackageNotFoundError:
        return ""


class LlamaWriter:
    """The model file in llama.cpp; loaded at the first completion.

    `states`: where the constant parts of prompts are kept; None: in memory only.
    """

    def __init__(
        self, path: Path, *, threads: int | None = None, states: States | None = None
    ) -> None:
        self._path = path
        self._threads = threads or default_threads()
        self._states = states
        self._server: Any = None
        # Without the key nobody else on this machine can use the binding's server.
        self._key = secrets.token_hex(32)
        self._read: set[str] = set()
        self._lock = threading.Lock()

    async def write(
        self, ask: Ask, on_text: Callable[[str], None] | None = None
    ) -> Written:
        """One completion; `on_text` is called on the event loop, in order."""
        stop = threading.Event()
        loop = asyncio.get_running_loop()

        def hand_over(text: str) -> None:
            if on_text is not None and not stop.is_set():
                loop.call_soon_threadsafe(on_text, text)

        try:
            written = await asyncio.to_thread(self._run, ask, hand_over, stop)
        finally:
            stop.set()  # a cancelled task leaves a thread that must end soon
        await asyncio.sleep(0)  # the last pieces are on the loop before the whole
        return written

    def close(self) -> None:
        """Give the memory back; the next completion loads again."""
        with self._lock:
            self._server = None
            self._read.clear()

    def _run(
        self, ask: Ask, on_text: Callable[[str], None], stop: threading.Event
    ) -> Written:
        request: dict[str, Any] = {
            "prompt": ask.prompt,
            "max_tokens": ask.max_tokens,
            "temperature": ask.temperature,
            "stream": True,
            "cache_prompt": True,
            "stream_options": {"include_usage": True},
        }
        if ask.stop:
            request["stop"] = list(ask.stop)
        if ask.grammar:
            request["grammar"] = ask.grammar
        if ask.repeat_penalty != 1.0:
            request["repeat_penalty"] = ask.repeat_penalty
        constant = ask.prompt[: ask.constant]
        pieces: list[Mapping[str, Any]] = []

        def take(piece: Any) -> bool:
            found: Sequence[Any] = (
                cast("list[Any]", piece) if isinstance(piece, list) else [piece]
            )
            for item in found:
                pieces.append(item)
                if text := _text(item):
                    on_text(text)
            return stop.is_set()

        # One completion at a time: the server has one slot, and a second caller's
        # prompt would throw the first one's cached prefix away.
        with self._lock:
            server = self._load()
            self._bring_back(server, constant)
            last = server.handle_completions(request, take)
            if isinstance(last, dict):
                pieces.append(cast("dict[str, Any]", last))
            written = _join(pieces, stopped=stop.is_set())
            if not written.usage.cached_tokens:  # forgotten for other prompts
                self._read.discard(constant)
        return written

    def _bring_back(self, server: Any, constant: str) -> None:
        """Restore the constant part of a prompt at its first use."""
        if self._states is None or not constant or constant in self._read:
            return
        self._read.add(constant)
        address, key = server.listening_address, self._key
        try:
            with self._states.lent(constant) as file:
                if file is not None and kv_slot.fill(address, key, file):
                    return
            # read by itself, so that what is saved holds no word of the request
            request = {"prompt": constant, "max_tokens": 0, "cache_prompt": True}
            answer = server.handle_completions(request)
            if not isinstance(answer, dict) or "choices" not in answer:
                return  # refused: what llama.cpp remembers is another prompt
            with self._states.passing() as file:
                if kv_slot.save(address, key, file):
                    self._states.store(constant, file.read_bytes())
        except OSError:
            return  # a folder that cannot be written: the prompt is read as a whole

    def _load(self) -> Any:
        if self._server is not None:
            return self._server
        try:
            binding: Any = import_module("xllamacpp")
        except ImportError as error:
            raise MissingExtra("xllamacpp", "local", "The local model") from error
        params = binding.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx = CONTEXT
        params.n_parallel = 1
        params.cpuparams.n_threads = self._threads
        params.cpuparams_batch.n_threads = self._threads
        params.verbosity = 0
        params.warmup = False
        params.cache_ram_mib = REMEMBERED
        # The binding also listens on a loopback port.
        params.api_keys = [self._key]
        if self._states is not None:
            params.slot_save_path = f"{self._states.folder}{os.sep}"
        try:
            self._server = binding.Server(params)
        except Exception as error:
            raise ModelUnavailable(
                f"{self._path}: llama.cpp cannot load it: {error}"
            ) from error
        return self._server


def _choice(piece: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = cast("list[Mapping[str, Any]]", piece.get("choices") or [{}])
    return choices[0]


def _text(piece: Mapping[str, Any]) -> str:
    return str(_choice(piece).get("text") or "")


def _join(pieces: Sequence[Mapping[str, Any]], *, stopped: bool) -> Written:
    reason = "length"
    usage = Usage()
    for piece in pieces:
        problem = piece.get("error") or piece.get("message")
        if "choices" not in piece and problem:
            raise ModelBroken(f"llama.cpp refused the request: {problem}")
        reason = str(_choice(piece).get("finish_reason") or reason)
        if found := cast("Mapping[str, Any] | None", piece.get("usage")):
            details = cast(
                "Mapping[str, Any]", found.get("prompt_tokens_details") or {}
            )
            usage = Usage(
                input_tokens=int(found.get("prompt_tokens") or 0),
                output_tokens=int(found.get("completion_tokens") or 0),
                cached_tokens=int(details.get("cached_tokens") or 0),
            )
    return Written(
        text="".join(_text(piece) for piece in pieces),
        complete=reason == "stop" and not stopped,
        usage=usage,
    )
